"""Opening logs: files, gzipped or not, pipes, standard input, the kernel itself."""

from __future__ import annotations

import os
import stat
import sys
import zlib
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Self

from podqos.errors import InputError
from podqos.logs.search import LogStream
from podqos.manifest import binary_formats
from podqos.manifest.binary_formats import HEAD_BYTES, binary_format, is_picture
from podqos.manifest.text import is_utf_16
from podqos.objects.files import STDIN
from podqos.reading.files import read_bytes
from podqos.reading.pipes import Pipe

_GZIP = b"\x1f\x8b"


_GZIP_FORMAT = 31  # of zlib: with the header and the checksum of gzip


_FREE_BYTES = 1 << 30


_MOST_PACKED = 500
"""Logs compress to a tenth or, if repetitive, a hundredth; zlib could compress zeros to a thousandth."""


_KMSG = os.makedev(1, 11) if sys.platform == "linux" else -1
"""The device number of /dev/kmsg."""


_CONVERSIONS = {
    binary_formats.JOURNAL: "journalctl --file {path} -o json | podqos autopsy -",
    binary_formats.XZ: "xz -dc {path} | podqos autopsy -",
    binary_formats.ZSTD: "zstd -dc {path} | podqos autopsy -",
    binary_formats.BZIP2: "bzip2 -dc {path} | podqos autopsy -",
    binary_formats.ZIP: "unzip -p {path} | podqos autopsy -",
    binary_formats.TAR: "tar -xOf {path} | podqos autopsy -",
    binary_formats.PDF: "pdftotext -layout {path} - | podqos autopsy -",
    binary_formats.CRASH_DUMP: "makedumpfile --dump-dmesg {path} kern.log && podqos autopsy kern.log",
    binary_formats.WORKBOOK: "copy the log as text and paste it: podqos autopsy -",
}
"""How to get a log out of a file that is none itself."""


_OF_LOGS = (b"oom", b"Out of memory", b"Killed process", b"Evict", b"evict", b"kernel", b"kubelet")
"""A damaged log is explained as far as it can be read."""


class Log:
    """A log whose beginning has been read already, such as standard input or a pipe."""

    def __init__(self, name: str, head: bytes, rest: LogStream | None = None) -> None:
        self.name = name
        self.head = head
        self._rest = rest

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        if self.head:
            head, self.head = self.head[:size], self.head[size:]
            return head
        return b"" if self._rest is None else self._rest.read(size)

    def close(self) -> None:
        """Close the pipe that it comes from; standard input stays open."""
        if isinstance(self._rest, Pipe):
            self._rest.close()


class _Unpacked:
    """A gzipped log, decompressed as it is read; a decompression bomb is rejected."""

    def __init__(self, packed: LogStream) -> None:
        self._packed = packed
        self._unpacker = zlib.decompressobj(_GZIP_FORMAT)
        self._read = self._unpacked = 0

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        while True:
            data = self._unpacker.unconsumed_tail
            if self._unpacker.eof:
                data = self._unpacker.unused_data.lstrip(b"\0") or self._packed.read(size)  # files may be joined
                if not data:
                    return b""
                self._unpacker = zlib.decompressobj(_GZIP_FORMAT)
            elif not data:
                data = self._packed.read(size)
                if not data:
                    raise zlib.error("it is truncated")
            part = self._unpacker.decompress(data, size)
            self._read += len(data) - len(self._unpacker.unconsumed_tail) - len(self._unpacker.unused_data)
            self._unpacked += len(part)
            if self._unpacked > max(_FREE_BYTES, self._read * _MOST_PACKED):
                raise zlib.error(f"it expands to more than {_MOST_PACKED} times its size")
            if part:
                return part


class _InUtf8:
    """A log in UTF-16, such as PowerShell writes with ``>``."""

    def __init__(self, stream: LogStream) -> None:
        self._stream = stream
        self._decoder = getincrementaldecoder("utf-16")("replace")

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        while data := self._stream.read(size):
            if text := self._decoder.decode(data):
                return text.encode()
        return b""


def _plain(head: bytes, stream: LogStream, path: str) -> LogStream:
    """Return a log as text in UTF-8, by its beginning; raise for one that is not text."""
    if head[:2] == _GZIP:
        unpacked = _Unpacked(stream)
        first = unpacked.read(HEAD_BYTES)
        _refuse(first, path)
        return Log(path, first, unpacked)
    _refuse(head, path)
    if head.startswith(BOM_UTF8):
        stream.read(len(BOM_UTF8))
    return _InUtf8(stream) if is_utf_16(head) else stream


@contextmanager
def opened(path: str | Log) -> Iterator[LogStream]:
    """Open a log: a file, gzipped or not, standard input, or ``/dev/kmsg`` up to now."""
    where = path.name if isinstance(path, Log) else path
    try:
        if isinstance(path, Log):
            with closing(path):
                yield _plain(path.head, path, path.name)
        elif path == STDIN:
            yield sys.stdin.buffer
        elif (there := os.stat(path)).st_rdev == _KMSG:
            with _Records(path) as records:
                yield records
        elif not there.st_size or not stat.S_ISREG(there.st_mode):  # it may have no end, as /dev/zero and /proc/kmsg
            yield Log(path, read_bytes(path))
        else:
            with open(path, "rb") as file:
                yield _plain(file.peek(HEAD_BYTES), file, path)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        fix = (
            "check the path" if is_missing else "give a log that can be read, or pipe one in: dmesg | podqos autopsy -"
        )
        raise InputError(error.strerror or str(error), where=where, fix=fix) from error
    except zlib.error as error:
        raise InputError(f"broken gzip: {error}", where=where, fix="decompress as much of it as you can") from error


def _refuse(head: bytes, path: str) -> None:
    """Raise for input that is not text, and would look like a log without kills."""
    name = binary_format(head)
    if not name or (name == binary_formats.OTHER and any(word in head for word in _OF_LOGS)):
        return
    as_text = "copy the log as text and paste it: podqos autopsy -"
    fix = _CONVERSIONS.get(name, as_text if is_picture(name) else "give the kernel log: dmesg | podqos autopsy -")
    raise InputError(f"{name}, not a log", where=path, fix=fix.format(path="FILE" if path == STDIN else path))


class _Records:
    """``/dev/kmsg`` up to now; one record per read."""

    def __init__(self, path: str) -> None:
        from podqos.host.linux.kmsg import KernelRecords

        self._records = KernelRecords(path, from_now=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._records.close()

    def read(self, _: int, /) -> bytes:
        """Return a record; empty if there is no next one yet."""
        return self._records.read()
