"""A drain of a simulated node, as kubectl does it: ``controllers.drain`` and ``controllers.eviction_api`` decide."""

from __future__ import annotations

from functools import partial
from typing import Protocol

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import Because, BudgetRefuses, DrainResult
from podqos.controllers.drain import POLL_SECONDS, RETRY_SECONDS, verdict
from podqos.controllers.eviction_api import EvictionAnswer, EvictionOutcome
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.placement.workloads import POD
from podqos.sim.cluster.control_plane import ControlPlane
from podqos.sim.cluster.controllers.controller import DRAINED
from podqos.sim.cluster.evictions import BudgetedCluster, answer
from podqos.sim.engine.event_queue import Action
from podqos.sim.scenario.happenings import Drained
from podqos.sim.scenario.scenario import ScenarioWorkload


class DrainedCluster(BudgetedCluster, Protocol):
    """What a drain knows of the cluster, and does to it."""

    control_plane: ControlPlane

    def remove(self, uid: str, why: str, grace_seconds: int | None = None) -> None:
        """Delete a pod."""

    def plan(self, time_us: int, action: Action) -> None:
        """Plan something for later."""

    def note(self, kind: Kind, pod: Pod, node: str | None, by: By, because: Because | None = None) -> None:
        """Write a journal entry about a pod."""

    def write(self, entry: Entry) -> None:
        """Write a journal entry."""


class Drain:
    """The drain of one node."""

    def __init__(self, cluster: DrainedCluster, drained: Drained) -> None:
        self._cluster = cluster
        self._node = drained.node
        self._settings = drained.settings
        self._began_us = drained.at_us
        self._left: set[str] = set()
        """The uids of pods that are still there."""
        self._evicted = 0
        self._refused: dict[str, str] = {}
        """By uid: the last refusal of an eviction."""
        self._errors: list[str] = []

    def begin(self, now_us: int) -> None:
        """Evict all pods that a drain evicts, unless one of them must not be removed."""
        cluster = self._cluster
        cluster.fleet.get(self._node)
        here = [(uid, replica) for uid, replica in cluster.in_order() if cluster.pods[uid][1] == self._node]
        errors: dict[str, list[str]] = {}
        for uid, replica in here:
            pod, _ = cluster.pods[uid]
            decided = verdict(pod, self._settings, controller=_controller(replica.workload))
            if decided.error:
                errors.setdefault(decided.error, []).append(pod.key)
            elif decided.evicts:
                self._left.add(uid)
        self._errors = [f"cannot delete {what}: {', '.join(pods)}" for what, pods in errors.items()]
        if errors or not self._left:
            self._end(now_us)
            return
        for uid in [uid for uid, _ in here if uid in self._left]:
            self._evict(uid, now_us)

    def _evict(self, uid: str, now_us: int) -> None:
        cluster = self._cluster
        if uid not in cluster.pods:
            self._gone(uid, now_us)
            return
        pod, _ = cluster.pods[uid]
        if self._is_late(now_us):
            self._fail(uid, f'error when evicting pods/"{pod.metadata.name}": global timeout reached', now_us)
            return
        answer = self._answer(uid, pod)
        match answer.outcome:
            case EvictionOutcome.DELETED:
                self._evicted += 1
                if not cluster.is_deleted(pod):
                    cluster.note(Kind.DRAINED, pod, self._node, By.USER)
                    cluster.remove(uid, DRAINED, self._settings.grace_period_seconds)
                self._await(uid, now_us)
            case EvictionOutcome.TOO_MANY_REQUESTS:
                self._refuse(uid, pod, answer)
                cluster.plan(now_us + RETRY_SECONDS * SECOND_US, partial(self._evict, uid))
            case EvictionOutcome.FAILED:
                self._fail(uid, f'error when evicting pods/"{pod.metadata.name}": {answer.message}', now_us)

    def _answer(self, uid: str, pod: Pod) -> EvictionAnswer:
        if self._settings.disable_eviction:
            return EvictionAnswer(EvictionOutcome.DELETED)
        return answer(self._cluster, uid, pod)

    def _refuse(self, uid: str, pod: Pod, answer: EvictionAnswer) -> None:
        """Note a refusal, unless it is the same as the last."""
        if self._refused.get(uid) == answer.message:
            return
        self._refused[uid] = answer.message
        status = answer.status
        assert status is not None
        because = BudgetRefuses(
            status.budget.metadata.name, status.healthy, status.desired, answer.message, RETRY_SECONDS
        )
        self._cluster.note(Kind.DRAIN_BLOCKED, pod, self._node, By.USER, because)

    def _await(self, uid: str, now_us: int) -> None:
        """Check every second whether a pod is gone."""
        if uid not in self._cluster.pods:
            self._gone(uid, now_us)
        elif self._is_late(now_us):
            pod, _ = self._cluster.pods[uid]
            self._fail(uid, f'error when waiting for pod "{pod.metadata.name}": context deadline exceeded', now_us)
        else:
            self._cluster.plan(now_us + POLL_SECONDS * SECOND_US, partial(self._await, uid))

    def _is_late(self, now_us: int) -> bool:
        timeout_us = self._settings.timeout_us
        return bool(timeout_us) and now_us >= self._began_us + timeout_us

    def _fail(self, uid: str, message: str, now_us: int) -> None:
        self._errors.append(message)
        self._gone(uid, now_us)

    def _gone(self, uid: str, now_us: int) -> None:
        self._left.discard(uid)
        if not self._left:
            self._end(now_us)

    def _end(self, now_us: int) -> None:
        result = DrainResult(self._evicted, (now_us - self._began_us) / SECOND_US, tuple(self._errors))
        kind = Kind.DRAIN_BLOCKED if self._errors else Kind.DRAINED
        self._cluster.write(Entry(now_us, self._node, kind, None, None, By.USER, result))


def _controller(workload: ScenarioWorkload) -> str | None:
    """Return the kind of a workload's controller; a pod by itself has none."""
    return None if workload.kind == POD else workload.kind
