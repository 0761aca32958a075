"""Directories and what applies in them: an object found in one applies there and below."""

from __future__ import annotations

import posixpath
from collections.abc import Container

Scopes = tuple[str, ...]
"""The directories whose policies apply to an object in addition to those that apply to all, outermost first."""


def scope_of(path: str, directory: str) -> str:
    """Return the directory that policies of a file apply to, if they were found by walking it."""
    has_drive = directory[1:2] == ":" == path[1:2]  # on Windows: C:/deploy
    return posixpath.dirname(posixpath.normpath(path if has_drive else posixpath.join(directory, path)))


def is_within(folder: str, scope: str) -> bool:
    """Whether a directory is the one that policies apply to, or below it."""
    return folder == scope or folder.startswith(scope.rstrip("/") + "/")


def enclosing(folder: str, scopes: Container[str | None]) -> Scopes:
    """Return the scopes that a directory is within, without a look at the others: a repository may have thousands."""
    containing = [folder] if folder in scopes else []
    rest = folder
    while "/" in rest:
        rest = rest.rpartition("/")[0]
        containing += [scope for scope in (rest, f"{rest}/") if scope in scopes and scope != folder]
    return tuple(sorted(containing))
