"""What is computed for visitors in a process of its own: files become a source, and a source answers questions.

The text of a paste is an argument and nothing else: it is not written to a file, not kept, and no name in it is opened.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.api import autopsy, blast
from podqos.errors import InputError, PodqosError
from podqos.manifest.encoding import json_line
from podqos.model.profile import LATEST, Profile
from podqos.naming import stated_with
from podqos.objects.cluster_snapshot import is_cluster_snapshot
from podqos.objects.files import STDIN, Inputs
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import Objects
from podqos.page.cluster import ShownSource
from podqos.page.fixes import FixRequest
from podqos.page.page import Page
from podqos.page.session import JobKind, PageSource, PastedAutopsy, SourceInfo, problem_infos, source_info
from podqos.page.what_if import ForecastRequest, WhatIf
from podqos.parallel import over_cores
from podqos.questions.autopsy import Autopsy
from podqos.questions.node import NodeState, cluster_state
from podqos.reading.autopsy_inputs import told_apart, what_is_given
from podqos.reading.loading import load
from podqos.reading.logs import Log
from podqos.runs.comparison import compare_runs
from podqos.runs.layout import with_pictures
from podqos.runs.run import simulate
from podqos.runs.view import RunView
from podqos.serve.compute import Told
from podqos.serve.sources import read_given, varied
from podqos.sim.blast import BlastRadius

T = TypeVar("T")

CLUSTER = "cluster"
_ASKED_WITH_POST: Mapping[str, type[Struct]] = {"what-if": WhatIf, "forecast": ForecastRequest, "fix": FixRequest}
_ASKED_WITH_GET = frozenset({CLUSTER, "answer", "pods", "check", "autopsy", "run"})
SLOW = frozenset({"check", "autopsy", "fix"})
"""These read everything again; quick views do not wait for them."""


class RequestRefusal(PodqosError):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    def __reduce__(self) -> tuple[type[RequestRefusal], tuple[int, str]]:
        """Return how it travels between processes."""
        return RequestRefusal, (self.status, str(self))


def decoded(body: bytes, model: type[T]) -> T:
    """Return the body of a request as a value; raise ``RequestRefusal`` if it is not one."""
    try:
        return msgspec.json.decode(body, type=model)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RequestRefusal(400, f"not a valid request: {error}") from None


# ---- sources and views -----------------------------------------------------------------------------------------------


class Question(Struct, frozen=True):
    """A request for a view."""

    view: str
    pod: str = ""
    node: str = ""
    body: bytes = b""


class ReadSource(Struct, frozen=True):
    """What the server has to know of a source."""

    info: SourceInfo
    size_bytes: int
    """Unpacked."""


def question_of(method: str, view: str, query: Mapping[str, str], body: bytes) -> Question:
    """Return what is asked; raise ``RequestRefusal`` if there is no such view or the request is not valid."""
    if method == "POST" and view in _ASKED_WITH_POST:
        decoded(body, _ASKED_WITH_POST[view])
        return Question(view, body=body)
    if method in {"GET", "HEAD"} and view in _ASKED_WITH_GET:
        return Question(view, query.get("pod", ""), query.get("node", ""))
    raise RequestRefusal(404, "no such view")


def answer(page: Page, question: Question) -> bytes:
    """Return the answer to a question about a source, encoded."""
    return json_line(_answer(page, question))


def _answer(page: Page, question: Question) -> Struct:
    match question.view:
        case "cluster":
            return page.cluster()
        case "answer":
            return page.answer(question.node)
        case "pods":
            return page.pod(question.pod, question.node)
        case "check":
            return page.check()
        case "autopsy":
            return page.autopsy()
        case "what-if":
            return page.what_if(decoded(question.body, WhatIf))
        case "forecast":
            return page.forecast(decoded(question.body, ForecastRequest))
        case "fix":
            return page.fix(decoded(question.body, FixRequest))
        case "run" if page.source.run is not None:
            return page.source.run
    raise RequestRefusal(404, "no such view")


def read(files: Mapping[str, bytes]) -> ReadSource:
    """Read what was uploaded."""
    source = read_given(files)
    return ReadSource(source_info("", source, files), source.size_bytes)


def answer_about(files: Mapping[str, bytes], question: Question) -> bytes:
    """Return the answer to a question about what was uploaded."""
    return answer(page_about(read_given(files)), question)


def page_about(source: PageSource, before: Page | None = None) -> Page:
    """Return the page; whatever has not changed is taken from ``before``, the page of an earlier state."""
    return Page(source, _autopsied, before, spread=over_cores())


def _autopsied(source: PageSource, kubelet: Kubelet | None, profile: Profile) -> Autopsy:
    return autopsy(
        [log.name if log.data is None else Log(log.name, log.data) for log in source.logs],
        objects=source.objects,
        cluster=source.cluster,
        kubelet=kubelet,
        profile=profile,
    )


# ---- pasted texts ----------------------------------------------------------------------------------------------------

PASTED = "pasted"
_GZIP = b"\x1f\x8b"
_MOST_NAMED = 4
"""More files are named by their directory."""


def pasted_autopsy(text: bytes, source: PageSource | None) -> PastedAutopsy:
    """Return what a text tells; ``source`` may know the pods in it. Raise ``InputError`` if it cannot be read."""
    if not text.strip():
        raise InputError("it is empty", where=PASTED, fix="paste a kernel log, or what kubectl prints about a pod")
    if text.startswith((b"{", _GZIP)) and is_cluster_snapshot(text):
        what = "compressed" if text.startswith(_GZIP) else "a snapshot of a cluster"
        raise InputError(what, where=PASTED, fix="open it as a file")
    files, logs = told_apart([Log(PASTED, text)])
    cluster = None if source is None or files else source.cluster
    manifests = () if source is None else source.files
    objects: Objects | None = None
    if cluster is None:
        objects = (
            load(Inputs([*manifests, *files]), full_statuses=True)
            if files
            else None
            if source is None
            else source.objects
        )
    profile = LATEST if cluster is None else cluster.profile
    read = what_is_given(Inputs([*manifests, *(replace(file, path=STDIN) for file in files)]), logs)
    found = autopsy(logs, objects=objects, cluster=cluster, profile=profile, read=read)
    problems = () if objects is None or not files else problem_infos(objects.problems, only=PASTED)
    return PastedAutopsy(found, command(source, has_objects=bool(files)), problems)


def command(source: PageSource | None, *, has_objects: bool) -> str:
    """Return the command that gives the same answer."""
    return shlex.join(["podqos", "autopsy", STDIN, *([] if source is None else _known(source, has_objects))])


def _known(source: PageSource, has_objects: bool) -> list[str]:
    """Return the options that name the pods of a source; objects cannot be combined with a cluster."""
    if source.cluster is not None:
        if has_objects:
            return []
        is_file = bool(source.looked_at or source.size_bytes)
        return [stated_with("snapshot"), source.cluster.source] if is_file else list(source.known_by)
    paths = [file.path for file in source.files]
    if len(paths) > _MOST_NAMED:
        paths = [os.path.commonpath([os.path.dirname(path) for path in paths]) or "."]
    return [part for path in paths for part in (stated_with("files"), path)]


def pasted(text: bytes, known: PageSource | Mapping[str, bytes] | None) -> bytes:
    """Return the autopsy of a text; the source that it is about may know its pods."""
    source = read_given(known) if isinstance(known, Mapping) else known
    return json_line(pasted_autopsy(text, source))


# ---- runs ------------------------------------------------------------------------------------------------------------


class JobTask(Struct, frozen=True):
    """A long run."""

    kind: JobKind
    source: PageSource | None
    """None: the files are read first."""
    node: str
    edits: tuple[str, ...]
    files: Mapping[str, bytes] = {}


def job_of(task: JobTask, told: Told) -> bytes:
    """Compute a run."""
    source = read_given(task.files) if task.source is None else task.source
    if task.kind is JobKind.RUN:
        return json_line(run_of(source, task.edits, told))
    return json_line(blast_of(source, task.edits, task.node, told))


def compared(before: bytes, after: bytes) -> bytes:
    """Compare two runs, each as JSON."""
    one, other = (msgspec.json.decode(run, type=RunView) for run in (before, after))
    return json_line(compare_runs(one, other))


def run_of(source: PageSource, edits: Sequence[str], told: Told) -> RunView:
    """Run a scenario with changed values, and return its view."""
    scenario = varied(source, edits)
    end_us = max(scenario.duration_us, 1)
    return with_pictures(simulate(scenario, progress=lambda now_us, _: told(now_us / end_us)).report)


def blast_of(source: PageSource, edits: Sequence[str], node: str, told: Told, cores: int = 1) -> BlastRadius:
    """Let each pod leak in turn: on all nodes of a scenario, or on the named node of a cluster."""

    def progress(done: int, total: int) -> None:
        told(done / max(total, 1))

    if source.scenario is not None:
        return blast(varied(source, edits), progress=progress, cores=cores)
    return blast(_state(source, node), progress=progress, cores=cores)


def _state(source: PageSource, node: str) -> NodeState:
    if source.cluster is not None and node:
        return cluster_state(source.cluster, node)
    shown = ShownSource(source)
    state = shown.state(shown.node(node))
    if not state.snapshot.pods:
        raise InputError("it has no pods", where=node, fix="choose another node")
    return state
