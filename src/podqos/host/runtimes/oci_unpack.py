"""Unpacks the layers of an image into a directory, without ever writing outside it.

Names in a layer are resolved as inside a container: ``..`` stops at the root and links are followed within it, so that
no layer can write elsewhere, whatever links an earlier one left. The directory appears complete or not at all. A layer
may be anything: whatever is wrong with one is that image's error (``HostError``).

Device files below ``/dev`` are left out, because every container has its own; elsewhere they are an error.

Source: opencontainers/image-spec layer.md (whiteouts, opaque directories, hard links), config.md (diff_ids).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import tarfile
import zlib
from copy import copy
from lzma import LZMAError
from pathlib import Path
from typing import BinaryIO, cast

from podqos.errors import HostError
from podqos.host.runtimes.oci_layer import LayerStream, open_layer
from podqos.host.runtimes.oci_layout import Descriptor, FoundImage, checked_blob

_WHITEOUT = ".wh."
_META = ".wh..wh."  # reserved; only the opaque one has a meaning
_OPAQUE = ".wh..wh..opq"
_XATTR = "SCHILY.xattr."
_MOST_LINKS = 40  # as in the kernel
# Deeper trees are slow to walk and overflow the stack of what removes them.
_DEEPEST = 256
_LONGEST_NAME = 4096  # PATH_MAX
_MOST_MEMBERS = 2_000_000
_MOST_SECONDS = 1 << 62
_LARGE = 1 << 20
_MOST_OWNER = (1 << 32) - 2  # the last one means "unchanged"
# What the standard library raises for archives that are not what they seem.
_DAMAGE = (
    tarfile.TarError, EOFError, zlib.error, LZMAError, OSError, ValueError, OverflowError, LookupError, struct.error,
    RecursionError,
)  # fmt: skip


def unpack(image: FoundImage, target: Path) -> None:
    """Unpack all layers of an image into a new directory."""
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    partial.chmod(0o755)  # the container's root, whatever the umask
    try:
        for layer, digest in zip(image.layers, image.diff_ids or ("",) * len(image.layers), strict=True):
            _unpack_layer(image.layout, layer, digest, partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    partial.rename(target)


def _unpack_layer(layout: Path, layer: Descriptor, diff_id: str, root: Path) -> None:
    path = checked_blob(layout, layer)
    try:
        with open_layer(path) as stream:
            _unpack_stream(stream, root)
            stream.check_end(diff_id)
    except HostError as error:
        raise HostError(_printable(f"{path}: {error}")) from error
    except _DAMAGE as error:
        raise HostError(_printable(f"{path}: not a layer: {error}")) from error


def _printable(text: str) -> str:
    """Escape what is no text: names in an archive are bytes."""
    return text.encode(errors="backslashreplace").decode()


def _unpack_stream(stream: LayerStream, root: Path) -> None:
    written: set[Path] = set()
    directories: list[tuple[Path, tarfile.TarInfo]] = []
    with tarfile.open(fileobj=cast("BinaryIO", stream), mode="r:") as archive:
        archive.extraction_filter = lambda member, _path: member
        while (member := archive.next()) is not None:
            archive.members.clear()  # type: ignore[attr-defined] # not in typeshed; tarfile would keep them all
            if len(written) > _MOST_MEMBERS:
                raise HostError(f"more than {_MOST_MEMBERS} files")
            made = _unpack_member(archive, member, root, written)
            if made is not None:
                written.add(made)
                if member.isdir():
                    directories.append((made, member))
    for made, member in reversed(directories):
        with contextlib.suppress(FileNotFoundError):  # a later member of the same layer replaced it
            os.utime(made, (member.mtime, member.mtime), follow_symlinks=False)


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path, written: set[Path]) -> Path | None:
    """Unpack one member; return its path, None for a whiteout."""
    _check(member)
    path = inside(root, member.name)
    name = path.name
    if path == root:
        return None
    if len(path.relative_to(root).parts) > _DEEPEST:
        raise HostError(f"{member.name[:100]}…: more than {_DEEPEST} directories deep")
    if name.startswith(_META):
        if name == _OPAQUE:
            _hide(path.parent, written, is_kept=True)
        return None
    if name.startswith(_WHITEOUT):
        hidden = name.removeprefix(_WHITEOUT)
        if hidden in {"", ".", ".."}:
            raise HostError(f"{member.name}: a whiteout of {hidden!r} is not allowed")
        _hide(path.parent / hidden, written)
        return None
    if member.isdev() and not member.isfifo():
        if path.relative_to(root).parts[0] == "dev":
            return None
        raise HostError(f"{member.name}: a device file outside /dev is not allowed")
    if member.size > _LARGE and member.size > (free := shutil.disk_usage(root).free):
        raise HostError(f"{member.name}: needs {member.size} bytes, {free} are free")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not (member.isdir() and path.is_dir() and not path.is_symlink()):
        _remove(path)
    _extract(archive, member, path, root)
    return path


def inside(root: Path, name: str) -> Path:
    """Return the path of a container's name below its root; a final link is not followed."""
    waiting = [part for part in reversed(name.split("/")) if part not in {"", "."}]
    found = root
    links = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            found = found.parent if found != root else root
            continue
        found /= part
        if waiting and found.is_symlink():
            links += 1
            if links > _MOST_LINKS:
                raise HostError(f"image: {name}: too many links")
            target = str(found.readlink())
            found = root if target.startswith("/") else found.parent
            waiting += [part for part in reversed(target.split("/")) if part not in {"", "."}]
    return found


def _check(member: tarfile.TarInfo) -> None:
    """Raise for values that no file can have."""
    if "\0" in member.name or "\0" in member.linkname:
        raise HostError(f"{member.name!r}: a name with a NUL character is not allowed")
    if max(len(member.name), len(member.linkname)) > _LONGEST_NAME:
        raise HostError(f"{member.name[:100]}…: a name of more than {_LONGEST_NAME} characters")
    if not abs(member.mtime) < _MOST_SECONDS:  # not a number is in no order
        raise HostError(f"{member.name}: {member.mtime} is not a valid time")
    for owner in (member.uid, member.gid):
        if not 0 <= owner <= _MOST_OWNER:
            raise HostError(f"{member.name}: {owner} is not a valid owner")
    if member.type not in tarfile.SUPPORTED_TYPES:
        raise HostError(f"{member.name}: a file of an unknown kind ({member.type!r})")


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path, root: Path) -> None:
    """Create a file with its owner, mode, time and attributes, at a path free of links."""
    if member.islnk():
        os.link(inside(root, member.linkname), path, follow_symlinks=False)
        return
    placed = copy(member)
    placed.name = str(path.relative_to(root))
    placed.mode &= 0o7777
    archive.extract(placed, root, numeric_owner=True)
    for key, value in member.pax_headers.items():
        name = key.removeprefix(_XATTR)
        # "trusted." ones would give orders to the overlay.
        if name != key and not (member.issym() or name.startswith("trusted.")):
            with contextlib.suppress(OSError):
                os.setxattr(path, name, value.encode("utf-8", "surrogateescape"))


def _hide(path: Path, written: set[Path], *, is_kept: bool = False) -> None:
    """Remove what lower layers have at a path, and nothing of this layer's; ``is_kept``: not the directory itself."""
    if path.is_dir() and not path.is_symlink():
        for child in list(path.iterdir()):
            _hide(child, written)
        if not (is_kept or path in written):
            with contextlib.suppress(OSError):  # it holds something of this layer
                path.rmdir()
    elif path not in written:
        path.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
