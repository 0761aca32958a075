"""What carries a log's lines: learned from the lines themselves, and taken off.

The kernel's lines of an OOM are known by their beginnings, wherever in a line they stand. What precedes them there is a
prefix: of it digits, levels and the names of months vary, the rest does not. JSON is walked through once; the text is
in a field of a usual name, a time and a host are in others. No format has a reader of its own but journald's export
and CSV, whose columns have names.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

MOST_CHARACTERS = 8192
"""Of a line; the longest that decides anything is the one with two cgroup paths."""
_MOST_PREFIX = 600
_MOST_SHAPES = 8
_MOST_FAILURES = 50
"""So often JSON may turn out to be none."""
_MOST_DEPTH = 12
_LONG_WORD = 16
"""One that does not fit may be broken inside."""
_LONG_LINE = 4000
"""A longer line holds many, or nothing."""

_COLOUR = re.compile(r"\x1b(?:\[[0-9;:]{0,20}[mK]|\(B)|#033\[[0-9;]{0,20}m")
_QUOTE = re.compile(r"(?:> ?){1,20}")
"""Of a mail. A level of a message, as <4>, is none."""
_LINE_ENDS = re.compile(r"\r+\n|\r|[\u2028\x0b\x85]")

_BEGINNINGS = (
    *(r"oom-kill:constraint=", r"(?:Memory cgroup o|O)ut of memory[^:]{0,64}: Kill", r"Kill(?:ed)? process \d+ \("),
    *(r"\[ {0,6}pid {0,6}\] ", r"\[ *\d+\] +\d+ +\d+ +\d+ +\d+ +-?\d", r"(?:memory(?:\+swap)?|swap|kmem): usage \d"),
    *(
        r"Memory cgroup stats(?: for |:)",
        r"Tasks? in /",
        r"Tasks state \(",
        r"oom_reaper: ",
        r"Mem-Info:",
        r"Call Trace:",
    ),
    *(
        r"CPU: \d+ (?:UID: \d+ )?PID: \d+ Comm: ",
        r"Pid: \d+, comm: ",
        r"Hardware name: ",
        r"(?:in)?active_anon:\d+(?![\dk])",
    ),
    *(
        r"Node \d+ ",
        r"(?:active_file|unevictable|slab_reclaimable|mapped|free):\d+(?![\dk])",
        r"lowmem_reserve\[\]",
        r"\d+ pages (?:RAM|reserved|in swap)",
        r"\d+ total pagecache",
    ),
    *(
        r"(?:Total|Free) swap ",
        r"Kernel panic - not syncing",
        r"Out of memory and no kill",
        r"dump_header\+0x",
        r"oom_kill_process\+0x",
    ),
)
_BEGINNING = re.compile(r"(?<![\w/.])(?:" + "|".join(_BEGINNINGS) + ")")
"""Where the kernel's own words begin in a line of an OOM."""
_INVOKED = re.compile(r"[^\s\]:>|\"',;`$]{1,64} invoked oom-killer: gfp_mask=0x")
_PREFIX = re.compile(r".*[\]:;>|\"]\s*")
_HINTS = (
    *("oom", "ill process", "illed process", "pid  ]", "[ pid ]", "kB, limit", "total_vm", "Mem-Info", "Call Trace"),
    *("a result of limit", "no killable", "deadlocked on"),
)
"""What lines hold of which one is to be sure where the kernel's words begin."""
_ALL_HINTS = (
    *_HINTS,
    "PID: ",
    "in_state",
    "Node ",
    "pages RAM",
    "cgroup stats",
    "ctive_",
    "slab_",
    "evictable:",
    "mapped:",
    " swap ",
)

