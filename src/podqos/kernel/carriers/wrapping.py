"""Lines that a terminal, a mail program or a page broke into several, put together again.

Whether and where lines were broken is learned from those whose end is certain: a line that is not whole and as long as
it could be is continued by one that begins no message. Lines are broken between words, or at a column.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

from podqos.kernel.carriers.tokens import LONGEST_NAME, columns_of, is_statistic, is_whole

_FIRST = re.compile(r"\s*(?:\S{0,200}?\w[^0-9\W]-(?=\w{1,40}[^0-9\W])|\S+)")
_WORD = re.compile(r"\s*\S+")
_AFTER_PATH = ("are going to be", "killed as a result")
_INVOKED = " invoked oom-killer"
_UNSPACED = re.compile(r"oom-kill:(?!.*,task=)|Tasks? in /\S*$|Task in /\S+ killed as a result of limit of /\S*$")
"""A summary up to its task, and paths: there are no spaces in them, so that a line ends inside of a word."""
MOST_JOINED = 64
_SURE = 8
"""So many messages become whole, all of lines that are full."""
_WIDEST_TERMINAL = 200
_NARROW = 40
"""No column of the table and no name is so wide."""
_WIDEST = 16
"""Spaces between columns of the table, which are left out where a line is broken."""
_LONGEST = 16384


class Physical(Struct, frozen=True, gc=False):
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
    is_hyphenated: bool = False
    """Also after hyphens."""

    def continues(self, before: Physical, joined: str, line: Physical, columns: int) -> bool:
        """Whether a line goes on with the one before; ``joined`` is what came of that so far."""
        if not line.text.strip() or not before.text.strip():
            return False
        if line.begins and not line.is_naked:
            return False
        if self.is_hard and joined.strip():
            if not self._is_full(before, line, 0):
                return False
            if not line.begins and not is_statistic(line.text):
                return True
        whole = is_whole(joined.rstrip(), columns)
        is_cut = whole is None and self.is_hard and len(before.text) == self.width
        if line.begins and whole is not False and not (is_cut or _ends_name(joined, line.text)):
            return False
        if not joined.strip():
            return True
        if is_statistic(line.text) and (whole or joined.startswith("Memory cgroup stats")):
            return False
        if whole and not self.is_hard and not joined.startswith("["):  # a name of several words may be broken
            return False
        if whole is False and not self.is_hard:
            return True
        return self._is_full(before, line, _WIDEST if line.is_naked else 1)

    def at_once(self, text: str, length: int, rest: str, columns: int) -> str:
        """Return a message with figures and a name that begin none, in less time than ``put_together`` takes.

        ``length`` is that of its line. Nothing where ``put_together`` has to say whether they continue it.
        """
        if self.is_hard:
            is_full = self.width - 2 <= length <= self.width
            return text + " " * min(2, self.width - length) + rest if is_full and text.strip() else ""
        pid, _, figures = text.rstrip().partition("]")
        is_row = pid[:1] == "[" and pid[1:].strip().isdecimal() and figures[-1:].isdecimal()
        if self.width < _NARROW or not is_row or len(figures.split()) > columns or not columns:
            return ""
        return f"{pid}]{figures} {rest.strip()}"

    def put_together(self, first: Physical, rests: Sequence[str], columns: int) -> str:
        """Return the message of a line with others that begin none; nothing if they do not all continue it."""
        text, before = first.message, first
        if len(rests) >= MOST_JOINED:
            return ""
        for rest in rests:
            line = Physical(rest, rest, begins=False, is_naked=True)
            if len(text) >= _LONGEST or not self.continues(before, text, line, columns):
                return ""
            text, before = self.joined(text, before, line), line
        return text

    def _is_full(self, before: Physical, line: Physical, gap: int) -> bool:
        if self.is_hard:
            return self.width - 2 <= len(before.text) <= self.width
        word = (_FIRST if self.is_hyphenated else _WORD).match(line.text)
        words = 0 if word is None else len(word[0].strip())
        return len(before.text.rstrip()) + (0 if _ends_with_hyphen(before.text) else gap) + words > self.width

    def joined(self, joined: str, before: Physical, line: Physical) -> str:
        """Return a message with the line that continues it."""
        if not joined:
            return line.text.lstrip()
        if self.is_hard:
            return joined + " " * min(2, max(0, self.width - len(before.text))) + line.text
        text, rest = joined.rstrip(), line.text.strip()
        if _ends_with_hyphen(text):
            return text + rest
        if _UNSPACED.match(text):
            return text + rest if not rest.startswith(_AFTER_PATH) else f"{text} {rest}"
        longest = len(text.rpartition(" ")[2]) + len(rest.partition(" ")[0])
        is_cut = len(before.text) == self.width and longest > self.width
        return text + rest if is_cut else f"{text} {rest}"


def learned(lines: Sequence[Physical]) -> Wrapping | None:
    """Return how lines were broken, or None if nothing proves that they were."""
    is_hyphenated = any(_ends_with_hyphen(line.text) and not following.begins for line, following in pairwise(lines))
    ways = (
        *(Wrapping(width, is_hard=True) for width in _columns_cut(lines)),
        *(Wrapping(width, is_hard=False, is_hyphenated=is_hyphenated) for width in _widths(lines)),
    )
    results = [_tried(lines, way) for way in ways]
    best = max(range(len(ways)), key=lambda number: results[number][1:])
    proofs, score, left = results[best]
    if score < 0 and proofs + left < 0:
        return None  # here and there a character is wrong, perhaps the end of a line
    return ways[best] if proofs > 0 or (ways[best].is_hard and score >= _SURE) else None


def _ends_with_hyphen(text: str) -> bool:
    """Whether a word that is broken ends a line."""
    return text.endswith("-") and (text[-2:-1].isalnum() or text[-2:-1] == "_")


def _ends_name(joined: str, text: str) -> bool:
    """Whether a name that lines were broken in may end here: that of the process that asked for memory."""
    name, invoked, _ = text.partition(_INVOKED)
    return bool(invoked) and len(joined.strip()) + len(name) <= LONGEST_NAME


def _length(line: Physical) -> int:
    return len(line.text)


def _columns_cut(lines: Sequence[Physical]) -> list[int]:
    """Return at which column lines may be broken: that of the longest, or, where others are longer, of most."""
    longest = max(map(_length, lines), default=0)
    goes_on = Counter(_length(line) for line, following in pairwise(lines) if not following.begins)
    return [longest, *(length for length, _ in goes_on.most_common(1) if length != longest)]


def _widths(lines: Sequence[Physical]) -> tuple[int, int]:
    """Return how wide lines may be that are broken between words: a longer word is left whole, or cut."""
    spaced = max((len(line.text) for line in lines if " " in line.message.strip()), default=0)
    cut = (
        len(line.text)
        for line, following in pairwise(lines)
        if " " not in line.message.strip() and not following.begins and not is_statistic(following.text)
    )
    return max((spaced, *cut)), spaced


def _tried(lines: Sequence[Physical], way: Wrapping) -> tuple[int, int, int]:
    """Return how many messages become whole, how well all of them agree with the way, and minus what is left over."""
    proofs = score = names = loose = 0
    groups = grouped(lines, way)
    columns = next(filter(None, (columns_of(text) for text, _ in groups)), 0)
    for text, numbers in grouped(lines, way, columns) if columns else groups:
        columns = columns_of(text) or columns
        whole = is_whole(text.rstrip(), columns)
        score -= whole is False
        if len(numbers) < 2:
            loose += lines[numbers[0]].is_naked and not lines[numbers[0]].begins and bool(text.strip())
            continue
        if way.is_hard:
            score -= sum(len(lines[number].text) != way.width for number in numbers[:-1])
        was_whole = is_whole(lines[numbers[0]].message.rstrip(), columns)
        if whole and was_whole is False:
            proofs += 1
            score += 2
        elif whole and was_whole is None:
            score += 1
        elif was_whole and text.startswith("[") and lines[numbers[1]].is_naked and way.width <= _WIDEST_TERMINAL:
            names += 1
    # That names have more than one line proves something only where no line is left that has no prefix.
    return proofs + (0 if loose else names), score, -loose


def grouped(lines: Iterable[Physical], way: Wrapping, columns: int = 0) -> list[tuple[str, list[int]]]:
    """Return messages, each with the numbers of its lines; ``columns`` are those of rows before the first header."""
    groups: list[tuple[str, list[int]]] = []
    before: Physical | None = None
    for number, line in enumerate(lines):
        if groups and before is not None:
            text, numbers = groups[-1]
            if len(numbers) < MOST_JOINED and len(text) < _LONGEST and way.continues(before, text, line, columns):
                groups[-1] = way.joined(text, before, line), [*numbers, number]
                before = line
                continue
            columns = columns_of(text) or columns
        groups.append((line.message, [number]))
        before = line
    return groups
