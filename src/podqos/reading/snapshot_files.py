"""The file of a cluster snapshot: JSON lines, gzipped if the name ends in ``.gz``."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator

from podqos.errors import InputError
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.reading.files import read_bytes
from podqos.reading.written_files import write_chunks


def read_snapshot(path: str) -> ClusterSnapshot:
    """Return the snapshot in a file; ``-`` is standard input."""
    data = read_bytes(path)
    try:
        text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (EOFError, OSError, zlib.error):
        raise InputError("it is truncated, or not a gzip file", where=path, fix="take the snapshot again") from None
    return ClusterSnapshot(text.splitlines(), path)


def write_snapshot(lines: Iterable[bytes], path: str) -> int:
    """Write the lines of a snapshot to a file atomically, and return their number."""
    counted = _Counted(lines)
    chunks = (line + b"\n" for line in counted)
    write_chunks(path, _gzipped(chunks) if path.endswith(".gz") else chunks)
    return counted.count


class _Counted:
    def __init__(self, lines: Iterable[bytes]) -> None:
        self._lines = lines
        self.count = 0

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.count += 1
            yield line


def _gzipped(chunks: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    for chunk in chunks:
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()