_HEADER = re.compile(r"\[ {0,6}pid {0,6}\] {1,8}uid\b.{0,200}")
_NAMELESS_ROW = re.compile(r"\[ *\d+\](?: +-?\d+){7,10} *$")
_UID = re.compile(r",uid=\d")
_BROKEN_KILL = re.compile(
    r"Killed process \d{1,10} (?:\([^)]{0,16}$"
    r"|\(.{1,16}\)(?:,| total-vm:(?!.{1,99}-rss:\d+kB[ \"']*$)(?!.*_score_adj:-?\d)))"
)
_NO_ORDER = re.compile(r"invoked oom-killer: gfp_mask=0x[0-9a-f]{1,8}(?:\([A-Z_|]{0,400}\)?)?,?$")
_OWN = re.compile(
    r"\s*(?:"
    + "|".join(_BEGINNINGS)
    + r"|(?!failcnt )[a-z_]{3,40} \d+$|(?:\[<[0-9a-f]+>\] )?(?:\? )?\w+\+0x|</?TASK>|```|\S.{0,14} invoked oom-killer)"
)

_DAY = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
_NAMED_DAY = (
    r"(?:[^\W\d_]{2,10}\.? {1,2})?[^\W\d_]{3,10}\.? {1,2}\d{1,2},? \d\d:\d\d(?::\d\d)?(?:\.\d{1,9})?(?: \d{4}\b)?"
)
_TIME = re.compile(rf"{_DAY}|{_NAMED_DAY}|(?<![\d.:])\d{{9,10}}\.\d{{3,9}}(?![\d.])|^\d\d:\d\d:\d\d\b")
_SINCE_BOOT = re.compile(
    r"\[ {0,8}(\d{1,9}\.\d{1,9})s?(?: <[^>]{1,20}>)?\]|^[\d.,]{0,20},(\d{6,18}),[-c+f](?:,[^;]{0,80})?;"
)
_HOST = re.compile(
    r"(?:^|[\s>])(?!\d{4} |kern\.)(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{0,252}) "
    r"(?:(?:kern|user)\.[a-z]{2,8} |[a-z]{3,8} )?"
    r"kernel(?:\[\d{1,10}\])?(?:: ?| - )|^(?P<talos>[A-Za-z0-9][A-Za-z0-9._-]{0,252}): kern: "
)
_HEADER_OF_OTHERS = re.compile(
    rf"(?:<\d{{1,3}}>)?\d?\s?(?P<at>{_NAMED_DAY}|{_DAY})(?: (?P<host>[A-Za-z0-9][A-Za-z0-9._-]{{0,252}}))? "
    r"[A-Za-z][\w.@/()-]{0,63}(?:\[\d{1,10}\])?: "
)
_TIME_FIELD = re.compile(rf"\btime=\"?({_DAY})")
_FIRST = re.compile(rf"(?:\[|\(|time=\"?|\"time\":\")?({_DAY})")
_VARYING = {
    *("emerg", "alert", "crit", "critical", "err", "error", "warn", "warning", "notice", "info", "debug", "fatal"),
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    *("mon", "tue", "wed", "thu", "fri", "sat", "sun"),
}
_TOKENS = re.compile(
    r"(?=[0-9a-f-]{0,40}[0-9])(?=[0-9-]{0,40}[a-f])(?<![\w])[0-9a-f][0-9a-f-]{7,40}(?![\w])|\s+|[0-9]+|[^\W\d_]+|.",
    re.DOTALL,
)

_TEXTS = (
    *("MESSAGE", "message", "Message", "msg", "log", "textPayload", "@message", "_raw", "line", "body", "text"),
    *("full_message", "short_message", "SyslogMessage", "log_message", "event.original", "content", "stringValue"),
)
"""Fields with a line's text, as services name them."""
_TIMES = (
    *("@timestamp", "timestamp", "time", "_time", "ts", "date", "TimeGenerated", "__REALTIME_TIMESTAMP"),
    *("_SOURCE_REALTIME_TIMESTAMP", "eventTime", "timeUnixNano", "TimeGenerated [UTC]"),
)
_HOSTS = (
    *("_HOSTNAME", "host", "hostname", "node_name", "nodename", "node", "Computer", "host.name", "instance"),
    *("logStreamName", "@logStream", "resource.labels.node_name", "kubernetes.host"),
)
_ABOUT_HOSTS = (
    "resource",
    "labels",
    "stream",
    "host",
    "kubernetes",
    "metadata",
    "agent",
    "attributes",
    "_source",
    "fields",
)
_VALUE = re.compile(r"\s*+,?\s*+(?=\{\s*+\"|\[\s*+[{\[\"]|[{\[]\s*+$|\"(?:[^\"\\\n]|\\.){20,})", re.MULTILINE)
_STRING = re.compile(r"\"((?:[^\"\\]|\\.){12,})\"")
_EXPORTED = re.compile(r"^(_HOSTNAME|__REALTIME_TIMESTAMP|MESSAGE)=(.*)$", re.MULTILINE)
_ENTRY = "__CURSOR="


