"""Opening files; ``gathering`` finds them."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial

from msgspec import Struct

from podqos.errors import InputError
from podqos.manifest.contents import Reading
from podqos.manifest.custom_kind import CustomKind
from podqos.manifest.problems import Isolated, Problem, Severity
from podqos.manifest.text import as_utf_8
from podqos.objects.files import STDIN, InputFile
from podqos.objects.sources import Source

_SUFFIXES = (".yaml", ".yml", ".json")
_READ_BYTES = 1 << 16  # more than most manifests have
# Windows would change line ends; opening a pipe that nobody writes to would wait for ever.
TO_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)

MOST_BYTES = 2 << 30
"""The largest input: reading it as objects takes several times that memory."""
MOST_UNSIZED_BYTES = 64 << 20
"""Of a file whose size is unknown, as in /proc."""


class Rendering(Struct, frozen=True):
    """What to render; by default, nothing."""

    render: bool = False
    """Whether to render every kustomization and chart found."""
    directories: tuple[str, ...] = ()
    """The kustomizations and charts given by name."""
    splits_stdin: bool = True
    """Whether Helm's output on standard input is read as its templates: then it cannot be written as a whole."""


NO_RENDERING = Rendering()


def with_data(file: InputFile) -> InputFile:
    """Return a file with its contents; an unreadable one is returned unchanged."""
    if file.data is None:
        with suppress(InputError):  # reading it will say why
            return InputFile(file.path, file.scope, read_bytes(file.path), purpose=file.purpose)
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
    problems: list[Problem] = []
    with Isolated(problems, file.path):
        return Source(file.path, data, reading, file.scope, kinds, cluster=file.cluster).kept_for(file.purpose)
    return Source(file.path, data, Reading(file.path, (), (), problems=tuple(problems)), cluster=file.cluster)


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


def size_of(files: Iterable[InputFile]) -> int:
    """Return how many bytes files have together; unreadable ones, and standard input, do not count."""
    size = 0
    for file in files:
        if file.data is not None:
            size += len(file.data)
        else:
            with suppress(OSError):
                size += os.stat(file.path).st_size
    return size


def read_bytes(path: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``; text in UTF-16 becomes UTF-8.

    What has no end, such as /dev/zero, is rejected and not read for ever.
    """
    try:
        return as_utf_8(_stream(sys.stdin.buffer.read, path) if path == STDIN else _content(path))
    except OSError as error:
        raise InputError(error.strerror or str(error), where=path, fix=_how_to_read(error, path)) from error


def _content(path: str) -> bytes:
    """Return the content of a file. Most are small: creating a file object would take longer than reading one."""
    descriptor = os.open(path, TO_READ)
    try:
        opened = os.fstat(descriptor)
        kind = stat.S_IFMT(opened.st_mode)
        if kind == stat.S_IFREG:
            return _regular(descriptor, path, opened.st_size)
        if kind == stat.S_IFIFO:
            from podqos.reading.pipes import Pipe

            return _stream(Pipe(descriptor, path).read, path)
        if kind == stat.S_IFDIR:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if kind == stat.S_IFCHR and os.isatty(descriptor):
            os.set_blocking(descriptor, True)
            return _stream(partial(os.read, descriptor), path)
        if kind == stat.S_IFCHR and not os.read(descriptor, 1):  # /dev/null
            return b""
        raise InputError("a device, not a file", where=path, fix="give a regular file")
    except BlockingIOError:
        raise InputError("endless: reading it would never finish", where=path, fix="give a regular file") from None
    finally:
        os.close(descriptor)


def _regular(descriptor: int, path: str, size: int) -> bytes:
    """Return the content of a regular file. Some of the kernel's say that they are empty, and never end."""
    if size > MOST_BYTES:
        raise _too_large(path)
    return _stream(partial(os.read, descriptor), path, MOST_BYTES if size else MOST_UNSIZED_BYTES)


def _stream(read: Callable[[int], bytes], path: str, most: int = MOST_BYTES) -> bytes:
    """Return everything that is read, unless it is more than ``most``."""
    parts: list[bytes] = []
    while part := read(_READ_BYTES):
        if not parts and part[0] == 0 and not part.strip(b"\0"):
            raise InputError("not a text: it begins with zero bytes", where=path, fix="give a text file")
        parts.append(part)
        most -= len(part)
        if most < 0:
            raise _too_large(path)
    return b"".join(parts)


def _too_large(path: str) -> InputError:
    what = f"larger than {MOST_BYTES >> 30}Gi, or endless"
    return InputError(what, where=path, fix="give a text file, or split it")


def _how_to_read(error: OSError, path: str) -> str:
    if isinstance(error, FileNotFoundError):
        from podqos.reading.shipped_scenarios import shipped_scenario

        if "://" in path:
            return f"podqos reads no URLs: curl -sL {path} | podqos … -"
        return "check the path" if shipped_scenario(path) is None else f"`podqos simulate {path}` runs that scenario"
    if isinstance(error, PermissionError):
        return "make the file readable or run as its owner"
    return "give a file, not a directory" if isinstance(error, IsADirectoryError) else "give a regular file"
