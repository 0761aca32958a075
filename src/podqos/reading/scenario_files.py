"""Scenario files and everything they refer to, read from disk: manifests through admission, kubelet settings, samples.

``read_scenario`` returns what is wrong as data, ``load_scenario`` raises it. A name without a path that is no file here
means one of the scenarios that come with podqos: ``race``. ``read_given_scenario`` reads the same out of files that are
given as bytes, and looks at no disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.field_errors import ErrorType, FieldError, Undecoded
from podqos.admission.relevance import Question, rejected, rejections, with_names
from podqos.admission.workloads import Admissions, WorkloadAdmission
from podqos.controllers.rollout_spec import TELLING, RolloutReader, RolloutSpec
from podqos.errors import InputError
from podqos.eviction.thresholds import read_kubelet
from podqos.manifest.contents import Other
from podqos.manifest.kinds import group_of
from podqos.manifest.kubelet import Notation
from podqos.manifest.plain import FieldPath, parse_path
from podqos.manifest.problems import FieldProblem, Problem, Severity
from podqos.manifest.text import Place
from podqos.model.autoscaling import HorizontalPodAutoscaler
from podqos.model.cron_schedule import has_times
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Pod, Workload
from podqos.model.profile import LATEST, Profile, parse_version
from podqos.model.resources import ResourceRequirements
from podqos.model.service import Service
from podqos.objects.files import STDIN, InputFile, Inputs
from podqos.objects.kubelet_node import later_rules
from podqos.objects.kubelet_notes import ignored_problems, ignored_words
from podqos.objects.other_objects import budget_problem, converted, is_read_as
from podqos.objects.policies import PolicyCollector
from podqos.objects.rules import ReadingRules
from podqos.objects.sources import Source
from podqos.reading.files import is_manifest, read_bytes, source_of
from podqos.reading.gathering import gather
from podqos.reading.paths import has_folder, with_slashes
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload
from podqos.sim.scenario_format.document import RolloutPart, ScenarioDocument
from podqos.sim.scenario_format.file import FileReading, Materials, read_file, resolve
from podqos.sim.scenario_format.ignored import IGNORED_OBJECTS, ignored_fields, may_be_ignored
from podqos.sim.scenario_format.shape_document import Samples
from podqos.sim.scenario_format.shapes import Series, read_samples
from podqos.sim.scenario_format.workloads import ROLLED_OUT, StatedRevision, names_of
from podqos.sim.variation import Variation
from podqos.text.admission import exempt

# Kinds whose controllers do not make another pod.
_NOT_RECREATED = frozenset({"Pod"})
_JOB_CONTROLLER = "kubernetes.io/job-controller"

Namespaced = TypeVar("Namespaced", PodDisruptionBudget, Service)


class InvalidScenario(InputError):
    """A scenario that cannot be run; ``problems`` lists everything wrong with it."""

    def __init__(self, path: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        errors = sum(problem.severity is Severity.ERROR for problem in problems)
        what = f"the scenario has {errors} error{'s' if errors != 1 else ''}"
        super().__init__(what, where=path, fix=f"`podqos scenario validate {path}` lists them")


class ScenarioReading(Struct, frozen=True):
    """A scenario file with everything it refers to."""

    path: str
    scenario: Scenario | None
    """None if something is wrong."""
    problems: tuple[Problem, ...]
    looked_at: tuple[str, ...] = ()
    """The files and directories on disk that it is made of."""

    def loaded(self) -> Scenario:
        """Return the scenario; raise ``InvalidScenario`` if it cannot be run."""
        if self.scenario is None:
            raise InvalidScenario(self.path, self.problems)
        return self.scenario


def load_scenario(path: str, variation: Variation | None = None) -> Scenario:
    """Return the scenario of a file, or of a name such as ``race``; raise ``InvalidScenario`` if it cannot be run.

    ``variation`` sets some of its parameters to other values.
    """
    return read_scenario(path, variation).loaded()


def read_scenario(path: str, variation: Variation | None = None) -> ScenarioReading:
    """Read a scenario file and everything it refers to; warnings and errors are among its problems."""
    path = scenario_path(path)
    try:
        data = read_bytes(path)
    except InputError as error:
        problem = Problem(path, 0, 0, Severity.ERROR, "", error.what, _how_to_find(path, error))
        return ScenarioReading(path, None, (problem,))
    disk = _Disk()
    return replace(_read(path, data, disk, variation or Variation()), looked_at=(path, *disk.looked_at))


def read_given_scenario(
    name: str, given: Mapping[str, bytes], variation: Variation | None = None, most_nodes: int | None = None
) -> ScenarioReading:
    """Read one of the given files; files it refers to are looked up among these only.

    With more than ``most_nodes`` nodes, nothing is made of it.
    """
    return _read(name, given[name], _Given(given), variation or Variation(), most_nodes)


def _read(
    path: str, data: bytes, files: _Disk | _Given, variation: Variation, most_nodes: int | None = None
) -> ScenarioReading:
    file = read_file(path, data, variation.document)
    if file.document is None:
        return ScenarioReading(path, None, tuple(sorted(file.problems)))
    if most_nodes is not None and (nodes := stated_nodes(file.document)) > most_nodes:
        what, fix = f"{nodes:,} nodes; a page shows at most {most_nodes:,}", "lower count, or list fewer nodes"
        return ScenarioReading(path, None, (file.problem(FieldProblem(_largest(file.document), what, fix)),))
    fetched = _Fetched(file, file.document, files, variation)
    scenario, findings = resolve(file.document, fetched.materials)
    problems = sorted([*file.problems, *fetched.problems, *map(file.problem, findings)])
    if scenario is None or any(problem.severity is Severity.ERROR for problem in problems):
        return ScenarioReading(path, None, tuple(problems))
    return ScenarioReading(path, variation.scenario(scenario), tuple(problems))


def stated_nodes(document: ScenarioDocument) -> int:
    """Return how many nodes a scenario has."""
    return sum(_most_of(document).values())


def _most_of(document: ScenarioDocument) -> dict[int, int]:
    """Return the most nodes of each entry of spec.nodes, by its index."""
    return {index: max(1, part.count) for index, part in enumerate(document.spec.nodes)}


def _largest(document: ScenarioDocument) -> FieldPath:
    """Return the field that states most nodes; the list itself if no entry stands out."""
    most = _most_of(document)
    index = max(most, key=lambda index: most[index])
    return ("spec", "nodes", index, "count") if document.spec.nodes[index].count > 1 else ("spec", "nodes")


def place_of(path: str, pod: str | None) -> str:
    """Return where a scenario states the demand of a pod (``namespace/name``): the file, with line and column."""
    path = scenario_path(path)
    if path == STDIN or pod is None:
        return path
    file = read_file(path, read_bytes(path))
    parts = () if file.document is None else file.document.spec.workloads
    namespace, _, name = pod.partition("/")
    named = {part.workload: index for index, part in enumerate(parts)}
    # A pod is called after its workload.
    while name:
        for known in (name, f"{namespace}/{name}"):
            if known in named:
                line, column = file.locate(("spec", "workloads", named[known]))
                return f"{path}:{line}:{column}"
        name = name.rpartition("-")[0]
    return path


def scenario_path(path: str) -> str:
    """Return the scenario's file: an existing one, or a built-in one."""
    if path == STDIN or os.path.isfile(path) or has_folder(path):
        return path
    from podqos.reading.shipped_scenarios import shipped_scenario

    return shipped_scenario(path.removesuffix(".yaml")) or path


