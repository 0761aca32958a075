"""Files that grow at one end and are renamed when they are long: container logs and the journal, read in pieces.

Nothing is kept in memory but one piece: a slow reader makes the reading slow, not the node large. A file that was
renamed is read to its end before the one in its place is begun.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

_PIECE_BYTES = 64 << 10


def lines_of(
    files: Callable[[], list[Path]], *, last: int | None = None, goes_on: Callable[[], bool] | None = None
) -> Generator[bytes | None, None, None]:
    """Yield whole lines in pieces; an empty piece lets others go first, None means that nothing is there yet.

    ``files`` are oldest first, the one that grows last. With ``last`` only so many lines come of what is there; with
    ``goes_on`` reading goes on for as long as that holds.
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
    """Yield the lines of a file, of its successors too while it is not over; a half line at the end waits."""
    descriptor = -1
    rest = b""
    try:
        while True:
            if descriptor < 0:
                with suppress(OSError):
                    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                    os.lseek(descriptor, start, os.SEEK_SET)
                    start = 0
            # What is asked before reading holds for what is read: nothing is written after the end.
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
    """Find where the last so many lines begin: which files, and where in the first of them."""
    missing = count
    for index in range(len(files) - 1, -1, -1):
        try:
            descriptor = os.open(files[index], os.O_RDONLY | os.O_CLOEXEC)
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
                        continue  # the end of the last line begins nothing
                    missing -= 1
                    if not missing:
                        return files[index:], begin + position + 1
                at = begin
                yield b""
            missing -= bool(end)  # the first line has no line's end before it
            if not missing:
                return files[index:], 0
        finally:
            os.close(descriptor)
    return files, 0
