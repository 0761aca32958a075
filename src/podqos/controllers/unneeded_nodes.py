"""Which nodes the cluster autoscaler removes: little used, and with pods that fit elsewhere and may be moved.

Source: kubernetes/autoscaler cluster-autoscaler-1.36.1: cluster-autoscaler/core/scaledown (eligibility/eligibility.go,
planner/planner.go, unneeded/nodes.go, budgets/budgets.go), simulator/cluster.go (SimulateNodeRemoval),
simulator/utilization/info.go, simulator/drainability/rules, utils/drain/drain.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from podqos.controllers.what_if_placed import Trial
from podqos.model.pod import Pod
from podqos.model.resources import CPU, MEMORY
from podqos.model.time_units import MINUTE_US, SECOND_US
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_view import PodView

UNNEEDED_US = 10 * MINUTE_US
"""``--scale-down-unneeded-time``."""
UTILIZATION_THRESHOLD = 0.5
"""``--scale-down-utilization-threshold``."""
DELAY_AFTER_ADD_US = 10 * MINUTE_US
"""``--scale-down-delay-after-add``."""
DELAY_AFTER_FAILURE_US = 3 * MINUTE_US
"""``--scale-down-delay-after-failure``."""
RECHECK_US = 5 * MINUTE_US
"""``--unremovable-node-recheck-timeout``."""
MOST_AT_ONCE = 10
"""``--max-scale-down-parallelism``."""
MOST_DRAINED_AT_ONCE = 1
"""``--max-drain-parallelism``."""
DELAY_AFTER_TAINT_US = 5 * SECOND_US
"""``--node-delete-delay-after-taint``."""
EVICTION_RETRY_US = 10 * SECOND_US
"""``DefaultEvictionRetryTime``."""
CHECK_GONE_US = 5 * SECOND_US
"""How often the autoscaler checks whether evicted pods are gone (``waitPodsToDisappear``)."""
MOST_EVICTION_US = 2 * MINUTE_US
"""``--max-pod-eviction-time``."""
_SYSTEM_POD_US = 60 * MINUTE_US
"""``--blocking-system-pod-distruption-timeout``."""

_SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
_REPLICATED = frozenset({"CronJob", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"})
_KUBE_SYSTEM = "kube-system"
_DAEMON_SET = "DaemonSet"


class Blocking(StrEnum):
    """Why a pod keeps its node (``BlockingPodReason``)."""

    NOT_REPLICATED = "NotReplicated"
    LOCAL_STORAGE = "LocalStorageRequested"
    NOT_SAFE = "NotSafeToEvictAnnotation"
    SYSTEM = "UnmovableKubeSystemPod"
    BUDGET = "NotEnoughPdb"
    ON_COMPLETION = "BlockedByOnCompletionPod"
    """It is to finish first; its node counts as unneeded meanwhile."""


class Unremovable(StrEnum):
    """Why a node stays (``UnremovableReason``)."""

    NOT_UNDERUTILIZED = "NotUnderutilized"
    BLOCKED_BY_POD = "BlockedByPod"
    NO_PLACE = "NoPlaceToMovePods"


class DrainSettings(Struct, frozen=True):
    """Which pods may be moved."""

    skip_local_storage: bool = True
    """``--skip-nodes-with-local-storage``."""
    skip_system_pods: bool = True
    """``--skip-nodes-with-system-pods``."""


class NodePod(Struct, frozen=True):
    """A pod on a node, with what decides whether it may be moved."""

    view: PodView
    kind: str
    """Of its workload."""
    age_us: int
    allowed_disruptions: int | None = None
    """The least that a PodDisruptionBudget of the pod allows; None without any."""

    @property
    def is_daemon(self) -> bool:
        """Whether it is bound to its node and goes with it."""
        return self.kind == _DAEMON_SET


def blocking(pod: NodePod, settings: DrainSettings) -> Blocking | None:
    """Return why a pod may not be moved, by the rules in their order (``rules.Default``)."""
    value, spec = pod.view.pod.metadata.annotations.get(_SAFE_TO_EVICT), pod.view.pod
    if pod.is_daemon or value == "true":
        return None
    if value == "on-completion":
        return Blocking.ON_COMPLETION
    if pod.kind not in _REPLICATED:
        return Blocking.NOT_REPLICATED
    if settings.skip_system_pods and pod.view.namespace == _KUBE_SYSTEM and pod.allowed_disruptions is None:
        return Blocking.SYSTEM if pod.age_us <= _SYSTEM_POD_US else None
    if value == "false":
        return Blocking.NOT_SAFE
    if settings.skip_local_storage and has_local_storage(spec):
        return Blocking.LOCAL_STORAGE
    if pod.allowed_disruptions is not None and pod.allowed_disruptions < 1:
        return Blocking.BUDGET
    return None


def has_local_storage(pod: Pod) -> bool:
    """Whether a pod has a volume on its node's disk (``HasBlockingLocalStorage``)."""
    safe = pod.metadata.annotations.get(_SAFE_VOLUMES, "").split(",")
    return any(
        volume.name not in safe
        and (volume.host_path is not None or (volume.empty_dir is not None and not volume.is_in_memory))
        for volume in pod.spec.volumes
    )


