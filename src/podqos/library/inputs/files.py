"""The files a command reads, as values, and opening them. Finding them is the business of ``gathering``."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress

from msgspec import Struct

from podqos.errors import InputError
from podqos.manifest.problems import Problem
from podqos.model.assumption import Assumption

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")
_READ_BYTES = 1 << 16  # more than most manifests have


class InputFile(Struct, frozen=True):
    """A file to read."""

    path: str
    scope: str | None = None
    """The directory that was walked to find it, whose objects its policies apply to; None: it was named."""
    data: bytes | None = None
    """What it holds, where that was rendered or read already."""
    cluster: str = ""
    """The name of the cluster that it is a list of objects of, which have no line or column; empty: a file."""

    def opened(self) -> InputFile:
        """Return it with what it holds; one that cannot be read stays as it is."""
        if self.data is None:
            with suppress(InputError):  # reading it will say why
                return InputFile(self.path, self.scope, read_bytes(self.path))
        return self


class Inputs(Struct, frozen=True):
    """The files of a command, and what was left out on the way to them."""

    files: list[InputFile]
    problems: list[Problem] = []
    assumptions: tuple[Assumption, ...] = ()
    """What is taken not to be there because a cluster does not let it be read."""

    @property
    def paths(self) -> list[str]:
        """The names of the files."""
        return [file.path for file in self.files]

    @property
    def places(self) -> Iterable[str]:
        """Where the files were found: the directories that were walked, and files that were named."""
        return dict.fromkeys(file.scope or file.path for file in self.files)

    def only(self, files: Iterable[InputFile]) -> Inputs:
        """Return the same with other files."""
        return Inputs(list(files), self.problems, self.assumptions)


class Rendering(Struct, frozen=True):
    """What may be rendered; by default nothing."""

    render: bool = False
    """Whether to render every kustomization and chart that is found."""
    directories: tuple[str, ...] = ()
    """Those that are named."""


NO_RENDERING = Rendering()


def is_manifest(name: str) -> bool:
    """Whether a file of a directory is looked at."""
    return name.endswith(_SUFFIXES)


def is_special(path: str) -> bool:
    """Whether a file of a directory is a pipe, a socket or a device, whose reading may never end."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # reading it will say why
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def are_larger(files: Iterable[str], size: int) -> bool:
    """Whether files together have at least so many bytes; one that cannot be read counts nothing."""
    for file in files:
        with suppress(OSError):  # reading it will say why
            size -= os.stat(file).st_size
        if size <= 0:
            return True
    return False


def read_bytes(path: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``."""
    try:
        if path == STDIN:
            return sys.stdin.buffer.read()
        return _content(path)
    except OSError as error:
        raise InputError(error.strerror or str(error), where=path, fix=_how_to_read(error)) from error


def _content(path: str) -> bytes:
    """Return the content of a file. Most are small: making a Python file object would take longer than reading one."""
    parts = []
    descriptor = os.open(path, os.O_RDONLY)
    try:
        while part := os.read(descriptor, _READ_BYTES):
            parts.append(part)
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _how_to_read(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "check the path"
    if isinstance(error, PermissionError):
        return "make the file readable or run as its owner"
    return "name a file or a directory of manifests"
