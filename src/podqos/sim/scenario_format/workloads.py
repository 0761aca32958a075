"""Workloads of a scenario file: their demands, where they run, what happens to them later, CronJobs that come up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.manifest.fields import suggestion
from podqos.manifest.plain import FieldPath
from podqos.model.pod import Pod
from podqos.placement.workloads import DAEMON_SET, MOST_PODS
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.scenario.due import is_due
from podqos.sim.scenario.scenario import (
    DEFAULT_START_US,
    ContainerDemand,
    ScenarioWorkload,
    ServiceDemand,
    VolumeDemand,
    WorkloadChange,
    WorkloadRollout,
    WorkloadScale,
)
from podqos.sim.scenario_format.document import (
    DemandPart,
    EventPart,
    ExitPart,
    RollbackPart,
    RolloutPart,
    ScalePart,
    ScenarioSpec,
    VariantPart,
    WorkloadPart,
    demands,
)
from podqos.sim.scenario_format.events import EventOfKind
from podqos.sim.scenario_format.events import EventPart as AnyEventPart
from podqos.sim.scenario_format.nodes import MOST_PIDS, is_exit_code
from podqos.sim.scenario_format.services import ServicePart, service_demand
from podqos.sim.scenario_format.shape_document import REJECTED, CurveSettings, Report, Shape, curves
from podqos.sim.scenario_format.shape_text import Unit


def with_active_jobs(
    workloads: Sequence[ScenarioWorkload], spec: ScenarioSpec, start_us: int, duration_us: int, warn: Report
) -> tuple[ScenarioWorkload, ...]:
    """Return the workloads, with a Job from the start for CronJobs whose schedules do not come up without a clock."""
    made = []
    for workload in workloads:
        if workload.cron is None or workload.active or is_due(workload, start_us, duration_us):
            made.append(workload)
            continue
        path = _place(workload, spec)
        what = f"the schedule of CronJob {workload.namespace}/{workload.name}, {workload.cron.schedule}, does not come"
        if workload.cron.suspend:
            warn(path, f"CronJob {workload.namespace}/{workload.name} is suspended: it has no pods", "")
        elif spec.start or start_us != DEFAULT_START_US:
            warn(path, f"{what} up during the run", "change spec.start or spec.duration")
        else:
            what = f"{what} up during the run, so one Job of it runs from the start"
            warn(path, what, "set active: true for that, or spec.start to run it by its schedule")
            workload = replace(workload, active=True)  # noqa: PLW2901 - the same, with a Job
        made.append(workload)
    return tuple(made)


def _place(workload: ScenarioWorkload, spec: ScenarioSpec) -> FieldPath:
    full = f"{workload.namespace}/{workload.name}"
    for index, part in enumerate(spec.workloads):
        if part.workload in {workload.name, full, f"{workload.kind}/{full}"}:
            return ("spec", "workloads", index)
    return ("spec", "manifests")


_ONE_CORE = constant(1000)

_Made = tuple[int, Callable[[int], ContainerDemand]]
"""How many demands the replicas of a container take turns in, and that of a replica."""


class Named(Protocol):
    """A part that names a workload."""

    @property
    def workload(self) -> str:
        """Its name."""


class DemandReader:
    """Adds demands and settings from the file to workloads."""

    def __init__(self, setting: CurveSettings, nodes: Sequence[str], warn: Report) -> None:
        self._setting = setting
        self._nodes = nodes
        self._known_nodes = frozenset(nodes)
        self._report = setting.report
        self._warn = warn

    def workloads(
        self, parts: Sequence[WorkloadPart], found: Sequence[ScenarioWorkload]
    ) -> tuple[ScenarioWorkload, ...]:
        """Return all workloads of the manifests, in their order."""
        mentioned: dict[int, int] = {}
        made = list(found)
        places: dict[str, list[int]] = {}
        for place, workload in enumerate(found):
            for name in names_of(workload):
                places.setdefault(name, []).append(place)
        for index, part in enumerate(parts):
            path = ("spec", "workloads", index)
            which = self.which(part, found, places.get(part.workload, []), path)
            if which is None:
                continue
            if which in mentioned:
                first = mentioned[which]
                what = f"{found[which].namespace}/{found[which].name} is listed twice"
                self._report((*path, "workload"), what, f"merge it with spec.workloads[{first}]")
            mentioned[which] = index
            made[which] = self._workload(part, found[which], path)
        for which, workload in enumerate(made):
            if workload.replicas > MOST_PODS:
                what = f"{workload.namespace}/{workload.name} has {workload.replicas:,} replicas"
                where: FieldPath = (
                    ("spec", "workloads", mentioned[which]) if which in mentioned else ("spec", "manifests")
                )
                self._report(where, what, f"at most {MOST_PODS:,} are simulated")
        for which, workload in enumerate(made):
            self._check_hooks(
                workload, ("spec", "workloads", mentioned[which]) if which in mentioned else ("spec", "manifests")
            )
        self._check_services(parts, mentioned)
        return tuple(map(self._bound, made))

    def _check_services(self, parts: Sequence[WorkloadPart], mentioned: Mapping[int, int]) -> None:
        """Report workloads with several services."""
        for index in mentioned.values():
            part = parts[index]
            path: FieldPath = ("spec", "workloads", index)
            for number, variant in enumerate(part.per_replica):
                if any(demand.service is not None for demand in _demands_of(variant)):
                    what = "a service is that of the whole workload, not of a replica"
                    self._report((*path, "perReplica", number), what, "move it to demand: or containers:")
            serving = [
                (*path, "containers", name) for name, demand in part.containers.items() if demand.service is not None
            ]
            if part.demand is not None and part.demand.service is not None:
                serving.append((*path, "demand"))
            for place in serving[1:]:
                self._report((*place, "service"), "another container has a service, too", "one per workload")

    def _check_hooks(self, workload: ScenarioWorkload, path: FieldPath) -> None:
        """Warn of hooks whose duration nobody states, and report durations of hooks that do not exist."""
        spec = workload.pod.spec
        for container in (*spec.containers, *spec.init_containers):
            stated = [demands[container.name].pre_stop_us for demands in workload.demands if container.name in demands]
            is_stated = any(time_us is not None for time_us in stated)
            hook = None if container.lifecycle is None else container.lifecycle.pre_stop
            name = f"{workload.namespace}/{workload.name} ({container.name})"
            if hook is None and is_stated:
                self._report(path, f"{name} has no preStop hook", "remove preStop, or add the hook to the manifest")
            elif hook is not None and hook.sleep is None and not is_stated:
                what = f"the preStop hook of {name} is simulated as taking no time"
                self._warn(path, what, "say how long it takes, such as preStop: 5s in its demand")

    def _bound(self, workload: ScenarioWorkload) -> ScenarioWorkload:
        """Return a workload bound to its manifest's node, unless the scenario states another."""
        node = workload.pod.spec.node_name
        if not node or workload.nodes or workload.spread:
            return workload
        if node not in self._known_nodes:
            what = f"{workload.namespace}/{workload.name} is bound to the node {node}, which does not exist"
            self._report(("spec", "nodes"), what, "add the node, or set nodes: [NAME]")
            return workload
        return replace(workload, nodes=(node,))

    def which(
        self, part: Named, found: Sequence[ScenarioWorkload], matching: Sequence[int], path: FieldPath
    ) -> int | None:
        """Return the index of the workload that a part refers to."""
        if len(matching) == 1:
            return matching[0]
        if not part.workload:
            self._report((*path, "workload"), "Required value", "name an object of the manifests")
        elif not matching:
            known = [f"{workload.namespace}/{workload.name}" for workload in found]
            by_name = {workload.name: f"{workload.namespace}/{workload.name}" for workload in found}
            fix = suggestion(part.workload, known if "/" in part.workload else by_name)
            self._report((*path, "workload"), f'no manifest has a workload "{part.workload}"', fix)
        else:
            several = ", ".join(max(names_of(found[index]), key=len) for index in matching)
            self._report((*path, "workload"), f'"{part.workload}" is ambiguous', f"use one of {several}")
        return None

    def _workload(self, part: WorkloadPart, workload: ScenarioWorkload, path: FieldPath) -> ScenarioWorkload:
        if part.replicas is not None and part.replicas < 0:
            self._report((*path, "replicas"), "is below zero", "use 0 to leave the workload out")
        if part.arrives > self._setting.duration_us:
            self._report((*path, "arrives"), "is after the end of the scenario", "lengthen spec.duration")
        if part.deleted is not None and part.deleted < part.arrives:
            self._report((*path, "deleted"), "is deleted before it arrives", "swap the two")
        if part.deleted == part.arrives:
            what = "is deleted the moment it arrives: its pods never run"
            self._warn((*path, "deleted"), what, "delete it later, or leave it out with replicas: 0")
        if part.active and workload.cron is None:
            self._report((*path, "active"), f"{workload.name} is not a CronJob", "remove it")
        if part.nodes and part.spread:
            self._report((*path, "spread"), "nodes and spread exclude each other", "remove one of the two")
        for index, node in enumerate(part.nodes):
            if node not in self._known_nodes:
                fix = suggestion(node, self._nodes[:1000])
                self._report((*path, "nodes", index), f'no such node: "{node}"', fix)
        # Each Job of a CronJob begins anew.
        self._setting = replace(self._setting, clock=None if workload.cron is None else Clock.CONTAINER)
        if part.replicas is not None:
            workload = _with_replicas(workload, max(0, part.replicas))
        return replace(
            workload,
            demands=self.demands(part, workload, path),
            arrives_us=int(part.arrives),
            deleted_us=None if part.deleted is None else int(part.deleted),
            nodes=part.nodes,
            spread=part.spread,
            active=part.active,
            recreate=workload.recreate if part.recreate is None else part.recreate,
        )

    def demands(
        self, part: WorkloadPart | RolloutPart, workload: ScenarioWorkload, path: FieldPath
    ) -> tuple[Mapping[str, ContainerDemand], ...]:
        """Return the demands of a workload, in which its replicas take turns."""
        given = [name for name in ("demand", "containers", "per_replica") if getattr(part, name)]
        if len(given) > 1:
            what = f"{' and '.join(given)} exclude each other".replace("per_replica", "perReplica")
            self._report(path, what, "put demands below containers: or perReplica:, not next to them")
        pods = len(self._nodes) if workload.kind == "DaemonSet" else workload.replicas
        if workload.job is not None:
            # Those that follow when others have succeeded have numbers of their own.
            pods = max(pods, workload.job.completions or 0)
        if part.per_replica:
            variants = [
                self._variant(variant, workload, pods, (*path, "perReplica", index))
                for index, variant in enumerate(part.per_replica)
            ]
        else:
            variants = [self._variant(VariantPart(part.demand, part.containers), workload, pods, path)]
        count = max([len(variants), *(several for variant in variants for several, _ in variant.values())])
        turns = min(-(-count // len(variants)) * len(variants), max(1, pods))
        return tuple(
            {name: of(turn) for name, (_, of) in variants[turn % len(variants)].items()} for turn in range(turns)
        )

    def _variant(
        self, part: VariantPart, workload: ScenarioWorkload, pods: int, path: FieldPath
    ) -> Mapping[str, _Made]:
        pod = workload.pod
        names = [container.name for container in (*pod.spec.containers, *pod.spec.init_containers)]
        demands = [(name, demand, (*path, "containers", name)) for name, demand in part.containers.items()]
        if part.demand is not None:
            if len(names) > 1:
                several = " and ".join(names)
                self._report((*path, "demand"), f"the pod has several containers: {several}", "use containers: NAME: …")
            demands.append((names[0], part.demand, (*path, "demand")))
        made = {}
        for name, demand, place in demands:
            if name not in names:
                self._report(place, f'the pod has no container "{name}"', suggestion(name, names))
                continue
            made[name] = self._container(demand, pod, pods, f"{workload.namespace}/{workload.name}/{name}", place)
        return made

    def _container(self, part: DemandPart, pod: Pod, pods: int, name: str, path: FieldPath) -> _Made:
        made = {
            field: curves(shape, unit, self._setting, name, (*path, written), replicas=pods)
            for written, field, unit, shape in demands(part)
        }
        for written in ("processes", "pids"):
            for curve in made.get(written, ()):
                if curve is REJECTED:
                    continue
                if min(value for _, value in curve.knots) < 1:
                    self._report((*path, written), "a container has at least one process", "write 1 or more")
                elif max(value for _, value in curve.knots) > MOST_PIDS:
                    self._report((*path, written), f"Linux has at most {MOST_PIDS:,} processes", "write less")
        if "processes" in made and "pids" in made:
            processes, pids = made["processes"][0], made["pids"][0]
            if processes.is_constant and pids.is_constant and pids.at(0) < processes.at(0):
                self._report((*path, "pids"), "is less than processes", "it counts processes and their threads")
        volumes = {}
        known = [volume.name for volume in pod.spec.volumes]
        for volume, inner in part.volumes.items():
            place = (*path, "volumes", volume)
            if volume not in known:
                fix = suggestion(volume, known) if known else "the pod has no volumes"
                self._report(place, f'the pod has no volume "{volume}"', fix)
            used = curves(inner.bytes, Unit.WHOLE, self._setting, name, place, replicas=pods)
            inodes = curves(inner.inodes, Unit.COUNT, self._setting, name, (*place, "inodes"), replicas=pods)
            volumes[volume] = used, inodes
        exits = part.exits or ExitPart()
        service = None if part.service is None else self._service(part, name, path)
        if part.work is not None:
            made["cpu_milli"] = self._cores_at_work(part, made["cpu_milli"], path)
        elif part.exits is not None and exits.after is None:
            self._report((*path, "exits", "after"), "Required value", "such as 30s")
        if not is_exit_code(exits.code):
            self._report((*path, "exits", "code"), f"{exits.code} is not an exit code", "0 to 255")

        def demand(replica: int) -> ContainerDemand:
            def turn(several: tuple[Curve, ...]) -> Curve:
                return several[replica % len(several)]

            return ContainerDemand(
                **{field: turn(several) for field, several in made.items()},
                volumes={volume: VolumeDemand(turn(used), turn(inodes)) for volume, (used, inodes) in volumes.items()},
                exits_after_us=None if exits.after is None else int(exits.after),
                exit_code=exits.code,
                service=service,
                probe_cost_us=None if part.probe_cost is None else int(part.probe_cost),
                pre_stop_us=None if part.pre_stop is None else int(part.pre_stop),
                work_us=None if part.work is None else int(part.work),
            )

        every = (*made.values(), *(each for pair in volumes.values() for each in pair))
        return max(map(len, every), default=1), demand

    def _service(self, part: DemandPart, name: str, path: FieldPath) -> ServiceDemand:
        assert part.service is not None
        if part.cpu != Shape():
            what = "cpu and service exclude each other: the CPU demand of a service follows from its requests"
            self._report((*path, "cpu"), what, "remove one of the two")
        if part.work is not None:
            self._report((*path, "work"), "work and service exclude each other", "remove one of the two")
        of_workload = ServicePart(cost=part.service.cost, workers=part.service.workers, queue=part.service.queue)
        if path[1] == "events" and part.service != of_workload:
            what = "a rollout changes cost, workers and queue; requests and timeout stay those of the workload"
            self._report((*path, "service"), what, "remove the others")
        return service_demand(part.service, self._setting, name, (*path, "service"))

    def _cores_at_work(self, part: DemandPart, cores: tuple[Curve, ...], path: FieldPath) -> tuple[Curve, ...]:
        """Return how many cores a container that has work to do wants: one, unless it says otherwise."""
        if part.exits is not None and part.exits.after is not None:
            what = "work and exits.after exclude each other: the container exits when its work is done"
            self._report((*path, "exits", "after"), what, "remove one of the two; exits.code alone may stay")
        if part.cpu == Shape():
            return (_ONE_CORE,)
        if any(max(value for _, value in curve.knots) <= 0 for curve in cores):
            self._report((*path, "cpu"), "is 0: the work is never done", "write how many cores it uses, or nothing")
        return cores


def _demands_of(variant: VariantPart) -> Iterable[DemandPart]:
    return (*variant.containers.values(), *(() if variant.demand is None else (variant.demand,)))


def _with_replicas(workload: ScenarioWorkload, replicas: int) -> ScenarioWorkload:
    """Return a workload with so many pods at a time; a Job then has at least as many completions."""
    job = workload.job
    if job is not None:
        completions = None if job.completions is None else max(job.completions, replicas)
        job = replace(job, parallelism=replicas, completions=completions)
        replicas = job.pods
    return replace(workload, replicas=replicas, job=job)


def names_of(workload: ScenarioWorkload) -> Iterable[str]:
    """Return what a file can call a workload."""
    full = f"{workload.namespace}/{workload.name}"
    return workload.name, full, f"{workload.kind}/{full}"


STATEFUL_SET, DEPLOYMENT = "StatefulSet", "Deployment"
ROLLED_OUT = frozenset({DEPLOYMENT, STATEFUL_SET, DAEMON_SET})
"""The kinds with a template whose changes are rolled out."""
_SCALED = frozenset({DEPLOYMENT, STATEFUL_SET, "ReplicaSet", "ReplicationController", "Job"})
_VERBS = {ROLLED_OUT: "rolled out", _SCALED: "scaled"}


class StatedRevision(Struct, frozen=True):
    """What a rollout makes of a workload."""

    workload: ScenarioWorkload
    """As the API server stores it, without demands."""
    replicas: int | None = None
    """The wanted number of pods, if the manifest changes it."""


_Part = TypeVar("_Part", RolloutPart, RollbackPart, ScalePart)


class WorkloadEventReader:
    """Makes changes of workloads from events. The workloads have their demands already."""

    def __init__(
        self,
        demands: DemandReader,
        workloads: Sequence[ScenarioWorkload],
        revisions: Mapping[int, StatedRevision],
        report: Report,
    ) -> None:
        self._demands = demands
        self._workloads = workloads
        self._revisions = revisions
        self._report = report
        self._places: dict[str, list[int]] = {}
        for place, workload in enumerate(workloads):
            for name in names_of(workload):
                self._places.setdefault(name, []).append(place)
        self._paths: dict[int, FieldPath] = {}
        """By change: where it is in the file."""

    @property
    def readers(self) -> Mapping[str, EventOfKind]:
        """By field of an event: what makes a change of it."""
        return {
            "rollout": self._rollout,
            "rollback": self._rollback,
            "scale": self._scale,
        }

    def _rollout(self, event: AnyEventPart, path: FieldPath) -> WorkloadChange | None:
        assert isinstance(event, EventPart)
        assert event.rollout is not None
        part = event.rollout
        workload = self._target(part, int(event.at), path, ROLLED_OUT)
        if workload is None:
            return None
        index = path[-2]
        assert isinstance(index, int)
        stated = self._revisions.get(index, StatedRevision(workload))
        made = stated.workload
        is_new = bool(part.demand or part.containers or part.per_replica)
        demands = self._demands.demands(part, replace(made, replicas=workload.replicas), path) if is_new else None
        if demands and workload.service is not None and replace(workload, demands=demands).service is None:
            what = f"{workload.name} answers requests, but the demand of its new revision has no service"
            self._report(path, what, "repeat it: service: {cost: …}")
        template = replace(workload, pod=made.pod, rollout=made.rollout, demands=demands or workload.demands)
        return self._noted(
            WorkloadRollout(int(event.at), workload.identity, template, 0, 0, replicas=stated.replicas), path
        )

    def _rollback(self, event: AnyEventPart, path: FieldPath) -> WorkloadChange | None:
        assert isinstance(event, EventPart)
        assert event.rollback is not None
        part = event.rollback
        workload = self._target(part, int(event.at), path, ROLLED_OUT)
        if workload is None:
            return None
        if part.to_revision < 0:
            self._report((*path, "toRevision"), "is below zero", "0 is the previous revision")
        change = WorkloadRollout(int(event.at), workload.identity, None, 0, part.to_revision, rolled_back=True)
        return self._noted(change, path)

    def _scale(self, event: AnyEventPart, path: FieldPath) -> WorkloadChange | None:
        assert isinstance(event, EventPart)
        assert event.scale is not None
        part = event.scale
        workload = self._target(part, int(event.at), path, _SCALED)
        if part.replicas is None or not 0 <= part.replicas <= MOST_PODS:
            what = "Required value" if part.replicas is None else f"must lie between 0 and {MOST_PODS:,}"
            self._report((*path, "replicas"), what, "such as 3")
            return None
        return None if workload is None else WorkloadScale(int(event.at), workload.identity, part.replicas)

    def _target(self, part: _Part, at_us: int, path: FieldPath, kinds: frozenset[str]) -> ScenarioWorkload | None:
        """Return the workload that an event is about, if that can happen to it."""
        which = self._demands.which(part, self._workloads, self._places.get(part.workload, []), path)
        if which is None:
            return None
        workload = self._workloads[which]
        place = (*path, "workload")
        if workload.kind not in kinds or not workload.recreate:
            why = (
                f"a {workload.kind} cannot be {_VERBS[kinds]}"
                if workload.kind not in kinds
                else "it has recreate: false"
            )
            self._report(place, why, f"name a {', '.join(sorted(kinds))} whose pods are recreated")
            return None
        if workload.kind == "Job" and workload.job is None:
            what = f"{workload.name} is managed by another controller than Kubernetes' own"
            self._report(place, what, "remove the event")
            return None
        if at_us < workload.arrives_us:
            self._report((*path[:-1], "at"), f"{workload.name} arrives later", "let it happen after that")
        if workload.deleted_us is not None and at_us >= workload.deleted_us:
            self._report((*path[:-1], "at"), f"{workload.name} is deleted by then", "let it happen before that")
        return workload

    def _noted(self, change: WorkloadRollout, path: FieldPath) -> WorkloadRollout:
        self._paths[id(change)] = path
        return change

    def numbered(self, changes: Iterable[WorkloadChange]) -> tuple[WorkloadChange, ...]:
        """Return changes in the order of time, with the numbers of their revisions.

        A rollback gives the template of an earlier revision the next number, as upstream does
        (pkg/controller/deployment/sync.go, pkg/controller/history).
        """
        made: list[WorkloadChange] = []
        histories: dict[str, dict[int, int]] = {}
        templates: dict[tuple[str, int], ScenarioWorkload | None] = {}
        for change in sorted(changes, key=lambda change: change.at_us):
            if not isinstance(change, WorkloadRollout):
                made.append(change)
                continue
            history = histories.setdefault(change.workload, {1: 1})
            number = self._earlier(change, history) if change.rolled_back else max(history) + 1
            if number is None:
                continue
            history[number] = max(history.values()) + 1
            key = change.workload, number
            if change.template is not None:
                templates[key] = _renamed(change.template, number)
            made.append(replace(change, template=templates.get(key), number=number, revision=history[number]))
        return tuple(made)

    def _earlier(self, change: WorkloadRollout, history: Mapping[int, int]) -> int | None:
        """Return the template that a rollback goes back to."""
        path = self._paths[id(change)]
        newest_first = sorted(history, key=lambda number: -history[number])
        if not change.revision:
            if len(newest_first) > 1:
                return newest_first[1]
            self._report(path, "there is no earlier revision", "let a rollout happen before it")
            return None
        known = {revision: number for number, revision in history.items()}
        if change.revision not in known:
            several = ", ".join(map(str, sorted(known)))
            what = f"there is no revision {change.revision}"
            self._report((*path, "toRevision"), what, f"at that time there is {several}")
        return known.get(change.revision)


def _renamed(template: ScenarioWorkload, number: int) -> ScenarioWorkload:
    """Return a template whose pods have its number in their names; those of a StatefulSet keep theirs."""
    if template.kind == STATEFUL_SET:
        return template
    name = f"{template.name}-rev{number}"
    pod = template.pod
    return replace(template, name=name, pod=replace(pod, metadata=replace(pod.metadata, name=name)))
