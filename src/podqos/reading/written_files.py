"""Write files atomically: completely or not at all, even when interrupted."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

from podqos.errors import HostError, InputError
from podqos.manifest.text import as_utf_8, encoded_like


def replace_file(path: str, before: bytes, after: bytes) -> None:
    """Write ``after`` into the file, which holds ``before``; raise ``HostError`` and leave it alone where that fails.

    The new text is written to a file next to it, with its owner and rights, which then takes its name: readers see
    the old or the new text, even after a crash or Ctrl-C. A link is followed, and stays one.
    """
    target = os.path.realpath(path)
    try:
        with open(target, "rb") as file:
            held = file.read()
            if as_utf_8(held) != before:
                raise HostError(f"{path}: not written: it has changed since it was read (run podqos again)")
            status = os.fstat(file.fileno())
        if not os.access(target, os.W_OK):
            raise HostError(f"{path}: not written: it is read-only (make it writable)")
        _replace(target, (encoded_like(held, after),), status.st_mode & 0o7777, (status.st_uid, status.st_gid))
    except OSError as error:
        raise HostError(f"{path}: not written: {error.strerror or error}") from error


def write_file(path: str, data: bytes) -> None:
    """Write a new file, or replace an old one."""
    write_chunks(path, (data,))


def write_chunks(path: str, chunks: Iterable[bytes]) -> None:
    """Write a new file, or replace an old one, piece by piece. A device or a pipe is written to, never replaced."""
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as file:
                file.writelines(chunks)
        else:
            _replace(target, chunks, 0o666 & ~_umask())
    except OSError as error:
        raise HostError(f"{path}: {error.strerror or error}") from error


def _replace(target: str, chunks: Iterable[bytes], mode: int, owner: tuple[int, int] | None = None) -> None:
    from tempfile import mkstemp

    folder, name = os.path.split(target)
    handle, temporary = mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
    try:
        with open(handle, "wb") as file:
            file.writelines(chunks)
            file.flush()
            _give(handle, mode, owner)
            os.fsync(handle)
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C, too, leaves nothing behind
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _give(handle: int, mode: int, owner: tuple[int, int] | None) -> None:
    """Set rights and owner where files have them: on Windows they follow from the directory."""
    if sys.platform == "win32":
        return
    made = os.fstat(handle)
    if owner is not None and (made.st_uid, made.st_gid) != owner:
        os.fchown(handle, *owner)
    os.fchmod(handle, mode)


def _sync_folder(folder: str) -> None:
    """Make the new name durable; where a filesystem cannot do that, the file is still whole."""
    if sys.platform == "win32":  # a directory cannot be opened there
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_files(files: Mapping[str, str], folder: str = "") -> None:
    """Write all files of a new scenario, the scenario itself last: interruption leaves none. Never overwrite."""
    paths = {os.path.join(folder, path): text for path, text in files.items()}
    for path in paths:
        if os.path.exists(path):
            raise InputError("already exists", where=path, fix="choose another name")
    for path, text in reversed(list(paths.items())):
        try:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            with open(path, "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise HostError(f"{path}: {error.strerror or error}") from error
