"""The cluster autoscaler of a scenario file."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from podqos.controllers.node_groups import Expander
from podqos.controllers.unneeded_nodes import DrainSettings
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import FieldPath
from podqos.model.quantity import NANOS, Quantity
from podqos.model.time_units import SECOND_US
from podqos.sim.scenario.node_groups import AutoscaledGroup, ClusterAutoscaler, ScaleDownSettings
from podqos.sim.scenario.scenario import NodeGroup, ScenarioWorkload
from podqos.sim.scenario_format.parts import Part
from podqos.sim.scenario_format.shape_document import Duration, Report

MOST_NODES = 100_000

_PATH: FieldPath = ("spec", "clusterAutoscaler")


class NodeGroupPart(Part, frozen=True):
    """A group of nodes that grows and shrinks."""

    nodes: str = ""
    """The name of an entry of spec.nodes: its machine is the template."""
    initial: int | None = None
    """How many there are at first; absent: the count of that entry."""
    min: int = 0
    max: int | None = None
    provision: Duration | None = None
    """From the decision until a node has joined; absent: 1m."""
    priority: int = 0
    """For the expander priority: the highest is taken."""


class ScaleDownPart(Part, frozen=True):
    """When nodes are removed."""

    enabled: bool = True
    unneeded_time: Duration | None = None
    """How long a node is unneeded before it is removed; absent: 10m."""
    utilization_threshold: Quantity | None = None
    """The share of requested cpu or memory up to which a node may be unneeded; absent: 0.5."""
    delay_after_add: Duration | None = None
    """No removal for so long after nodes were added; absent: 10m."""
    delay_after_delete: Duration | None = None
    """No removal for so long after another; absent: 0s."""
    skip_nodes_with_local_storage: bool = True
    """Whether pods with emptyDir or hostPath volumes keep their node."""
    skip_nodes_with_system_pods: bool = True
    """Whether pods in kube-system keep their node in their first hour."""
    max_graceful_termination: Duration | None = None
    """How long pods get to stop at most; absent: 10m."""


class ClusterAutoscalerPart(Part, frozen=True):
    """Adds nodes for pods that no node takes, and removes nodes that are not needed."""

    node_groups: tuple[NodeGroupPart, ...] = ()
    scan_interval: Duration | None = None
    """Absent: 10s."""
    expander: str = Expander.LEAST_WASTE.value
    """Which group is enlarged: least-waste, most-pods, least-nodes or priority."""
    new_pod_scale_up_delay: Duration | None = None
    """Younger pods do not count; absent: 0s."""
    scale_down: ScaleDownPart = ScaleDownPart()


class ClusterAutoscalerReader:
    """Turns the part of a file into a value, and makes room for the nodes to come."""

    def __init__(self, part: ClusterAutoscalerPart | None, report: Report) -> None:
        self._part = part
        self._report = report

    def node_groups(self, groups: Sequence[NodeGroup]) -> tuple[NodeGroup, ...]:
        """Return the machines with those that may be added: they are not there at first."""
        if self._part is None:
            return tuple(groups)
        parts = {part.nodes: part for part in self._part.node_groups}
        return tuple(self._enlarged(group, parts.get(group.spec.name)) for group in groups)

    def _enlarged(self, group: NodeGroup, part: NodeGroupPart | None) -> NodeGroup:
        if part is None or part.max is None or part.max < 1:
            return group
        present = group.count if part.initial is None else part.initial
        return replace(group, count=min(max(part.max, present), MOST_NODES), present=present)

    def autoscaler(
        self, groups: Sequence[NodeGroup], workloads: Sequence[ScenarioWorkload]
    ) -> ClusterAutoscaler | None:
        """Return the autoscaler; None if there is none, or after reporting what is wrong with it."""
        part = self._part
        if part is None:
            return None
        if part.scan_interval is not None and part.scan_interval < SECOND_US:
            self._report((*_PATH, "scanInterval"), "must be at least 1s", "10s is the default")
        if not part.node_groups:
            self._report((*_PATH, "nodeGroups"), "Required value", "name at least one entry of spec.nodes")
        expanders = [expander.value for expander in Expander]
        if part.expander not in expanders:
            what = f'unknown expander "{part.expander}"'
            if part.expander == "random":
                what = "random is not simulated: the same scenario gives the same result"
            self._report((*_PATH, "expander"), what, f"one of {', '.join(expanders)}")
            return None
        for workload in workloads:
            if workload.spread:
                what = f"{workload.namespace}/{workload.name} is spread over all nodes, which change"
                self._report(_PATH, what, "bind it with nodes: […], or let the scheduler place it")
        present = {group.spec.name: group.count if group.present is None else group.present for group in groups}
        return ClusterAutoscaler(
            tuple(self._group(group, index, present) for index, group in enumerate(part.node_groups)),
            expander=Expander(part.expander),
            scale_down=self._scale_down(part.scale_down),
            **_stated(scan_us=part.scan_interval, new_pod_delay_us=part.new_pod_scale_up_delay),
        )

    def _group(self, part: NodeGroupPart, index: int, present: dict[str, int]) -> AutoscaledGroup:
        path = (*_PATH, "nodeGroups", index)
        if part.nodes not in present:
            what = f'no nodes "{part.nodes}"' if part.nodes else "Required value"
            self._report((*path, "nodes"), what, suggestion(part.nodes, list(present)))
        if part.max is None:
            self._report((*path, "max"), "Required value", "the most nodes of this group")
        elif part.max > MOST_NODES:
            self._report((*path, "max"), f"at most {MOST_NODES:,} nodes are simulated", "write less")
        size, most = present.get(part.nodes, 0), part.max or 0
        if part.max is not None and not 0 <= part.min <= max(size, part.min) <= most:
            what = f"min {part.min}, count {size} and max {most} must not decrease"
            self._report(path, what, "the nodes at the start lie between min and max")
        return AutoscaledGroup(
            part.nodes, part.min, most, priority=part.priority, **_stated(provision_us=part.provision)
        )

    def _scale_down(self, part: ScaleDownPart) -> ScaleDownSettings | None:
        if not part.enabled:
            return None
        settings = ScaleDownSettings(
            drain=DrainSettings(part.skip_nodes_with_local_storage, part.skip_nodes_with_system_pods),
            **_stated(
                unneeded_us=part.unneeded_time,
                delay_after_add_us=part.delay_after_add,
                delay_after_delete_us=part.delay_after_delete,
                max_grace_us=part.max_graceful_termination,
            ),
        )
        threshold = part.utilization_threshold
        return settings if threshold is None else replace(settings, threshold=threshold.nanos / NANOS)


def _stated(**durations: Duration | None) -> dict[str, int]:
    """Return the durations that are stated."""
    return {name: int(duration) for name, duration in durations.items() if duration is not None}
