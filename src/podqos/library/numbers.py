"""Numbers that options state as text and that need not be whole: a ratio, a share, a speed."""

from __future__ import annotations

from fractions import Fraction

from podqos.errors import InvalidOption


def positive_number(text: str, option: str, what: str, example: str, most: int | None = None) -> Fraction:
    """Read a number above zero; ``what`` it is, in an error."""
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        number = Fraction(0)
    if number <= 0 or (most is not None and number > most):
        raise InvalidOption(f"{text!r} is not a {what}", where=option, fix=f"for example {example}")
    return number
