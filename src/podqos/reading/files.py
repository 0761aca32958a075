"""Opening files; ``gathering`` finds them."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

from msgspec import Struct

from podqos.errors import InputError
from podqos.manifest.contents import Reading
from podqos.manifest.pod_kinds import CustomKind
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.text import as_utf_8
from podqos.objects.files import STDIN, InputFile
from podqos.objects.sources import Source

_SUFFIXES = (".yaml", ".yml", ".json")
_READ_BYTES = 1 << 16  # more than most manifests have
_TO_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0)  # Windows would change line ends


class Rendering(Struct, frozen=True):
    """What to render; by default, nothing."""

    render: bool = False
    """Whether to render every kustomization and chart found."""
    directories: tuple[str, ...] = ()
    """The kustomizations and charts given by name."""


NO_RENDERING = Rendering()


def with_data(file: InputFile) -> InputFile:
    """Return a file with its contents; an unreadable one is returned unchanged."""
    if file.data is None:
        with suppress(InputError):  # reading it will say why
            return InputFile(file.path, file.scope, read_bytes(file.path))
    return file


def source_of(file: InputFile, kinds: Mapping[str, CustomKind] | None = None, reading: Reading | None = None) -> Source:
    """Return a file, or a list of objects, given to a command; one that cannot be opened holds only a problem.

    ``reading`` is what was read of it already.
    """
    data = file.data
    if data is None:
        try:
            data = read_bytes(file.path)
        except InputError as error:
            problem = Problem(file.path, 0, 0, Severity.ERROR, "", error.what, error.fix)
            data, reading = b"", Reading(file.path, (), (), problems=(problem,))
    return Source(file.path, data, reading, file.scope, kinds, cluster=file.cluster)


def is_manifest(name: str) -> bool:
    """Whether a file in a directory is read."""
    return name.endswith(_SUFFIXES)


def is_special(path: str) -> bool:
    """Whether a file in a directory is a pipe, a socket or a device, which might never end."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # reading it will say why
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def are_larger(files: Iterable[str], size: int) -> bool:
    """Whether files together have at least this many bytes; unreadable ones do not count."""
    for file in files:
        with suppress(OSError):  # reading it will say why
            size -= os.stat(file).st_size
        if size <= 0:
            return True
    return False


def read_bytes(path: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``; text in UTF-16 becomes UTF-8."""
    try:
        return as_utf_8(sys.stdin.buffer.read() if path == STDIN else _content(path))
    except OSError as error:
        raise InputError(error.strerror or str(error), where=path, fix=_how_to_read(error, path)) from error


def _content(path: str) -> bytes:
    """Return the content of a file. Most are small: creating a file object would take longer than reading one."""
    parts = []
    descriptor = os.open(path, _TO_READ)
    try:
        while part := os.read(descriptor, _READ_BYTES):
            parts.append(part)
    finally:
        os.close(descriptor)
    return b"".join(parts)


def _how_to_read(error: OSError, path: str) -> str:
    if isinstance(error, FileNotFoundError):
        from podqos.reading.shipped_scenarios import shipped_scenario

        if "://" in path:
            return f"podqos reads no URLs: curl -sL {path} | podqos … -"
        return "check the path" if shipped_scenario(path) is None else f"`podqos simulate {path}` runs that scenario"
    if isinstance(error, PermissionError):
        return "make the file readable or run as its owner"
    return "give a file, not a directory" if isinstance(error, IsADirectoryError) else "give a regular file"
