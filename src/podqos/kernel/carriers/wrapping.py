"""Lines that a terminal, a mail program or a page broke into several, put together again.

Whether and where lines were broken is learned from those whose end is certain: a line that is not whole and as long as
it could be is continued by one that begins no message. Lines are broken between words, or at a column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podqos.kernel.carriers.tokens import columns_of, is_statistic, is_whole

_FIRST = re.compile(r"\s*(?:[\w.]*[^\W\d]-(?=\w)|\S+)")
_HYPHENATED = re.compile(r"[^\W\d]-$")
MOST_JOINED = 64
_LONGEST = 16384
_CERTAIN = 3


class Physical(NamedTuple):
    """A line of the file."""

    text: str
    """Without what every line has in front."""
    message: str
    """Without all that carries it."""
    begins: bool
    """Whether a message begins with it."""
    is_naked: bool
    """Whether it lacks the prefix that others have."""


class Wrapping(NamedTuple):
    """How lines were broken."""

    width: int
    is_hard: bool
    """At a column, not between words."""

    def continues(self, before: Physical, joined: str, line: Physical, columns: int) -> bool:
        """Whether a line goes on with the one before; ``joined`` is what came of that so far."""
        if not line.text.strip() or not before.text.strip():
            return False
        whole = is_whole(joined.rstrip(), columns)
        if line.begins and not (line.is_naked and whole is False):
            return False
        if not joined.strip():
            return True
        if whole and (not self.is_hard or is_statistic(line.text)):
            # A name of several words may be broken after the first.
            return joined.startswith("[") and not is_statistic(line.text) and self._is_full(before, line)
        return self._is_full(before, line)

    def _is_full(self, before: Physical, line: Physical) -> bool:
        if self.is_hard:
            return self.width - 2 <= len(before.text) <= self.width
        first = _FIRST.match(line.text)
        words = 0 if first is None else len(first[0].strip())
        return len(before.text.rstrip()) + (not _HYPHENATED.search(before.text)) + words > self.width

    def joined(self, joined: str, before: Physical, line: Physical) -> str:
        """Return a message with the line that continues it."""
        if not joined:
            return line.text.lstrip()
        if self.is_hard:
            return joined + " " * min(2, max(0, self.width - len(before.text))) + line.text
        text, rest = joined.rstrip(), line.text.strip()
        if _HYPHENATED.search(text):
            return text + rest
        longest = len(text.rpartition(" ")[2]) + len(rest.partition(" ")[0])
        is_cut = len(before.text) == self.width and longest > self.width
        return text + rest if is_cut else f"{text} {rest}"


def learned(lines: Sequence[Physical]) -> Wrapping | None:
    """Return how lines were broken, or None if nothing proves that they were."""
    width = max((len(line.text) for line in lines if " " in line.message.strip() or len(line.text) < 200), default=0)
    ways = [Wrapping(width, is_hard=False), Wrapping(max((len(line.text) for line in lines), default=0), is_hard=True)]
    results = [_tried(lines, way) for way in ways]
    best = max(range(len(ways)), key=lambda number: results[number])
    proofs, _ = results[best]
    return ways[best] if proofs > 0 else None


def _tried(lines: Sequence[Physical], way: Wrapping) -> tuple[int, int]:
    """Return how many messages become whole, and how many lines were put together."""
    proofs = joins = 0
    groups = list(grouped(lines, way))
    columns = max((columns_of(text) for text, _ in groups), default=0)
    for text, numbers in grouped(lines, way, columns) if columns else groups:
        if len(numbers) < 2:
            continue
        first = lines[numbers[0]].message
        joins += len(numbers) - 1
        if is_whole(first.rstrip(), columns) is not False:
            # In a broken table a name can be cut, too, but that alone proves nothing.
            continue
        whole = is_whole(text.rstrip(), columns)
        proofs += 2 if whole else -1 if whole is False else 0
    return proofs, joins


def grouped(lines: Iterable[Physical], way: Wrapping, columns: int = 0) -> list[tuple[str, list[int]]]:
    """Return messages, each with the numbers of its lines."""
    groups: list[tuple[str, list[int]]] = []
    before: Physical | None = None
    for number, line in enumerate(lines):
        if groups and before is not None:
            text, numbers = groups[-1]
            if len(numbers) < MOST_JOINED and len(text) < _LONGEST and way.continues(before, text, line, columns):
                groups[-1] = way.joined(text, before, line), [*numbers, number]
                before = line
                continue
        groups.append((line.message, [number]))
        columns = columns or columns_of(line.message)
        before = line
    return groups
