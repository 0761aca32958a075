"""From the text of a scenario file to a ``Scenario``.

The caller opens files: ``read_file`` parses the text, the caller reads the manifests, configurations and samples that
it names, and ``resolve`` makes a scenario of all that. All problems are reported at once, with their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import asdict, replace

from podqos.errors import InputError
from podqos.manifest.contents import Locate
from podqos.manifest.plain import FieldPath, Plain, format_path
from podqos.manifest.problems import FieldProblem, Problem, Severity, SyntaxProblem
from podqos.manifest.strictyaml import read_documents
from podqos.manifest.text import normalise
from podqos.manifest.times import read_time
from podqos.model.autoscaling import HorizontalPodAutoscaler
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile, parse_version
from podqos.model.service import Service
from podqos.model.time_units import SECOND_US
from podqos.sim.scenario.scenario import (
    DEFAULT_START_US,
    Options,
    Scenario,
    ScenarioWorkload,
    WorkloadChange,
)
from podqos.sim.scenario_format.document import ScenarioDocument, examination, read_document
from podqos.sim.scenario_format.events import EventReader
from podqos.sim.scenario_format.nodes import NodeReader, check_events
from podqos.sim.scenario_format.shape_document import CurveSettings, Samples
from podqos.sim.scenario_format.shapes import Series
from podqos.sim.scenario_format.workloads import DemandReader, StatedRevision, WorkloadEventReader, with_active_jobs


class FileReading(Struct, frozen=True):
    """A parsed scenario file."""

    source: str
    document: ScenarioDocument | None
    """None where it is invalid; see the problems."""
    problems: tuple[Problem, ...] = ()
    locate: Locate = lambda _: (1, 1)

    def problem(self, finding: FieldProblem) -> Problem:
        """Return a finding with its position in the file."""
        line, column = self.locate(finding.path)
        field = format_path(finding.path)
        return Problem(self.source, line, column, finding.severity, field, finding.what, finding.fix)


class Materials(Struct, frozen=True):
    """Contents of the files that a scenario refers to. Unreadable ones are left out and reported elsewhere."""

    workloads: tuple[ScenarioWorkload, ...] = ()
    """As the API server stores them, without demands, in the order of the manifests."""
    budgets: tuple[PodDisruptionBudget, ...] = ()
    namespaces: Mapping[str, Mapping[str, str]] = {}
    """Their labels."""
    services: tuple[Service, ...] = ()
    kubelets: Mapping[str, KubeletConfiguration] = {}
    """By the path that the scenario names."""
    samples: Callable[[Samples], tuple[Series, ...]] = lambda _: ()
    """Reads a file of samples; raises ``InputError``."""
    autoscalers: tuple[HorizontalPodAutoscaler, ...] = ()
    """Each with a workload as its target."""
    revisions: Mapping[int, StatedRevision] = {}
    """By place among the events: what a rollout makes of a workload."""


def read_file(source: str, data: bytes, change: Callable[[dict[str, Plain]], None] = lambda _: None) -> FileReading:
    """Read a scenario file; ``source`` is its name in messages, ``change`` may set other values."""
    try:
        documents = [document for document in read_documents(normalise(data)) if document.value is not None]
    except SyntaxProblem as problem:
        return FileReading(source, None, (_syntax(source, problem),))
    problems = [_syntax(source, problem) for document in documents for problem in document.problems]
    if problems:
        return FileReading(source, None, tuple(problems))
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        what = "must contain one document, a Scenario" if documents else "contains no document"
        fix = "`podqos scenario new` writes a starter"
        return FileReading(source, None, (Problem(source, 1, 1, Severity.ERROR, "", what, fix),))
    (document,) = documents
    value = document.value
    assert isinstance(value, dict)
    change(value)
    found = examination()
    read = read_document(value, found)
    reading = FileReading(source, read, locate=document.locate)
    return FileReading(source, read, tuple(map(reading.problem, found.findings)), document.locate)


def _syntax(source: str, problem: SyntaxProblem) -> Problem:
    return Problem(source, *problem.position, Severity.ERROR, "", problem.what, problem.fix)


def resolve(document: ScenarioDocument, materials: Materials) -> tuple[Scenario | None, tuple[FieldProblem, ...]]:
    """Make a scenario of a document and the files it refers to; None where it is invalid."""
    resolution = _Resolution(document, materials)
    scenario = resolution.scenario()
    errors = any(finding.severity is Severity.ERROR for finding in resolution.findings)
    return None if errors else scenario, tuple(resolution.findings)


class _Resolution:
    """A scenario in the making."""

    def __init__(self, document: ScenarioDocument, materials: Materials) -> None:
        self.findings: list[FieldProblem] = []
        self._spec = document.spec
        self._name = document.metadata.name
        self._materials = materials
        duration_us = int(document.spec.duration or 0)
        self._setting = CurveSettings(duration_us or SECOND_US, document.spec.seed, materials.samples, self._report)

    def scenario(self) -> Scenario:
        spec = self._spec
        if not self._name:
            self._report(("metadata", "name"), "Required value", "give the scenario a name")
        if not spec.duration:
            self._report(("spec", "duration"), "Required value", "such as 30s or 24h")
        if not spec.nodes:
            self._report(("spec", "nodes"), "Required value", "describe at least one node")
        profile = self._profile()
        kubelets = self._materials.kubelets
        nodes = NodeReader(self._setting, kubelets, profile, self._warn).groups(spec.nodes)
        names = tuple(name for group in nodes for name in map(group.name_of, range(group.count)))
        check_events(spec.events, self._setting.duration_us, self._report)
        demands = DemandReader(self._setting, names, self._warn)
        start_us, duration_us = self._start_us(), self._setting.duration_us
        workloads = demands.workloads(spec.workloads, self._materials.workloads)
        changes = WorkloadEventReader(demands, workloads, self._materials.revisions, self._report)
        events = tuple(EventReader(names, self._report, changes.readers).happenings(spec.events))
        return Scenario(
            name=self._name,
            description=" ".join(spec.description.split()),
            seed=spec.seed,
            duration_us=duration_us,
            start_us=start_us,
            nodes=nodes,
            workloads=with_active_jobs(workloads, spec, start_us, duration_us, self._warn),
            happenings=tuple(event for event in events if not isinstance(event, WorkloadChange)),
            workload_changes=changes.numbered(event for event in events if isinstance(event, WorkloadChange)),
            budgets=self._materials.budgets,
            namespaces=self._materials.namespaces,
            services=self._materials.services,
            autoscalers=self._kept(workloads),
            profile=profile,
            policy=spec.eviction_policy,
            options=self._options(),
        )

    def _kept(self, workloads: Sequence[ScenarioWorkload]) -> tuple[HorizontalPodAutoscaler, ...]:
        """Return the autoscalers of workloads that a controller keeps."""
        left = {(workload.namespace, workload.kind, workload.name) for workload in workloads if not workload.recreate}
        found = self._materials.autoscalers
        for known in found:
            if known.workload in left:
                what = f"the autoscaler {known.metadata.name} is ignored: nothing creates its pods"
                self._warn(("spec", "workloads"), what, "leave out recreate: false")
        serving = {(one.namespace, one.kind, one.name) for one in workloads if one.service is not None}
        for known in found:
            for metric in () if known.workload in serving else known.request_metrics:
                what = (
                    f"the metric {metric.metric.name} of {known.metadata.name} has no values: its pods have no service"
                )
                self._warn(("spec", "workloads"), what, "state demand.service of the workload")
        return tuple(autoscaler for autoscaler in found if autoscaler.workload not in left)

    def _report(self, path: FieldPath, what: str, fix: str = "") -> None:
        self.findings.append(FieldProblem(path, what, fix))

    def _warn(self, path: FieldPath, what: str, fix: str) -> None:
        self.findings.append(FieldProblem(path, what, fix, Severity.WARNING))

    def _start_us(self) -> int:
        if not self._spec.start:
            return DEFAULT_START_US
        try:
            time_us, is_date = read_time(self._spec.start)
        except InputError:
            time_us, is_date = DEFAULT_START_US, False
        if not is_date:
            what = f'"{self._spec.start}" is not a date'
            self._report(("spec", "start"), what, "a date and time such as 2026-11-15T23:55:00Z")
        return time_us

    def _profile(self) -> Profile:
        if not self._spec.kubernetes_version:
            return LATEST
        try:
            return parse_version(self._spec.kubernetes_version)
        except InputError as error:
            self._report(("spec", "kubernetesVersion"), error.what, error.fix)
            return LATEST

    def _options(self) -> Options:
        timing = self._spec.timing
        for name, value in (
            ("plegPeriod", timing.pleg_period),
            ("statusUpdate", timing.status_update),
            ("metricsResolution", timing.metrics_resolution),
        ):
            if value == 0:
                self._report(("spec", "timing", name), "must be positive", "such as 1s")
        stated = {f"{name}_us": int(value) for name, value in asdict(timing).items() if value is not None}
        return replace(Options(), **stated)
