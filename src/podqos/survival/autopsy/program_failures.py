"""Programs that say that their own heap is full: the JVM, Node.js, Go and Python.

The kernel killed nobody then, and a larger memory limit of the container need not help: each has a limit of its own.

Only a line of a log counts, as these programs print it: the words begin the line, or what a logger writes before a
message precedes them. Prose about such an error is none, nor is source code.

The messages are known as these programs print them; they were not compared with the source of each version.
"""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.kernel.message import Message
from podqos.survival.autopsy.lazy_pattern import LazyPattern
from podqos.survival.autopsy.log_times import carried

_MOST_MESSAGE = 300
_SIZES = {"K": 10, "M": 20, "G": 30, "T": 40}


class FailureKind(StrEnum):
    """What a program ran out of."""

    JAVA_HEAP = "JavaHeap"
    JAVA_GC_OVERHEAD = "JavaGCOverhead"
    JAVA_METASPACE = "JavaMetaspace"
    JAVA_DIRECT_MEMORY = "JavaDirectMemory"
    JAVA_ARRAY_SIZE = "JavaArraySize"
    """One array longer than the JVM can have: no amount of memory helps."""
    JAVA_THREADS = "JavaThreads"
    JAVA_NATIVE = "JavaNative"
    """The JVM asked the system for memory, and did not get it."""
    JAVA_OTHER = "JavaOther"
    NODE_HEAP = "NodeHeap"
    GO = "Go"
    PYTHON = "Python"


