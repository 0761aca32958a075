"""Numbers and durations as Go's standard library reads them, because kubelet settings are read by it.

Python's own readers differ: ``float`` takes blanks around a number, does not take ``0x1p-2``, and rounds to 64 bits
where the kubelet rounds to 32; durations such as ``1m30s`` it does not know at all.

The parsers raise ``ValueError`` with the text Go gives.

Source: Go strconv.ParseFloat, strconv.Atoi, strconv.Quote, time.ParseDuration and unicode.IsSpace.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction

_DIGITS = r"[0-9](?:_?[0-9])*"
_HEX_DIGITS = r"[0-9a-f](?:_?[0-9a-f])*"
_DECIMAL = re.compile(rf"([+-]?)({_DIGITS})?(?:\.({_DIGITS})?)?(?:e([+-]?{_DIGITS}))?", re.ASCII | re.IGNORECASE)
_HEXADECIMAL = re.compile(
    rf"([+-]?)0x_?({_HEX_DIGITS})?(?:\.({_HEX_DIGITS})?)?p([+-]?{_DIGITS})", re.ASCII | re.IGNORECASE
)
_INFINITIES = {sign + word for sign in ("", "+", "-") for word in ("inf", "infinity")}

_SMALLEST_EXPONENT = -149  # of the last bit of a 32-bit float
_LARGEST_FLOAT32 = Fraction((2**24 - 1) * 2**104)
# Far outside what 32 bits hold; numbers beyond are not worked out.
_HOPELESS_DECIMAL = 400
_HOPELESS_BINARY = 1200

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,  # the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_DURATION_PART = re.compile(r"([0-9]*)(?:(\.)([0-9]*))?([^0-9.]*)", re.ASCII)
_LARGEST_INT64 = 2**63 - 1
GO_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Go takes for white space."""
_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def quoted(text: str) -> str:
    """Return a text as Go's ``%q`` prints it."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped if text.isprintable() else "".join(map(_escaped, escaped))}"'


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def parse_int(text: str) -> int:
    """Return the integer that Go's ``strconv.Atoi`` gives."""
    if not re.fullmatch("[+-]?[0-9]+", text):
        raise ValueError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    digits = text.lstrip("+-").lstrip("0") or "0"
    number = int(digits[:20]) * (-1 if text.startswith("-") else 1)
    if len(digits) > 19 or not -_LARGEST_INT64 - 1 <= number <= _LARGEST_INT64:
        raise ValueError(f"strconv.Atoi: parsing {quoted(text)}: value out of range")
    return number


def parse_float32(text: str) -> float:
    """Return the 32-bit float that Go's ``strconv.ParseFloat(text, 32)`` gives (in a Python float, which holds it)."""
    lower = text.lower()
    if lower == "nan":
        return math.nan
    if lower in _INFINITIES:
        return -math.inf if lower.startswith("-") else math.inf
    number = _exact_number(text)
    if number is None:
        raise ValueError(f'strconv.ParseFloat: parsing "{text}": invalid syntax')
    sign, magnitude = number
    rounded = _to_float32(magnitude) if magnitude is not None else math.inf
    if rounded == math.inf:
        raise ValueError(f'strconv.ParseFloat: parsing "{text}": value out of range')
    return sign * rounded


def divide_float32(value: float, divisor: int) -> float:
    """Divide two 32-bit floats and round the quotient to 32 bits again, as Go's ``float32`` does."""
    if not math.isfinite(value):
        return value
    return math.copysign(_to_float32(abs(Fraction(value)) / divisor), value)


def _exact_number(text: str) -> tuple[float, Fraction | None] | None:
    """Return sign and magnitude; None if it is not a number, a magnitude of None if it is far too large."""
    matched, base, digits_per_power = _HEXADECIMAL.fullmatch(text), 16, 4
    if matched is None:
        matched, base, digits_per_power = _DECIMAL.fullmatch(text), 10, 1
    if matched is None:
        return None
    sign, whole, fraction, exponent_text = (group.replace("_", "") for group in matched.groups(default=""))
    if not whole + fraction:
        return None
    factor = -1.0 if sign == "-" else 1.0
    mantissa = int(whole + fraction, base)
    exponent = int(exponent_text or "0") - digits_per_power * len(fraction)
    limit = _HOPELESS_DECIMAL if base == 10 else _HOPELESS_BINARY
    if mantissa == 0 or exponent < -limit - 4 * len(whole + fraction):
        return factor, Fraction(0)
    if exponent > limit:
        return factor, None
    return factor, mantissa * Fraction(10 if base == 10 else 2) ** exponent


def _to_float32(magnitude: Fraction) -> float:
    """Round to the nearest 32-bit float, halves to even; too large is infinite."""
    if magnitude == 0:
        return 0.0
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 24
    while magnitude / Fraction(2) ** exponent >= 2**24:
        exponent += 1
    exponent = max(exponent, _SMALLEST_EXPONENT)
    significand = round(magnitude / Fraction(2) ** exponent)
    if significand * Fraction(2) ** exponent > _LARGEST_FLOAT32:
        return math.inf
    return math.ldexp(significand, exponent)


def parse_duration_ns(text: str) -> int:
    """Return the nanoseconds that Go's ``time.ParseDuration(text)`` gives: ``1m30s``, ``1.5h``, ``-100ms``."""
    sign, rest = (text[0], text[1:]) if text[:1] in {"+", "-"} else ("", text)
    if rest == "0":
        return 0
    if not rest:
        raise ValueError(f'time: invalid duration "{text}"')
    total = 0
    while rest:
        matched = _DURATION_PART.match(rest)
        assert matched is not None
        whole, dot, fraction, unit = matched.groups(default="")
        if not whole and not fraction:
            raise ValueError(f'time: invalid duration "{text}"')
        if not unit:
            # A second dot ends a number without a unit; so does the end.
            raise ValueError(f'time: missing unit in duration "{text}"')
        if unit not in _NANOSECONDS:
            raise ValueError(f'time: unknown unit "{unit}" in duration "{text}"')
        total += int(whole or "0") * _NANOSECONDS[unit]
        if dot:
            total += _fraction_ns(fraction, _NANOSECONDS[unit])
        if total > _LARGEST_INT64 + (sign == "-"):
            raise ValueError(f'time: invalid duration "{text}"')
        rest = rest[matched.end() :]
    return -total if sign == "-" else total


def _fraction_ns(digits: str, unit_ns: int) -> int:
    """Return the fraction of a unit as Go computes it: in 64-bit floats, digits beyond an int64 dropped."""
    value, scale = 0, 1.0
    for digit in digits:
        if value > _LARGEST_INT64 // 10:
            break
        value = value * 10 + int(digit)
        scale *= 10
    return int(float(value) * (float(unit_ns) / scale))
