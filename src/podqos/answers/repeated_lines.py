"""Lines that programs log over and over: those like some that were read are only counted, or passed over.

A program that runs out of its own memory may say so a million times. Each line is worth a count, the last one a time.
Others use the words of a kill again and again, and tell of none. Lines are alike that differ in figures alone; or in
nothing but words that no pattern looks for, so that nothing can tell them apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from podqos.answers.other_killers import Topic
from podqos.survival.autopsy.kubelet_log import ONSETS
from podqos.survival.autopsy.lazy_pattern import words_of_patterns

_OF_KERNEL = (
    *(b"oom-kill", b"ill process", b"illed process", b"oom_reaper", b"oom.group"),
    *(b"pid  ]", b"[ pid ]", b"kB, limit ", b"values in pages"),
)
"""Lines with these are always read."""
_REWRITTEN = b"\\&%\t\x1b"
"""What a message may have had in other words."""
_FIGURES = b"0123456789abcdef"
_MOST = 1024
_MOST_SHAPES = 2048
_MOST_HOSTS = 16
_OFTEN = 8
"""So many lines alike have to tell nothing before others like them are passed over."""
_MOST_FIELDS = 8
"""Of a line, until its host."""
_LONGEST = 4096
"""Of a line that is compared."""
_WORD, _NUMBER, _MIXED = b"\1", b"\2", b"\3"
_ALPHANUMERIC = bytes(code for code in range(128) if chr(code).isalnum())
_WITHIN = b"-_.:"
"""What a word may hold besides; before and after a colon programs say two things."""
_LETTERS_AND_ZEROS = bytes(
    ord("0") if 48 <= code < 58 else code if code in _ALPHANUMERIC or code in _WITHIN else ord(" ")
    for code in range(256)
)
_JOINING = _ALPHANUMERIC + b" \t-_."
"""What is within names, or between words."""
_MOST_KNOWN_WORDS = 1 << 14
_LONGEST_KNOWN = 12
"""With figures: longer ones seldom come twice."""


class _Repeated(Struct):
    topic: Topic
    host: bytes
    field: int
    """Which one of its line the host is; -1: it is to be looked for, or there is none."""
    times: int = 0
    """Since it was read."""
    last: bytes = b""
    order: int = 0

    def is_of(self, line: bytes) -> bool:
        """Whether a line is of the same host."""
        if not self.host or self.field < 0:
            return _is_on(self.host, line)
        fields = line.split(None, self.field + 1)
        return len(fields) > self.field and fields[self.field] == self.host


class RepeatedLines:
    """Remembers lines that were read, and passes over others that are like them."""

    def __init__(self, may_tell: Callable[[str], bool] | None = None) -> None:
        self._may_tell = may_tell
        """Whether a line may tell anything, if nothing follows its message and nothing in it is written otherwise."""
        self._plain = 0
        """So many of the last lines were so."""
        self._is_rejecting = False
        """Whether the last line was one that cannot tell anything, of no shape that was known."""
        self._alike: dict[bytes, list[_Repeated]] = {}
        """By what is left without figures."""
        self._shaped: dict[bytes, list[_Repeated]] = {}
        """By ``shape``, where a field of the line is its host."""
        self._silent: dict[bytes, int] = {}
        """How often lines of a shape told nothing."""
        self._newest: dict[Topic, int] = {}
        self._order = 0

    def hear(self, topic: Topic) -> None:
        """Know that a line about a topic was read, which is newer than those that were counted."""
        self._plain = 0
        if topic.is_told:
            self._order += 1
            self._newest[topic] = self._order

    def learn(self, line: bytes, topic: Topic, *, is_plain: bool) -> None:
        """Remember a line that says nothing but that a topic came up once more, or nothing at all.

        ``is_plain``: it ends with its message, as that was read.
        """
        plain = self._plain + 1
        self.hear(topic)
        self._plain = plain if is_plain else 0
        if len(line) > _LONGEST or any(words in line for words in _OF_KERNEL):
            return
        if not topic.is_told:
            self._learn_silent(line)
            return
        own = topic.host.encode()
        fields = line.split(None, _MOST_FIELDS)[:_MOST_FIELDS]
        known = _Repeated(topic, own, fields.index(own) if own in fields else -1)
        lists = [self._alike.setdefault(_figureless(line), [])] if len(self._alike) < _MOST else []
        if (known.field >= 0 or not own) and len(self._shaped) < _MOST_SHAPES:
            lists.append(self._shaped.setdefault(shape(line), []))
        for alike in lists:
            if len(alike) < _MOST_HOSTS and all(each.host != own for each in alike):
                alike.insert(0 if own else len(alike), known)  # a line may name a host that is not known of another

    def _learn_silent(self, line: bytes) -> None:
        form = shape(line)
        if len(self._silent) >= _MOST_SHAPES and form not in self._silent:
            self._silent.clear()
        self._silent[form] = self._silent.get(form, 0) + 1

    def pass_over(self, chunk: bytes, start: int) -> int:
        """Count the lines from a line's beginning on that are like those that were read; return where others begin.

        Where they differ in more than figures, one is passed over at a time: the next one that matters is found faster.
        """
        while start < len(chunk):
            end = chunk.find(b"\n", start)
            end = len(chunk) if end < 0 else end
            line = chunk[start:end]
            known = _of_host(self._alike.get(_figureless(line)), line)
            if known is None:
                return end + 1 if len(line) <= _LONGEST and self._is_passed(line) else start
            self._count(known, line)
            start = end + 1
        return start

    def _is_passed(self, line: bytes) -> bool:
        """Whether a line has the shape of those that were read, or cannot tell anything."""
        if self._is_rejecting and self._cannot_tell(line):
            return True
        was_rejecting, self._is_rejecting = self._is_rejecting, False
        if self._is_shaped_alike(line):
            return True
        self._is_rejecting = not was_rejecting and self._cannot_tell(line)
        return self._is_rejecting

    def _cannot_tell(self, line: bytes) -> bool:
        """Whether no pattern finds anything in a line as it is."""
        if self._may_tell is None or self._plain < _OFTEN or not line.isascii() or line.startswith(b"{"):
            return False
        if line.translate(None, _REWRITTEN) != line or any(words in line for words in _OF_KERNEL):
            return False
        return not self._may_tell(line.decode())

    def _is_shaped_alike(self, line: bytes) -> bool:
        """Whether a line has the shape of those that were read; it is counted, then."""
        if not (self._shaped or self._silent):
            return False
        form = shape(line)
        if self._silent.get(form, 0) >= _OFTEN:
            return True
        known = _of_host(self._shaped.get(form), line)
        if known is not None:
            self._count(known, line)
        return known is not None

    def _count(self, known: _Repeated, line: bytes) -> None:
        self._order += 1
        known.times += 1
        known.last, known.order = line, self._order
        self._newest[known.topic] = self._order

    def counted(self) -> Iterator[tuple[Topic, int, str]]:
        """Yield how often each topic came up again, and the line to read for when it was last."""
        both = (*self._alike.values(), *self._shaped.values())
        for known in {id(known): known for alike in both for known in alike if known.times}.values():
            is_last = self._newest[known.topic] == known.order
            yield known.topic, known.times - is_last, known.last.decode(errors="replace") if is_last else ""


class _Words(dict[bytes, bytes]):
    """Words by what stands for them: those that a pattern has stand for themselves, all others for each other."""

    def __init__(self) -> None:
        onsets = {word for onset in ONSETS for word in onset.split()}
        self._own = onsets | {word.lower().encode() for word in words_of_patterns()}

    def __missing__(self, word: bytes) -> bytes:
        if b"0" in word:
            if len(word) > _LONGEST_KNOWN:
                return _MIXED
            stands = _MIXED if word.strip(b"0.:-") else _NUMBER
        else:
            bare = word.rstrip(_WITHIN)
            is_own = bare.lower() in self._own or b"emory" in word or b"OOM" in word or b"oom" in word or b"ill" in word
            stands = bare if is_own else _WORD
        if word.endswith(b":"):
            stands += b":"
        if len(self) >= _MOST_KNOWN_WORDS:
            self.clear()
        self[word] = stands
        return stands


_words: list[_Words] = []


def shape(line: bytes) -> bytes:
    """Return what a line has of the words that patterns look for, in their order, and its punctuation.

    Of names only that there are any: how many words they have, and how they are joined, does not matter. Of figures
    those count that say how something ended, or that nothing did.
    """
    if not _words:
        _words.append(_Words())
    said = b" ".join(map(_words[0].__getitem__, line.translate(_LETTERS_AND_ZEROS).split()))
    said = said.replace(b"\1 \1", b"\1").replace(b"\1 \1", b"\1").replace(b"\1 \1", b"\1")
    figures = b"\n137" if b"137" in line else b"\n0" if line.endswith(b" 0") else b"\n"
    return said + figures + (b"-9\n" if b"-9" in line else b"\n") + line.translate(None, _JOINING)


def _of_host(alike: list[_Repeated] | None, line: bytes) -> _Repeated | None:
    """Return what is known of lines like one on its host."""
    for known in alike or ():
        if known.is_of(line):
            return known
    return None


def _figureless(line: bytes) -> bytes:
    return line.translate(None, _FIGURES)


def _is_on(host: bytes, line: bytes) -> bool:
    """Whether a line names a host, and not one whose name is longer."""
    if not host:
        return True
    place = line.find(host)
    return place >= 0 and not line[place + len(host) : place + len(host) + 1].isalnum()
