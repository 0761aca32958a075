"""Files that are replaced while they are used: a mounted ConfigMap or Secret, or a file that is written anew.

A ConfigMap is replaced by turning a symbolic link (``..data``) to another directory. So what is compared is what the
paths lead to: file, size and time. Looking is cheap and works on every file system; being told (inotify) does not
work on all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from podqos.errors import HostError, InputError

Signature = tuple[tuple[str, int, int, int], ...]


def signature(paths: Iterable[str]) -> Signature:
    """Return what tells one state of files and directories from another."""
    return tuple(_state(path) for given in paths for path in (given, *_files(given)))


def _files(path: str) -> list[str]:
    """Return the files below a directory, without hidden ones."""
    found = []
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
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


class Reloaded:
    """Something made of files, now and whenever they change; what is not in order leaves in use what was."""

    def __init__(self, what: str, paths: Iterable[str], load: Callable[[], object]) -> None:
        self.what = what
        self._paths = tuple(paths)
        self._load = load
        self.error = ""
        """Why the newest state is not in use; empty where it is."""
        self._seen = signature(self._paths)
        load()

    def look(self) -> bool | None:
        """Load what is new. Returns whether it was in order, None where nothing is new."""
        now = signature(self._paths)
        if now == self._seen:
            return None
        self._seen = now
        try:
            self._load()
        except (InputError, HostError) as error:
            self.error = str(error)
            return False
        self.error = ""
        return True
