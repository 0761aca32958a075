"""Resource amounts, exactly as Kubernetes reads, rounds, compares and prints them.

An amount is a whole number of nanos (10^-9 units): Kubernetes rounds every amount away from zero to that
grain when it parses one, so an integer loses nothing. The three notations (``500M``, ``512Mi``, ``5e8``)
are only a way of writing the same number and are remembered for printing.

Nothing but the number belongs here: which resources exist and what they mean is in ``resources``.

Source: Kubernetes v1.36 staging/src/k8s.io/apimachinery/pkg/api/resource/{quantity,suffix,amount}.go.
"""

from __future__ import annotations

import re
from typing import Literal

from podqos.errors import InvalidQuantity

Format = Literal["DecimalSI", "BinarySI", "DecimalExponent"]

NANOS = 10**9
_NANOS_PER_MILLI = 10**6

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# Upstream caps binary amounts, and only those, at the largest signed 64-bit integer.
_BINARY_CAP_NANOS = _LARGEST * NANOS

# Python integers have no largest exponent, but beyond 4,300 digits they are not printed. Upstream keeps the exponent as
# a number apart and would take any 32-bit one; no cluster has 10^2000 of anything.
_LARGEST_EXPONENT = 2_000

_DECIMAL_EXPONENTS = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES = ("", *_BINARY_EXPONENTS)

# Upstream's hand-written scanner is more generous than the expression it quotes in its error: a text without
# any digit ("Mi", ".", "-") is a zero, unless its suffix is too large or too small for the fast path ("Ei", "e-10").
_TEXT = re.compile(r"([+-]?+)0*+([0-9]*+)(?:\.([0-9]*+)|)([eEinumkKMGTP]*+[-+]?+[0-9]*+)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?[0-9]+)", re.ASCII)

# What upstream trims around an amount in JSON: white space, except what JSON writes as an escape (it trims before it
# would unescape), such as tabs and line ends.
_BLANKS = " \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"

WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
"""Upstream's words for a text, or any other value, that is no quantity."""
_ERROR_SUFFIX = "unable to parse quantity's suffix"
_ERROR_NUMBER = "unable to parse numeric part of quantity"

# How people write amounts that Kubernetes does not read, and the suffixes that were probably meant: units of a thousand
# are as often meant to be those of 1024.
_AMOUNT = re.compile(r"\s*([+-]?[0-9]+(?:[.,][0-9]+)?)\s*([A-Za-zµ]*)\s*")
_GROUP_DIGITS = 3
# Typographic quotes are part of the text.
_QUOTES = "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb'\" "
_MEANT_SUFFIXES: dict[str, tuple[str, ...]] = {
    "k": ("Ki", "k"), "ki": ("Ki",), "kb": ("Ki", "k"), "kib": ("Ki",),
    "mi": ("Mi",), "mb": ("Mi", "M"), "mib": ("Mi",),
    "g": ("Gi", "G"), "gi": ("Gi",), "gb": ("Gi", "G"), "gib": ("Gi",),
    "t": ("Ti", "T"), "ti": ("Ti",), "tb": ("Ti", "T"), "tib": ("Ti",),
    "p": ("Pi", "P"), "pi": ("Pi",), "pb": ("Pi", "P"), "pib": ("Pi",),
    "b": ("",), "byte": ("",), "bytes": ("",), "": ("",),
    "cpu": ("",), "cpus": ("",), "core": ("",), "cores": ("",),
    "mcpu": ("m",), "millicpu": ("m",), "mcores": ("m",), "millicores": ("m",),
}  # fmt: skip


