"""Reads growing, rotated files in pieces: container logs and the journal.

Only one piece is kept in memory: a slow client slows down reading, but does not grow the node. A renamed file is read
to its end before its successor.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

_PIECE_BYTES = 64 << 10
# Windows has no O_CLOEXEC, and would change line ends.
_TO_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def lines_of(
    files: Callable[[], list[Path]], *, last: int | None = None, goes_on: Callable[[], bool] | None = None
) -> Generator[bytes | None, None, None]:
    """Yield whole lines in pieces; an empty piece yields to others, None means no data yet.

    ``files`` are oldest first, the current one last. ``last`` limits the number of existing lines; with ``goes_on``
    reading continues as long as it returns True.
    """
    there = files()
    start = 0
    if last is not None:
        there, start = yield from _from_end(there, last)
    for file in there[:-1]:
        yield from _read(file, start, lambda: True)
        start = 0
    if there:
        yield from _read(there[-1], start, lambda: goes_on is None or not goes_on())


def _read(path: Path, start: int, is_over: Callable[[], bool]) -> Generator[bytes | None, None, None]:
    """Yield the lines of a file, and of its successors until over; an incomplete last line waits."""
    descriptor = -1
    rest = b""
    try:
        while True:
            if descriptor < 0:
                with suppress(OSError):
                    descriptor = os.open(path, _TO_READ)
                    os.lseek(descriptor, start, os.SEEK_SET)
                    start = 0
            # Checked before reading: nothing is written after the end.
            ends, was_replaced = is_over(), descriptor >= 0 and _was_replaced(path, descriptor)
            data = os.read(descriptor, _PIECE_BYTES) if descriptor >= 0 else b""
            if data:
                whole, newline, rest = (rest + data).rpartition(b"\n")
                yield whole + newline
            elif was_replaced and not ends:
                os.close(descriptor)
                descriptor, rest = -1, b""
            elif ends:
                if rest:
                    yield rest
                return
            else:
                yield None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _was_replaced(path: Path, descriptor: int) -> bool:
    try:
        there = path.stat()
    except OSError:
        return False
    mine = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino)


def _from_end(files: list[Path], count: int) -> Generator[bytes | None, None, tuple[list[Path], int]]:
    """Find where the last lines begin: the files, and the offset in the first of them."""
    missing = count
    for index in range(len(files) - 1, -1, -1):
        try:
            descriptor = os.open(files[index], _TO_READ)
        except OSError:
            continue
        try:
            end = at = os.fstat(descriptor).st_size
            if not missing:
                return files[index:], end
            while at:
                begin = max(0, at - _PIECE_BYTES)
                piece = os.pread(descriptor, at - begin, begin)
                position = len(piece)
                while (position := piece.rfind(b"\n", 0, position)) >= 0:
                    if begin + position + 1 == end:
                        continue  # the newline of the last line starts no other
                    missing -= 1
                    if not missing:
                        return files[index:], begin + position + 1
                at = begin
                yield b""
            missing -= bool(end)  # the first line has no newline before it
            if not missing:
                return files[index:], 0
        finally:
            os.close(descriptor)
    return files, 0
