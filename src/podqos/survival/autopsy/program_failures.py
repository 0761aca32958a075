"""Programs that ran out of their own memory: a heap's limit, or an allocation that the system refused.

The kernel killed nobody then, and a larger memory limit of the container need not help: the JVM, Node.js, PHP and Redis
have limits of their own. One table says how each words it.

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
_SIZES = {"k": 10, "m": 20, "g": 30, "t": 40}


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
    DOTNET = ".NET"
    PHP_LIMIT = "PHPLimit"
    PHP = "PHP"
    RUBY = "Ruby"
    RUST = "Rust"
    CPLUSPLUS = "C++"
    REDIS_LIMIT = "RedisLimit"
    REDIS_FORK = "RedisFork"
    POSTGRES = "Postgres"
    POSTGRES_LOST_PROCESS = "PostgresLostProcess"
    """Someone killed one of its processes: it does not know who."""
    SHELL_LOST_PROCESS = "ShellLostProcess"
    """A shell says that its process was killed: it does not know by whom."""
    TASK_KILLED = "TaskKilled"
    """A Nomad task ended with the code of SIGKILL, and nothing says who sent it."""
    UNIT_KILLED = "UnitKilled"
    """systemd says that a process of a unit ended with SIGKILL, and nothing says who sent it."""
    PROCESS_KILLED = "ProcessKilled"
    """A program says that another ended with the code of SIGKILL, as CI, builds and clients do."""
    WORKER_LOST = "WorkerLost"
    """A server's worker was killed: the server only guesses why."""
    ELASTICSEARCH = "Elasticsearch"
    """A circuit breaker of its own rejected a request."""
    CLICKHOUSE = "ClickHouse"
    TRINO = "Trino"
    RABBITMQ = "RabbitMQ"
    """Its memory alarm: publishers are blocked, nothing failed."""
    ERLANG = "Erlang"
    MONGODB = "MongoDB"
    ORACLE = "Oracle"
    SQL_SERVER = "SQLServer"
    MYSQL = "MySQL"
    MEMCACHED = "Memcached"
    R = "R"
    HEROKU_QUOTA = "HerokuQuota"
    """A dyno swaps: R14. R15 is a kill."""
    GPU = "GPU"
    """The memory of a graphics card, which neither the kernel nor a limit is about."""
    FORK = "Fork"
    """The system refused a process or memory for one."""
    PROCESS_LIMIT = "ProcessLimit"
    """No more processes or threads were allowed; memory is not the matter."""
    ALLOCATION = "Allocation"
    """The system refused memory."""


LOST = frozenset(
    (
        FailureKind.POSTGRES_LOST_PROCESS,
        FailureKind.SHELL_LOST_PROCESS,
        FailureKind.TASK_KILLED,
        FailureKind.UNIT_KILLED,
        FailureKind.PROCESS_KILLED,
        FailureKind.WORKER_LOST,
    )
)
"""A process was killed: the program that says so does not know by whom, and the kernel may have done it."""


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
    pid: int | None = None


class _Form(Struct, frozen=True):
    kind: FailureKind
    needs: str
    """What its lines hold; no other line is matched."""
    pattern: LazyPattern
    """Groups: limit, wanted, unit, pid."""
    is_fatal: bool = False
    is_detail: bool = False
    """Whether it belongs to another line, which comes before it or after it."""


def _form(
    kind: FailureKind, needs: str, pattern: str = "", *, is_fatal: bool = False, is_detail: bool = False
) -> _Form:
    return _Form(kind, needs, LazyPattern(pattern or re.escape(needs)), is_fatal, is_detail)


