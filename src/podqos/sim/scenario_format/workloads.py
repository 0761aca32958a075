"""The workloads of a scenario file as values: which object, when, where, and with what demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from msgspec.structs import replace

from podqos.manifest.fields import suggestion
from podqos.manifest.plain import FieldPath
from podqos.model.pod import Pod
from podqos.placement.workloads import MOST_PODS
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.scenario.demand import ContainerDemand, VolumeDemand
from podqos.sim.scenario.scenario import ScenarioWorkload
from podqos.sim.scenario.service import ServiceDemand
from podqos.sim.scenario_format.document import (
    DemandPart,
    ExitPart,
    RolloutPart,
    VariantPart,
    WorkloadPart,
    demands,
)
from podqos.sim.scenario_format.plausibility import MOST_PIDS, is_exit_code
from podqos.sim.scenario_format.services import ServicePart, connected, service_demand
from podqos.sim.scenario_format.shape_document import REJECTED, CurveSettings, Report, Shape, curves
from podqos.sim.scenario_format.shape_text import Unit

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
        return tuple(map(self._bound, connected(made, self._services(parts, mentioned), self._report)))

    def _services(self, parts: Sequence[WorkloadPart], mentioned: Mapping[int, int]) -> dict[int, FieldPath]:
        """Return where workloads have their service, by place in the manifests, after reporting those with several."""
        places: dict[int, FieldPath] = {}
        for which, index in mentioned.items():
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
            if serving:
                places[which] = (*serving[0], "service")
        return places

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
            what = "a rollout changes cost, workers and queue; requests, timeout and calls stay those of the workload"
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
