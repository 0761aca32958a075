"""Try advice before it is given: place all workloads as advised on the nodes at hand, and replay what was recorded.

Both versions are tried the same way, so that every difference comes from the advice. Without nodes pods run one by one,
and nothing but their own limits can stop them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.sizing import UsageHistory
from podqos.advice.sizing.tried import Fate, Untried
from podqos.answers.advice_ground import Crew, Ground, Landing, Member, crew_of, replicas_on
from podqos.answers.advice_replay import (
    MOST_PODS,
    Demands,
    Fared,
    Recording,
    RunningPod,
    demands_of,
    machines_of,
    replay,
    room_for_all,
)
from podqos.model.node import Node
from podqos.model.pod import Pod, Workload
from podqos.model.profile import Profile
from podqos.model.time_units import SECOND_US
from podqos.placement.workloads import DAEMON_SET
from podqos.sim.engine.curve import constant
from podqos.sim.scenario.demand import ContainerDemand
from podqos.survival.drift.drift import Identity


class TriedWorkload(Struct, frozen=True):
    """A workload as it is, and what is known about it."""

    identity: Identity
    workload: Workload
    before: Pod | None
    """As the API server stores it; None for one that does not exist yet."""
    usages: Mapping[str, UsageHistory] = {}


class Tried(Struct, frozen=True):
    """What became of one version of all workloads."""

    fates: Mapping[Identity, Fate]
    landing: Landing | None
    crew: Crew | None

    @property
    def whole(self) -> Fate:
        """All workloads together."""
        fates = self.fates.values()
        return Fate(
            pending=None if self.landing is None else sum(fate.pending or 0 for fate in fates),
            oom_kills=sum(fate.oom_kills or 0 for fate in fates),
            evictions=sum(fate.evictions or 0 for fate in fates),
            throttled_seconds=round(sum(fate.throttled_seconds or 0 for fate in fates), 3),
        )


class Trials:
    """Tries versions of the same workloads, on the same nodes and with the same usage."""

    def __init__(
        self,
        workloads: Sequence[TriedWorkload],
        ground: Ground | None,
        recording: Recording,
        profile: Profile,
    ) -> None:
        self._workloads = {workload.identity: workload for workload in workloads}
        self._recording = recording
        self._profile = profile
        self.is_too_large = ground is not None and not ground.holds(
            sum(replicas_on(workload.workload, ground.nodes, profile) or 0 for workload in workloads)
        )
        self.ground = None if self.is_too_large else ground

    @cached_property
    def before(self) -> Tried:
        """What becomes of the workloads as they are."""
        return self.run(self._standing)

    @property
    def recorded_seconds(self) -> float:
        """How long the recording is."""
        return self._recording.duration_us / SECOND_US

    @property
    def _standing(self) -> dict[Identity, Pod]:
        return {
            workload.identity: workload.before for workload in self._workloads.values() if workload.before is not None
        }

    def run(self, pods: Mapping[Identity, Pod]) -> Tried:
        """Return what becomes of the workloads with these pods."""
        ground = self.ground
        crew = landing = None
        if ground is not None:
            crew = self._crew(pods, ground.nodes)
            landing = ground.land(crew)
        fared = self._replayed(pods, crew, landing)
        pending = {} if landing is None else landing.pending
        fates = {}
        for identity in pods:
            own = fared.get(identity, Fared())
            waiting = None if landing is None else pending.get(identity, 0) + own.never_ran
            fates[identity] = Fate(waiting, own.oom_kills, own.evictions, round(own.throttled_us / SECOND_US, 3))
        return Tried(fates, landing, crew)

    def untried(self, identity: Identity) -> tuple[Untried, ...]:
        """Return what could not be tried about a workload."""
        return tuple(self._untried(self._workloads[identity]))

    def _untried(self, workload: TriedWorkload) -> Iterator[Untried]:
        if self.is_too_large:
            yield Untried.TOO_MANY
        elif self.ground is None:
            yield Untried.NO_NODES
        usages = workload.usages.values()
        containers = workload.workload.pod.running_containers
        if not all(
            container.name in workload.usages and workload.usages[container.name].memory_bytes
            for container in containers
        ):
            yield Untried.NO_SAMPLES
        if usages and not self._recording.has_times and any(not usage.is_expected for usage in usages):
            yield Untried.NO_TIMES
        if any(usage.oom_kills for usage in usages):
            yield Untried.NEED_UNKNOWN

    def _crew(self, pods: Mapping[Identity, Pod], nodes: Sequence[Node]) -> Crew:
        members = (
            # A pod that changes is made anew, and asks the scheduler.
            Member(identity, known.workload, pod)
            if pod == known.before
            else Member(identity, known.workload, _unbound(pod))
            for identity, pod in pods.items()
            for known in (self._workloads[identity],)
        )
        return crew_of(members, nodes, self._profile)

    def _replayed(
        self, pods: Mapping[Identity, Pod], crew: Crew | None, landing: Landing | None
    ) -> dict[Identity, Fared]:
        duration_us = self._recording.duration_us
        if self.ground is not None and crew is not None and landing is not None and len(crew.pods) <= MOST_PODS:
            turns: dict[Identity, int] = {}
            running = []
            for pod in crew.pods:
                identity = crew.owners[pod.key]
                number = turns[identity] = turns.get(identity, -1) + 1
                known = self._workloads[identity].workload
                # More replicas share the same load: so many used what was recorded.
                if known.kind != DAEMON_SET and number >= (known.replicas or 1):
                    continue
                if pod.key in landing.nodes:
                    demands = self._demands(identity, pod, number)
                    running.append(RunningPod(pod, identity, landing.nodes[pod.key], demands))
            used = {running_pod.node for running_pod in running}
            machines = machines_of([node for node in self.ground.nodes if node.name in used], self.ground.config)
            return replay(running, machines, self._profile, duration_us) if running else {}
        alone, machines = room_for_all(
            (one, identity, self._demands(identity, one, number))
            for identity, pod in pods.items()
            for number in range(max(1, len(self._recording.demands.get(identity, ()))))
            for one in (_numbered(pod, identity, number),)
        )
        return replay(alone, machines, self._profile, duration_us)

    def _demands(self, identity: Identity, pod: Pod, number: int) -> Demands:
        known = self._workloads[identity]
        recorded = self._recording.demands.get(identity)
        own: dict[str, ContainerDemand] = {
            name: ContainerDemand(
                anon_bytes=constant(max(usage.memory_bytes, default=0)),
                cpu_milli=constant(max(usage.cpu_milli, default=0)),
            )
            for name, usage in known.usages.items()
            if usage.is_expected
        }
        if recorded:
            own.update(recorded[number % len(recorded)])
        return demands_of(pod, known.before, own)


def _numbered(pod: Pod, identity: Identity, number: int) -> Pod:
    """Return a pod under a name that no other has."""
    name = f"{identity.name}-{identity.kind.lower()}-{number}"
    return replace(pod, metadata=replace(pod.metadata, name=name, namespace=identity.namespace))


def _unbound(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name="")) if pod.spec.node_name else pod
