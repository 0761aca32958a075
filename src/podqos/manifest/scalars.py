"""What an unquoted YAML scalar means to Kubernetes.

Kubernetes reads YAML 1.1 with go-yaml v2 and turns it into JSON: ``yes`` and ``on`` are true, ``010`` is eight,
``0x1F`` and ``1_000`` are integers, ``~`` is null, dates stay text, and keys become strings. Both readings of YAML
call this one function, so they cannot disagree about a scalar.

Source: sigs.k8s.io/yaml v1.6, resolve.go and decode.go of its go-yaml v2, and ``convertToJSONableObject``;
numbers are then printed by Go's encoding/json.
"""

from __future__ import annotations

import re

from podqos.manifest.plain import Number

Scalar = bool | int | float | str | None


class UnfitScalar(ValueError):
    """A scalar that JSON cannot represent, or that does not match its tag."""


WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
"""Words that are booleans or null."""
_NOT_FINITE = frozenset(
    (".nan", ".NaN", ".NAN", *(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")))
)
_MAYBE_NUMBER = frozenset("+-.0123456789")
_NUMBER_CHARACTERS = re.compile(r"[0-9a-fA-FxXoO_.+-]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_LEADING_DOT_FLOAT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))", re.ASCII)
_BASES = (0, 0, 16, 2, 8, 10)  # by group
_TAG_PREFIX = "tag:yaml.org,2002:"


def resolve(text: str) -> Scalar:
    """Return what the unquoted scalar ``text`` means."""
    if text in WORDS:
        return WORDS[text]
    if text[0] not in _MAYBE_NUMBER:
        return text
    if text[0] != "0" and len(text) < 19 and text.isascii() and text.isdigit():  # most numbers
        return int(text)
    if text in _NOT_FINITE:
        raise UnfitScalar(f"{text} is not a number that JSON can carry")
    if _NUMBER_CHARACTERS.fullmatch(text) is None:
        return text
    if text[0] == ".":
        number = float(text.replace("_", "")) if _LEADING_DOT_FLOAT.fullmatch(text) else None
    else:
        digits = text.replace("_", "")
        integer = _integer(digits)
        if integer is not None:
            return integer
        number = float(digits) if _FLOAT.fullmatch(digits) else None
    # A number too large for a float stays text.
    return text if number is None or abs(number) == float("inf") else _as_json(number)


# YAML 1.1 as its types are defined (https://yaml.org/type/) and PyYAML reads them, which takes more for numbers than
# Kubernetes does, and dates as well.
_OF_YAML_1_1 = re.compile(
    r"""
      [-+]?0b[01_]+ | [-+]?[0-9][0-9_]* | [-+]?0x[0-9a-fA-F_]+
    | [-+]?[0-9][0-9_]*(?: : [0-5]?[0-9])+(?: \.[0-9_]*)?
    | [-+]?[0-9][0-9_]*\.[0-9_]*(?: [eE][-+]?[0-9]+)? | [-+]?\.[0-9_]+(?: [eE][-+]?[0-9]+)?
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?: (?: [Tt]|[ \t]+)[0-9].*)?
    """,
    re.ASCII | re.VERBOSE | re.DOTALL,
)
_OF_YAML_1_1_WORDS = frozenset(("=", "<<"))


def is_text(text: str) -> bool:
    """Whether the unquoted scalar ``text`` is a text to Kubernetes and to every other reader of YAML."""
    if text in WORDS or text in _OF_YAML_1_1_WORDS:
        return False
    if text[0] not in _MAYBE_NUMBER:
        return True
    if _OF_YAML_1_1.fullmatch(text) or _FLOAT.fullmatch(text.replace("_", "")):
        return False
    try:
        return isinstance(resolve(text), str)
    except UnfitScalar:
        return False


def resolve_tagged(text: str, tag: str) -> Scalar:
    """Return what ``text`` means under an explicit tag; under an unknown tag it is a text."""
    kind = tag.removeprefix(_TAG_PREFIX)
    if kind == "binary":
        return _decode_binary(text)
    if kind == tag or kind not in _TAG_TYPES:
        return text
    wanted = _TAG_TYPES[kind]
    if wanted is str:
        return text
    value = resolve(text)
    if isinstance(value, int) and not isinstance(value, bool) and wanted is float:
        return value
    if not isinstance(value, wanted):
        raise UnfitScalar(f"cannot read {text!r} as !!{kind}")
    return value


def resolve_key(text: str) -> str:
    """Return the string that an unquoted mapping key becomes in JSON."""
    value = resolve(text)
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return _float_key(value)
    if value is None:
        raise UnfitScalar("null cannot be a key")
    return str(value)


_TAG_TYPES: dict[str, type] = {
    "str": str,
    "timestamp": str,
    "int": int,
    "float": float,
    "bool": bool,
    "null": type(None),
}


def _integer(digits: str) -> int | None:
    """Return the integer, if ``digits`` is one that fits into 64 bits or is written in another base."""
    matched = _INTEGER.fullmatch(digits)
    if matched is None:
        return None
    assert matched.lastindex is not None
    sign, notation, base = matched[1], matched[matched.lastindex], _BASES[matched.lastindex]
    if base == 10 and len(notation) > 20:
        return None
    value = int(notation, base)
    largest = 2**63 if sign == "-" else 2**63 - 1 if sign else 2**64 - 1
    if value > largest and _FLOAT.fullmatch(digits):
        return None
    return -value if sign == "-" else value


def _as_json(number: float) -> int | Number:
    """Return ``number`` with the text that Go's JSON encoder gives it."""
    from decimal import Decimal

    if number == 0 or 1e-6 <= abs(number) < 1e21:
        text = format(Decimal(repr(number)), "f").removesuffix(".0")
        return Number.read(text) if "." in text else int(text)
    return Number.read(re.sub(r"e-0(\d)$", r"e-\1", repr(number)))


def _float_key(number: Number) -> str:
    """Return the shortest text of the nearest 32-bit float: so go-yaml writes such keys."""
    nearest = _nearest_single(number)
    if abs(nearest) == float("inf"):
        return ".inf" if number > 0 else "-.inf"
    texts = (f"{nearest:.{precision}g}" for precision in range(1, 10))
    return next(text for text in texts if _nearest_single(float(text)) == nearest)


def _nearest_single(number: float) -> float:
    import struct

    single: float = struct.unpack("f", struct.pack("f", number))[0]
    return single


def _decode_binary(text: str) -> str:
    import base64
    import binascii

    try:
        return base64.b64decode(text, validate=False).decode(errors="replace")
    except binascii.Error:
        raise UnfitScalar("!!binary value contains invalid base64 data") from None
