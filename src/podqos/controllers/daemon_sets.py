"""How a DaemonSet moves its nodes from one template to another.

Without surge, old pods are deleted as long as fewer than maxUnavailable nodes lack an available pod; a node whose old
pod is not available is updated at once. With maxSurge a new pod starts next to the old one, which is deleted when the
new one is available.

Source: Kubernetes v1.36.4 pkg/controller/daemon/update.go (rollingUpdate, findUpdatedPodsOnNode,
updatedDesiredNodeCounts), daemon_controller.go (podsShouldBeOnNode) and util/daemonset_util.go (UnavailableCount,
SurgeCount). Upstream goes through the nodes in random order; here in the order of the scenario.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from podqos.controllers.int_or_percent import IntOrPercent, scaled
from podqos.controllers.set_pods import SetPod


class DaemonSetSpec(Struct, frozen=True, gc=False, kw_only=True):
    """What a DaemonSet wants."""

    on_delete: bool = False
    """``updateStrategy.type: OnDelete``: a pod is updated when somebody deletes it."""
    max_surge: IntOrPercent = 0
    max_unavailable: IntOrPercent = 1
    min_ready_seconds: int = 0

    def counts(self, nodes: int) -> tuple[int, int]:
        """Return the surge and the unavailability on so many nodes, both rounded up."""
        surge = scaled(self.max_surge, nodes, round_up=True)
        unavailable = scaled(self.max_unavailable, nodes, round_up=True)
        return surge, unavailable or (0 if surge else 1)


class DaemonSetStep(Struct, frozen=True, gc=False):
    """The result of one sync."""

    delete: tuple[SetPod, ...] = ()
    create: tuple[str, ...] = ()
    """The nodes that get a pod of the new revision."""


class DaemonSetView(Struct, frozen=True, gc=False):
    """A DaemonSet and its pods."""

    spec: DaemonSetSpec
    revision: int
    """The newest one."""
    pods: Mapping[str, Sequence[SetPod]]
    """By node, for every node that is to run one, in order; terminating ones included."""
    now_us: int = 0

    def is_available(self, pod: SetPod) -> bool:
        """Whether a pod has been ready for long enough."""
        return pod.is_available(self.spec.min_ready_seconds, self.now_us)


def sync(view: DaemonSetView) -> DaemonSetStep:
    """Return what the controller does now: first every node gets its pod, then nodes are updated."""
    missing = _managed(view)
    if missing.delete or missing.create or view.spec.on_delete:
        return missing
    surge, unavailable = view.spec.counts(len(view.pods))
    return _surging(view, surge) if surge else _replacing(view, unavailable)


def _managed(view: DaemonSetView) -> DaemonSetStep:
    """Return which nodes lack a pod, and which pods are superfluous (``podsShouldBeOnNode``).

    Failed pods are removed elsewhere, after a back-off. Without surge a node is empty when even the terminating pod is
    gone.
    """
    has_surge = bool(view.spec.counts(len(view.pods))[0]) and not view.spec.on_delete
    create, delete = [], []
    for node, pods in view.pods.items():
        there = [pod for pod in pods if pod.is_active]
        if not pods or (has_surge and not there):
            create.append(node)
        new, old = _new_and_old(view, there)
        if has_surge and new is not None and old is not None and (not old.is_ready or view.is_available(new)):
            delete.append(old)
    return DaemonSetStep(tuple(delete), tuple(create))


def _new_and_old(view: DaemonSetView, there: Sequence[SetPod]) -> tuple[SetPod | None, SetPod | None]:
    new = next((pod for pod in there if pod.revision == view.revision), None)
    return new, next((pod for pod in there if pod.revision != view.revision), None)


def _replacing(view: DaemonSetView, most: int) -> DaemonSetStep:
    """Delete old pods: all that are not available, others as far as ``maxUnavailable`` allows."""
    unavailable, allowed, candidates = 0, [], []
    for pods in view.pods.values():
        new, old = _new_and_old(view, [pod for pod in pods if not pod.is_terminating])
        if new is None and old is not None and view.is_available(old):
            candidates.append(old)
            continue
        if new is None and old is not None:
            allowed.append(old)
        if new is None or old is not None or not view.is_available(new):
            unavailable += 1
    return DaemonSetStep((*allowed, *candidates[: max(0, most - unavailable)]))


def _surging(view: DaemonSetView, most: int) -> DaemonSetStep:
    """Create new pods next to old ones: where those are not available, elsewhere as far as ``maxSurge`` allows."""
    surging, allowed, candidates = 0, [], []
    for node, pods in view.pods.items():
        new, old = _new_and_old(view, [pod for pod in pods if not pod.is_terminating])
        if old is None:
            continue
        if new is not None:
            surging += not view.is_available(new)
        elif view.is_available(old):
            candidates.append(node)
        else:
            allowed.append(node)
    return DaemonSetStep(create=(*allowed, *candidates[: max(0, most - surging)]))