# A class name in a stack trace or message: not in source code, nor in the name of an option.
_JAVA = r"(?<![\w.+])java\.lang\.OutOfMemoryError: "
_OF_JAVA = (
    _form(FailureKind.JAVA_THREADS, " native thread", _JAVA + r"[Uu]nable to create (?:new )?native thread"),
    _form(FailureKind.JAVA_GC_OVERHEAD, "GC overhead", _JAVA + "GC overhead limit exceeded"),
    _form(FailureKind.JAVA_METASPACE, "pace", _JAVA + r"(?:Metaspace|Compressed class space|PermGen space)"),
    _form(
        FailureKind.JAVA_DIRECT_MEMORY,
        "irect buffer memory",
        _JAVA + r"(?:Direct buffer memory|Cannot reserve (?P<wanted>\d{1,15}) bytes of direct buffer memory"
        r"(?: \(allocated: \d{1,15}, limit: (?P<limit>\d{1,15})\))?)",
    ),
    _form(FailureKind.JAVA_ARRAY_SIZE, "array ", _JAVA + r"(?:Requested array size exceeds VM limit|Required array )"),
    _form(FailureKind.JAVA_HEAP, "Java heap space", _JAVA + r"Java heap space"),
    _form(FailureKind.JAVA_OTHER, "java.lang.", r"(?<![\w.+])java\.lang\.OutOfMemoryError(?::|\s*$)"),
)
_UNIT = "(?P<limit_unit>[KMGT])i?B"
_OF_ELASTICSEARCH = _form(
    FailureKind.ELASTICSEARCH,
    "Data too large, data for [",
    r"Data too large, data for \[[^\]]{1,200}\] would be \[(?P<wanted>\d{1,15})[^\]]{0,40}\], "
    r"which is larger than the limit of \[(?P<limit>\d{1,15})",
)
_OF_SERVERS = (
    _OF_ELASTICSEARCH,
    _form(
        FailureKind.CLICKHOUSE,
        "emory limit ",
        r"[Mm]emory limit (?:\((?:for query|for user|total)\) )?exceeded: would use (?P<wanted>[\d.]{1,12}) "
        r"(?P<unit>[KMGT])iB \(attempt to allocate chunk.{0,400}?maximum: (?P<limit>[\d.]{1,12}) " + _UNIT,
    ),
    _form(
        FailureKind.TRINO,
        "Query exceeded ",
        r"Query exceeded (?:per-node|distributed|cluster)(?: user| total)? memory limit of (?P<limit>[\d.]{1,12})"
        + _UNIT,
    ),
    _form(FailureKind.TRINO, "the cluster is out of memory", r"Query killed because the cluster is out of memory\. "),
    _form(FailureKind.RABBITMQ, "memory resource limit alarm set on node "),
    _form(
        FailureKind.RABBITMQ,
        "vm_memory_high_watermark set. ",
        r"vm_memory_high_watermark set\. Memory used:(?P<wanted>\d{1,15}) allowed:(?P<limit>\d{1,15})",
        is_detail=True,
    ),
    _form(
        FailureKind.ERLANG,
        "llocate ",
        r"\b[a-z]{2,12}_alloc: Cannot (?:re)?allocate (?P<wanted>\d{1,15}) bytes of memory \(of type",
        is_fatal=True,
    ),
    _form(
        FailureKind.MONGODB,
        "emory limit ",
        r"(?:Exceeded memory limit for \$?\w{1,40}, but didn't allow external|Sort exceeded memory limit of "
        r"(?P<limit>\d{1,15}) bytes)",
    ),
    _form(
        FailureKind.ORACLE,
        "ORA-0403",
        r"ORA-0403(?:0: out of process memory when trying to allocate|1: unable to allocate) (?P<wanted>\d{1,15}) "
        r"bytes",
    ),
    _form(FailureKind.ORACLE, "ORA-04036: PGA memory used by the instance exceeds PGA_AGGREGATE_LIMIT"),
    _form(
        FailureKind.SQL_SERVER,
        "insufficient system memory in resource pool",
        r"There is insufficient system memory in resource pool '[\w ]{1,64}' to run this query",
    ),
    _form(
        FailureKind.MYSQL,
        "Out of memory",
        r"(?:ERROR 103[78] \(HY\w{1,5}\)(?: at line \d{1,9})?: Out of (?:sort )?memory"
        r"|Out of memory; (?:check if mysqld or some other process uses all available memory"
        r"|restart server and try again))",
    ),
    _form(FailureKind.MEMCACHED, "SERVER_ERROR out of memory storing object"),
    _form(FailureKind.HEROKU_QUOTA, "Error R14 (Memory quota exceeded)"),
)
_OF_MEMORY = (
    _form(
        FailureKind.JAVA_NATIVE,
        "There is insufficient memory for the Java Runtime Environment to continue",
        is_fatal=True,
    ),
    _form(
        FailureKind.JAVA_NATIVE,
        "Native memory allocation (m",
        r"Native memory allocation \(m(?:alloc|map|protect)\) failed to (?:allocate|map|protect) "
        r"(?P<wanted>\d{1,15}) bytes",
        is_fatal=True,
        is_detail=True,
    ),
    _form(
        FailureKind.JAVA_NATIVE,
        "os::commit_memory(",
        r"os::commit_memory\(0x[0-9a-f]{1,16}, (?P<wanted>\d{1,15}), \d\) failed",
        is_detail=True,
    ),
    _form(
        FailureKind.NODE_HEAP,
        "JavaScript heap out of memory",
        r"FATAL ERROR: .{0,120}JavaScript heap out of memory",
        is_fatal=True,
    ),
    _form(FailureKind.NODE_HEAP, "ERR_WORKER_OUT_OF_MEMORY"),
    _form(
        FailureKind.GO,
        "runtime: out of memory: ",
        r"runtime: out of memory: cannot allocate (?P<wanted>\d{1,15})-byte block",
        is_fatal=True,
        is_detail=True,
    ),
    _form(
        FailureKind.GO,
        "fatal error: ",
        r"fatal error: (?:runtime: )?(?:out of memory|cannot allocate memory)",
        is_fatal=True,
    ),
    _form(FailureKind.GPU, " out of memory", r"(?:CUDA|HIP|XPU)(?: error:)? out of memory"),
    _form(FailureKind.GPU, "torch.", r"torch\.(?:cuda\.)?OutOfMemoryError"),
    _form(
        FailureKind.PYTHON,
        "MemoryError: Unable to allocate ",
        r"(?:^|[\s.])_?(?:Array)?MemoryError: Unable to allocate (?P<wanted>[\d.]{1,8}) (?P<unit>[KMGT])iB for an ",
    ),
    _form(FailureKind.PYTHON, "MemoryError", r"(?:^|(?<!except)(?<!raise)\s)MemoryError(?::(?=\s)|\s*$)"),
    _form(FailureKind.DOTNET, "System.OutOfMemoryException", r"(?<!new )System\.OutOfMemoryException(?::|\s*$)"),
    _form(
        FailureKind.PHP_LIMIT,
        "Allowed memory size of ",
        r"Allowed memory size of (?P<limit>\d{1,15}) bytes exhausted(?: at \S{1,200})? "
        r"\(tried to allocate (?P<wanted>\d{1,15}) bytes\)",
        is_fatal=True,
    ),
    _form(
        FailureKind.PHP,
        "Out of memory (allocated ",
        r"Out of memory \(allocated \d{1,15}(?: bytes)?\) \(tried to allocate (?P<wanted>\d{1,15}) bytes\)",
        is_fatal=True,
    ),
    _form(FailureKind.RUBY, "failed to allocate memory (NoMemoryError)"),
    _form(FailureKind.RUBY, "NoMemoryError (failed to allocate memory)"),
    _form(FailureKind.RUBY, "[FATAL] failed to allocate memory"),
    _form(
        FailureKind.RUST,
        "memory allocation of ",
        r"(?:^|[\s:])memory allocation of (?P<wanted>\d{1,15}) bytes failed",
        is_fatal=True,
    ),
    _form(FailureKind.REDIS_LIMIT, "OOM command not allowed when used memory > 'maxmemory'"),
    _form(
        FailureKind.REDIS_FORK,
        " in background: fork: Cannot allocate memory",
        r"Can't (?:save|rewrite [\w ]{1,40}) in background: fork: Cannot allocate memory",
    ),
    _form(FailureKind.POSTGRES, "out of memory", r"(?:ERROR|FATAL|PANIC): {1,2}out of memory\s*$"),
    _form(
        FailureKind.WORKER_LOST,
        " was sent SIGKILL! Perhaps out of memory?",
        r"Worker \(pid: ?(?P<pid>\d{1,10})\) was sent SIGKILL! Perhaps out of memory\?",
    ),
    _form(
        FailureKind.FORK,
        "annot allocate memory",
        r"could not fork [\w ]{1,40}: Cannot allocate memory"
        r"|(?:\bfork(?:/exec \S{1,300})?|\bvfork|\bpopen)[^\n]{0,40}: [Cc]annot allocate memory",
    ),
    _form(FailureKind.FORK, "[Errno 12] Cannot allocate memory"),
    _form(
        FailureKind.ALLOCATION,
        ": Cannot allocate memory",
        r"\b(?:mmap|malloc|calloc|realloc|sbrk|mlock)\b[^\n]{0,80}: Cannot allocate memory"
        r"|virtual memory exhausted: Cannot allocate memory",
    ),
    _form(FailureKind.ALLOCATION, ": Out of memory (Needed ", r"Out of memory \(Needed (?P<wanted>\d{1,15}) bytes\)"),
    _form(FailureKind.ALLOCATION, "Cannot allocate memory for the buffer pool"),
    _form(
        FailureKind.PROCESS_KILLED,
        "the process exited too early. ",
        r"The build failed because the process exited too early\. This probably means the system ran out of memory",
    ),
    *_OF_SERVERS,
    _form(
        FailureKind.ALLOCATION,
        ": out of memory allocating ",
        r": out of memory allocating (?P<wanted>\d{1,15}) bytes",
        is_fatal=True,
    ),
)
_OF_SHELLS = _form(
    FailureKind.SHELL_LOST_PROCESS,
    "Killed",
    r"^Killed(?:: 9)?$|(?:^|\s)\S{1,200}: line \d{1,9}: {1,8}(?P<pid>\d{1,10}) Killed(?:: 9)?(?=\s|$)"
    r"|(?:^|\s)\[\d{1,6}\][+-]? {1,8}Killed(?= {2,40}\S)",
)
# A parent says how its child ended: a verb, words without a meaning of their own, and a code or a signal.
_SIGKILLED = (
    r"(?<![\w-])(?:[Tt]erminated|completed|complete successfully|returned|[Ee]xited|[Ff]ailed|died|ended|finished"
    r"|stopped|crashed|aborted|[Rr]eceived|(?<!is )(?<!are )(?<!be )(?<!being )(?<!get )(?<!gets )[Kk]illed)"
    r"(?:(?:, |: | \(| )(?:unexpectedly|abnormally|prematurely|with|by|on|from|due to|via|an?|the|uncaught|non-?zero"
    r"|return|error|exit|code|\[0\])){0,6}?"
    r"(?:(?:: | \(| )(?:code|status|value|exit(?:code)?)(?:[:=] ?| \(?)(?:137|-9|Negsignal\.SIGKILL)"
    r"|(?:: | \(| )signal(?: number)?[:=]? [\"\[]?(?:9|SIGKILL|KILL)(?: \(SIGKILL\)| SIGKILL|: Killed)?"
    r"|(?:: | )(?:SIGKILL|<Signals\.SIGKILL: 9>))"
    # So a claim ends, or goes on where programs print it; prose goes on with words.
    r"(?=[\s\"')\]}.!;:]{0,8}$|[\"')\]]{0,2}[:;]? [(\[]|[\"')\]]{0,2}[:;] |\"?[,;]? \"?[A-Za-z_]{1,24}\"?[=:]"
    r"|[)\"]? (?::\(|after \d|in \d|local_rank)|\. Error file: )"
)
_FIELD = (
    r"(?<=[\w\"\],] )(?<!local )(?<!export )(?<!readonly )(?<!let )(?<!var )(?<!const )(?<!set )"
    r"exit_?(?:[Cc]ode|[Ss]tatus)"
)
_OF_PARENTS = (
    *(_form(FailureKind.PROCESS_KILLED, needs, _SIGKILLED) for needs in (" 137", "137)", "SIGKILL", "signal", " -9")),
    _form(
        FailureKind.PROCESS_KILLED,
        "137",
        r"(?:returned a non-zero code|[Nn]on-?zero exit|\] Error):? \(?137\)?(?=[\s.\"')]{0,8}$)"
        r"|terminated with exit code \(137\)\. Reason \[Error\]"
        r"|killed on request\. Exit code is 137|\. Exit status: 137(?=\. )"
        rf"|{_FIELD}[=:]\"?137(?=\"?(?:;? \w{{1,40}}[=:]|\s*$))|\{{exit_status, ?137\}}",
    ),
    _form(
        FailureKind.PROCESS_KILLED,
        "-9",
        r"\bexitcode {0,2}: -9(?= \(pid: \d)|exit codes? of the workers? (?:is|are) \{[^}]{0,200}SIGKILL\(-9\)",
    ),
    _form(
        FailureKind.PROCESS_KILLED,
        "ignal",
        r"(?<=: )signal: killed(?=[\s.\"')]{0,8}$)|(?<=exited: )signal: 9$"
        r"|\(signal: 9, SIGKILL: kill\)|Killed signal terminated program \w{1,64}"
        r"|Signal 9 \(SIGKILL\) received by PID (?P<pid>\d{1,10})|npm (?:ERR!|error) signal SIGKILL$",
    ),
    _form(
        FailureKind.PROCESS_KILLED,
        "illed",
        r"DataLoader worker \(pid(?:\(s\))? (?P<pid>\d{1,10})[\d, ]{0,400}\) is killed by signal: Killed"
        r"|make(?:\[\d{1,4}\])?: \*\*\* \[[^\]]{1,400}\] Killed$|internal compiler error: Killed \(program \w{1,64}\)"
        r"|EXIT STRING: Killed \(signal 9\)|^signal: killed$",
    ),
    _form(FailureKind.PROCESS_KILLED, "KILLED BY SIGNAL: 9", r"KILLED BY SIGNAL: 9 \(KILLED\)"),
    _form(
        FailureKind.PROCESS_KILLED,
        "SIGKILL",
        r"was terminated by another process: signal=SIGKILL|\bpid (?P<pid>\d{1,10}) SIGKILL \(signal 9\)",
    ),
    _form(
        FailureKind.PROCESS_KILLED,
        "sig",
        r"Uncaught signal: 9, pid=|\bsignaled: true, .{0,40}termsig: 9(?=,|\s|$)",
    ),
    _form(
        FailureKind.PROCESS_KILLED,
        "137",
        r"^(?:[Ee]rror|ERROR): exit (?:code|status):? 137\.?$|\b[Ss]ubprocess (?:return|exit) code: 137\.?$",
    ),
    _form(FailureKind.PROCESS_KILLED, "exitcode=-SIGKILL", r"<\w{1,64}[( ][^>\n]{0,200}exitcode=-SIGKILL\b"),
)
_OF_SYSTEMD = (
    _form(
        FailureKind.UNIT_KILLED,
        "status=9/KILL",
        r"(?P<unit>[\w.@:\\-]{1,255}\.(?:service|scope|socket|mount|slice)): [\w -]{4,60} exited, code=killed, "
        r"status=9/KILL\s*$",
    ),
    _form(
        FailureKind.UNIT_KILLED,
        "signal=KILL)",
        r"Main PID: (?P<pid>\d{1,10})[^\n]{0,400} \(code=killed, signal=KILL\)\s*$",
    ),
)
_BY_SYSTEMD = LazyPattern(
    r"([\w.@:\\-]{1,255}): Killing process \d{1,10} \(.{0,64}?\) with signal SIGKILL", needs=("with signal SIGKILL",)
)
_NOT_SAID = LazyPattern(
    r"^\s{0,80}(?://|/\*|\*|#) |(?:[\[(,+] ?|= |==|\b(?:echo|printf|return|raise|throw) )[frb]{0,2}"
    r"(?P<quote>[\"'`])(?:(?!(?P=quote)).){0,200}$"
    r"|\b(?:[Ii]f|[Ww]hen|[Ww]henever|[Uu]nless|[Uu]ntil|[Aa]ny|[Ee]very|[Ee]ach)"
    r" (?:an?|the|your|its?|this|that|you|process|container|pod)\b"
    r"|\bmeans?\b|\bwhich\b"
)
"""What precedes words about a kill in source code and in prose."""
_OF_OTHERS = (
    _OF_SHELLS,
    _form(FailureKind.SHELL_LOST_PROCESS, "zsh: killed ", r"^zsh: killed(?= {2,40}\S)"),
    *_OF_SYSTEMD,
    _form(
        FailureKind.TASK_KILLED, "Exit Code: 137", r"Terminated\s{1,40}Exit Code: 137(?:,|\s|$)(?!.{0,200}OOM Killed)"
    ),
    _form(FailureKind.GPU, "CUDA_ERROR_OUT_OF_MEMORY"),
    _OF_ELASTICSEARCH,
    _form(
        FailureKind.R,
        "annot allocate vector of size ",
        r"Error: cannot allocate vector of size (?P<wanted>[\d.]{1,12}) (?P<unit>[KMGTkmgt])b",
    ),
    _form(FailureKind.CPLUSPLUS, "terminate called after throwing an instance of 'std::bad_alloc'", is_fatal=True),
    _form(
        FailureKind.POSTGRES_LOST_PROCESS,
        " was terminated by signal 9: Killed",
        r"[a-z]{4,20} (?:process|worker|worker process) \(PID (?P<pid>\d{1,10})\) was terminated by signal 9: Killed",
    ),
    _form(FailureKind.WORKER_LOST, "Worker exited prematurely: signal 9 (SIGKILL)"),
    _form(
        FailureKind.PROCESS_LIMIT,
        "esource temporarily unavailable",
        r"\b(?:fork|pthread_create|clone)\b[^\n]{0,60}: [Rr]esource temporarily unavailable",
    ),
    *_OF_PARENTS,
)
_ENDED = LazyPattern(r"(?:Terminating|Aborting) due to java\.lang\.OutOfMemoryError")