class Line(Struct, gc=False):
    """A line without what carried it; what that says of time and host is read when it is asked for."""

    text: str
    raw: str = ""
    """As it was found."""
    host: str = ""
    """Of several in one log."""
    end: int = 0
    """Where the prefix ends."""
    said_at: str = ""
    """When, as the record of JSON says."""
    fields: Mapping[str, Any] = {}
    """All of a record of JSON, whose text may be only a part of what it says."""
    is_kernels: bool = False
    """Whether its prefix is one that only lines of the kernel have."""

    @property
    def at(self) -> str:
        """When, as it is written: a date, or seconds since the machine started."""
        prefix = self.raw[: self.end]
        if found := _TIME.search(prefix):
            return found[0].strip()
        if self.said_at:
            return self.said_at
        since = _SINCE_BOOT.search(prefix)
        if since is None:
            return ""
        return since[1] or f"{int(since[2]) / 1e6:.6f}"

    def origin(self, before: str = "") -> tuple[str, str]:
        """Return when and on which host another program than the kernel wrote a line, by what precedes its words."""
        raw = before or self.raw
        if self.fields or self.end:
            found = None if self.fields else _HEADER_OF_OTHERS.match(raw, 0, _MOST_PREFIX)
            return self.at or (found["at"] if found else ""), self.host or (found["host"] or "" if found else "")
        if found := _HEADER_OF_OTHERS.match(raw, 0, _MOST_PREFIX):
            return found["at"], found["host"] or ""
        first = _TIME_FIELD.search(raw, 0, _MOST_PREFIX) or _FIRST.match(raw, 0, _MOST_PREFIX)
        return ("" if first is None else first[1]), ""


class _Found(Struct, gc=False):
    """A line before its prefix is known."""

    raw: str
    host: str = ""
    said_at: str = ""
    fields: Mapping[str, Any] = {}


