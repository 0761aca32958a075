"""Rollouts, rollbacks and scalings of a scenario file as values; what is invalid is reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.manifest.plain import FieldPath
from podqos.placement.workloads import DAEMON_SET, MOST_PODS
from podqos.sim.scenario.scenario import (
    ScenarioWorkload,
    WorkloadChange,
    WorkloadRollout,
    WorkloadScale,
    WorkloadSuspend,
)
from podqos.sim.scenario_format.document import EventPart, RollbackPart, RolloutPart, ScalePart, SuspendPart
from podqos.sim.scenario_format.events import EventOfKind
from podqos.sim.scenario_format.events import EventPart as AnyEventPart
from podqos.sim.scenario_format.shape_document import Report
from podqos.sim.scenario_format.workloads import DemandReader, names_of

STATEFUL_SET, DEPLOYMENT = "StatefulSet", "Deployment"
ROLLED_OUT = frozenset({DEPLOYMENT, STATEFUL_SET, DAEMON_SET})
"""The kinds with a template whose changes are rolled out."""
_SCALED = frozenset({DEPLOYMENT, STATEFUL_SET, "ReplicaSet", "ReplicationController", "Job"})
_SUSPENDED = frozenset({"Job", "CronJob"})
_VERBS = {ROLLED_OUT: "rolled out", _SCALED: "scaled", _SUSPENDED: "suspended"}


class StatedRevision(Struct, frozen=True):
    """What a rollout makes of a workload."""

    workload: ScenarioWorkload
    """As the API server stores it, without demands."""
    replicas: int | None = None
    """The wanted number of pods, if the manifest changes it."""


_Part = TypeVar("_Part", RolloutPart, RollbackPart, ScalePart, SuspendPart)


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
            "suspend": self._suspend,
            "resume": self._suspend,
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

    def _suspend(self, event: AnyEventPart, path: FieldPath) -> WorkloadChange | None:
        assert isinstance(event, EventPart)
        part = event.suspend or event.resume
        assert part is not None
        workload = self._target(part, int(event.at), path, _SUSPENDED)
        if workload is None:
            return None
        return WorkloadSuspend(int(event.at), workload.identity, suspended=event.suspend is not None)

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
        if workload.kind in _SUSPENDED and workload.job is None:
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
