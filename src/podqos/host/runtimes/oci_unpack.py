"""Unpacks the layers of an image into a directory, without ever writing outside it.

Names in a layer are resolved as inside a container: ``..`` stops at the root and links are followed within it, so that
no layer can write elsewhere, whatever links an earlier one left. The directory appears complete or not at all.

Source: opencontainers/image-spec layer.md (whiteouts, opaque directories, hard links).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tarfile
import zlib
from copy import copy
from pathlib import Path

from podqos.errors import HostError
from podqos.host.runtimes.oci_layout import Descriptor, FoundImage, checked_blob

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_XATTR = "SCHILY.xattr."
_MOST_LINKS = 40  # as in the kernel


def unpack(image: FoundImage, target: Path) -> None:
    """Unpack all layers of an image into a new directory."""
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for layer in image.layers:
            _unpack_layer(image.layout, layer, partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    partial.rename(target)


def _unpack_layer(layout: Path, layer: Descriptor, root: Path) -> None:
    path = checked_blob(layout, layer)
    if "zstd" in layer.media_type:
        raise HostError(f"{path}: layers compressed with zstd cannot be read; write the layout with gzip")
    written: set[Path] = set()
    directories: list[tuple[Path, tarfile.TarInfo]] = []
    try:
        with tarfile.open(path, "r:*") as archive:
            archive.extraction_filter = lambda member, _path: member
            for member in archive:
                made = _unpack_member(archive, member, root, written)
                if made is not None:
                    written.add(made)
                    if member.isdir():
                        directories.append((made, member))
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise HostError(f"{path}: not a layer: {error}") from error
    for made, member in reversed(directories):
        os.utime(made, (member.mtime, member.mtime))


def _unpack_member(archive: tarfile.TarFile, member: tarfile.TarInfo, root: Path, written: set[Path]) -> Path | None:
    """Unpack one member; return its path, None for a whiteout."""
    path = inside(root, member.name)
    name = path.name
    if path == root:
        return None
    if name == _OPAQUE:
        _empty(path.parent, written)
        return None
    if name.startswith(_WHITEOUT):
        _remove(path.parent / name.removeprefix(_WHITEOUT))
        return None
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


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, path: Path, root: Path) -> None:
    """Create a file with its owner, mode, time and attributes, at a path free of links."""
    if member.type not in tarfile.SUPPORTED_TYPES:
        raise HostError(f"image: {member.name}: a file of an unknown kind ({member.type!r})")
    if member.islnk():
        os.link(inside(root, member.linkname), path, follow_symlinks=False)
        return
    placed = copy(member)
    placed.name = str(path.relative_to(root))
    archive.extract(placed, root, numeric_owner=True)
    for key, value in member.pax_headers.items():
        if key.startswith(_XATTR) and not member.issym():
            with contextlib.suppress(OSError):
                os.setxattr(path, key.removeprefix(_XATTR), value.encode("utf-8", "surrogateescape"))


def _empty(folder: Path, written: set[Path]) -> None:
    """Remove the entries of lower layers from a directory."""
    if folder.is_dir():
        for child in folder.iterdir():
            if child not in written:
                _remove(child)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