class Carrier:
    """What is known of a log's carrier; it learns while the log is read."""

    def __init__(self) -> None:
        self._shapes: list[re.Pattern[str]] = []
        self._column: tuple[str, int, int, int] | None = None
        """Of CSV: what separates columns, and which are the text, the time and the host; -1: none."""
        self._last_host = ""
        self._is_first = True
        self.is_broken = False
        """Whether lines are broken where nothing tells how to join them."""

    def lines(self, data: bytes) -> list[Line]:
        """Return the lines of a part of a log, in the order in which they were written."""
        found = self._found(_cleaned(data.decode(errors="replace")))
        lines = [self._line(each) for each in found]
        bare = "\n".join(line.raw for line in lines if not line.end)
        if any(hint in bare for hint in _HINTS) and self._learn(found):
            lines = [self._line(each) for each in found]
        if any(_is_broken(each.raw) for each in found):
            found = self._unwrapped(found)
            self.is_broken |= any(_is_broken(each.raw) for each in found)
            lines = [self._line(each) for each in found]
        return lines[::-1] if _is_newest_first(lines) else lines

    def _found(self, text: str) -> list[_Found]:
        if self._is_first:
            self._is_first = False
            self._column = _columns(text[:_LONG_LINE].partition("\n")[0])
        if self._column is not None:
            return [*_of_rows(text, self._column)]
        if _ENTRY in text:
            return [*_of_export(text)]
        if _VALUE.match(text) or '{"' in text or "\n{\n" in text:
            return [*_of_json(text)]
        return [_Found(line) for line in text.split("\n")]

    def _learn(self, found: Sequence[_Found]) -> bool:
        """Learn how the prefixes of the kernel's lines look; return whether anything was not known."""
        shapes: Counter[str] = Counter()
        sure = [each.raw for each in found if any(hint in each.raw for hint in _HINTS)]
        for number, each in enumerate(found):
            if "pid" in each.raw and _HEADER.search(each.raw):
                sure += [row.raw for row in found[number + 1 : number + 4]]
        unknown = [raw for raw in sure if not any(shape.match(raw) for shape in self._shapes)]
        if not unknown:
            return False
        known = len(self._shapes)
        if len(sure) < 4:
            unknown = [each.raw for each in found if any(hint in each.raw for hint in _ALL_HINTS)]
        for raw in unknown[:2000]:
            begins = _BEGINNING.search(raw, 0, MOST_CHARACTERS)
            if begins is not None and begins.start() <= _MOST_PREFIX and " invoked oom-killer" not in raw:
                shapes[_shape(raw[: begins.start()])] += 1
        if not shapes:
            for raw in unknown[:200]:
                # The name of a process may have spaces, and a prefix ends with something else.
                invoked = _INVOKED.search(raw, 0, MOST_CHARACTERS)
                prefix = None if invoked is None else _PREFIX.match(raw, 0, min(invoked.start(), _MOST_PREFIX))
                if prefix is not None:
                    shapes[_shape(prefix[0])] += 1
        most = max(shapes.values(), default=0)
        for source, times in shapes.most_common(_MOST_SHAPES):
            # One line of many that begins otherwise has another's words in front, not a carrier.
            if source.strip("\\s*") and (times > 1 or most <= 2) and times * 20 >= most:
                self._shapes.append(re.compile(source))
        is_new = len(self._shapes) > known
        self._shapes = sorted(self._shapes[-_MOST_SHAPES:], key=lambda shape: -len(shape.pattern))
        return is_new

    def _line(self, found: _Found) -> Line:
        raw = found.raw
        for shape in self._shapes:
            if (prefix := shape.match(raw)) is not None:
                end = prefix.end()
                text = raw[end : end + MOST_CHARACTERS]
                if raw[end - 1 : end] in {'"', "'", "`"}:
                    text = text.rstrip("\"'`, \\")
                elif "|" in prefix[0] or "\u2502" in prefix[0]:
                    text = text.rstrip(" |\u2502")
                host = found.host or (prefix["host"] if shape.groups else "")
                self._last_host = host
                return Line(text.strip(), raw, host, end, found.said_at, found.fields, _is_kernels(shape.pattern))
        # The kernel's lines of several lines have their prefix once.
        host, end = found.host if found.host or found.fields else self._last_host, 0
        if self._shapes and any(hint in raw for hint in _ALL_HINTS):
            begins = _INVOKED.search(raw, 0, _MOST_PREFIX) or _BEGINNING.search(raw, 0, _MOST_PREFIX)
            end = 0 if begins is None else begins.start()
            named = _HOST.search(raw, 0, end) if end and not found.host else None
            host = host if named is None else named["host"] or named["talos"]
        return Line(raw[end : end + MOST_CHARACTERS].strip(), raw, host, end, found.said_at, found.fields)

    def _unwrapped(self, found: Sequence[_Found]) -> list[_Found]:
        """Return lines as they were before something broke them at one width: between words, or at a column."""
        lengths = [len(each.raw) for each in found]
        # Lines that carry nothing go on in the next where its first word did not fit.
        broken = max(length for each, length in zip(found, lengths, strict=True) if _is_broken(each.raw))
        breaks = [
            number
            for number in range(1, len(found))
            if found[number].raw.strip() and self._is_rest(found[number].raw, found[number - 1].raw, broken)
        ]
        if not breaks:
            return [*found]
        widths = Counter(lengths[number - 1] for number in breaks)
        width, times = widths.most_common(1)[0]
        widest = max(widths)
        # At a column all lines are equally long; between words only the rows of a table are.
        is_folded = times * 20 >= len(breaks) * 19 and width == widest
        rests = set(breaks)
        whole: list[_Found] = []
        for number, each in enumerate(found):
            if number not in rests or not whole or len(whole[-1].raw) > MOST_CHARACTERS:
                whole.append(each)
                continue
            before = whole[-1]
            if is_folded:
                text = before.raw + " " * max(0, width - lengths[number - 1]) + each.raw
            else:
                word = before.raw.rstrip().rpartition(" ")[2]
                is_in_word = (lengths[number - 1] == widest and len(word) > _LONG_WORD) or word.endswith("-")
                text = before.raw.rstrip() + ("" if is_in_word else " ") + each.raw.lstrip()
            whole[-1] = _Found(text, before.host, before.said_at)
        return whole

    def _is_rest(self, raw: str, before: str, width: int) -> bool:
        """Whether a line is the rest of the one before it."""
        if before.endswith(("Memory cgroup", " out of", " of memory:")):
            return True
        if _OWN.match(raw) or _HEADER_OF_OTHERS.match(raw) or any(shape.match(raw) for shape in self._shapes):
            return False
        if self._shapes:
            return True
        return len(before) + 1 + len(raw.split(None, 1)[0]) > width or _is_broken(before)


