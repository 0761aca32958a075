"""What stands before a message: known forms, and others that are learned from a line whose message is certain.

A learned prefix matches lines whose prefix has the same words; figures, levels and identifiers may differ.
Time and host are taken from it only where their form is unmistakable.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct

LONGEST = 1024
"""A longer prefix is not learned."""
MARKS = " >|+*#-"
"""Of quoting, lists and patches."""
_CARRIED = 256  # a "kernel:" further on belongs to the message

_LEVEL = re.compile(r"(?:<\d{1,3}>(?:1 )?|(?:kern|user|daemon|syslog) {0,6}:\w{1,8} {0,6}: ?)")
_KMSG = re.compile(r"(?:\d{1,3}\.\d{1,4}[^,; ]{0,40},)?\d{1,4},\d{1,20},(\d{1,20}),[^;]{0,64};")
_DATED = r"\[[^\[\]]{0,60}\d\d?:\d\d[^\[\]]{0,40}\]"
_BRACKETED = re.compile(rf"(?:\[ {{0,12}}\+?\d{{1,10}}\.\d{{1,9}}[^\]]{{0,24}}\]|{_DATED}):? {{0,2}}")
_CALLER = re.compile(r"\[(?: {0,12}[TC]\d{1,10}|pid:[^\]]{1,48})\] {0,2}")
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?:?"
    r"(?:(?: [A-Z]{2,5})?$| +(?:std(?:out|err) [FP] )?)"
)
_SYSLOG = re.compile(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ")
_KERNEL = re.compile(
    r"(?:^|[ \]\t,|\"])kernel(?:\[\d{1,10}\])?(?:: ?| - - (?:- |(?:\[[^\]]{0,200}\]){1,4} )?)(?:\ufeff)?"
)
_MAY_BE_KNOWN = re.compile(rf"\s*+(?:[\[<>|]|kern|user|daemon|syslog|{_ISO.pattern}|{_SYSLOG.pattern})")
"""What every prefix of a known form begins with, but for those that have ``kernel`` or ``;`` in them."""
_ESCAPES = re.compile(r"(?:\\x[0-9a-f]{2})+")
_QUOTED = re.compile(r"^(?:[>|] ?)+")

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_ZONE = r"(?: ?(?:Z|[+-]\d\d:?\d\d)(?!\w)| (?!CRIT)(?:UTC|GMT|[A-Z]{1,3}T)(?= ))?"
_HALF_DAY = r"\d{1,2}:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[AP]M)?"
_MONTH = r"(?:[A-Z][a-z]{2},? |[^\W\d_]{2,12}[.,]{1,2} )?(?:[^\W\d_]{2,12}\.?|\d{1,2}月)"
_TIMES = tuple(
    map(
        re.compile,
        (
            rf"\d{{4}}[-/.]\d\d[-/.]\d\d[T _]{_CLOCK}{_ZONE}",
            rf"(?<![\w.])\d{{1,4}}[/.-]\w{{2,3}}[/.-]\d{{2,4}}[,:]? ?{_HALF_DAY}(?: [+-]\d{{4}})?",
            rf"(?<![\w.])\d{{1,2}}/\d{{1,2}}/\d{{4}}[,:]? ?{_HALF_DAY}",
            r"(?<=\[)[^\[\]]{0,60}\d\d?:\d\d[^\[\]]{0,40}(?=\])",
            rf"(?<!\w){_MONTH} [ \d]?\d {_CLOCK}(?: \d{{4}}(?!\d))?",
            r"(?<![\w.,-])\d{10}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?(?![\w.-])",
            r"(?<=\[)[ ]{0,12}\d{1,10}\.\d{1,9}",
            rf"(?<![\w:]){_CLOCK}(?![\w:])",
        ),
    )
)
"""From the surest to the least sure."""
_NAME = r"([A-Za-z0-9][\w.-]{0,252})"
_HOST_KEY = r"(?:host|hostname|host\.(?:host)?name|host_?name|_HOSTNAME|node|node_?name|nodeName|computer)"
_SEVERITY = r"(?:(?:kern|user|daemon)\.\w{1,8}|emerg|alert|crit|err|error|warn|warning|notice|info|debug)"
_HOSTS = tuple(
    map(
        re.compile,
        (
            rf"(?:^|[\s,;{{\"'(:.]){_HOST_KEY}[\"']?\s{{0,2}}[=:](?:>)?\s{{0,2}}[\"']?{_NAME}(?![\w:/])",
            rf"(?:^|[\s|,\"]){_NAME}(?:\s{{1,4}}{_SEVERITY})?\s{{1,4}}kernel(?:\[\d{{1,10}}\])?(?::|\s-|\s\[)",
            rf"^\W{{0,8}}{_NAME}: kern: ",
            rf":\d\d(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)? {_NAME} \[ {{0,12}}\d{{1,10}}\.\d{{1,9}}\]",
        ),
    )
)
_NO_HOST = re.compile(
    r"\d{1,10}|(?:kern|user|daemon|syslog|local\d)\.\w+|[A-Z][a-z]{2}|std(?:out|err)|UTC|[A-Z]{2,5}T|[FPZ]|[AP]M|\d\d[OE]\+?"
    r"|(?i:emerg|alert|crit|critical|err|error|warn|warning|notice|info|debug|kern)|[\d.:,+-]+Z?"
)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_CALL = re.compile(r"\w\(\s{0,8}(?:KERN_\w{1,16}\s{0,8})?[\"']$|(?:#|//)\s{1,8}[\"']$")
"""What comes before a message in source code: a call, or a comment that quotes it."""
_RELATIVE = re.compile(r"\[\s{0,12}\+\d")
_WORDS = re.compile(r"([^\W_]+)|(\s+)|(.)", re.DOTALL)
_LEVELS = frozenset(
    (
        *("emerg", "emergency", "alert", "crit", "critical", "err", "error", "warn", "warning", "notice", "info"),
        *("informational", "debug", "fatal", "panic", "default"),
    )
)
_PROSE = re.compile(r"(?:^|\s)[A-Za-z']{1,20} [A-Za-z']{1,20}[,.;]? $|[a-z]{2,20}[,.;]? $")


class Carried(Struct, frozen=True, gc=False):
    """A line, and what its carrier says of it."""

    text: str
    at: str
    host: str
    is_marked: bool


class Prefix(NamedTuple):
    """A learned prefix."""

    pattern: re.Pattern[str]
    parts: tuple[str, ...]
    """The patterns of its words, without groups."""
    words: tuple[str, ...]
    """These words, as they stood in the line that it was learned from."""
    has_time: bool
    has_host: bool

    @property
    def is_quoting(self) -> bool:
        """Whether it is nothing but what mail programs and lists put before lines."""
        return not "".join(self.words).strip(MARKS)

    def taken_off(self, line: str) -> Carried | None:
        """Return a line without the prefix, or None if it has another."""
        matched = self.pattern.match(line)
        if matched is None:
            return None
        at = in_seconds(matched["at"].strip()) if self.has_time else ""
        return Carried(line[matched.end() :], at, matched["host"] if self.has_host else "", is_marked=True)


def record(line: str) -> Carried | None:
    """Return a record of ``/dev/kmsg``, or of netconsole, without its prefix and its escapes; None for another line."""
    found = _KMSG.match(line) if ";" in line else None
    if found is None:
        return None
    text = _ESCAPES.sub(_unescaped, line[found.end() :])
    if "kernel: " in text and (_SYSLOG.match(text) or _ISO.match(text)):
        return known(text)  # someone wrote lines of syslog to /dev/kmsg
    return Carried(text, f"{int(found[1]) / 1e6:.6f}", "", is_marked=True)


def known(line: str) -> Carried:
    """Return a line without a prefix of a known form."""
    text = _unquoted(line)
    if (carried := record(text)) is not None:
        return carried
    rest = _without_known(text)
    if rest is None:
        return Carried(text if (level := _LEVEL.match(text)) is None else text[level.end() :], "", "", is_marked=True)
    if rest is text:
        return Carried(text, "", "", is_marked=False)
    at, host = time_and_host(text[: len(text) - len(rest)])
    return Carried(rest, at, host, is_marked=True)


def may_be_known(line: str) -> bool:
    """Whether a line may have a prefix of a known form."""
    return "kernel" in line or ";" in line or _MAY_BE_KNOWN.match(line) is not None


def leaves(line: str, message: str) -> bool:
    """Whether a line without a prefix of a known form is a message."""
    text = _unquoted(line)
    if (carried := record(text)) is not None:
        return carried.text == message
    rest = _without_known(text)
    return (known(line).text if rest is None else rest) == message


def _unquoted(line: str) -> str:
    return (_QUOTED.sub("", line) if line.startswith((">", "|")) else line).lstrip()


def _without_known(text: str) -> str | None:
    """Return what follows a prefix of a known form, or the very text; None for another program's line."""
    if text.startswith(("<", "kern", "user", "daemon", "syslog")) and (found := _LEVEL.match(text)):
        text = text[found.end() :]
    if "kernel" in text and (found := _KERNEL.search(text, 0, _CARRIED)):
        text = text[found.end() :]
    elif _SYSLOG.match(text):
        return None
    for pattern in (_ISO, _BRACKETED, _CALLER):
        if found := pattern.match(text):
            text = text[found.end() :]
    return text


