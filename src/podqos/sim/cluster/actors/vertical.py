"""A VerticalPodAutoscaler of a simulated cluster: recommender, updater and admission webhook.

``controllers.vertical_recommender``, ``vertical_updater`` and ``vertical_resources`` decide; this module provides the
figures and carries it out. The model: recommender and updater run every minute from the start of the scenario, in this
order, without history from before, unless the object states its recommendation. The age of pods counts from then, too.
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.admission.resize import validate_resize
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import OOMKill, ResizePending, ResizeStatus, ResourceChange, VerticalUpdate
from podqos.controllers.eviction_api import EvictionOutcome
from podqos.controllers.vertical_recommender import INTERVAL_US, ContainerPeak, Usage, recommendations
from podqos.controllers.vertical_resources import recommended, with_recommendations
from podqos.controllers.vertical_updater import (
    DEFERRED_US,
    QUICK_OOM_US,
    Group,
    Update,
    UpdatedPod,
    may_update,
    updates,
)
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

_IN_PLACE = "InPlaceOrRecreate"
_EVICTING = frozenset({"Auto", "Recreate", _IN_PLACE})
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
        self._asked_us: dict[str, int] = {}
        """By uid of a pod that is to be resized in place: since when."""
        self._pending: dict[str, ResizeStatus] = {}
        """By uid: why it has not been resized yet."""
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
        """Take note of what became of a resize, and of an OOM kill of one of its containers."""
        if entry.pod is None:
            return
        uid = self._cluster.uid_of(entry.pod)
        if entry.kind is Kind.RESIZED:
            self._asked_us.pop(uid, None)
            self._pending.pop(uid, None)
        elif isinstance(entry.because, ResizePending) and uid in self._asked_us:
            self._pending[uid] = entry.because.status
        elif entry.kind is Kind.OOM_KILLED and entry.container is not None:
            self._saw_oom_kill(entry, uid, entry.container)

    def _saw_oom_kill(self, entry: Entry, uid: str, name: str) -> None:
        if uid not in self._cluster.pods:
            return
        replica = self._cluster.replica_of(uid)
        killed = isinstance(entry.because, OOMKill) and not entry.because.container_lives
        if replica.workload is not self._controller.workload or not killed:
            return
        pod, _ = self._cluster.pods[uid]
        request = next(
            (one.resources.requests.get(MEMORY, ZERO) for one in pod.spec.containers if one.name == name),
            None,
        )
        if request is None:
            return
        usage, peak = self._of(pod.key, name)
        usage.add_oom(peak, request.value, entry.time_us)
        node = self._cluster.fleet.awake.get(entry.node)
        running = None if node is None else node.world.pods.get(uid)
        if running is not None and entry.time_us - running.containers[name].started_us < QUICK_OOM_US:
            self._quick_ooms.add(pod.key)

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
            is_in_place = self._autoscaler.mode == _IN_PLACE and not self._has_failed(update.uid, now_us)
            may_change = group.may_change or (pod.is_pending and not is_in_place)
            if not may_change or (is_in_place and (pod.is_pending or update.uid in self._asked_us)):
                continue
            is_changed = is_in_place and self._resize(update, now_us)
            if (is_changed or self._evict(update)) and not pod.is_pending:
                group = group.with_change()

    def _has_failed(self, uid: str, now_us: int) -> bool:
        """Whether a resize in place is given up, and the pod evicted instead (``CanEvictInPlacingPod``)."""
        status = self._pending.get(uid)
        if status is ResizeStatus.DEFERRED:
            return now_us - self._asked_us.get(uid, now_us) > DEFERRED_US
        return status is not None

    def _resize(self, update: Update, now_us: int) -> bool:
        """Resize a pod in place, unless the API server rejects that."""
        pod, _ = self._cluster.pods[update.uid]
        wanted = self._wanted(pod)
        if validate_resize(pod, wanted, self._cluster.scenario.profile):
            return False
        if self._cluster.resize_refusal(update.uid, wanted) is not None:
            return False
        self._note(Kind.SCALED, pod, wanted, update)
        self._asked_us[update.uid] = now_us
        self._cluster.resize(update.uid, wanted)
        return True

    def _evict(self, update: Update) -> bool:
        """Evict a pod, if its disruption budgets allow that."""
        cluster = self._cluster
        pod, _ = cluster.pods[update.uid]
        if answer(cluster, update.uid, pod).outcome is not EvictionOutcome.DELETED:
            return False
        self._note(Kind.DRAINED, pod, self._wanted(pod), update)
        cluster.remove(update.uid, DRAINED)
        return True

    def _pod(self, pod: Pod, now_us: int) -> UpdatedPod:
        started_us = self._measuring.started_us(pod.key)
        record = self._cluster.record_of(pod.metadata.uid)
        return UpdatedPod(
            pod.metadata.uid,
            pod if record is None else record.pod,
            recommended(pod, self._autoscaler),
            0 if started_us is None else now_us - max(0, started_us),
            is_pending(record),
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