def _is_broken(raw: str) -> bool:
    """Whether a line of an OOM report ends too early."""
    if "pid" in raw and (header := _HEADER.search(raw)):
        return not header[0].endswith("name")
    if raw[-1:] in "0123456789 " and _NAMELESS_ROW.search(raw):
        return True
    if "oom-kill" in raw:
        is_summary = "oom-kill:constraint=" in raw and not _UID.search(raw)
        return is_summary or raw.endswith("invoked oom-killer:") or _NO_ORDER.search(raw) is not None
    return "illed process " in raw and _BROKEN_KILL.search(raw) is not None


def _cleaned(text: str) -> str:
    """Return a text without colour, with spaces for what looks like them, and line feeds for what ends lines."""
    if "\x1b" in text or "#033[" in text:
        text = _COLOUR.sub("", text)
    if "\r" in text or "\u2028" in text or "\x0b" in text or "\x85" in text:
        text = _LINE_ENDS.sub("\n", text)
    if "\\x0a" in text:  # /dev/kmsg writes what ends a line so
        text = text.replace("\\x0a", "\n")
    if "\t" in text:
        text = text.expandtabs(1)
    text = text.replace("\xa0", " ").removeprefix("\ufeff")
    if text.lstrip().startswith(">") or "\n>" in text:
        lines = text.split("\n")
        if sum(line.startswith(">") for line in lines) * 2 > len(lines):
            text = "\n".join(_QUOTE.sub("", line) for line in lines)
    return text


@lru_cache(maxsize=512)
def _shape(prefix: str) -> str:
    """Return a pattern for prefixes like one: its digits, levels and months may be others, and its host any."""
    host = _HOST.search(prefix)
    start, end = (0, 0) if host is None else host.span("host" if host["host"] else "talos")
    if not host:
        return _literal(prefix)
    return f"{_literal(prefix[:start])}(?P<host>[A-Za-z0-9][A-Za-z0-9._-]{{0,252}}){_literal(prefix[end:])}"


@lru_cache(maxsize=512)
def _is_kernels(shape: str) -> bool:
    return "kernel" in shape or r"[0-9]+\.[0-9]+\]" in shape


def _literal(text: str) -> str:
    parts = []
    for token in _TOKENS.findall(text):
        if token.isspace():
            parts.append(r"\s*")
        elif token.isdecimal():
            parts.append("[0-9]+")
        elif len(token) > 1 and any(character.isdecimal() for character in token):
            parts.append("[0-9a-f-]+")
        elif token.lower() in _VARYING:
            parts.append(r"[^\W\d_]+")
        else:
            parts.append(re.escape(token))
    return "".join(parts)


