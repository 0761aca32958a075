"""Numbers that are stated as text and that need not be whole: a ratio, a share, a speed."""

from __future__ import annotations

from fractions import Fraction

from podqos.errors import InvalidArgument


def positive_number(text: str, where: str, what: str, example: str, most: int | None = None) -> Fraction:
    """Read a number above zero; ``where`` it is stated and ``what`` it is, in an error."""
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        number = Fraction(0)
    if number <= 0 or (most is not None and number > most):
        raise InvalidArgument(f"{text!r} is not a {what}", where=where, fix=f"for example {example}")
    return number
