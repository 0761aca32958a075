"""The journal on disk: JSON lines that survive a kill at any moment, and a full disk.

A line is one write. It reaches the kernel before its action is carried out, and the disk a moment later (``sync``): a
killed agent loses nothing, a power cut the last moments. Lines that cannot be written stay in memory and are written
with the next one; that this is so, and that it is over, is noted once.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path

from podqos.agent.journal import Entry, encode
from podqos.host.storage.syncing import Sync, sync

# Lines kept in memory while the disk is full; more would endanger the node itself.
_MOST_WAITING = 100_000
_MAX_FILES = 5


def journal_files(path: Path, max_files: int = _MAX_FILES) -> list[Path]:
    """Return the files of a journal, oldest first; the last is the current one."""
    older = (path.with_name(f"{path.name}.{number}") for number in range(max_files - 1, 0, -1))
    return [*(file for file in older if file.exists()), path]


class JournalFile:
    """An open journal."""

    def __init__(
        self,
        path: Path,
        note: Callable[[str], None],
        *,
        sync: Sync = sync,
        max_bytes: int = 64 << 20,
        max_files: int = _MAX_FILES,
    ) -> None:
        self._path, self._note, self._sync = path, note, sync
        self._max_bytes = max_bytes
        self._older = range(1, max_files)
        self._waiting: deque[bytes] = deque()
        self._file = -1
        self._size = 0
        self._is_dirty = False
        self._is_stuck = False
        self._listeners: list[Callable[[Entry], None]] = []
        self._open()

    def listen(self, listener: Callable[[Entry], None]) -> None:
        """Call a listener with every entry."""
        self._listeners.append(listener)

    def files(self) -> list[Path]:
        """Return the files of the journal, oldest first; the last is the current one."""
        return journal_files(self._path, self._older.stop)

    def write(self, entry: Entry) -> None:
        """Write one entry."""
        self._waiting.append(encode((entry,)))
        self._flush()
        for listener in self._listeners:
            listener(entry)

    def sync(self) -> None:
        """Sync to disk, and retry lines that could not be written."""
        self._flush()
        if self._is_dirty and self._file >= 0:
            self._is_dirty = False
            self._sync(self._path)

    def close(self) -> None:
        """Write the rest and close."""
        self.sync()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _flush(self) -> None:
        if self._file < 0:
            self._open()
        while self._waiting and self._file >= 0:
            line = self._waiting[0]
            if self._size and self._size + len(line) > self._max_bytes:
                self._rotate()
            if not self._append(line):
                break
            self._waiting.popleft()
        if self._is_stuck and not self._waiting and self._file >= 0:
            self._is_stuck = False
            self._note(f"{self._path}: the journal is writable again")
        if len(self._waiting) > _MOST_WAITING:
            self._note(f"{self._path}: more than {_MOST_WAITING} entries could not be written: the oldest are lost")
            while len(self._waiting) > _MOST_WAITING:
                self._waiting.popleft()

    def _append(self, line: bytes) -> bool:
        """Write a whole line or nothing."""
        if self._file < 0:
            return False
        try:
            if os.write(self._file, line) < len(line):
                os.ftruncate(self._file, self._size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # noqa: TRY301 - reported like any other
        except OSError as error:
            self._stuck(error)
            return False
        self._size += len(line)
        self._is_dirty = True
        return True

    def _stuck(self, error: OSError) -> None:
        if not self._is_stuck:
            self._is_stuck = True
            self._note(f"{self._path}: {error.strerror}; the journal is kept in memory until it can be written")

    def _open(self) -> None:
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
            self._size = os.fstat(self._file).st_size
            self._cut_torn_line()
        except OSError as error:
            self._stuck(error)
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    def _cut_torn_line(self) -> None:
        """Truncate after the last newline: a power cut may have interrupted a write."""
        while self._size:
            start = max(0, self._size - 65536)
            tail = os.pread(self._file, self._size - start, start)
            end = tail.rfind(b"\n")
            if end == len(tail) - 1:
                return
            os.ftruncate(self._file, start + end + 1)
            self._size = start + end + 1

    def _rotate(self) -> None:
        """Start a new file; if the old ones cannot be moved, continue the old one."""
        os.close(self._file)
        self._file = -1
        names = [self._path, *(self._path.with_name(f"{self._path.name}.{number}") for number in self._older)]
        try:
            for older, newer in zip(names[::-1], names[-2::-1], strict=False):
                if newer.exists():
                    newer.replace(older)
        except OSError as error:
            self._note(f"{self._path}: not rotated: {error.strerror}")
            self._max_bytes *= 2
        self._open()
