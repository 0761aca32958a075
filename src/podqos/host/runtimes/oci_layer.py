"""The uncompressed bytes of a layer, as tarfile reads them: forward only, checked, and never many at once.

The compression is detected from the first bytes, whatever the media type says.

Source: opencontainers/image-spec layer.md (gzip, zstd, none); Docker's archives may also be xz or bzip2.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from podqos.errors import HostError

_BLOCK = 512
_PIECE = 1 << 16
# Headers for long names and attributes are read at once: more would be a way to exhaust the node's memory.
_MOST_AT_ONCE = 1 << 20
_MOST_PADDING = 1 << 20
_ZSTD = b"\x28\xb5\x2f\xfd"


class Readable(Protocol):
    """What a layer is read from."""

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes; none at the end."""


class LayerStream:
    """A layer that is being read."""

    def __init__(self, source: Readable) -> None:
        self._source = source
        self._at = 0
        self._digest = hashlib.sha256()
        self._header = b""

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes, fewer at the end."""
        if not 0 <= size <= _MOST_AT_ONCE:
            raise HostError(f"not a layer: a header of {size} bytes")
        parts = []
        left = size
        while left and (part := self._source.read(left)):
            self._digest.update(part)
            parts.append(part)
            left -= len(part)
        data = b"".join(parts)
        self._at += len(data)
        if size == _BLOCK:
            self._header = data
        return data

    def seek(self, position: int, /) -> int:
        """Read on to a position."""
        if position < self._at:
            raise HostError("not a layer: it refers to itself")
        while self._at < position and self.read(min(position - self._at, _PIECE)):
            pass
        return self._at

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def check_end(self, diff_id: str) -> None:
        """Read the rest; raise if the archive broke off, or is not what its digest says."""
        if self._header.strip(b"\0") or len(self._header) not in {0, _BLOCK}:
            raise HostError("not a layer: it is truncated")
        end = self._at + _MOST_PADDING
        while self.read(_PIECE):
            if self._at > end:
                raise HostError("not a layer: trailing data after its end")
        found = f"sha256:{self._digest.hexdigest()}"
        if diff_id.startswith("sha256:") and diff_id != found:
            raise HostError(f"uncompressed content does not match its diff_id (found {found})")


@contextmanager
def open_layer(path: Path) -> Iterator[LayerStream]:
    """Open a layer of any compression."""
    with path.open("rb") as file:
        start = file.read(6)
        file.seek(0)
        if start.startswith(_ZSTD):
            with _zstd(file) as stream:
                yield stream
        elif start.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=file) as source:
                yield LayerStream(source)
        elif start.startswith(b"\xfd7zXZ\0"):
            with lzma.LZMAFile(file) as source:
                yield LayerStream(source)
        elif start.startswith(b"BZh"):
            with bz2.BZ2File(file) as source:
                yield LayerStream(source)
        else:
            yield LayerStream(file)


@contextmanager
def _zstd(file: BinaryIO) -> Iterator[LayerStream]:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise HostError(
            "compressed with zstd, which needs zstandard: in a clone of podqos, pip install '.[runc]'"
        ) from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False) as source:
            yield LayerStream(source)
    except zstandard.ZstdError as error:
        raise HostError(f"not a layer: {error}") from error
