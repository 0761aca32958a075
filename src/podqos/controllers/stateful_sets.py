"""What the StatefulSet controller does next: create a pod, delete one, or wait.

Every pod has an ordinal, and its replacement has the same name: nothing is created while an object of that name is
there, terminating or not. With OrderedReady a pod that is not available holds up everything after it, updates
included, so a rollout to a template that never becomes ready stays stuck even when it is rolled back.

Source: Kubernetes v1.36.4 pkg/controller/statefulset/stateful_set_control.go (updateStatefulSet, processReplica,
processCondemned, updateStatefulSetAfterInvariantEstablished) and stateful_set_utils.go (newVersionedStatefulSetPod,
completeRollingUpdate, getStatefulSetMaxUnavailable).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from podqos.controllers.int_or_percent import IntOrPercent, scaled
from podqos.controllers.set_pods import PodPhase, SetPod


class StatefulSetSpec(Struct, frozen=True, gc=False, kw_only=True):
    """What a StatefulSet wants."""

    replicas: int = 1
    start: int = 0
    """``ordinals.start``."""
    parallel: bool = False
    """``podManagementPolicy: Parallel`` instead of OrderedReady."""
    min_ready_seconds: int = 0
    on_delete: bool = False
    """``updateStrategy.type: OnDelete``: a pod is updated when somebody deletes it."""
    partition: int | None = 0
    """Pods with a lower ordinal keep their revision. None if the strategy is stated without ``rollingUpdate``: the API
    server adds a partition only where it adds the type, too."""
    max_unavailable: IntOrPercent | None = None
    """None without the feature gate MaxUnavailableStatefulSet, which is off by default: one after the other."""

    @property
    def ordinals(self) -> range:
        """The ordinals of its pods."""
        return range(self.start, self.start + self.replicas)


class StatefulSetStatus(Struct, frozen=True, gc=False, kw_only=True):
    """What the controller remembers from one sync to the next."""

    current_revision: int = 1
    update_revision: int = 1
    current_replicas: int = 0
    """Pods of the current revision that are not being deleted."""
    updated_replicas: int = 0
    ready_replicas: int = 0


class Deletion(StrEnum):
    """Why the controller deletes a pod."""

    ENDED = "Ended"
    """It failed or succeeded, and is created again under the same name."""
    SCALED_DOWN = "ScaledDown"
    UPDATED = "Updated"


class CreatePod(Struct, frozen=True, gc=False):
    """Create the pod of an ordinal."""

    ordinal: int
    revision: int


class DeletePod(Struct, frozen=True, gc=False):
    """Delete a pod."""

    pod: SetPod
    why: Deletion


class StatefulSetStep(Struct, frozen=True, gc=False):
    """The result of one sync."""

    actions: tuple[CreatePod | DeletePod, ...]
    status: StatefulSetStatus
    waits_for: str = ""
    """The pod that holds up the rest."""


def sync(spec: StatefulSetSpec, status: StatefulSetStatus, pods: Sequence[SetPod], now_us: int) -> StatefulSetStep:
    """Return what the controller does now (``updateStatefulSet``)."""
    return _Sync(spec, status, pods, now_us).step()


class _Sync:
    """One sync of a StatefulSet."""

    def __init__(self, spec: StatefulSetSpec, status: StatefulSetStatus, pods: Sequence[SetPod], now_us: int) -> None:
        self._spec = spec
        self._status = status
        self._now_us = now_us
        self._pods = pods
        self._replicas: Mapping[int, SetPod] = {pod.number: pod for pod in pods if pod.number in spec.ordinals}
        outside = (pod for pod in pods if pod.number not in spec.ordinals)
        self._condemned = sorted(outside, key=lambda pod: -pod.number)
        self._actions: list[CreatePod | DeletePod] = []
        self._waits_for = ""

    def step(self) -> StatefulSetStep:
        updates = self._may_update() and self._update()
        return StatefulSetStep(tuple(self._actions), self._counted(updates or 0), self._waits_for)

    def _may_update(self) -> bool:
        """Process replicas, then condemned pods; return whether nothing holds up an update."""
        for ordinal in self._spec.ordinals:
            if self._process(ordinal) and not self._spec.parallel:
                return False
        for pod in self._condemned:
            if self._condemn(pod) and not self._spec.parallel:
                return False
        return not self._spec.on_delete

    def _process(self, ordinal: int) -> bool:
        """Create or delete the pod of an ordinal; return whether it holds up the rest (``processReplica``)."""
        pod = self._replicas.get(ordinal)
        if pod is None:
            self._actions.append(CreatePod(ordinal, self._revision(ordinal)))
            return True
        if pod.is_terminal:
            if not pod.is_terminating:
                self._actions.append(DeletePod(pod, Deletion.ENDED))
            self._waits_for = pod.name
            return True
        if self._is_unavailable(pod):
            self._waits_for = self._waits_for or pod.name
            return True
        return False

    def _condemn(self, pod: SetPod) -> bool:
        """Delete a pod that is beyond the wanted number; return whether it holds up the rest (``processCondemned``)."""
        if pod.is_terminating:
            self._waits_for = self._waits_for or pod.name
            return True
        if self._spec.parallel or self._is_healthy(pod) or pod is self._first_unavailable():
            self._actions.append(DeletePod(pod, Deletion.SCALED_DOWN))
        else:
            self._waits_for = self._waits_for or pod.name
        return True

    def _first_unavailable(self) -> SetPod | None:
        in_range = [pod for ordinal in self._spec.ordinals if (pod := self._replicas.get(ordinal)) is not None]
        return next((pod for pod in (*in_range, *reversed(self._condemned)) if self._is_unavailable(pod)), None)

    def _revision(self, ordinal: int) -> int:
        """Return the revision of a new pod (``newVersionedStatefulSetPod``)."""
        spec, status = self._spec, self._status
        kept = status.current_replicas if spec.partition is None else spec.partition
        is_current = not spec.on_delete and ordinal < spec.start + kept
        return status.current_revision if is_current else status.update_revision

    def _is_healthy(self, pod: SetPod) -> bool:
        return pod.phase is PodPhase.RUNNING and pod.is_available(self._spec.min_ready_seconds, self._now_us)

    def _is_unavailable(self, pod: SetPod) -> bool:
        return pod.is_terminating or not self._is_healthy(pod)

    # ---- updates -------------------------------------------------------------------------------------------------

    def _update(self) -> int:
        """Delete pods of an earlier revision, from the highest ordinal down; return how many."""
        spec = self._spec
        if spec.max_unavailable is None:
            return self._update_one()
        there = [self._replicas.get(ordinal) for ordinal in spec.ordinals]
        unavailable = sum(pod is None or self._is_unavailable(pod) for pod in there)
        most = max(1, scaled(spec.max_unavailable, spec.replicas, round_up=False))
        old = [pod for pod in reversed(self._updatable()) if self._is_old(pod)]
        chosen = old[: max(0, most - unavailable)]
        self._actions += (DeletePod(pod, Deletion.UPDATED) for pod in chosen)
        return len(chosen)

    def _update_one(self) -> int:
        """Delete the highest pod of an earlier revision, unless one above it is not available."""
        for ordinal in reversed(self._spec.ordinals[self._spec.partition or 0 :]):
            pod = self._replicas.get(ordinal)
            if pod is not None and self._is_old(pod):
                self._actions.append(DeletePod(pod, Deletion.UPDATED))
                return 1
            if pod is None or self._is_unavailable(pod):
                return 0
        return 0

    def _updatable(self) -> list[SetPod]:
        ordinals = self._spec.ordinals[self._spec.partition or 0 :]
        return [pod for ordinal in ordinals if (pod := self._replicas.get(ordinal)) is not None]

    def _is_old(self, pod: SetPod) -> bool:
        return pod.revision != self._status.update_revision and not pod.is_terminating

    def _counted(self, updates: int) -> StatefulSetStatus:
        """Return the status after a sync; a rolling update is complete when all pods are updated and ready."""
        status = self._status
        there = [pod for pod in self._pods if not pod.is_terminating]
        current = sum(pod.revision == status.current_revision for pod in there) - updates
        updated = sum(pod.revision == status.update_revision for pod in there)
        ready = sum(pod.phase is PodPhase.RUNNING and pod.is_ready for pod in self._pods)
        is_complete = not self._spec.on_delete and updated == ready == len(self._pods) == self._spec.replicas
        return StatefulSetStatus(
            current_revision=status.update_revision if is_complete else status.current_revision,
            update_revision=status.update_revision,
            current_replicas=updated if is_complete else max(0, current),
            updated_replicas=updated,
            ready_replicas=ready,
        )