class ProgramFailure(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A program's own out-of-memory error, once for all of its kind on a host."""

    kind: FailureKind
    message: str
    """As logged the first time."""
    at: str = ""
    """When first; empty where the line does not say."""
    last_at: str = ""
    host: str = ""
    times: int = 1
    is_fatal: bool = False
    """Whether the program says that it ended because of it."""
    limit_bytes: int | None = None
    """Its own limit, where it says so."""
    wanted_bytes: int | None = None
    """What it asked for, where it says so."""


class _Form(Struct, frozen=True):
    kind: FailureKind
    needs: str
    """What its lines hold; no other line is matched."""
    pattern: LazyPattern
    """Groups: limit, wanted, unit."""
    is_fatal: bool = False
    is_detail: bool = False
    """Whether it belongs to another line, which comes before it or after it."""


# The line begins with the words, or what loggers write before a message ends just before them.
_BEFORE = r"(?m)^(?P<before>[\s#>|]{0,40}|[^\n]{1,600}?(?:[:>|\])-]|[=:]\s?\"|[A-Z]{4,8})\s{0,8})"
_END = r"[\s\"'}\])]{0,8}$"
"""So much follows at most; prose goes on with words."""
_LOGGED = LazyPattern(
    r"(?:<\d{1,3}>|[\[({\s\"']{0,4}(?:time=\"?)?)(?:\d{2,4}[-/:]\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:|level=|[FEWI]\d{4} "
    r"|(?:ERROR|FATAL|SEVERE|CRITICAL|WARN|INFO)\b|\d{1,12}\.\d{3})"
)
"""A time or a level, as a line of a log begins with: words at the end of a sentence are preceded by prose."""
_JAVA = (
    r"(?:Exception in thread \"[^\"\n]{0,200}\" |Caused by: |(?:Terminating|Aborting) due to )?"
    r"java\.lang\.OutOfMemoryError"
)


def _form(kind: FailureKind, needs: str, pattern: str, *, is_fatal: bool = False, is_detail: bool = False) -> _Form:
    return _Form(kind, needs, LazyPattern(f"{_BEFORE}(?P<said>{pattern}){_END}"), is_fatal, is_detail)


_FORMS = (
    _form(
        FailureKind.JAVA_THREADS,
        " native thread",
        _JAVA + r": [Uu]nable to create (?:new )?native thread(?:: [^\n]{0,120})?",
    ),
    _form(FailureKind.JAVA_GC_OVERHEAD, "GC overhead", _JAVA + ": GC overhead limit exceeded"),
    _form(FailureKind.JAVA_METASPACE, "pace", _JAVA + ": (?:Metaspace|Compressed class space|PermGen space)"),
    _form(
        FailureKind.JAVA_DIRECT_MEMORY,
        "irect buffer memory",
        _JAVA + r": (?:Direct buffer memory|Cannot reserve (?P<wanted>\d{1,15}) bytes of direct buffer memory"
        r"(?: \(allocated: \d{1,15}, limit: (?P<limit>\d{1,15})\))?)",
    ),
    _form(
        FailureKind.JAVA_ARRAY_SIZE,
        "array ",
        _JAVA + r": (?:Requested array size exceeds VM limit|Required array (?:length|size) [^\n]{1,80})",
    ),
    _form(FailureKind.JAVA_HEAP, "Java heap space", _JAVA + ": Java heap space"),
    _form(FailureKind.JAVA_OTHER, "java.lang.OutOfMemoryError", _JAVA),
    _form(
        FailureKind.JAVA_NATIVE,
        "There is insufficient memory for the Java",
        r"(?:# )?There is insufficient memory for the Java Runtime Environment to continue\.",
        is_fatal=True,
    ),
    _form(
        FailureKind.JAVA_NATIVE,
        "Native memory allocation (m",
        r"(?:# )?Native memory allocation \(m(?:alloc|map|protect)\) failed to (?:allocate|map|protect) "
        r"(?P<wanted>\d{1,15}) bytes[^\n]{0,200}",
        is_fatal=True,
        is_detail=True,
    ),
    _form(
        FailureKind.JAVA_NATIVE,
        "os::commit_memory(",
        r"(?:\w[\w -]{1,60} VM warning: INFO: )?os::commit_memory\(0x[0-9a-f]{1,16}, (?P<wanted>\d{1,15}), \d\) failed"
        r"; error='[^'\n]{0,80}' \(errno=\d{1,3}\)",
        is_detail=True,
    ),
    _form(
        FailureKind.NODE_HEAP,
        "JavaScript heap out of memory",
        r"FATAL ERROR: [^\n]{0,120}JavaScript heap out of memory",
        is_fatal=True,
    ),
    _form(
        FailureKind.NODE_HEAP,
        "[ERR_WORKER_OUT_OF_MEMORY]",
        r"Error \[ERR_WORKER_OUT_OF_MEMORY\]: Worker terminated due to reaching memory limit[^\n]{0,80}",
    ),
    _form(
        FailureKind.GO,
        "runtime: out of memory: ",
        r"runtime: out of memory: cannot allocate (?P<wanted>\d{1,15})-byte block \(\d{1,15} in use\)",
        is_fatal=True,
        is_detail=True,
    ),
    _form(
        FailureKind.GO,
        "fatal error: ",
        r"fatal error: (?:runtime: )?(?:out of memory|cannot allocate memory)",
        is_fatal=True,
    ),
    _form(
        FailureKind.PYTHON,
        "MemoryError",
        r"(?:[\w.]{1,80}\.)?_?(?:Array)?MemoryError"
        r"(?:: Unable to allocate (?P<wanted>[\d.]{1,8}) (?P<unit>[KMGT])iB for an [^\n]{1,200})?",
    ),
)


class Told(Struct, frozen=True, gc=False):
    """What one line told."""

    kind: FailureKind
    host: str
    is_detail: bool
    """Whether it belongs to another line."""


def _found(message: Message) -> tuple[_Form, re.Match[str]] | None:
    """Return the first form that a line has, and where."""
    text = message.text
    if "emory" not in text and "MEMORY" not in text:
        return None
    for form in [form for form in _FORMS if form.needs in text]:
        if match := form.pattern.search(text):
            before = match["before"]
            if not before.strip(" \t#>|") or message.at or _LOGGED.match(before):
                return form, match
    return None


def may_be_failure(text: str) -> bool:
    """Whether a line may be one of a program that failed."""
    return any(form.needs in text and form.pattern.search(text) for form in _FORMS)


class ProgramFailures:
    """Takes messages, and counts the failures of programs by kind and host."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures: dict[tuple[FailureKind, str], ProgramFailure] = {}
        self._pending: set[tuple[FailureKind, str]] = set()

    @property
    def failures(self) -> tuple[ProgramFailure, ...]:
        """Those found so far, in the order of their first lines."""
        return tuple(self._failures.values())

    def feed(self, message: Message) -> Told | None:
        """Take a line; return what it told if it is one of a program that ran out of memory."""
        found = _found(message)
        return None if found is None else self._add(*found, message)

    def repeat(self, kind: FailureKind, host: str, times: int) -> None:
        """Count a failure again."""
        known = self._failures.get((kind, host))
        if known is not None:
            self._failures[kind, host] = replace(known, times=known.times + times)

    def _add(self, form: _Form, match: re.Match[str], message: Message) -> Told:
        at, host = carried(message.text[: match.start("said")], message)
        groups = match.groupdict()
        failure = ProgramFailure(
            form.kind,
            match["said"].strip()[:_MOST_MESSAGE],
            at,
            at,
            host,
            is_fatal=form.is_fatal or " due to java" in match["said"],
            limit_bytes=_bytes(groups.get("limit"), None),
            wanted_bytes=_bytes(groups.get("wanted"), groups.get("unit")),
        )
        key = form.kind, host
        known = self._failures.get(key)
        # A detail that came first is counted with the line that it belongs to.
        is_pending = key in self._pending
        self._pending.discard(key)
        if form.is_detail and known is None:
            self._pending.add(key)
        if known is not None:
            self._failures[key] = replace(
                known,
                last_at=at or known.last_at,
                times=known.times + (not form.is_detail and not is_pending),
                is_fatal=known.is_fatal or failure.is_fatal,
                limit_bytes=failure.limit_bytes if known.limit_bytes is None else known.limit_bytes,
                wanted_bytes=failure.wanted_bytes if known.wanted_bytes is None else known.wanted_bytes,
            )
        elif len(self._failures) < self._most:
            self._failures[key] = failure
        return Told(form.kind, host, form.is_detail or is_pending)


def _bytes(number: str | None, unit: str | None) -> int | None:
    if number is None:
        return None
    try:
        return int(float(number) * (1 << _SIZES[unit])) if unit else int(number)
    except (ValueError, OverflowError):
        return None