def _how_to_find(path: str, error: InputError) -> str:
    """Return how to fix a missing file: perhaps a built-in scenario was meant."""
    if os.path.exists(path):
        return error.fix
    from podqos.reading.shipped_scenarios import closest_scenario, shipped_scenario

    name = os.path.basename(path).removesuffix(".yaml")
    if has_folder(path):
        shipped = shipped_scenario(name)
        return error.fix if shipped is None else f"built in as {os.path.basename(shipped).removesuffix('.yaml')}"
    close = closest_scenario(name)
    return f"did you mean {close}?" if close else "check the path; `podqos scenario list` shows the built-in ones"


class _Disk:
    """The files of a scenario are on this machine."""

    missing = "no such file or directory"
    fix = "paths are relative to the scenario"

    def __init__(self) -> None:
        self.looked_at: list[str] = []

    def has(self, path: str) -> bool:
        self.looked_at.append(path)
        return os.path.exists(path)

    def manifests(self, path: str) -> Inputs:
        return gather([path])

    def read(self, path: str) -> bytes:
        self.looked_at.append(path)
        return read_bytes(path)


class _Given:
    """The files of a scenario are among given files, each with a name, perhaps with directories."""

    missing = "not among the given files"
    fix = "give it together with the scenario"

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files

    def has(self, path: str) -> bool:
        return bool(self._found(path))

    def manifests(self, path: str) -> Inputs:
        return Inputs([InputFile(name, data=self._files[name]) for name in self._found(path) if is_manifest(name)])

    def read(self, path: str) -> bytes:
        found = self._found(path)
        if not found:
            raise InputError(self.missing, where=path, fix=self.fix)
        return self._files[found[0]]

    def _found(self, path: str) -> list[str]:
        """Return the file of this path, or those in the directory; files given one by one have no directory."""
        if path in self._files:
            return [path]
        within = sorted(name for name in self._files if name.startswith(f"{path}/"))
        alike = [name for name in self._files if os.path.basename(name) == os.path.basename(path)]
        return within or (alike if len(alike) == 1 else [])


