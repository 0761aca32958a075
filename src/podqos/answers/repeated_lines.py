"""Lines that programs log over and over: one that differs from one that was read in figures alone is only counted.

A program that runs out of its own memory may say so a million times. Each line is worth a count, the last one a time.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from podqos.answers.other_killers import Topic

_FIGURES = b"0123456789abcdef"
_MOST = 1024
_MOST_HOSTS = 16


class _Repeated(Struct):
    topic: Topic
    host: bytes
    times: int = 0
    """Since it was read."""
    last: bytes = b""
    order: int = 0


class RepeatedLines:
    """Remembers lines that were read, and passes over others that are like them."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[_Repeated]] = {}
        self._newest: dict[Topic, int] = {}
        self._order = 0

    def learn(self, line: bytes, topic: Topic) -> None:
        """Remember a line that says nothing but that a topic came up once more."""
        self._order += 1
        self._newest[topic] = self._order
        if len(self._known) >= _MOST:
            return
        alike = self._known.setdefault(_shape(line), [])
        own = topic.host.encode()
        if len(alike) < _MOST_HOSTS and all(known.host != own for known in alike):
            alike.append(_Repeated(topic, own))

    def pass_over(self, chunk: bytes, start: int) -> int:
        """Count the lines from a line's beginning on that are like those that were read; return where others begin."""
        while start < len(chunk):
            end = chunk.find(b"\n", start)
            end = len(chunk) if end < 0 else end
            line = chunk[start:end]
            known = next((known for known in self._known.get(_shape(line), ()) if _is_on(known.host, line)), None)
            if known is None:
                break
            self._order += 1
            known.times += 1
            known.last, known.order = line, self._order
            self._newest[known.topic] = self._order
            start = end + 1
        return start

    def counted(self) -> Iterator[tuple[Topic, int, str]]:
        """Yield how often each topic came up again, and the line to read for when it was last."""
        for known in [known for alike in self._known.values() for known in alike if known.times]:
            is_last = self._newest[known.topic] == known.order
            yield known.topic, known.times - is_last, known.last.decode(errors="replace") if is_last else ""


def _shape(line: bytes) -> bytes:
    return line.translate(None, _FIGURES)


def _is_on(host: bytes, line: bytes) -> bool:
    """Whether a line names a host, and not one whose name is longer."""
    if not host:
        return True
    place = line.find(host)
    return place >= 0 and not line[place + len(host) : place + len(host) + 1].isalnum()
