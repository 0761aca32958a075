"""Reads quantities: msgspec's hook for types of the model's own."""

from __future__ import annotations

from podqos.errors import InvalidQuantity
from podqos.manifest.plain import Number
from podqos.model.quantity import NULL, Quantity

# Go trims Unicode's white space around a quantity; what JSON writes as an escape (tabs, line ends) is no white space
# to it, because the quantity is parsed before escapes are (apimachinery/pkg/api/resource/quantity.go: UnmarshalJSON).
_SPACES = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"


def decode_hook(_kind: type, value: object) -> Quantity:
    """Read a quantity for msgspec: a string, a number by its text, null as zero."""
    if isinstance(value, str):
        try:
            return Quantity.parse(value)
        except InvalidQuantity:
            trimmed = value.strip(_SPACES)
            if trimmed == value:
                raise
            return Quantity.parse(trimmed)
    if isinstance(value, float):
        return Quantity.parse(value.text if isinstance(value, Number) else repr(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return Quantity.parse(str(value))
    if value is None:
        return NULL
    raise InvalidQuantity("a quantity must be a string or a number")