class _Fetched:
    """The files a scenario refers to, relative to it."""

    def __init__(
        self, file: FileReading, document: ScenarioDocument, files: _Disk | _Given, variation: Variation
    ) -> None:
        self._variation = variation
        self._files = files
        self.problems: list[Problem] = []
        self._file = file
        self._spec = document.spec
        parts = (part for event in self._spec.events for part in (event.rollout, event.scale) if part is not None)
        self._changed_later = {part.workload.rpartition("/")[2] for part in parts}
        """Names of workloads that events change: without any pods, too, they are there."""
        self._stated: dict[str, tuple[Workload, Source, Place]] = {}
        """By identity: the workloads as their manifests state them, and where."""
        self._folder = "" if file.source == STDIN else os.path.dirname(file.source)
        sources = self._sources()
        workloads = tuple(self._workloads(sources))
        self.materials = Materials(
            workloads,
            tuple(self._budgets(sources)),
            self._namespaces,
            tuple(service for *_, service in self._others(sources, Service)),
            self._kubelets(),
            self._samples,
            self._autoscalers(sources, workloads),
            dict(self._revisions(workloads)),
        )
        self.problems += _ignored_objects(sources)
        self.problems += self._ignored_fields()
        self.problems += self._ignored_quotas(sources)
        self.problems = list(dict.fromkeys(self.problems))  # a rollout reads its object again

    def _path(self, name: str) -> str:
        return with_slashes(os.path.normpath(os.path.join(self._folder, name)))

    def _complain(self, field: tuple[str | int, ...], what: str, fix: str) -> None:
        self.problems.append(self._file.problem(FieldProblem(field, what, fix)))

    def _budgets(self, sources: Sequence[Source]) -> Iterator[PodDisruptionBudget]:
        for source, other, budget in self._others(sources, PodDisruptionBudget):
            refused = budget_problem(source, other, budget)
            if refused is not None:
                self.problems.append(refused)
            else:
                yield budget

    def _others(self, sources: Sequence[Source], model: type[Namespaced]) -> Iterator[tuple[Source, Other, Namespaced]]:
        """Yield the objects of a kind without pods."""
        for source in sources:
            for other in source.reading.others:
                if is_read_as(other, model):
                    found, problems = converted(source, other, model)
                    self.problems += problems
                    if found is not None:
                        namespace = found.metadata.namespace or self._spec.namespace
                        yield source, other, replace(found, metadata=replace(found.metadata, namespace=namespace))

    def _autoscalers(
        self, sources: Sequence[Source], workloads: Sequence[ScenarioWorkload]
    ) -> tuple[HorizontalPodAutoscaler, ...]:
        kinds = {other.kind for source in sources for other in source.reading.others}
        if "HorizontalPodAutoscaler" not in kinds:
            return ()
        from podqos.reading.scenario_autoscalers import found_autoscalers

        found, problems = found_autoscalers(sources, workloads, self._spec.namespace)
        self.problems += problems
        return found

    def _workloads(self, sources: Sequence[Source]) -> list[ScenarioWorkload]:
        policies = PolicyCollector(ReadingRules(namespace=self._spec.namespace, doubles=Severity.ERROR))
        for source in sources:
            self.problems += (*source.reading.problems, *policies.take(source))
        cluster, problems = policies.cluster()
        self._namespaces = {known.metadata.name: known.metadata.labels for known in cluster.namespaces}
        plugins = self._spec.enable_admission_plugins
        cluster = replace(cluster, policies=replace(cluster.policies, enabled_plugins=plugins))
        self.problems += problems
        self._admissions = Admissions(cluster, self._profile(), Question.PLACEMENT)
        workloads = []
        for source in sources:
            for workload, place in zip(source.reading.workloads, source.reading.places, strict=True):
                own = self._variation.workload(_in_namespace(workload, self._spec.namespace))
                self.problems += _batch_problems(own, source, place)
                made = self._made(own, source, place)
                if made is not None:
                    workloads.append(made)
                    self._stated[made.identity] = own, source, place
        return workloads

    def _made(self, own: Workload, source: Source, place: Place) -> ScenarioWorkload | None:
        """Return a workload as the API server stores it, and how its pods are rolled out."""
        if own.is_live:
            # An API server has stored it already.
            made = _scenario_workload(own, own.pod, 1 if own.replicas is None else own.replicas)
        elif own.replicas == 0 and own.metadata.name in self._changed_later:
            admitted = self._admitted(self._admissions.create(replace(own, replicas=1)), source, place)
            if admitted is None:
                return None
            made = replace(admitted, replicas=0)
        else:
            admitted = self._admitted(self._admissions.create(own), source, place)
            if admitted is None:
                return None
            made = admitted
        return replace(made, rollout=self._rollout_spec(own.kind, source, place))

    def _rollout_spec(self, kind: str, source: Source, place: Place) -> RolloutSpec | None:
        if kind not in ROLLED_OUT or not any(mark in source.data for mark in TELLING):
            return None
        value = source.lookup.plain(place)
        spec = value.get("spec") if isinstance(value, dict) else None

        def problem(path: FieldPath, what: str, fix: str) -> None:
            self.problems.append(source.problem(place, path, what, fix))

        return RolloutReader(spec if isinstance(spec, dict) else {}, problem).of_kind(kind)

    def _revisions(self, workloads: Sequence[ScenarioWorkload]) -> Iterator[tuple[int, StatedRevision]]:
        """Yield what rollouts make of workloads, by the place of the event; unknown workloads are reported later."""
        for index, event in enumerate(self._spec.events):
            part = event.rollout
            named = [] if part is None else [known for known in workloads if part.workload in names_of(known)]
            if part is None or len(named) != 1:
                continue
            made = self._revision(part, named[0], ("spec", "events", index, "rollout"))
            if made is not None:
                yield index, made

    def _revision(self, part: RolloutPart, workload: ScenarioWorkload, path: FieldPath) -> StatedRevision | None:
        own, source, place = self._stated[workload.identity]
        stated = own
        if part.manifest:
            changed = self._changed(part.manifest, workload, (*path, "manifest"))
            if changed is None:
                return None
            own, source, place = changed
        several = len(own.pod.spec.containers) > 1
        for name in ("image", "resources"):
            if getattr(part, name) and several:
                what = f"the pod has several containers: {' and '.join(box.name for box in own.pod.spec.containers)}"
                self._complain((*path, name), what, "change them in a manifest: FILE")
        made = self._made(_with(own, part), source, place)
        if made is None:
            return None
        return StatedRevision(made, own.replicas if own.replicas != stated.replicas else None)

    def _changed(self, name: str, workload: ScenarioWorkload, path: FieldPath) -> tuple[Workload, Source, Place] | None:
        """Return the object of a manifest that is to be a new revision of a workload."""
        location = self._path(name)
        if not self._files.has(location):
            self._complain(path, f"{location}: {self._files.missing}", self._files.fix)
            return None
        gathered = self._files.manifests(location)
        self.problems += gathered.problems
        for file in gathered.files:
            source = source_of(InputFile(file.path, data=file.data))
            self.problems += source.reading.problems
            for other, place in zip(source.reading.workloads, source.reading.places, strict=True):
                own = _in_namespace(other, self._spec.namespace)
                metadata = own.metadata
                if f"{own.kind}/{metadata.namespace}/{metadata.name}" == workload.identity:
                    return own, source, place
        if not gathered.problems:
            self._complain(path, f"{location} holds no {workload.identity}", "change that object in the file")
        return None

    def _ignored_fields(self) -> Iterator[Problem]:
        """Yield a warning for each kind of field that a run ignores, where it is first."""
        told: set[str] = set()
        for own, source, place in self._stated.values():
            if may_be_ignored(source.data):
                for field in ignored_fields(source.lookup.plain(place), own.pod_path):
                    if field.name not in told:
                        told.add(field.name)
                        yield source.problem(place, field.path, f"ignored: {field.instead}", severity=Severity.WARNING)

    def _ignored_quotas(self, sources: Sequence[Source]) -> Iterator[Problem]:
        """Yield that a quota applies to the first pods only, if more may follow."""
        others = [(source, other) for source in sources for other in source.reading.others]
        is_scaled = any(other.kind == "HorizontalPodAutoscaler" for _, other in others)
        if not (is_scaled or self._changed_later):
            return
        for source, other in others:
            if (group_of(other.api_version), other.kind) == ("", "ResourceQuota"):
                what = "ResourceQuota is applied to the first pods only: it rejects none that are added during the run"
                yield source.problem(other.place, "", what, severity=Severity.WARNING)
                return

    def _sources(self) -> list[Source]:
        """Return the manifests, each once; report a path without manifests."""
        files: dict[str, InputFile] = {}
        for index, name in enumerate(self._spec.manifests):
            path = self._path(name)
            is_there = self._files.has(path)
            gathered = self._files.manifests(path) if is_there else Inputs([])
            self.problems += gathered.problems
            if not gathered.files and not gathered.problems:
                what = "contains no YAML or JSON files" if is_there else self._files.missing
                self._complain(("spec", "manifests", index), f"{path}: {what}", self._files.fix)
            files.update((file.path, file) for file in gathered.files)
        return [source_of(InputFile(file.path, data=file.data)) for file in files.values()]

    def _profile(self) -> Profile:
        try:
            return parse_version(self._spec.kubernetes_version) if self._spec.kubernetes_version else LATEST
        except InputError:
            return LATEST  # reported when the scenario is put together

    def _admitted(self, admission: WorkloadAdmission, source: Source, place: Place) -> ScenarioWorkload | None:
        override = admission.first.override
        if override is not None and override.exempt is not None:
            warning = source.problem(place, (), f"ClusterResourceOverride {exempt(override, override.exempt)}")
            if all(problem.what != warning.what for problem in self.problems):
                self.problems.append(replace(warning, severity=Severity.WARNING))
        if admission.refusal is not None:
            refused = admission.pods - admission.admitted
            what = f"the API server rejects {refused} of {admission.pods} pods: {admission.refusal.message}"
            self.problems.append(source.problem(place, (), what, "`podqos admit` explains it step by step"))
            return None
        if admission.pods == 0:
            return None
        errors = rejected(admission.workload, admission.first.tolerated, partial(source.plain, place))
        if admission.workload.job is not None:
            errors = tuple(error for error in errors if not _is_of_job(error, admission.workload))
        self.problems += source.tolerated(place, errors)
        return _scenario_workload(admission.workload, with_names(admission.first.pod), admission.pods)

    def _kubelets(self) -> dict[str, KubeletConfiguration]:
        configs: dict[str, KubeletConfiguration] = {}
        told: set[str] = set()
        for index, node in enumerate(self._spec.nodes):
            name = node.kubelet.path
            if not name:
                words = ignored_words(node.kubelet.ignored)
                if words and words not in told:
                    finding = FieldProblem(("spec", "nodes", index, "kubelet"), words, severity=Severity.WARNING)
                    self.problems.append(self._file.problem(finding))
                    told.add(words)
                self._note_rules(node.kubelet.notation, index)
                continue
            if name in configs:
                continue
            path = self._path(name)
            try:
                settings = read_kubelet(path, self._files.read(path))
            except InputError as error:
                where = error.where.removesuffix(":") or path
                self._complain(("spec", "nodes", index, "kubelet"), f"{where}: {error.what}", error.fix)
                continue
            configs[name] = settings.configuration
            self.problems += ignored_problems(settings, path, reader="simulation")
            self._note_rules(settings.notation, index)
        return configs

    def _note_rules(self, notation: Notation, index: int) -> None:
        """Warn that a kubelet of OpenShift 3 gets the rules of a later version, unless the scenario states one."""
        for later_rule in () if self._spec.kubernetes_version else later_rules(notation, self._profile()):
            what, fix = f"{later_rule.what}: {later_rule.value}", "state spec.kubernetesVersion"
            place = ("spec", "nodes", index, "kubelet")
            self.problems.append(self._file.problem(FieldProblem(place, what, fix, Severity.WARNING)))

    def _samples(self, samples: Samples) -> tuple[Series, ...]:
        path = self._path(samples.file)
        return read_samples(path, self._files.read(path), column=samples.column, match=samples.match)


