"""The beginning of a log, read ahead: if kubectl printed it for people, it holds pods, nodes and events."""

from __future__ import annotations

from podqos.kernel.log_lines import LogStream
from podqos.objects.kubectl_text.pasted import NOTHING, Pasted
from podqos.objects.kubectl_text.recognition import may_be_kubectl

_PART_BYTES = 1 << 18
_HEAD_BYTES = 1 << 20
"""So much is looked at. Descriptions and tables come first, or the whole text is short."""
_FIRST_BYTES = 1 << 17
"""In so much of a text by kubectl there is a row or a field."""
_MOST_BYTES = 1 << 23
"""Of a text by kubectl: 50,000 pods in a table."""


class _Resumed:
    """A log of which the beginning has been read."""

    def __init__(self, head: bytes, rest: LogStream) -> None:
        self._head = head
        self._rest = rest

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        if self._head:
            part, self._head = self._head[:size], self._head[size:]
            return part
        return self._rest.read(size)


def begun(stream: LogStream) -> tuple[LogStream, Pasted]:
    """Return a log, which still begins at its beginning, and what kubectl printed in it."""
    head = _read(stream, b"", _HEAD_BYTES)
    if not may_be_kubectl(head):
        return _Resumed(head, stream), NOTHING
    from podqos.objects.kubectl_text.reader import read_text

    first = head[:_FIRST_BYTES]
    if len(head) > len(first) and read_text(first.decode(errors="replace")) == NOTHING:
        return _Resumed(head, stream), NOTHING  # a log that has one of the words
    head = _read(stream, head, _MOST_BYTES)
    return _Resumed(head, stream), read_text(head.decode(errors="replace"))


def _read(stream: LogStream, head: bytes, most: int) -> bytes:
    parts, length = [head], len(head)
    while length < most and (part := stream.read(_PART_BYTES)):
        parts.append(part)
        length += len(part)
    return b"".join(parts)
