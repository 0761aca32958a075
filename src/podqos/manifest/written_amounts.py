"""Amounts as people, spreadsheets and dashboards write them, turned into what Kubernetes reads: ``1.5 GiB`` is 1.5Gi.

Manifests are not read this way: there, upstream's rule decides. A text that could mean two amounts stays as it is, and
``Quantity.parse`` then says which words it could stand for: 64GB is 64Gi to some, 64G to others.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from podqos.errors import InvalidArgument

if TYPE_CHECKING:
    from fractions import Fraction

_SPACES = " \u00a0\u202f"
_AMOUNT = re.compile(rf"([+-]?)([0-9](?:[0-9.,'_]|[{_SPACES}](?=[0-9]))*)\s*([A-Za-zµ]*)")
_GROUPED = {mark: re.compile(rf"[0-9]{{1,3}}(?:{re.escape(mark)}[0-9]{{3}})+") for mark in (*",.'_", *_SPACES)}
_KUBERNETES = frozenset(("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))
_UNITS = {
    **{f"{letter}i": f"{letter.upper()}i" for letter in "kmgtpe"},
    **{f"{letter}ib": f"{letter.upper()}i" for letter in "kmgtpe"},
    **dict.fromkeys(("b", "byte", "bytes"), ""),
    **dict.fromkeys(("core", "cores", "cpu", "cpus", "vcpu", "vcpus"), ""),
    **dict.fromkeys(("mcpu", "mcpus", "millicpu", "millicpus", "mcore", "mcores", "millicore", "millicores"), "m"),
}
_DECIMAL_BYTES = {"kb": "k", "mb": "M", "gb": "G", "tb": "T", "pb": "P"}


def plain_amount(text: str, *, decimal_bytes: bool = False, decimal_comma: bool | None = None) -> str:
    """Return an amount as Kubernetes writes it; what is not an amount, or could be two, stays as it is.

    ``decimal_bytes``: GB is 10⁹ bytes, as programs mean it. ``decimal_comma``: whether 1,024 is a little more than one,
    and not a thousand; None: nobody knows.
    """
    matched = _AMOUNT.fullmatch(text.strip())
    if matched is None:
        return text
    sign, digits, unit = matched.groups()
    number = _number(digits.strip(), decimal_comma=decimal_comma)
    suffix = _suffix(unit, decimal_bytes=decimal_bytes)
    return text if number is None or suffix is None else f"{sign.strip('+')}{number}{suffix}"


def _suffix(unit: str, *, decimal_bytes: bool) -> str | None:
    if unit in _KUBERNETES:
        return unit
    letters = unit.lower()
    return _UNITS.get(letters, _DECIMAL_BYTES.get(letters) if decimal_bytes else None)


def _number(digits: str, *, decimal_comma: bool | None) -> str | None:
    """Return digits with a decimal point and nothing else between them; None where they could be two numbers."""
    marks = [mark for mark in _GROUPED if mark in digits]
    if not marks:
        return digits
    if len(marks) == 1:
        return _with_one_mark(digits, marks[0], decimal_comma=decimal_comma)
    # The last of two kinds is the decimal point, and stands once: 1,536.5 or 1.536,5.
    last = max(marks, key=digits.rindex)
    whole, _, part = digits.rpartition(last)
    group = next(mark for mark in marks if mark != last)
    if len(marks) > 2 or last not in ".," or not _GROUPED[group].fullmatch(whole) or not part.isdecimal():
        return None
    return f"{whole.replace(group, '')}.{part}"


def _with_one_mark(digits: str, mark: str, *, decimal_comma: bool | None) -> str | None:
    is_grouped = _GROUPED[mark].fullmatch(digits) is not None
    if digits.count(mark) > 1:
        return digits.replace(mark, "") if is_grouped else None
    if mark == ".":
        return digits
    if mark == ",":
        if is_grouped and decimal_comma is None:
            return None
        return digits.replace(",", "" if is_grouped and not decimal_comma else ".")
    return digits.replace(mark, "") if is_grouped else None


def positive_number(text: str, where: str, what: str, example: str, most: int | None = None) -> Fraction:
    """Read a number above zero; ``where`` it is stated and ``what`` it is, in an error."""
    from fractions import Fraction

    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        number = Fraction(0)
    if number <= 0 or (most is not None and number > most):
        raise InvalidArgument(f"{text!r} is not a {what}", where=where, fix=f"for example {example}")
    return number
