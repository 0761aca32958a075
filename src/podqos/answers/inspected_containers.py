"""What container runtimes print of many containers, without those that run and were not killed.

Every line of such an output matters (``survival.autopsy.runtime_containers``), and most containers tell nothing.
"""

from __future__ import annotations

import re

from podqos.kernel.log_lines import LogStream

_HEAD_BYTES = 1 << 16
"""Stays as it is: by it the output is recognised."""
_MOST_HELD_BYTES = 1 << 20
"""Of one container; a longer one stays as well."""
_WORDS = (b'"OOMKilled"', b"CONTAINER_EXITED", b'"CONTAINER_RUNNING"')
_FIRST = re.compile(rb'(?:^|\n)([ \t]{0,8})\{\n[ \t]{1,16}"(?:Id|ID|Created|State|info|status)": ')
_STATE = re.compile(rb'"(?:Status|state)": ?"([A-Za-z_]{1,40})"')
_RUNNING = frozenset((b"running", b"CONTAINER_RUNNING"))
_TELLING = (
    *(b'"OOMKilled": true', b'"OOMKilled":true', b"OOMKilled,", b"CONTAINER_EXITED", b"OOM ", b"oom-", b"oom_"),
    *(b"vict", b"ut of memory", b"OutOfMem", b"MemoryError", b"Kill process", b"Killed process", b"signal: "),
    *(b"signal 9", b"code 137", b"status 137"),
)  # fmt: skip
"""What a container has that was killed, or in which a program says that something was."""
_LINE = re.compile(rb'\{"Id": ?"[0-9a-f]{64}"')
"""How JSON with a container in each line begins."""


class WithoutQuietContainers:
    """A log that is read on."""

    def __init__(self, stream: LogStream) -> None:
        self._stream = stream
        self._begin = self._end = b""
        """The lines with which a container begins and ends; empty: it is no such output."""
        self._is_in_lines = False
        self._held = b""
        self._is_first = True
        self.left_out = 0
        """How many containers."""

    def read(self, size: int, /) -> bytes:
        """Return some bytes; none at the end."""
        if self._is_first:
            self._is_first = False
            head = self._stream.read(min(size, _HEAD_BYTES))
            self._learn(head)
            return head
        if not self._begin and not self._is_in_lines:
            return self._stream.read(size)
        while part := self._stream.read(size):
            kept = self._kept_lines(self._held + part) if self._is_in_lines else self._kept(self._held + part)
            if kept:
                return kept
        held, self._held = self._held, b""
        return held

    def _learn(self, head: bytes) -> None:
        first = _FIRST.search(head) if any(word in head for word in _WORDS) else None
        if first is not None:
            self._begin, self._end = b"\n" + first[1] + b"{\n", b"\n" + first[1] + b"}"

        self._is_in_lines = not self._begin and _LINE.match(head) is not None

    def _kept_lines(self, text: bytes) -> bytes:
        """Return a text without lines that tell nothing, and hold back one that has not ended."""
        end = text.rfind(b"\n") + 1
        if not end and len(text) > _MOST_HELD_BYTES:
            end = len(text)
        self._held = text[end:]
        lines = text[:end].splitlines(keepends=True)
        kept = [line for line in lines if not _is_quiet(line)]
        self.left_out += len(lines) - len(kept)
        return b"".join(kept)

    def _kept(self, text: bytes) -> bytes:
        """Return a text without containers that tell nothing, and hold back one that has not ended."""
        kept, done = list[bytes](), 0
        start = text.find(self._begin)
        while start >= 0:
            end = text.find(self._end, start + len(self._begin) - 1)
            end = text.find(b"\n", end + 1) if end >= 0 else -1
            if end < 0:
                break
            if _is_quiet(text[start:end]):
                kept.append(text[done:start])
                done = end
                self.left_out += 1
            start = text.find(self._begin, end)
        # The line break before the next container is the end of the last one.
        rest = start if start >= 0 else max(done, text.rfind(b"\n"))
        if len(text) - rest > _MOST_HELD_BYTES:
            rest = len(text)
        self._held = text[rest:]
        kept.append(text[done:rest])
        return b"".join(kept)


def _is_quiet(container: bytes) -> bool:
    state = _STATE.search(container)
    if state is None or state[1] not in _RUNNING or container.count(b'"OOMKilled"') > 1:
        return False
    return not any(word in container for word in _TELLING)
