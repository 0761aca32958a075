"""Keeping a number of pods running: what a pod that is evicted, rejected, preempted or lost is replaced by.

The replacement comes after a delay, with another name and the same demand.
"""

from __future__ import annotations

from collections.abc import Iterator

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

    def __init__(self, cluster: ControlledCluster, index: int, workload: ScenarioWorkload) -> None:
        self._cluster = cluster
        self._index = index
        self.workload = workload
        self.replicas = workload.replicas
        """How many pods it is set to."""
        self._made = workload.replicas
        """How many pods it has created, without replacements."""
        self._to_make = 0
        """How many replacements are about to be created."""
        self._is_scaled = False

    def begin(self, now_us: int) -> None:
        """Create the first pods."""
        cluster, workload = self._cluster, self.workload

        def replica(number: int) -> Replica:
            return Replica(workload, number, cluster.next_order() if now_us else (self._index, number))

        if is_there_first(workload):
            for number, name in cluster.fleet.first_pods(workload):
                cluster.create(pod_of(workload, number), replica(number), name)
        elif is_bound(workload):
            for number, name in cluster.fleet.places(workload):
                cluster.create(pod_of(workload, number), replica(number), name)
        else:
            for number, pod in enumerate(self.first_pods()):
                cluster.create(pod, replica(number))

    def first_pods(self) -> Iterator[Pod]:
        """Yield the first pods of a workload that the scheduler places."""
        return (pod_of(self.workload, number) for number in range(self.workload.replicas))

    def changed(self, pod: Pod, now_us: int) -> None:
        """Nothing follows from the status of a pod that runs."""

    def node_joined(self, name: str, now_us: int) -> None:
        """Nothing follows from a node that joins: the scheduler knows it."""

    def ended(self, end: PodEnd, now_us: int) -> None:
        """Replace a pod, unless it has succeeded or is no longer wanted."""
        if not self.workload.recreate or is_over(self.workload, now_us) or end.why in {DELETED, Phase.SUCCEEDED}:
            return
        wait_us = self.wait_us(end, now_us)
        cluster = self._cluster
        cluster.await_pod(end.pod)
        self._to_make += 1

        def make(now_us: int) -> None:
            cluster.replaced(end.pod)
            self._to_make -= 1
            if is_over(self.workload, now_us) or self._is_too_many():
                return
            replica = Replica(self.workload, end.replica.number, cluster.next_order(), end.replica.generation + 1)
            made = replacement(end.pod, replica)
            # A template that names its node needs no scheduler: the replacement is bound where the pod was.
            place = end.node if end.pod.spec.node_name else None
            because = ReplacementFor(end.pod.key, end.why, wait_us // SECOND_US)
            cluster.note(Kind.REPLACED, made, place, By.CONTROLLER, because)
            cluster.create(made, replica, place)

        cluster.plan(now_us + wait_us + cluster.scenario.options.recreate_us, make)

    def node_removed(self, name: str) -> None:
        """Nothing follows from a node that is gone."""

    def scale(self, replicas: int, now_us: int) -> None:
        """Set another number of pods: create the missing ones, delete those that are too many."""
        del now_us
        cluster, workload = self._cluster, self.workload
        self.replicas, self._is_scaled = replicas, True
        cluster.fleet.wake_all_with(workload)
        pods = self._kept()
        for _ in range(replicas - len(pods) - self._to_make):
            cluster.create(pod_of(workload, self._made), Replica(workload, self._made, cluster.next_order()))
            self._made += 1
        # Pending ones first, then the youngest.
        pods.reverse()
        pods.sort(key=lambda kept: kept[1] is not None)
        for pod, name in pods[: max(0, len(pods) - replicas)]:
            cluster.note(Kind.DELETED, pod, name, By.CONTROLLER)
            cluster.remove(pod.metadata.uid, DELETED)

    def _kept(self) -> list[tuple[Pod, str | None]]:
        """Return the pods that are there and not being deleted."""
        cluster = self._cluster
        return [(pod, name) for pod, name in cluster.pods_of(self.workload) if not cluster.is_deleted(pod)]

    def _is_too_many(self) -> bool:
        """Whether a replacement is one pod too many, because the number was lowered."""
        return self._is_scaled and len(self._kept()) + self._to_make >= self.replicas

    def wait_us(self, end: PodEnd, now_us: int) -> int:
        """Return how long the controller waits before it replaces a pod."""
        del end, now_us
        return 0