def _away_from_zero(numerator: int, denominator: int) -> int:
    """Divide and round away from zero, as every conversion of an amount to a coarser grain does."""
    return -(-numerator // denominator) if numerator > 0 else numerator // denominator


class Quantity:
    """An exact resource amount: ``Quantity.parse("1.5Gi")``.

    Equality, order and hash go by the amount alone: ``1Gi == 1024Mi``.
    """

    __slots__ = ("_text", "finer_than_milli", "format", "milli_value", "nanos", "value", "written")

    nanos: int
    format: Format
    value: int
    """Whole units, rounded away from zero (bytes, cores, things), in 64 bits: what is larger is the largest of them."""
    milli_value: int
    """Thousandths, rounded away from zero (milli-CPUs)."""
    finer_than_milli: bool
    """Whether that rounding lost something."""
    written: str
    """The text it was read from, which tells 5000 from 5k; empty if it was computed."""

    def __init__(self, nanos: int, format: Format = "DecimalSI", text: str | None = None) -> None:  # noqa: A002
        self.nanos = nanos
        self.format = format
        self._text = text
        self.written = ""
        value = _away_from_zero(nanos, NANOS)
        self.value = value if _SMALLEST <= value <= _LARGEST else _LARGEST if nanos > 0 else _SMALLEST
        self.milli_value = _away_from_zero(nanos, _NANOS_PER_MILLI)
        self.finer_than_milli = self.milli_value * _NANOS_PER_MILLI != nanos

    @classmethod
    def parse(cls, text: str) -> Quantity:
        """Read ``text`` as Kubernetes does, or raise ``InvalidQuantity`` with upstream's reason."""
        try:
            return _parsed[text]
        except KeyError:
            quantity = _parse(text)
        if len(_parsed) < _PARSED_LIMIT:
            _parsed[text] = quantity
        return quantity

    @classmethod
    def from_json(cls, text: str) -> Quantity:
        """Read a string value of a manifest: blanks around the number do not matter."""
        try:
            return _parsed[text]
        except KeyError:
            return cls.parse(text.strip(_BLANKS))

    @classmethod
    def of_units(cls, units: int, format: Format = "DecimalSI") -> Quantity:  # noqa: A002
        """Return an amount of whole units."""
        return cls(units * NANOS, format)

    @classmethod
    def of_milli(cls, milli: int, format: Format = "DecimalSI") -> Quantity:  # noqa: A002
        """Return an amount of thousandths."""
        return cls(milli * _NANOS_PER_MILLI, format)

    def __str__(self) -> str:
        """Return what Kubernetes prints: canonical, or the given text where upstream takes it for canonical."""
        if self._text is None:
            self._text = self.canonical()  # amounts are shared and printed over and over
        return self._text

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __bool__(self) -> bool:
        return self.nanos != 0

    def __add__(self, other: Quantity) -> Quantity:
        """Add; the sum is written like the left side, unless that is zero."""
        return Quantity(self.nanos + other.nanos, self.format if self.nanos else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        """Subtract; the difference is written like the left side, unless that is zero."""
        return Quantity(self.nanos - other.nanos, self.format if self.nanos else other.format)

    @property
    def sign(self) -> int:
        """-1, 0 or 1."""
        return (self.nanos > 0) - (self.nanos < 0)

    def rounded_up_to_milli(self) -> Quantity:
        """Return the amount the API server stores: defaulting rounds every amount to whole thousandths."""
        if not self.finer_than_milli:
            return self
        return Quantity(self.milli_value * _NANOS_PER_MILLI, self.format)

    def canonical(self) -> str:
        """Return the one text that stands for this amount: no fraction, the largest unit that leaves none."""
        if self.nanos == 0:
            return "0"
        if self.format == "BinarySI" and abs(self.nanos) >= 1024 * NANOS and self.nanos % NANOS == 0:
            return _canonical_binary(self.nanos // NANOS)
        number, exponent = _canonical_decimal(self.nanos)
        if self.format == "DecimalExponent":
            return f"{number}e{exponent}" if exponent else str(number)
        # Units end at E. (Upstream would print 1000E as "1"; a unit must not get lost, so we do not.)
        largest = min(exponent, 18)
        return f"{number * 10 ** (exponent - largest)}{_DECIMAL_SUFFIXES[largest]}"


def meant_cores(text: str) -> str:
    """Return how many cores were probably meant by a text that is no quantity: 500m by 500MI; empty where unknown."""
    matched = _AMOUNT.fullmatch(text)
    suffix = matched[2].lower() if matched else ""
    if matched is None or suffix not in (*_MEANT_SUFFIXES, "m"):
        return ""
    return f"did you mean {matched[1].replace(',', '.')}{'m' if suffix.startswith('m') else ''}?"


def _meant(text: str) -> str:
    """Return which quantity was probably meant: 128Mi by 128mi, 0.5 by 0,5; empty if that is anybody's guess."""
    bare = text.strip(_QUOTES)
    if bare != text and _TEXT.fullmatch(bare):
        return f"did you mean {bare}?"
    matched = _AMOUNT.fullmatch(text)
    suffixes = _MEANT_SUFFIXES.get(matched[2].lower()) if matched else None
    if matched is None or suffixes is None:
        return ""
    numbers = [matched[1].replace(",", ".")]
    if "," in matched[1] and len(matched[1].rpartition(",")[2]) == _GROUP_DIGITS:
        numbers = [matched[1].replace(",", ""), *numbers]  # 1,024 may be either
    return f"did you mean {' or '.join(f'{number}{suffix}' for number in numbers for suffix in suffixes)}?"


def _parse(text: str) -> Quantity:
    matched = _TEXT.fullmatch(text)
    if matched is None or not text:
        raise InvalidQuantity(WRONG_FORMAT, fix=_meant(text))
    sign, whole, fraction, suffix = matched.groups(default="")
    has_digit = bool(whole or fraction) or "0" in text[: matched.start(4)]
    whole = whole or "0"
    binary = _BINARY_EXPONENTS.get(suffix)
    exponent = _DECIMAL_EXPONENTS.get(suffix)
    notation: Format = "BinarySI" if binary is not None else "DecimalSI"
    if binary is None and exponent is None:
        scientific = _EXPONENT.fullmatch(suffix)
        if scientific is None:
            raise InvalidQuantity(_ERROR_SUFFIX, fix=_meant(text))
        # Leading zeros do not count; what is longer than this is out of range, however long it is.
        written = scientific[1].lstrip("+-").lstrip("0")
        if len(written) > 9 or int(written or "0") > _LARGEST_EXPONENT:
            raise InvalidQuantity(f"exponent {scientific[1][:20]} is out of range")
        notation, exponent = "DecimalExponent", int(f"{'-' if '-' in scientific[1] else ''}{written or '0'}")
    if not has_digit and not _fits_fast_path(whole, fraction, exponent, binary):
        raise InvalidQuantity(_ERROR_NUMBER)
    try:
        mantissa = int(whole + fraction)
    except ValueError:
        mantissa = None
    if mantissa is None or len(whole) > _LARGEST_EXPONENT:
        raise InvalidQuantity(f"a number of {len(whole + fraction)} digits is too long") from None

    # amount = mantissa × 10^(exponent − len(fraction)), or × 2^binary; in nanos, rounded away from zero
    scale = 9 - len(fraction) + (exponent or 0)
    nanos = mantissa << binary if binary is not None else mantissa
    nanos = nanos * 10**scale if scale >= 0 else -(-nanos // 10**-scale)
    if binary is not None:
        nanos = min(nanos, _BINARY_CAP_NANOS)
        if 0 < nanos < NANOS:
            notation = "DecimalSI"
    quantity = Quantity(-nanos if sign == "-" else nanos, notation)
    quantity.written = text
    if _looks_canonical(whole, fraction, exponent, binary):
        quantity._text = text  # noqa: SLF001 - filled in once, before the object is shared
    return quantity


def _looks_canonical(whole: str, fraction: str, exponent: int | None, binary: int | None) -> bool:
    """Whether upstream reuses the given text when it prints the amount.

    It does so on its fast path only, by a test that lets a sign, leading zeros and a trailing dot through.
    """
    if not _fits_fast_path(whole, fraction, exponent, binary):
        return False
    if exponent is None:
        return int(whole) % 8 != 0
    digits = whole + fraction
    return (exponent - len(fraction)) % 3 == 0 and not digits.endswith("000") and digits[0] != "0"


def _fits_fast_path(whole: str, fraction: str, exponent: int | None, binary: int | None) -> bool:
    """Whether upstream counts in 64 bits."""
    if binary is not None:
        return not fraction and 14 - len(whole) - binary * 3 // 10 >= 0
    assert exponent is not None
    return len(whole + fraction) <= 18 and exponent - len(fraction) >= -9


def _canonical_decimal(nanos: int) -> tuple[int, int]:
    """Return the number and the largest exponent divisible by three that leaves it whole."""
    exponent = -9
    while nanos % 1000 == 0:
        nanos //= 1000
        exponent += 3
    return nanos, exponent


def _canonical_binary(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power < len(_BINARY_SUFFIXES) - 1:
        units //= 1024
        power += 1
    return f"{units}{_BINARY_SUFFIXES[power]}"


# Manifests repeat themselves: a cluster of thousands of pods has a few hundred different amounts.
_PARSED_LIMIT = 65_536
_parsed: dict[str, Quantity] = {}

ZERO = Quantity.parse("0")


class NullQuantity(Quantity):
    """What a written ``null`` is read as: zero, as upstream does. Its author stated no amount."""

    __slots__ = ()


NULL = NullQuantity(0)