def _is_newest_first(lines: Sequence[Line]) -> bool:
    """Whether a log has its newest line on top: rows of a table stand above its header, or a kill above its report."""
    votes = 0
    header = invoked = -1
    for number, line in enumerate(lines):
        text = line.text
        if text.startswith("[") and "pid" in text[:10] and text.endswith("name"):
            before = lines[number - 1].text if number else ""
            after = lines[number + 1].text if number + 1 < len(lines) else ""
            votes += _is_row(after) - _is_row(before)
            header = number
        elif "invoked oom-killer: gfp_mask" in text:
            votes += header >= 0 > votes and -1
            invoked = number
        elif text.startswith(("oom-kill:", "Mem-Info:", "Memory cgroup stats")) and header < 0 <= votes:
            votes += 1 if invoked >= 0 else 0
    if votes:
        return votes < 0
    kill = next((n for n, line in enumerate(lines) if "illed process" in line.text[:80]), -1)
    last = max((n for n, line in enumerate(lines) if line.text.startswith(("oom-kill:", "oom_reaper:"))), default=-1)
    if kill >= 0 and invoked > kill and last > kill and lines[last].text.startswith("oom-kill:"):
        return not any(line.text.startswith("oom_reaper:") for line in lines[kill:last])
    return False


def _is_row(text: str) -> bool:
    return text.startswith("[") and text[1:13].strip(" ").partition("]")[0].isdecimal()


def _columns(head: str) -> tuple[str, int, int, int] | None:
    """Return where CSV has its columns, by its first line."""
    for delimiter in (",", ";"):
        names = next(csv.reader([head], delimiter=delimiter), []) if delimiter in head else []
        names = [name.strip().removeprefix("jsonPayload.").lower() for name in names]
        own, at, host = (
            next((names.index(name.lower()) for name in usual if name.lower() in names), -1)
            for usual in (_TEXTS, _TIMES, _HOSTS)
        )
        if len(names) > 1 and own >= 0:
            return delimiter, own, at, host
    return None


def _of_rows(text: str, column: tuple[str, int, int, int]) -> Iterator[_Found]:
    delimiter, own, at, host = column
    csv.field_size_limit(1 << 24)
    rows = csv.reader(text.split("\n"), delimiter=delimiter)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error:
            continue
        if len(row) > own:
            said_at = row[at] if 0 <= at < len(row) else ""
            for line in row[own].split("\n"):
                yield _Found(line, row[host] if 0 <= host < len(row) else "", said_at)


def _of_export(text: str) -> Iterator[_Found]:
    """Yield the messages of journald's export format: a field per line, an entry ends with an empty one."""
    for entry in text.split("\n\n"):
        known = dict(_EXPORTED.findall(entry))
        if message := known.get("MESSAGE"):
            yield _Found(message, known.get("_HOSTNAME", ""), _date(known.get("__REALTIME_TIMESTAMP", "")))


def _of_json(text: str) -> Iterator[_Found]:
    """Yield lines, those of JSON by its fields; JSON that is cut or broken is read as text."""
    decoder = json.JSONDecoder()
    position = failures = 0
    while position < len(text):
        end = text.find("\n", position)
        end = len(text) if end < 0 else end
        begun = _VALUE.match(text, position)
        start = begun.end() if begun is not None else text.find(' {"', position, end) + 1
        if start > 0 or begun is not None:
            prefix = text[position:start] if begun is None else ""
            value, after = _decoded(decoder, text, start) if failures < _MOST_FAILURES else (None, 0)
            failures += not after
            # In a line with words in front only what has words of its own is all of what the line says.
            if after and (begun is not None or _is_message(value)):
                at, host = Line("", prefix).origin() if prefix else ("", "")
                yield from _walked(value, _Found("", host, at))
                position = after
                while position < len(text) and text[position] in ",; \r\n\x1e":
                    position += 1
                continue
        line = text[position:end]
        if len(line) > _LONG_LINE:
            yield from _of_long_line(line)
        else:
            yield _Found(line)
        position = end + 1


