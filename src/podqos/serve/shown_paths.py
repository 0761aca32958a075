"""What visitors see instead of paths of this machine: names of files, or paths below what the command was given.

Inside, paths stay as they are, because files are opened and the terminal names them. They are replaced where answers
leave for a browser or a saved page, so that no answer can forget to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

import msgspec

from podqos.page.session import PageSource

_NOT_BEFORE = rb"(?<![\w./~-])"
_NOT_AFTER = rb"(?![\w-])"
_LEAST_PARTS = 2
"""A directory such as /tmp or /data is also a path in containers: only the files in it that were read are replaced."""
_FEW = 1000


class ShownPaths:
    """Replaces the paths of a source, or those that a command was ``given``."""

    def __init__(self, source: PageSource | None = None, given: Iterable[str] = ()) -> None:
        names = _shown(path for path in given if os.path.exists(path)) if source is None else _names(source)
        self._names = {_encoded(path): _encoded(name) for path, name in names.items()}
        self._roots = sorted({os.path.dirname(path) or path for path in self._names})
        longest = sorted(self._names, key=len, reverse=True)
        pattern = b"|".join(map(re.escape, longest))
        self._pattern = re.compile(_NOT_BEFORE + b"(?:" + pattern + b")" + _NOT_AFTER) if longest else None

    def hide(self, data: bytes) -> bytes:
        """Return an answer in JSON without the paths."""
        # Most answers have none; to look for a word is much faster than to match a pattern.
        if self._pattern is None or not any(root in data for root in self._roots):
            return data
        return self._pattern.sub(lambda path: self._names[path[0]], data)


def without_directories(message: str) -> str:
    """Return a message of an error without the directories of whoever started the server."""
    home, current = os.path.expanduser("~"), os.getcwd()
    for directory, shown in sorted({(current, ""), (home, "~/")}, key=lambda pair: -len(pair[0])):
        if len(directory) > 1:
            message = message.replace(directory.rstrip("/") + "/", shown)
    return message


def _encoded(text: str) -> bytes:
    return msgspec.json.encode(text.encode(errors="replace").decode())[1:-1]


def _names(source: PageSource) -> dict[str, str]:
    """Return what is shown for paths that tell of this machine; a path as the command was given it may stay."""
    given = [*source.looked_at, *(value for value in source.known_by if not value.startswith("-"))]
    if source.cluster is not None:
        given.append(source.cluster.source)
    roots = _shown(path for path in given if _is_telling(path) or os.path.exists(path))
    inside = [*(file.path for file in source.files), *source.given, *(log.name for log in source.logs)]
    inside += [problem.source for problem in source.problems]
    more: dict[str, str] = {}
    for path in dict.fromkeys(inside):
        root = next((above for above in _above(path) if above in roots), None)
        if _is_telling(path) and (root is None or _is_short(root)) and len(more) < _FEW:
            more[path] = os.path.basename(path) if root is None else roots[root] + path[len(root) :]
    return {path: name for path, name in {**more, **roots}.items() if not (_is_short(path) and os.path.isdir(path))}


def _shown(paths: Iterable[str]) -> dict[str, str]:
    """Return the name of each path, with its directory's where two files have the same name."""
    known = dict.fromkeys(path.rstrip("/") for path in paths if path.rstrip("/"))
    last = [os.path.basename(path) for path in known]
    names: dict[str, str] = {}
    for path, name in zip(known, last, strict=True):
        parent = os.path.basename(os.path.dirname(path))
        shown = name if _is_telling(path) else path
        shown = f"{parent}/{name}" if _is_telling(path) and last.count(name) > 1 and parent else shown
        for form in (path, os.path.abspath(path), os.path.realpath(path)):
            if _is_telling(form):
                names[form] = shown
    return names


def _above(path: str) -> list[str]:
    """Return a path and the directories above it, the nearest first."""
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _is_telling(path: str) -> bool:
    return os.path.isabs(path) or ".." in path.split("/")


def _is_short(path: str) -> bool:
    return len([part for part in path.split("/") if part]) < _LEAST_PARTS