class Utilization(Struct, frozen=True):
    """How much of a node's allocatable is requested."""

    resource: str
    share: float


def utilization(state: SchedulerNode) -> Utilization:
    """Return the larger share of cpu and memory that pods request, daemons included (``utilization.Calculate``)."""
    cpu = state.requested.get(CPU, 0) / state.cpu_milli if state.cpu_milli else 0.0
    memory = state.requested.get(MEMORY, 0) / state.memory_bytes if state.memory_bytes else 0.0
    return Utilization(CPU, cpu) if cpu > memory else Utilization(MEMORY, memory)


class Removable(Struct, frozen=True):
    """A node that is not needed."""

    node: str
    used: Utilization
    moved: tuple[PodView, ...]
    """The pods that go elsewhere."""
    waits: bool = False
    """Whether a pod is to finish first."""


class Stays(Struct, frozen=True):
    """A node that is needed."""

    node: str
    why: Unremovable
    used: Utilization
    pod: str = ""
    """The pod that keeps it."""
    blocking: Blocking | None = None


class Verdicts(Struct, frozen=True):
    """Which nodes are needed."""

    removable: tuple[Removable, ...] = ()
    stays: tuple[Stays, ...] = ()


PodsOn = Callable[[SchedulerNode], Iterable[NodePod]]


class ScaleDownQuestion(Struct, frozen=True):
    """Which nodes the cluster autoscaler may remove, and by what rules."""

    candidates: tuple[str, ...]
    upcoming: tuple[str, ...]
    """Nodes that have been asked for: no pod can be moved there yet."""
    pods_on: PodsOn
    threshold: float
    settings: DrainSettings


def verdicts(asked: ScaleDownQuestion, trial: Trial) -> Verdicts:
    """Tell which nodes are needed, one after the other: pods of those found unneeded go to others in ``trial``."""
    pods_on, settings = asked.pods_on, asked.settings
    removable: list[Removable] = []
    stays: list[Stays] = []
    gone = set(asked.upcoming)
    little: list[tuple[str, Utilization]] = []
    for name in asked.candidates:
        used = utilization(trial.nodes[name])
        if used.share > asked.threshold:
            stays.append(Stays(name, Unremovable.NOT_UNDERUTILIZED, used))
        else:
            little.append((name, used))
    for name, used in little:
        on_node = [(pod, blocking(pod, settings)) for pod in pods_on(trial.nodes[name])]
        kept = [(pod, why) for pod, why in on_node if why is not None and why is not Blocking.ON_COMPLETION]
        if kept:
            pod, why = kept[0]
            stays.append(Stays(name, Unremovable.BLOCKED_BY_POD, used, pod.view.key, why))
            continue
        waits = any(why is Blocking.ON_COMPLETION for _, why in on_node)
        moved = tuple(pod.view for pod, why in on_node if not pod.is_daemon and why is None)
        if _move(moved, name, trial, gone):
            gone.add(name)
            removable.append(Removable(name, used, moved, waits))
        else:
            stays.append(Stays(name, Unremovable.NO_PLACE, used))
    return Verdicts(tuple(removable), tuple(stays))


def _move(views: Sequence[PodView], name: str, trial: Trial, gone: set[str]) -> bool:
    """Move pods to other nodes; if one fits nowhere, all stay where they were (``findPlaceFor``)."""
    state = trial.nodes[name]
    for view in views:
        state.remove(view)
    placed: list[tuple[PodView, str]] = []
    others = frozenset(other for other in trial.nodes if other != name and other not in gone)
    for view in views:
        where = trial.first_fit(view, others)
        if where is None:
            for moved, there in placed:
                trial.nodes[there].remove(moved)
            for back in views:
                state.add(back)
            return False
        placed.append((view, where))
    return True


def due(
    unneeded: Mapping[str, int], removable: Sequence[Removable], unneeded_us: int, now_us: int
) -> tuple[Removable, ...]:
    """Return the nodes that have been unneeded for longer than that, empty ones first (``RemovableAt``)."""
    ready = [node for node in removable if unneeded[node.node] + unneeded_us < now_us and not node.waits]
    return tuple(sorted(ready, key=lambda node: bool(node.moved)))


def cropped(nodes: Sequence[Removable], empty_now: int, drained_now: int) -> tuple[Removable, ...]:
    """Return as many nodes as may be removed at the same time (``CropNodes``)."""
    empty = [node for node in nodes if not node.moved][: max(0, MOST_AT_ONCE - empty_now - drained_now)]
    room = MOST_AT_ONCE - empty_now - drained_now - len(empty)
    drained = [node for node in nodes if node.moved][: max(0, min(room, MOST_DRAINED_AT_ONCE - drained_now))]
    return (*empty, *drained)
