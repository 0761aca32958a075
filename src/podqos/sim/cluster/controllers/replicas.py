"""Keeping a number of pods running: what a pod that is evicted, rejected, preempted or lost is replaced by.

The replacement comes after a delay, with another name and the same demand.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.agent.journal import By, Kind
from podqos.agent.reasons import ReplacementFor
from podqos.agent.state import Phase
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.cluster.controllers.controller import DELETED, ControlledCluster, PodEnd, is_over
from podqos.sim.scenario.replicas import Replica, is_bound, is_there_first, pod_of, replacement
from podqos.sim.scenario.scenario import ScenarioWorkload


class KeptReplicas:
    """The pods of one workload, as a ReplicaSet keeps them."""

    watches_status = False
    waits_for_objects = False

    def __init__(self, cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> None:
        self._cluster = cluster
        self._index = index
        self.workload = workload

    def begin(self, now_us: int) -> None:
        """Create the first pods."""
        cluster, workload = self._cluster, self.workload

        def replica(number: int) -> Replica:
            return self.replica(number, first=not now_us)

        if is_there_first(workload):
            for number, name in cluster.fleet.first_pods(workload):
                cluster.create(pod_of(workload, number), replica(number), name)
        elif is_bound(workload):
            for number, name in cluster.fleet.places(workload):
                cluster.create(pod_of(workload, number), replica(number), name)
        else:
            for number, pod in enumerate(self.first_pods()):
                cluster.create(pod, replica(number))

    def replica(self, number: int, generation: int = 0, *, first: bool = False) -> Replica:
        """Return where a pod comes from; ``first`` is one of those present at the start."""
        order = (self._index, number) if first else self._cluster.next_order()
        return Replica(self.workload, number, order, generation)

    def first_pods(self) -> Iterator[Pod]:
        """Yield the first pods of a workload that the scheduler places."""
        return (pod_of(self.workload, number) for number in range(self.workload.replicas))

    def changed(self, pod: Pod, now_us: int) -> None:
        """Nothing follows from the status of a pod that runs."""

    def deleted(self, end: PodEnd, now_us: int) -> None:
        """Nothing follows before the pod has stopped."""

    def node_joined(self, name: str, now_us: int) -> None:
        """Nothing follows from a node that joins: the scheduler knows it."""

    def node_removed(self, name: str, now_us: int) -> None:
        """Nothing follows from a node that is gone."""

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Replace a pod, unless it has succeeded or is no longer wanted."""
        if not self.workload.recreate or is_over(self.workload, now_us) or end.why in {DELETED, Phase.SUCCEEDED}:
            return
        wait_us = self.wait_us(end, now_us)
        cluster = self._cluster
        cluster.await_pod(end.pod)

        def make(now_us: int) -> None:
            cluster.replaced(end.pod)
            if is_over(self.workload, now_us) or not self.wants(end, now_us):
                return
            replica = self.replica(end.replica.number, end.replica.generation + 1)
            replica = replace(replica, revision=end.replica.revision)
            made = replacement(end.pod, replica)
            # A template that names its node needs no scheduler: the replacement is bound where the pod was.
            place = end.node if end.pod.spec.node_name else None
            because = ReplacementFor(end.pod.key, end.why, wait_us // SECOND_US)
            cluster.note(Kind.REPLACED, made, place, By.CONTROLLER, because)
            cluster.create(made, replica, place)
            self.made(made)

        cluster.plan(now_us + wait_us + cluster.scenario.options.recreate_us, make)

    def wants(self, end: PodEnd, now_us: int) -> bool:
        """Whether a pod that has ended is still to be replaced."""
        del end, now_us
        return True

    def made(self, pod: Pod) -> None:
        """Take note of a pod that replaces another."""

    def wait_us(self, end: PodEnd, now_us: int) -> int:
        """Return how long the controller waits before it replaces a pod."""
        del end, now_us
        return 0