def _ignored_objects(sources: Sequence[Source]) -> Iterator[Problem]:
    """Yield a warning for each kind of object that a run ignores, where it is first."""
    told: set[tuple[str, str]] = set()
    for source in sources:
        for other in source.reading.others:
            kind = group_of(other.api_version), other.kind
            if kind in IGNORED_OBJECTS and kind not in told:
                told.add(kind)
                what = f"{other.kind} is ignored: {IGNORED_OBJECTS[kind]}"
                yield source.problem(other.place, "", what, severity=Severity.WARNING)


def _batch_problems(workload: Workload, source: Source, place: Place) -> Iterator[Problem]:
    """Yield what is wrong with the spec of a Job or CronJob."""
    if workload.job is None:
        return
    from podqos.sim.scenario.due import zone_named

    *path, _ = workload.pod_path.split(".")
    findings = []
    for error in rejections(workload, partial(source.plain, place)):
        if not _is_of_job(error, workload):
            continue
        if error.path == f"{workload.pod_path}.spec.restartPolicy" and error.type is ErrorType.REQUIRED:
            fix = "the API server rejects this Job; until then its containers restart for ever"
            findings.append(FieldProblem(parse_path(error.path), error.words, fix, Severity.WARNING))
        else:
            findings.append(FieldProblem(parse_path(error.path), error.words))
    cron = workload.cron
    if cron is not None and not findings:
        if zone_named(cron.time_zone) is None:
            what = f"the time zone {cron.time_zone} is not known here"
            findings.append(FieldProblem(("spec", "timeZone"), what, "install the package tzdata"))
        if not has_times(cron.schedule):
            what = f'"{cron.schedule}" never comes: there is no such date'
            fix = "check the day and the month"
            findings.append(FieldProblem(("spec", "schedule"), what, fix, Severity.WARNING))
    if workload.job.managed_by not in {None, _JOB_CONTROLLER}:
        what = f"{workload.job.managed_by} manages this Job: here its pods run, and are replaced like those of others"
        findings.append(FieldProblem((*path, "managedBy"), what, severity=Severity.WARNING))
    for finding in findings:
        yield replace(source.problem(place, finding.path, finding.what, finding.fix), severity=finding.severity)


