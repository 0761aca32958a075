"""Which node group the cluster autoscaler enlarges for pods that no node takes, and by how many nodes.

Source: kubernetes/autoscaler cluster-autoscaler-1.36.1: cluster-autoscaler/core/static_autoscaler.go (RunOnce,
allPodsAreNew, filterOutYoungPods), core/podlistprocessor (filter_out_schedulable.go, filter_out_daemon_sets.go,
filter_out_expendable.go), core/scaleup/orchestrator/orchestrator.go (ScaleUp, SchedulablePodGroups),
estimator/binpacking_estimator.go (Estimate), estimator/decreasing_pod_orderer.go, expander/waste/waste.go, mostpods,
leastnodes and priority.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from podqos.controllers.what_if_placed import Trial
from podqos.model.effective import pod_requests
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU, MEMORY
from podqos.model.time_units import SECOND_US
from podqos.placement.node_state import SchedulerNode
from podqos.placement.pod_view import PodView

SCAN_INTERVAL_US = 10 * SECOND_US
"""``--scan-interval``."""
VERY_NEW_US = 2 * SECOND_US
"""If all pods that wait are younger, the autoscaler waits for more (``unschedulablePodTimeBuffer``)."""
EXPENDABLE_BELOW = -10
"""``--expendable-pods-priority-cutoff``: pods of a lower priority neither add nor keep a node."""
MOST_NODES_AT_ONCE = 1000
"""``--max-nodes-per-scaleup``."""


class Expander(StrEnum):
    """How one of several node groups is chosen."""

    LEAST_WASTE = "least-waste"
    MOST_PODS = "most-pods"
    LEAST_NODES = "least-nodes"
    PRIORITY = "priority"


class GroupState(Struct, frozen=True):
    """A node group."""

    name: str
    size: int
    """Its nodes, with those that have been asked for."""
    maximum: int
    new_node: Callable[[int], SchedulerNode]
    """Makes an empty node of the group, with the DaemonSets' pods; the number makes its name unique."""
    priority: int = 0


class Option(Struct, frozen=True):
    """How a group could help."""

    group: str
    nodes: int
    pods: tuple[PodView, ...]
    """The pods that would go to these nodes."""
    wasted_cpu: float
    wasted_memory: float
    priority: int = 0

    @property
    def waste(self) -> float:
        """What would be left over, as the expander compares it."""
        return self.wasted_cpu + self.wasted_memory


class NoHelp(StrEnum):
    """Why a group does not help."""

    MAX_SIZE = "MaxSizeReached"
    DOES_NOT_FIT = "DoesNotFit"
    """An empty node of the group takes none of the pods."""


class ScaleUp(Struct, frozen=True):
    """What is to be done for pods that wait."""

    option: Option | None = None
    """The group that is enlarged."""
    options: tuple[Option, ...] = ()
    """All that would help."""
    refused: tuple[tuple[str, NoHelp], ...] = ()
    """By name of a group: why it does not help."""


def to_help(pods: Iterable[PodView], trial: Trial) -> list[PodView]:
    """Return the pods that no node takes, not even one that has been asked for.

    Pods of higher priority are tried first, and take their room in ``trial``.
    """
    names = frozenset(trial.nodes)
    wanted = [view for view in pods if view.priority >= EXPENDABLE_BELOW]
    wanted.sort(key=lambda view: -view.priority)
    return [view for view in wanted if trial.first_fit(view, names) is None]


def scale_up(pods: Sequence[PodView], groups: Sequence[GroupState], trial: Trial, expander: Expander) -> ScaleUp:
    """Decide which group to enlarge for pods that no node takes."""
    alike = _alike(pods)
    options: list[Option] = []
    refused: list[tuple[str, NoHelp]] = []
    for group in groups:
        if group.size >= group.maximum:
            refused.append((group.name, NoHelp.MAX_SIZE))
            continue
        option = _option(group, alike, trial)
        if option is None:
            refused.append((group.name, NoHelp.DOES_NOT_FIT))
        else:
            options.append(option)
    return ScaleUp(_best(options, expander), tuple(options), tuple(refused))


