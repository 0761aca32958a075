"""The tolerations that pods get by default: from admission, and from the DaemonSet controller.

Whether a toleration matches a taint is the business of placement.

Sources: Kubernetes v1.36 plugin/pkg/admission/defaulttolerationseconds/admission.go,
plugin/pkg/admission/podtolerationrestriction/admission.go (not enabled by default), pkg/util/tolerations,
pkg/controller/daemon/util/daemonset_util.go (AddOrUpdateDaemonPodTolerations).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from podqos.admission.changes import FieldChange, Record, Why
from podqos.model.node import TAINT_DISK_PRESSURE as DISK_PRESSURE
from podqos.model.node import TAINT_MEMORY_PRESSURE as MEMORY_PRESSURE
from podqos.model.node import TAINT_NETWORK_UNAVAILABLE as NETWORK_UNAVAILABLE
from podqos.model.node import TAINT_NOT_READY as NOT_READY
from podqos.model.node import TAINT_PID_PRESSURE as PID_PRESSURE
from podqos.model.node import TAINT_UNREACHABLE as UNREACHABLE
from podqos.model.node import TAINT_UNSCHEDULABLE as UNSCHEDULABLE
from podqos.model.pod import Pod, QOSClass, Toleration

# --default-not-ready-toleration-seconds, --default-unreachable-toleration-seconds
LOST_NODE_SECONDS = 300


def with_default_tolerations(pod: Pod, record: Record = None) -> Pod:
    """Let the pod stay five minutes on a lost node, unless it has its own toleration."""
    added = tuple(
        Toleration(key, "Exists", "", "NoExecute", LOST_NODE_SECONDS)
        for key in (NOT_READY, UNREACHABLE)
        if not any(_speaks_of(toleration, key, "NoExecute") for toleration in pod.spec.tolerations)
    )
    if not added:
        return pod
    if record is not None:
        start = len(pod.spec.tolerations)
        record.extend(
            FieldChange(f"spec.tolerations[{start + index}]", None, toleration.key, Why.TOLERATION_OF_LOST_NODES)
            for index, toleration in enumerate(added)
        )
    return replace(pod, spec=replace(pod.spec, tolerations=pod.spec.tolerations + added))


def _speaks_of(toleration: Toleration, key: str, effect: str) -> bool:
    return toleration.key in {"", key} and toleration.effect in {"", effect}


def with_memory_pressure_toleration(pod: Pod, qos_class: QOSClass, record: Record = None) -> Pod:
    """Let a pod that is not BestEffort onto nodes under memory pressure: the PodTolerationRestriction plug-in."""
    if qos_class is QOSClass.BEST_EFFORT:
        return pod
    own = Toleration(MEMORY_PRESSURE, "Exists", "", "NoSchedule")
    after = merged(pod.spec.tolerations, (own,))
    if record is not None and own in after and own not in pod.spec.tolerations:
        path = f"spec.tolerations[{after.index(own)}]"
        record.append(FieldChange(path, None, own.key, Why.MEMORY_PRESSURE_TOLERATION))
    return replace(pod, spec=replace(pod.spec, tolerations=after))


def with_daemon_set_tolerations(pod: Pod, record: Record = None) -> Pod:
    """Add what the DaemonSet controller adds: its pods stay on lost nodes and run on nodes under pressure."""
    added = [
        Toleration(NOT_READY, "Exists", "", "NoExecute"),
        Toleration(UNREACHABLE, "Exists", "", "NoExecute"),
        Toleration(DISK_PRESSURE, "Exists", "", "NoSchedule"),
        Toleration(MEMORY_PRESSURE, "Exists", "", "NoSchedule"),
        Toleration(PID_PRESSURE, "Exists", "", "NoSchedule"),
        Toleration(UNSCHEDULABLE, "Exists", "", "NoSchedule"),
    ]
    if pod.spec.host_network:
        added.append(Toleration(NETWORK_UNAVAILABLE, "Exists", "", "NoSchedule"))
    after = _with(pod, added)
    if record is not None:
        record.extend(
            FieldChange(f"spec.tolerations[{index}]", None, toleration.key, Why.DAEMON_SET_TOLERATION)
            for index, toleration in enumerate(after.spec.tolerations)
            if toleration not in pod.spec.tolerations
        )
    return after


def _with(pod: Pod, added: Iterable[Toleration]) -> Pod:
    """Add tolerations; one for the same taint replaces the old one."""
    tolerations = list(pod.spec.tolerations)
    for toleration in added:
        known = [index for index, other in enumerate(tolerations) if _is_same(other, toleration)]
        if known:
            for index in known:
                tolerations[index] = toleration
        else:
            tolerations.append(toleration)
    return replace(pod, spec=replace(pod.spec, tolerations=tuple(tolerations)))


def _is_same(a: Toleration, b: Toleration) -> bool:
    """Whether two tolerations are for the same taint; how long they last does not matter."""
    return (a.key, a.operator, a.value, a.effect) == (b.key, b.operator, b.value, b.effect)


def merged(own: Iterable[Toleration], others: Iterable[Toleration]) -> tuple[Toleration, ...]:
    """Return both, without those that another one covers; of two equal ones the first stays."""
    together = (*own, *others)
    kept: list[Toleration] = []
    for index, toleration in enumerate(together):
        later = (other for other in together[index + 1 :] if other != toleration)
        if not any(_covers(other, toleration) for other in (*kept, *later)):
            kept.append(toleration)
    return tuple(kept)


def _covers(wide: Toleration, narrow: Toleration) -> bool:
    """Whether every taint that ``narrow`` tolerates is tolerated by ``wide`` at least as long."""
    if wide == narrow:
        return True
    every_key = not wide.key and wide.operator == "Exists"
    if narrow.key != wide.key and not every_key:
        return False
    if wide.effect not in {"", narrow.effect}:
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in {"", "Equal"}:
        return narrow.operator == "Equal" and narrow.value == wide.value
    return wide.operator == "Exists"