def _is_of_job(error: FieldError, workload: Workload) -> bool:
    """Whether an error is about a Job or CronJob itself, and not about its pods."""
    if error.path == f"{workload.pod_path}.spec.restartPolicy":
        return True
    return not (error.path.startswith(f"{workload.pod_path}.") or isinstance(error, Undecoded))


def _scenario_workload(workload: Workload, pod: Pod, replicas: int) -> ScenarioWorkload:
    job = workload.job
    if job is not None:
        job = None if job.managed_by not in {None, _JOB_CONTROLLER} else job.with_defaults()
    if job is not None:
        replicas = job.pods
    return ScenarioWorkload(
        kind=workload.kind,
        namespace=workload.metadata.namespace,
        name=workload.metadata.name or workload.metadata.generate_name,
        pod=pod,
        replicas=replicas,
        job=job,
        cron=None if job is None else workload.cron,
        recreate=workload.kind not in _NOT_RECREATED,
    )


def _with(workload: Workload, part: RolloutPart) -> Workload:
    """Return a workload with another image, or other resources, of its container."""
    spec = workload.pod.spec
    if not (part.image or part.resources) or len(spec.containers) != 1:
        return workload
    box = spec.containers[0]
    if part.image:
        box = replace(box, image=part.image)
    if part.resources is not None:
        stated = part.resources
        box = replace(box, resources=ResourceRequirements(requests=stated.requests, limits=stated.limits))
    pod = replace(workload.pod, spec=replace(spec, containers=(box,)))
    return replace(workload, pod=pod)


def _in_namespace(workload: Workload, namespace: str) -> Workload:
    own = workload.metadata.namespace or namespace
    pod = workload.pod
    return replace(
        workload,
        metadata=replace(workload.metadata, namespace=own),
        pod=replace(pod, metadata=replace(pod.metadata, namespace=own)),
    )