def _alike(pods: Iterable[PodView]) -> list[list[PodView]]:
    """Return pods that are equal to the scheduler together (``BuildPodGroups``)."""
    groups: dict[object, list[PodView]] = {}
    for view in pods:
        groups.setdefault(view.likeness, []).append(view)
    return list(groups.values())


def _option(group: GroupState, alike: Sequence[list[PodView]], trial: Trial) -> Option | None:
    """Return how many nodes a group needs for the pods that suit it."""
    sample = group.new_node(0)
    with_sample = trial.copy()
    with_sample.add_node(sample)
    suited = [pods for pods in alike if with_sample.fits(pods[0], sample.name)]
    suited.sort(key=lambda pods: -_size(pods[0], sample))
    estimation = _Estimation(group, trial.copy())
    for pods in suited:
        estimation.pack(pods)
    if not estimation.packed:
        return None
    nodes = len(estimation.used)
    capacity = sample.node.status.capacity
    cpu, memory = capacity[CPU].milli_value * nodes, capacity[MEMORY].value * nodes
    requests = [pod_requests(view.pod) for view in estimation.packed]
    asked_cpu = sum(request.get(CPU, ZERO).milli_value for request in requests)
    asked_memory = sum(request.get(MEMORY, ZERO).value for request in requests)
    wasted = (cpu - asked_cpu) / cpu, (memory - asked_memory) / memory
    return Option(group.name, nodes, tuple(estimation.packed), *wasted, priority=group.priority)


def _size(view: PodView, node: SchedulerNode) -> float:
    """Return how much of a node a pod takes; the largest are packed first (``calculatePodScore``)."""
    requests = pod_requests(view.pod)
    cpu = requests.get(CPU, ZERO).milli_value / node.cpu_milli if node.cpu_milli else 0.0
    memory = requests.get(MEMORY, ZERO).value / node.memory_bytes if node.memory_bytes else 0.0
    return cpu + memory


class _Estimation:
    """Packs pods onto new nodes of a group, first fit (``BinpackingNodeEstimator.Estimate``)."""

    def __init__(self, group: GroupState, trial: Trial) -> None:
        self._group = group
        self._trial = trial
        self._new: list[str] = []
        self._most = min(group.maximum - group.size, MOST_NODES_AT_ONCE)
        self.used: set[str] = set()
        """The new nodes with at least one pod."""
        self.packed: list[PodView] = []

    def pack(self, pods: Sequence[PodView]) -> None:
        """Pack pods that are alike: on new nodes as long as they fit, then on further ones."""
        index = 0
        while index < len(pods) and self._place_anywhere(pods[index]):
            index += 1
        for view in pods[index:]:
            if self._new and self._place_last(view):
                continue
            if self._new and self._new[-1] not in self.used:
                return  # an empty node does not take it
            if len(self._new) >= self._most:
                return
            node = self._group.new_node(len(self._new))
            self._trial.add_node(node)
            self._new.append(node.name)
            if not self._place_last(view):
                return

    def _place_anywhere(self, view: PodView) -> bool:
        name = self._trial.first_fit(view, self._new)
        return name is not None and self._packed(view, name)

    def _place_last(self, view: PodView) -> bool:
        name = self._new[-1]
        return self._trial.put(view, name) and self._packed(view, name)

    def _packed(self, view: PodView, name: str) -> bool:
        self.used.add(name)
        self.packed.append(view)
        return True


def _best(options: Sequence[Option], expander: Expander) -> Option | None:
    """Return the best option; of equal ones the first listed (upstream takes one at random)."""
    if not options:
        return None
    match expander:
        case Expander.LEAST_WASTE:
            return min(options, key=lambda option: option.waste)
        case Expander.MOST_PODS:
            return max(options, key=lambda option: len(option.pods))
        case Expander.LEAST_NODES:
            return min(options, key=lambda option: option.nodes)
        case Expander.PRIORITY:
            return max(options, key=lambda option: option.priority)