def learned(prefix: str) -> Prefix | None:
    """Return a prefix as a form that others like it have, too; None for nothing, for source code, and if too long."""
    if not prefix.strip() or len(prefix) > LONGEST or _CALL.search(prefix):
        return None
    time_span, host_span = _time_span(prefix), _host_span(prefix)
    if host_span is not None and time_span is not None and host_span[0] < time_span[1] and time_span[0] < host_span[1]:
        host_span = None
    opened = {span[0]: name for span, name in ((time_span, "at"), (host_span, "host")) if span}
    closed = {span[1] for span in (time_span, host_span) if span}
    parts: list[str] = []
    grouped: list[str] = []
    words = [(word.start(), word[0]) for word in _split(prefix, {*opened, *closed})]
    for number, (start, word) in enumerate(words):
        following = words[number + 1][1] if number + 1 < len(words) else None
        before = words[number - 1][1] if number else ""
        part = _part(word, before, following)
        parts.append(part)
        if start in opened:
            part = f"(?P<{opened[start]}>{part}"
        if start + len(word) in closed:
            part += ")"
        grouped.append(part)
    pattern = re.compile("".join(grouped))
    has_time, has_host = time_span is not None, host_span is not None
    return Prefix(pattern, tuple(parts), tuple(word for _, word in words), has_time, has_host)


