"""What a page is about, and what it is told of itself: its source, uploads, jobs, the guard, what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import islice

from msgspec import Struct

from podqos.advice.sizing.samples import ContainerSamples
from podqos.agent.guard_status import GuardStatus
from podqos.agent.journal import Entry, Kind
from podqos.manifest.problems import Problem, Severity
from podqos.model.time_units import SECOND_US
from podqos.naming import published
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.files import InputFile
from podqos.objects.objects import Objects
from podqos.orders.usage import UsageRow
from podqos.questions.autopsy import Autopsy
from podqos.questions.guard import mode, status_facts
from podqos.runs.view import RunView
from podqos.sim.scenario.scenario import Scenario
from podqos.text.journal import line, reasons


class SourceKind(StrEnum):
    """What a source is."""

    MANIFESTS = "manifests"
    SNAPSHOT = "snapshot"
    SCENARIO = "scenario"
    LOG = "log"
    RUN = "run"


class Follows(StrEnum):
    """What a source is kept up to date with."""

    NOTHING = ""
    FILES = "files"
    CLUSTER = "cluster"
    NODE = "node"
    GUARD = "guard"


class Changed(Struct, frozen=True):
    """The last change of files."""

    file: str
    """The one that was changed last, without its directory."""
    at: str
    """In RFC 3339."""
    files: int
    """How many there are."""


class LogFile(Struct, frozen=True):
    """A log that autopsy reads."""

    name: str
    data: bytes | None = None
    """What it holds; None: the command line names it, and it is read as a stream, however large."""


class PageSource(Struct, frozen=True):
    """What a page is about, read."""

    kind: SourceKind
    name: str
    """What people know it by."""
    files: tuple[InputFile, ...] = ()
    """The manifests, with what they hold."""
    problems: tuple[Problem, ...] = ()
    objects: Objects | None = None
    """Of manifests; those of a snapshot are in the cluster."""
    cluster: ClusterSnapshot | None = None
    scenario: Scenario | None = None
    given: Mapping[str, bytes] = {}
    """The scenario's file, which is the first, and those that it refers to."""
    usage: tuple[UsageRow, ...] | None = None
    """What the pods of manifests use, where that was given."""
    samples: tuple[ContainerSamples, ...] = ()
    """What containers used over time, where that was given."""
    node_memory_bytes: int | None = None
    """The memory of their nodes, where a command states it; None: that of Nodes among them, or assumed."""
    logs: tuple[LogFile, ...] = ()
    run: RunView | None = None
    guard: GuardPanel | None = None
    """The guard that a cluster of one node is seen through."""
    looked_at: tuple[str, ...] = ()
    """The files and directories on disk that it is made of."""
    size_bytes: int = 0
    """Of the files given, unpacked."""
    known_by: tuple[str, ...] = ()
    """Of a live cluster: the options by which a command names it."""
    follows: Follows = Follows.NOTHING
    broken: tuple[Problem, ...] = ()
    """What is wrong with files that are shown as they were before."""
    changed: Changed | None = None
    """Of files: when what is shown was changed last."""


_TOLD = frozenset(
    {Kind.WATCHING, Kind.WOULD_EVICT, Kind.EVICTED, Kind.REPORTED, Kind.EXPLAINED, Kind.OOM_KILLED, Kind.LOST}
)
_MOST = 20


class GuardFact(Struct, frozen=True):
    """Something about a guard, in words."""

    name: str
    text: str


class GuardEntry(Struct, frozen=True, rename="camel"):
    """Something that the guard decided, did or saw."""

    time: float
    """In seconds since 1970."""
    kind: str
    pod: str
    text: str
    reasons: tuple[str, ...]


class GuardPanel(Struct, frozen=True, rename="camel"):
    """A guard."""

    node: str
    enforce: bool
    """Whether it was started to evict."""
    held_back: str
    """Why it evicts nothing for now: shadow, the kill switch, a brake; empty where it would."""
    mode: str
    """The same in words."""
    facts: tuple[GuardFact, ...]
    entries: tuple[GuardEntry, ...]
    """Newest first."""


def guard_panel(status: GuardStatus, entries: Iterable[Entry]) -> GuardPanel:
    """Return a guard as the page shows it; ``entries`` are the last of its journal, oldest first."""
    told = [entry for entry in entries if entry.kind in _TOLD][-_MOST:]
    return GuardPanel(
        status.node,
        status.enforce,
        status.held_back,
        mode(status),
        tuple(GuardFact(name, text) for name, text in status_facts(status, status.updated_us)),
        tuple(
            GuardEntry(entry.time_us / SECOND_US, str(entry.kind), entry.pod or "", line(entry), reasons(entry))
            for entry in reversed(told)
        ),
    )


_MOST_PROBLEMS = 100


class ProblemInfo(Struct, frozen=True, rename="camel"):
    """Something to tell about a source."""

    message: str
    severity: Severity
    file: str
    line: int
    """0 where it is about no line."""
    column: int


