"""The difference between two texts, as regions of the first and their replacements."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from msgspec import Struct

from podqos.advice.fixes.fixing import FixedFile
from podqos.manifest.problems import Position


class Replacement(Struct, frozen=True):
    """A region that is replaced: from ``start`` up to, not including, ``end``."""

    start: Position
    end: Position
    text: str


def line_replacements(before: bytes, after: bytes) -> tuple[Replacement, ...]:
    """Return the replacements that turn one text into the other, as whole lines, from the top."""
    old, new = text_lines(before), text_lines(after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return tuple(
        Replacement(_start(old, first), _start(old, end), "".join(new[new_first:new_end]))
        for operation, first, end, new_first, new_end in matcher.get_opcodes()
        if operation != "equal"
    )


def text_lines(data: bytes) -> list[str]:
    """Return lines with their ends; only a line feed ends one, as for ``diff``."""
    *lines, last = data.decode(errors="replace").split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _start(lines: list[str], index: int) -> Position:
    """Return where a line begins; after the last one, where the text ends."""
    if index == len(lines) and lines and not lines[-1].endswith("\n"):
        return len(lines), len(lines[-1]) + 1
    return index + 1, 1


def unified(file: FixedFile, context: int = 3) -> Iterator[str]:
    """Yield the lines of the difference between a file and its fixed version; ``patch -p0`` takes it."""
    before, after = (text_lines(data) for data in (file.before, file.after))
    for line in difflib.unified_diff(before, after, file.source, file.source, n=context):
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"
