"""Fingerprints of files on disk, to notice changes.

A ConfigMap is replaced by pointing a symbolic link (``..data``) to another directory. So the targets of paths are
compared: file, size and time. Polling is cheap and works on every file system, unlike inotify.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

Signature = tuple[tuple[str, int, int, int], ...]


def signature(paths: Iterable[str]) -> Signature:
    """Return a fingerprint of files and directories."""
    return tuple(_state(path) for given in paths for path in (given, *_files(given)))


def _files(path: str) -> list[str]:
    """Return the files below a directory, without hidden ones."""
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        found += [os.path.join(folder, name) for name in sorted(names) if not name.startswith(".")]
    return found


def _state(path: str) -> tuple[str, int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (path, 0, 0, 0)
    if os.path.isdir(path):
        return (os.path.realpath(path), found.st_ino, 0, 0)
    return (os.path.realpath(path), found.st_ino, found.st_size, found.st_mtime_ns)
