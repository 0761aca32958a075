"""What the page is told of itself: its sources, what may be uploaded, what went wrong."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from msgspec import Struct

from podqos.answers.page.source import Follows, PageSource, SourceKind
from podqos.manifest.problems import Problem, Severity
from podqos.naming import published

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