class SourceInfo(Struct, frozen=True, rename="camel"):
    """Something that can be looked at."""

    id: str
    kind: str
    """manifests, snapshot, scenario, log or run."""
    name: str
    files: tuple[str, ...]
    views: tuple[str, ...]
    """What can be asked about it."""
    problems: tuple[ProblemInfo, ...]
    generation: int
    """Another one each time it changes."""
    is_live: bool
    """Whether there is news of it."""
    follows: Follows = Follows.NOTHING
    """What it is kept up to date with; only a cluster, a node and a guard are live."""
    broken: tuple[ProblemInfo, ...] = ()
    """What is wrong with files that are therefore shown as they were before."""
    changed_file: str = ""
    """The file that was changed last."""
    changed_at: str = ""
    """When, in RFC 3339; empty where that is not known."""
    changed_files: int = 0
    """How many files there are."""
    taken_at: str = ""
    """When a snapshot was taken, in RFC 3339."""


class SessionLimits(Struct, frozen=True, rename="camel"):
    """What a visitor may upload."""

    upload_bytes: int
    """At once."""
    paste_bytes: int
    """As one text that is not kept: the autopsy of a log."""
    files_per_source: int
    sources: int
    total_bytes: int
    """Unpacked."""
    expires_seconds: float


class Session(Struct, frozen=True, rename="camel"):
    """What the page is told when it begins."""

    version: str
    sources: tuple[SourceInfo, ...]
    """What the command was started with first."""
    limits: SessionLimits | None
    """Null in a file: nothing can be uploaded to it."""
    live: bool
    """Whether there is news of what the command was started with."""


class ErrorInfo(Struct, frozen=True):
    """What went wrong, and where."""

    message: str
    file: str = ""
    line: int = 0
    column: int = 0


class ErrorAnswer(Struct, frozen=True):
    """The answer to a request that could not be answered."""

    error: ErrorInfo


def source_info(
    key: str, source: PageSource, files: Iterable[str] = (), generation: int = 1, *, is_live: bool = False
) -> SourceInfo:
    """Return what a page is told of a source."""
    named = tuple(files) or tuple(file.path for file in source.files)
    problems = problem_infos(source.problems)
    views = views_of(source)
    changed = source.changed
    return SourceInfo(
        key,
        source.kind,
        source.name,
        named[:_MOST_PROBLEMS],
        views,
        problems,
        generation,
        is_live,
        follows=source.follows,
        broken=problem_infos(source.broken),
        changed_file="" if changed is None else changed.file,
        changed_at="" if changed is None else changed.at,
        changed_files=0 if changed is None else changed.files,
        taken_at="" if source.cluster is None else source.cluster.header.taken_at,
    )


def problem_infos(problems: Iterable[Problem], only: str = "") -> tuple[ProblemInfo, ...]:
    """Return the first problems as the page is told of them; ``only`` those of one file, if it is named."""
    told = (
        ProblemInfo(problem.worded(published), problem.severity, problem.source, problem.line, problem.column)
        for problem in problems
        if only in {"", problem.source}
    )
    return tuple(islice(told, _MOST_PROBLEMS))


def views_of(source: PageSource) -> tuple[str, ...]:
    """Return what can be asked about a source."""
    match source.kind:
        case SourceKind.RUN:
            return ("run",)
        case SourceKind.LOG:
            return ("autopsy",)
        case SourceKind.SCENARIO:
            return ("cluster", "what-if", "forecast", "blast", "run")
        case SourceKind.SNAPSHOT:
            return ("cluster", "what-if", "forecast", "blast", "check", "autopsy")
    return ("cluster", "what-if", "forecast", "blast", "check", *(("autopsy",) if source.logs else ()))


class JobKind(StrEnum):
    """What is computed."""

    RUN = "run"
    BLAST = "blast"


class JobState(StrEnum):
    """How far a run is."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobInfo(Struct, frozen=True, rename="camel"):
    """A long run."""

    id: str
    kind: JobKind
    source: str
    state: JobState
    progress: float
    """From 0 to 1."""
    seconds: float
    """How long it has run."""
    error: str
    """Why it failed; empty where it did not."""
    generation: int
    """Which state of the source it is of."""
    node: str
    """Of a blast in a cluster."""
    edits: tuple[str, ...]
    """What was changed for it."""
    place: int
    """In the queue: 1 is next; 0 if it does not wait."""


class Hello(Struct, frozen=True, rename="camel"):
    """Who tells: another instance knows nothing of what was left with the one before."""

    instance: str
    version: str


class Age(Struct, frozen=True, rename="camel"):
    """How old what is shown is."""

    taken_at: str
    """When it became what it is, in RFC 3339."""
    age_seconds: float
    """Since it was last known to be so."""
    trouble: str
    """Why it is not kept up to date; empty where it is."""
    now: str = ""
    """The time on the server, in RFC 3339: that of the page may be another."""


class PastedAutopsy(Struct, frozen=True, rename="camel"):
    """The autopsy of a pasted text; the text itself is not kept."""

    page: Autopsy
    command: str
    """What gives the same answer in a terminal, with the text as its standard input."""
    problems: tuple[ProblemInfo, ...] = ()
    """Of objects in the text."""