def _split(prefix: str, cuts: set[int]) -> list[re.Match[str]]:
    words: list[re.Match[str]] = []
    edges = sorted({0, *cuts, len(prefix)})
    for start, end in pairwise(edges):
        words += _WORDS.finditer(prefix, start, end)
    return words


def _part(word: str, before: str, following: str | None) -> str:
    """Return the pattern of a word of a prefix. None of them can match in more than one way."""
    if word.isspace():
        if following is None:
            return f"(?:{re.escape(word)}|$)" if word in {" ", "\t"} else r"(?:\s{1,40}+|$)"
        is_padding = following.isdigit() or following.lower() in _LEVELS or before.lower() in _LEVELS
        return r"\s{0,40}+" if is_padding else r"\s{1,40}+"
    if word.isdigit():
        return r"\d{1,20}+"
    if word.lower() in _LEVELS:
        return r"[^\W\d_]{1,16}+" + (r"\s{0,16}+" if following is not None and not following.isspace() else "")
    if any(map(str.isdigit, word)):
        return r"[^\W_]{1,80}+"
    return re.escape(word)


def time_and_host(prefix: str) -> tuple[str, str]:
    """Return when and where, as far as a prefix says."""
    time_span, host_span = _time_span(prefix), _host_span(prefix)
    at = "" if time_span is None else in_seconds(prefix[slice(*time_span)].strip())
    host = "" if host_span is None else prefix[slice(*host_span)]
    return at, "" if host and host in at else host


def is_relative(prefix: str) -> bool:
    """Whether the time in a prefix counts from the line before, as ``dmesg -H`` and ``-d`` have it."""
    return _RELATIVE.search(prefix) is not None


def is_prose(prefix: str) -> bool:
    """Whether what precedes a message is a sentence or source code that quotes it."""
    return _PROSE.search(prefix) is not None or _CALL.search(prefix) is not None


def in_seconds(at: str) -> str:
    """Return a time since 1970 in seconds, whatever it was counted in; others as they are."""
    if at.isdecimal() and len(at) in {13, 16, 19}:
        return f"{at[:10]}.{at[10:]}"
    return at


def _time_span(prefix: str) -> tuple[int, int] | None:
    for pattern in _TIMES:
        if found := pattern.search(prefix):
            if found[0].lstrip(" ").startswith("+"):
                continue
            return found.span()
    return None


def _host_span(prefix: str) -> tuple[int, int] | None:
    for pattern in _HOSTS:
        found = pattern.search(prefix)
        if found is None:
            continue
        if _NO_HOST.fullmatch(found[1]) and not _ADDRESS.fullmatch(found[1]):
            continue
        return found.span(1)
    return None


def _unescaped(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("\\x", "")).decode(errors="replace")
