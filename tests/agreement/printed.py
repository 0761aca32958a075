"""What people read, read back: tables by their headings, amounts with how exactly they are printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_FACTORS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_AMOUNT = re.compile(r"(−|-)?([\d,]+)(\.\d+)?(Ki|Mi|Gi|Ti)?")


class Rounded(NamedTuple):
    """A number as it is printed, which stands for all that round to it."""

    low: float
    high: float

    def agrees(self, exact: object) -> bool:
        """Whether this is how a number is printed."""
        return isinstance(exact, (int, float)) and self.low <= exact <= self.high


class Among(NamedTuple):
    """One of several things that may happen."""

    what: object

    def agrees(self, every: object) -> bool:
        """Whether it is one of them."""
        return isinstance(every, (frozenset, tuple)) and self.what in every


class Every(NamedTuple):
    """Several things that happened, each of which may."""

    what: frozenset[object]

    def agrees(self, every: object) -> bool:
        """Whether all of them are among what may happen."""
        return isinstance(every, frozenset) and self.what <= every


def agrees(reference: object, answer: object) -> bool:
    """Whether an answer is the one of the reference."""
    if isinstance(answer, (Rounded, Among, Every)):
        return answer.agrees(reference)
    return reference == answer


def rounded(text: str, unit: float = 1) -> Rounded:
    """Return a printed number, times ``unit``; it may be off by one in its last digit."""
    whole, _, fraction = text.replace(",", "").replace("−", "-").partition(".")
    step = 10.0 ** -len(fraction)
    value = float(f"{whole}.{fraction or 0}")
    return Rounded((value - step) * unit, (value + step) * unit)


def amount(text: str) -> Rounded:
    """Return a printed amount of memory."""
    found = _AMOUNT.fullmatch(text)
    assert found, f"not an amount: {text!r}"
    sign, whole, fraction, suffix = found.groups()
    return rounded(f"{'-' if sign else ''}{whole}{fraction or ''}", _FACTORS[suffix or ""])


def tables(text: str, *headings: str) -> Iterator[list[dict[str, str]]]:
    """Yield the rows of every table whose heading begins with these columns."""
    lines = text.splitlines()
    pattern = re.compile(r"\s*" + r"\s{2,}".join(map(re.escape, headings)) + r"(\s{2,}|$)")
    for number, line in enumerate(lines):
        if pattern.match(line):
            yield list(_rows(line, lines[number + 1 :]))


def table(text: str, *headings: str) -> list[dict[str, str]]:
    """Return the rows of the only table of this heading, none where there is no such table."""
    found = list(tables(text, *headings))
    assert len(found) < 2, f"{len(found)} tables of {headings}"
    return found[0] if found else []


def _rows(heading: str, lines: Iterable[str]) -> Iterator[dict[str, str]]:
    columns = [(each.start(), each.group()) for each in re.finditer(r"\S+(?: \S+)*", heading)]
    ends = [start for start, _ in columns[1:]]
    for line in lines:
        if not line.strip() or not line.startswith(heading[: columns[0][0]]):
            return
        yield {name: line[start:end].strip() for (start, name), end in zip(columns, [*ends, len(line)], strict=True)}
