"""A VerticalPodAutoscaler of a simulated cluster: recommender, updater and admission webhook.

``controllers.vertical_recommender``, ``vertical_updater`` and ``vertical_resources`` decide; this module provides the
figures and carries it out. The model: recommender and updater run every minute from the start of the scenario, in this
order, without history from before, unless the object states its recommendation. The age of pods counts from then, too.
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import OOMKill, ResourceChange, VerticalUpdate
from podqos.controllers.eviction_api import EvictionOutcome
from podqos.controllers.vertical_recommender import INTERVAL_US, ContainerPeak, Usage, recommendations
from podqos.controllers.vertical_resources import recommended, with_recommendations
from podqos.controllers.vertical_updater import QUICK_OOM_US, Group, Update, UpdatedPod, may_update, updates
from podqos.model.autoscaling import (
    PodRecommendation,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerStatus,
)
from podqos.model.pod import Pod
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU, MEMORY, QOS_RESOURCES
from podqos.sim.cluster.actors.measuring import Measuring
from podqos.sim.cluster.actors.port import ActedCluster
from podqos.sim.cluster.controllers.controller import DRAINED, is_over
from podqos.sim.cluster.controllers.sets import SetController
from podqos.sim.cluster.evictions import answer, is_pending

_EVICTING = frozenset({"Auto", "Recreate", "InPlaceOrRecreate"})
_ADMITTING = _EVICTING | {"Initial"}
_MILLI = 1000


class VerticalActor:
    """One VerticalPodAutoscaler."""

    def __init__(
        self, cluster: ActedCluster, autoscaler: VerticalPodAutoscaler, controller: SetController, measuring: Measuring
    ) -> None:
        self._cluster = cluster
        self._autoscaler = autoscaler
        self._is_stated = bool(autoscaler.recommendations)
        self._controller = controller
        self._measuring = measuring
        self._usages: dict[str, Usage] = {}
        """By container."""
        self._peaks: dict[tuple[str, str], ContainerPeak] = {}
        """By pod and container."""
        self._quick_ooms: set[str] = set()
        """By key: pods of which a container's last run ended soon, with an OOM kill."""
        cluster.plan(controller.workload.arrives_us + INTERVAL_US, self._run)

    @property
    def name(self) -> str:
        """Its ``namespace/name``."""
        metadata = self._autoscaler.metadata
        return f"{metadata.namespace}/{metadata.name}"

    def _run(self, now_us: int) -> None:
        if is_over(self._controller.workload, now_us):
            return
        if not self._is_stated:
            self._recommend(now_us)
        if self._autoscaler.mode in _EVICTING and self._autoscaler.recommendations:
            self._update(now_us)
        self._cluster.plan(now_us + INTERVAL_US, self._run)

    # ---- the recommender -----------------------------------------------------------------------------------------

    def _recommend(self, now_us: int) -> None:
        """Add what was measured, and recommend anew."""
        stored = self._measuring.seen(now_us)
        for pod, _ in self._cluster.pods_of(self._controller.workload):
            for container in pod.spec.containers:
                cpu = stored.metric(pod.key, CPU, container.name)
                memory = stored.metric(pod.key, MEMORY, container.name)
                if cpu is None or memory is None:
                    continue
                usage, peak = self._of(pod.key, container.name)
                usage.add_cpu(cpu.milli, cpu.time_us)
                usage.add_memory(peak, memory.milli // _MILLI, memory.time_us)
        found = recommendations(self._usages)
        if found:
            status = VerticalPodAutoscalerStatus(PodRecommendation(found))
            self._autoscaler = replace(self._autoscaler, status=status)

    def _of(self, key: str, container: str) -> tuple[Usage, ContainerPeak]:
        usage = self._usages.setdefault(container, Usage())
        return usage, self._peaks.setdefault((key, container), ContainerPeak())

    def saw(self, entry: Entry) -> None:
        """Take note of an OOM kill of one of its containers."""
        if entry.kind is not Kind.OOM_KILLED or entry.pod is None or entry.container is None:
            return
        uid = entry.pod.replace("/", "_", 1)
        if uid not in self._cluster.pods:
            return
        replica = self._cluster.replica_of(uid)
        killed = isinstance(entry.because, OOMKill) and not entry.because.container_lives
        if replica.workload is not self._controller.workload or not killed:
            return
        pod, _ = self._cluster.pods[uid]
        request = next(
            (one.resources.requests.get(MEMORY, ZERO) for one in pod.spec.containers if one.name == entry.container),
            None,
        )
        if request is None:
            return
        usage, peak = self._of(entry.pod, entry.container)
        usage.add_oom(peak, request.value, entry.time_us)
        node = self._cluster.fleet.awake.get(entry.node)
        running = None if node is None else node.world.pods.get(uid)
        if running is not None and entry.time_us - running.containers[entry.container].started_us < QUICK_OOM_US:
            self._quick_ooms.add(entry.pod)

    # ---- the updater ---------------------------------------------------------------------------------------------

    def _update(self, now_us: int) -> None:
        """Evict pods whose requests are no longer right, as many as may be missing at a time."""
        cluster = self._cluster
        pods = [pod for pod, _ in cluster.pods_of(self._controller.workload) if not cluster.is_deleted(pod)]
        live = {pod.metadata.uid: self._pod(pod, now_us) for pod in pods}
        if not may_update(tuple(live.values()), self._autoscaler.spec.update_policy.min_replicas):
            return
        running = sum(not pod.is_pending for pod in live.values())
        group = Group(self._controller.replicas, running)
        for update in updates(live.values()):
            pod = live[update.uid]
            if not pod.is_pending and not group.may_change:
                continue
            if answer(cluster, pod.uid, pod.pod).outcome is not EvictionOutcome.DELETED:
                continue
            self._note(Kind.DRAINED, pod.pod, self._wanted(pod.pod), update)
            cluster.remove(pod.uid, DRAINED)
            if not pod.is_pending:
                group = group.with_change()

    def _pod(self, pod: Pod, now_us: int) -> UpdatedPod:
        started_us = self._measuring.started_us(pod.key)
        return UpdatedPod(
            pod.metadata.uid,
            pod,
            recommended(pod, self._autoscaler),
            0 if started_us is None else now_us - max(0, started_us),
            is_pending(self._cluster.record_of(pod.metadata.uid)),
            pod.key in self._quick_ooms,
        )

    def _wanted(self, pod: Pod) -> Pod:
        return with_recommendations(pod, self._autoscaler)

    # ---- the admission webhook -----------------------------------------------------------------------------------

    def admitted(self, pod: Pod) -> Pod:
        """Return a new pod as it is stored."""
        if self._autoscaler.mode not in _ADMITTING or not self._autoscaler.recommendations:
            return pod
        changed = self._wanted(pod)
        if changed is not pod:
            self._note(Kind.SCALED, pod, changed)
        return changed

    def _note(self, kind: Kind, pod: Pod, changed: Pod, update: Update | None = None) -> None:
        changes = []
        for before, after in zip(pod.spec.containers, changed.spec.containers, strict=True):
            for resource in QOS_RESOURCES:
                was, now = (one.resources.requests.get(resource) for one in (before, after))
                limits = [one.resources.limits.get(resource) for one in (before, after)]
                if was == now and limits[0] == limits[1]:
                    continue
                figures = [
                    None if amount is None else amount.milli_value if resource == CPU else amount.value
                    for amount in (was, now, *limits)
                ]
                changes.append(ResourceChange(before.name, resource, *figures))
        because = VerticalUpdate(self.name, tuple(changes), "" if update is None else update.why.value)
        _, node = self._cluster.pods.get(pod.metadata.uid, (pod, None))
        self._cluster.note(kind, pod, node, By.CONTROLLER, because)