class Told(Struct, frozen=True, gc=False):
    """What one line told."""

    kind: FailureKind
    host: str
    is_detail: bool
    """Whether it belongs to another line."""


def _found(text: str) -> tuple[_Form, re.Match[str]] | None:
    """Return the first form that a line has, and where."""
    forms: tuple[_Form, ...] = _OF_OTHERS
    if "emory" in text:
        lost = _OF_PARENTS if "137" in text or "SIGKILL" in text else ()
        forms = (*(_OF_JAVA if "java.lang.OutOfMemoryError" in text else ()), *_OF_MEMORY, _OF_SHELLS, *lost)
    for form in [form for form in forms if form.needs in text]:
        if match := form.pattern.search(text):
            return form, match
    return None


def may_be_failure(text: str) -> bool:
    """Whether a line may be one of a program that failed, or say something of those that follow."""
    return _found(text) is not None or _BY_SYSTEMD.search(text) is not None


class ProgramFailures:
    """Takes messages, and counts the failures of programs by kind and host."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._failures: dict[tuple[FailureKind, str], ProgramFailure] = {}
        self._pending: set[tuple[FailureKind, str]] = set()
        self._stopped: set[str] = set()
        """Units that systemd itself killed, because they had not stopped in time."""
        self.has_noted = False
        """Whether the last line tells something of those that follow."""

    @property
    def failures(self) -> tuple[ProgramFailure, ...]:
        """Those found so far, in the order of their first lines."""
        return tuple(self._failures.values())

    def feed(self, message: Message) -> Told | None:
        """Take a line; return what it told if it is one of a program that ran out of memory."""
        text = message.text
        self.has_noted = False
        if (found := _found(text)) is not None:
            form, match = found
            if form.kind is FailureKind.PROCESS_KILLED and is_quoted(text, match.start()):
                return None
            if form.kind is FailureKind.UNIT_KILLED and match.groupdict().get("unit", "") in self._stopped:
                return None
            return self._add(form, match, message)
        if (by_systemd := _BY_SYSTEMD.search(text)) and len(self._stopped) < self._most:
            self._stopped.add(by_systemd[1])
            self.has_noted = True
        return None

    def repeat(self, kind: FailureKind, host: str, times: int) -> None:
        """Count a failure again."""
        known = self._failures.get((kind, host))
        if known is not None:
            self._failures[kind, host] = replace(known, times=known.times + times)

    def _add(self, form: _Form, match: re.Match[str], message: Message) -> Told:
        at, host = carried(message.text[: match.start()], message)
        groups = match.groupdict()
        is_fatal = form.is_fatal or _ENDED.search(message.text) is not None
        # What a shell ran may have secrets among its arguments.
        said = match[0] if form.kind is FailureKind.SHELL_LOST_PROCESS else message.text[match.start() :]
        failure = ProgramFailure(
            form.kind,
            said.strip()[:_MOST_MESSAGE],
            at,
            at,
            host,
            is_fatal=is_fatal,
            limit_bytes=_bytes(groups.get("limit"), groups.get("limit_unit")),
            wanted_bytes=_bytes(groups.get("wanted"), groups.get("unit")),
            pid=None if groups.get("pid") is None else int(groups["pid"]),
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
                is_fatal=known.is_fatal or is_fatal,
                limit_bytes=failure.limit_bytes if known.limit_bytes is None else known.limit_bytes,
                wanted_bytes=failure.wanted_bytes if known.wanted_bytes is None else known.wanted_bytes,
            )
        elif len(self._failures) < self._most:
            self._failures[key] = failure
        return Told(form.kind, host, form.is_detail or is_pending)


def is_quoted(text: str, start: int) -> bool:
    """Whether words about a kill that begin at a place are in source code, or prose explains them."""
    stripped = text.strip()
    is_literal = stripped[:1] in {'"', "'"} and stripped[-1:] == ","
    is_code = text[:start].replace("``", "`").count("`") % 2 == 1
    return is_literal or is_code or _NOT_SAID.search(text, 0, start) is not None


def _bytes(number: str | None, unit: str | None) -> int | None:
    if number is None:
        return None
    try:
        return int(float(number) * (1 << _SIZES[unit.lower()])) if unit else int(number)
    except (ValueError, OverflowError):
        return None
