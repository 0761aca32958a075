"""Measures filesystems, and directories a little at a time.

A large directory takes seconds to walk, and the node has to react in milliseconds: a ``DiskMeter`` walks for a given
time and continues later. Figures are therefore slightly old; they carry their time.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from podqos.model.stats import FsStats

# st_blocks counts these, whatever the filesystem's own blocks are (stat(2)).
_BLOCK_BYTES = 512
_ENTRIES_PER_SLICE = 64


class DiskUsage(Struct, frozen=True, gc=False):
    """The disk usage of a directory, itself included."""

    used_bytes: int
    inodes: int
    time: datetime

    def as_stats(self) -> FsStats:
        """Return it as the kubelet's statistics."""
        return FsStats(time=self.time, used_bytes=self.used_bytes, inodes_used=self.inodes)


def filesystem(folder: Path) -> FsStats | None:
    """Return size and usage of a directory's filesystem; None if it cannot be read."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    block = found.f_frsize
    return FsStats(
        time=datetime.now(UTC),
        available_bytes=found.f_bavail * block,
        capacity_bytes=found.f_blocks * block,
        used_bytes=(found.f_blocks - found.f_bfree) * block,
        inodes_free=found.f_ffree,
        inodes=found.f_files,
        inodes_used=found.f_files - found.f_ffree,
    )


def usage(folder: Path) -> DiskUsage | None:
    """Measure one directory completely; None if it does not exist."""
    *_, last = _walk(folder)
    return last


def removing(folder: Path) -> Iterator[None]:
    """Remove a directory and its content, one entry per step; stops at the first failure."""
    folders = [str(folder)]
    while folders:
        deeper = None
        try:
            with os.scandir(folders[-1]) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        deeper = entry.path
                        break
                    os.unlink(entry)  # noqa: PTH108 - there may be millions of them
                    yield
            if deeper is None:
                Path(folders.pop()).rmdir()
                yield
            else:
                folders.append(deeper)
        except OSError:
            return


def advance(work: Iterator[None], seconds: float) -> bool:
    """Continue some work for about this long; True once it is done."""
    until = time.monotonic() + seconds
    return all(time.monotonic() < until for _ in work)


class DiskMeter:
    """Measures directories in turn, and keeps the last figures of each."""

    def __init__(self) -> None:
        self._figures: dict[Path, DiskUsage] = {}
        self._waiting: list[Path] = []
        self._walk: Iterator[DiskUsage | None] | None = None
        self._folder = Path()

    def begin(self, folders: Iterable[Path]) -> None:
        """Measure these again; figures of others are dropped."""
        wanted = list(dict.fromkeys(folders))
        self._figures = {folder: self._figures[folder] for folder in wanted if folder in self._figures}
        self._waiting = wanted[::-1]

    @property
    def is_done(self) -> bool:
        """Whether all directories have been measured."""
        return self._walk is None and not self._waiting

    def go_on(self, seconds: float) -> None:
        """Measure for about this long."""
        until = time.monotonic() + seconds
        while not self.is_done:
            self._step()
            if time.monotonic() >= until:
                return

    def of(self, folder: Path) -> DiskUsage | None:
        """Return the last figures of a directory."""
        return self._figures.get(folder)

    def _step(self) -> None:
        if self._walk is None:
            self._folder = self._waiting.pop()
            self._walk = _walk(self._folder)
        for figures in self._walk:
            if figures is not None:
                self._figures[self._folder] = figures
                self._walk = None
            return
        self._walk = None


def _walk(folder: Path) -> Iterator[DiskUsage | None]:
    """Yield None every few entries, the figures at the end; hard links count once."""
    try:
        own = os.lstat(folder)
    except OSError:
        yield None
        return
    used, inodes, seen = own.st_blocks * _BLOCK_BYTES, 1, 0
    linked: set[int] = set()
    folders = [str(folder)] if stat.S_ISDIR(own.st_mode) else []
    while folders:
        for path, entry in _entries(folders.pop()):
            seen += 1
            if seen % _ENTRIES_PER_SLICE == 0:
                yield None
            is_folder = stat.S_ISDIR(entry.st_mode)
            # Only directories show where another filesystem begins: files of an overlay have other device numbers.
            if (is_folder and entry.st_dev != own.st_dev) or entry.st_ino in linked:
                continue
            used += entry.st_blocks * _BLOCK_BYTES
            inodes += 1
            if is_folder:
                folders.append(path)
            elif entry.st_nlink > 1:
                linked.add(entry.st_ino)
    yield DiskUsage(used, inodes, datetime.now(UTC))


def _entries(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the entries of a directory; those that vanish meanwhile are skipped."""
    try:
        with os.scandir(folder) as found:
            for item in found:
                with suppress(OSError):
                    yield item.path, item.stat(follow_symlinks=False)
    except OSError:
        return
