"""Paths as podqos writes them, with slashes on every system: Windows takes them, and formats for programs need them."""

from __future__ import annotations

import os
import re

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def with_slashes(path: str) -> str:
    """Return a path with slashes; it names the same file."""
    return path if os.sep == "/" else path.replace(os.sep, "/")


def relative(path: str, folder: str = ".") -> str:
    """Return a path as seen from a directory; on Windows one on another drive stays absolute."""
    try:
        return with_slashes(os.path.relpath(path, folder))
    except ValueError:
        return with_slashes(path)


def has_folder(path: str) -> bool:
    """Whether a path names more than a file of the current directory, so that it cannot be another kind of name."""
    return os.path.basename(path) != path


def begins_with_drive(path: str) -> bool:
    r"""Whether a path begins as in ``C:\deploy``, which no revision of git and path in it do."""
    return _DRIVE.match(path) is not None


class RealPaths:
    """What files really are, without links: a directory with many files is looked up once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Return what ``os.path.realpath`` does."""
        folder, name = os.path.split(path)
        if name in {"", os.curdir, os.pardir} or os.path.islink(path):
            return os.path.realpath(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        return os.path.join(self._folders[folder], name)
