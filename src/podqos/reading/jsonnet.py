"""Jsonnet files, which a program has to render first: they are left out, with one line that says so.

Much Jsonnet is not about Kubernetes at all (dashboards, alerts). In a directory it is named only if one of its files
writes an object of Kubernetes or imports its library, or if there is nothing else to read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from podqos.errors import InputError
from podqos.manifest.problems import Problem, Severity
from podqos.naming import hint, naming
from podqos.objects.files import STDIN
from podqos.reading.files import read_bytes
from podqos.reading.paths import with_slashes

_WHOLE = ".jsonnet"
_SUFFIXES = (_WHOLE, ".libsonnet")
# What others have written; it is copied into a repository, and not rendered by itself.
_VENDORED = "vendor"
_OF_KUBERNETES = re.compile(rb"\bapiVersion\b|\bk\.libsonnet|\bksonnet|\bk8s-libsonnet|\bkausal\.libsonnet")


class JsonnetFiles:
    """The Jsonnet files that were found below directories, or named."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._named: list[str] = []

    def note(self, folder: str, names: Iterable[str]) -> None:
        """Note the Jsonnet files of a directory."""
        own = sorted(name for name in names if name.endswith(_SUFFIXES))
        if own and _VENDORED not in folder.split("/"):
            self._found += [os.path.join(folder, name) for name in own]

    def takes(self, path: str) -> bool:
        """Whether a named file is Jsonnet."""
        if path == STDIN or not path.endswith(_SUFFIXES) or not os.path.isfile(path):
            return False
        self._named.append(path)
        return True

    def problems(self, *, is_all: bool) -> list[Problem]:
        """Return which files are left out; ``is_all``: there is nothing else to read."""
        problems = [_left_out(path, [path], path) for path in self._named]
        matching = [path for path in self._found if is_all or _is_of_kubernetes(path)]
        if matching:
            shown = next((path for path in matching if path.endswith(_WHOLE)), matching[0])
            problems.append(_left_out(_common(self._found), self._found, shown))
        return problems


def _is_of_kubernetes(path: str) -> bool:
    try:
        return _OF_KUBERNETES.search(read_bytes(path)) is not None
    except InputError:
        return False


def _common(paths: list[str]) -> str:
    """Return the directory of all; there is none if some are relative and others are not."""
    try:
        return with_slashes(os.path.commonpath([os.path.dirname(path) for path in paths]) or ".")
    except ValueError:
        return "."


def _left_out(where: str, files: list[str], shown: str) -> Problem:
    what = f"skipped: {len(files):,} Jsonnet files, which are not rendered" if len(files) > 1 else "skipped: Jsonnet"
    from shlex import join

    command = join(["jsonnet", shown]) + hint(" | podqos … " + naming("files", "-"))
    return Problem(where, 0, 0, Severity.WARNING, "", what, command)
