"""What a page shows of an output: all its lines but empty ones; ``…`` stands for lines left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

LEFT_OUT = "…"


def lines_of(printed: str) -> list[str]:
    """Return the lines that count."""
    return [line.rstrip() for line in printed.splitlines() if line.strip()]


def difference(shown: Sequence[str], printed: str) -> str | None:
    """Return the first line in which a page differs from an output, or None."""
    lines = lines_of(printed)
    position, may_skip = 0, False
    for line in shown:
        if line.strip() == LEFT_OUT:
            may_skip = True
            continue
        if line not in lines[position:]:
            return f"not printed: {line}"
        where = lines.index(line, position)
        if where != position and not may_skip:
            return f"not shown: {lines[position]}"
        position, may_skip = where + 1, False
    return None if may_skip or position == len(lines) else f"not shown: {lines[position]}"


def shown_again(shown: Sequence[str], printed: str) -> list[str]:
    """Return what a page should show instead: of each part, from the line most like its first to its last."""
    if LEFT_OUT not in {line.strip() for line in shown}:
        return [line.rstrip() for line in printed.strip("\n").splitlines()]
    whole = [line.rstrip() for line in printed.splitlines()]
    numbers = [number for number, line in enumerate(whole) if line]
    lines, result, position = lines_of(printed), [], 0
    for part in _parts(shown):
        if part == [LEFT_OUT]:
            result += part
            continue
        alike = [_most_alike(line, lines, position) for line in (part[0], part[-1])]
        # With the empty lines in between.
        result += whole[numbers[alike[0]] : numbers[alike[1]] + 1]
        position = alike[1] + 1
    return result


def _parts(shown: Sequence[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for line in shown:
        if line.strip() != LEFT_OUT:
            part.append(line)
            continue
        if part:
            yield part
        part = []
        yield [LEFT_OUT]
    if part:
        yield part


def _most_alike(line: str, lines: list[str], position: int) -> int:
    return max(range(position, len(lines)), key=lambda index: SequenceMatcher(None, line, lines[index]).ratio())