def _decoded(decoder: json.JSONDecoder, text: str, start: int) -> tuple[object, int]:
    """Return a value of JSON and where it ends; 0: it is none."""
    try:
        return decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None, 0


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and not value.keys().isdisjoint(_TEXTS)


def _of_long_line(line: str) -> Iterator[_Found]:
    """Yield the strings of a part of JSON in one line."""
    start = max(0, line.find('{"'))
    for string in _STRING.findall(line, start):
        try:
            value = json.loads(f'"{string}"')
        except ValueError:
            continue
        yield from (_Found(each) for each in value.split("\n"))


def _walked(value: object, around: _Found, depth: int = 0) -> Iterator[_Found]:
    """Yield the lines in a value of JSON, with the time and the host of the record that each is of."""
    if isinstance(value, str):
        inner = value.strip()
        if inner.startswith('{"') and inner.endswith("}") and depth < _MOST_DEPTH:
            try:
                yield from _walked(json.loads(inner), around, depth + 1)
            except (ValueError, RecursionError):
                pass
            else:
                return
        for line in _cleaned(value).rstrip("\n").split("\n"):
            yield _Found(line, around.host, around.said_at, around.fields)
    elif isinstance(value, list) and depth < _MOST_DEPTH:
        if value and all(isinstance(each, int) and 0 <= each < 256 for each in value):
            yield from _walked(bytes(value).decode(errors="replace"), around, depth + 1)
        elif len(value) == 2 and all(isinstance(each, str) for each in value) and value[0].isdecimal():
            yield from _walked(value[1], _Found("", around.host, _date(value[0])), depth + 1)  # Loki's
        else:
            for each in value:
                yield from _walked(each, around, depth + 1)
    elif isinstance(value, dict) and depth < _MOST_DEPTH:
        own = _Found("", _host_of(value) or around.host, _date_of(value) or around.said_at, value)
        if value.get("field") == "@message":
            yield from _walked(value.get("value"), own, depth + 1)
            return
        name = next((name for name in _TEXTS if isinstance(value.get(name), str | list)), None)
        if name is not None:
            yield from _walked(value[name], own, depth + 1)
            return
        unnamed = _Found("", own.host, own.said_at)
        for each in value.values():
            if isinstance(each, dict | list) or (isinstance(each, str) and any(hint in each for hint in _HINTS)):
                yield from _walked(each, unnamed, depth + 1)
        if depth < 2 and not value.keys().isdisjoint(("reason", "State", "status", "time_us")):
            yield _Found("", own.host, own.said_at, value)


def _host_of(value: Mapping[str, Any], depth: int = 0) -> str:
    """Return the host that a record names, itself or in what it says about where it is from."""
    for name in _HOSTS:
        host = value.get(name)
        host = host[0] if isinstance(host, list) and len(host) == 1 else host
        if isinstance(host, str) and host:
            return host
    if depth < 3:
        for name in (*_ABOUT_HOSTS, *(("name",) if depth else ())):
            part = value.get(name)
            if isinstance(part, dict) and (host := _host_of(part, depth + 1) or _name_of(name, part)):
                return host
    return ""


def _name_of(name: str, part: Mapping[str, Any]) -> str:
    own = part.get("name") if name == "host" else None
    return own if isinstance(own, str) else ""


def _date_of(value: Mapping[str, Any]) -> str:
    for name in _TIMES:
        at = value.get(name)
        if isinstance(at, str | int | float) and not isinstance(at, bool) and at:
            return _date(str(at))
    return ""


def _date(at: str) -> str:
    """Return a moment; one in micro- or nanoseconds since 1970 as a number of seconds."""
    if at.isdecimal() and 13 <= len(at) <= 19:
        return f"{int(at) / 10 ** (len(at) - 10):.6f}"
    return at
