"""The events of a scenario file: one field per kind, of which each event has exactly one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct, field

from podqos.controllers.drain import DrainSettings
from podqos.manifest.plain import FieldPath
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.quantity import Quantity
from podqos.model.time_units import SECOND_US
from podqos.sim.scenario.happenings import (
    Cordoned,
    Drained,
    Happening,
    NodeAdded,
    NodeDeleted,
    NodeLost,
    OutOfService,
)
from podqos.sim.scenario.scenario import WorkloadChange
from podqos.sim.scenario_format.parts import Part
from podqos.sim.scenario_format.shape_document import Duration, Report


class DrainPart(Part, frozen=True):
    """A drain, with the options of kubectl."""

    node: str = ""
    grace_period: Duration | None = None
    """Of every pod; absent: each pod's own."""
    timeout: Duration = Duration(0)
    """When kubectl gives up; 0s: never."""
    ignore_daemon_sets: bool = False
    """Whether pods of DaemonSets stay; otherwise they make the drain fail."""
    delete_empty_dir_data: bool = False
    """Whether pods with an emptyDir are evicted; otherwise they make the drain fail."""
    force: bool = False
    """Whether pods without a controller are evicted; otherwise they make the drain fail."""
    disable_eviction: bool = False
    """Whether pods are deleted instead of evicted, whatever their PodDisruptionBudgets say."""


class ChangedResourcesPart(Part, frozen=True):
    """Requests and limits that change."""

    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)


class ResizePart(Part, frozen=True):
    """A resize in place of the pods of a workload; pods created later have the resources of the manifest."""

    workload: str = ""
    """Name, namespace/name, or Kind/namespace/name of an object in the manifests."""
    pod: str = ""
    """The name of the only pod of the workload that is resized; absent: all."""
    container: str = ""
    """Absent: the only container."""
    resources: ChangedResourcesPart = ChangedResourcesPart()


class KubeletChangePart(Struct, frozen=True):
    """Machines (node, or nodes), and the fields of their KubeletConfiguration that change."""

    nodes: tuple[str, ...] = ()
    config: KubeletConfiguration = KubeletConfiguration()
    changed: tuple[str, ...] = ()
    """The fields that are stated."""


class EventPart(Part, frozen=True):
    """An event that happens to a machine or its kubelet."""

    at: Duration = Duration(0)
    node_lost: str = ""
    """The machine that is lost, with everything on it."""
    node_joins: str = ""
    """A machine that joins, for the first time or after it was lost; pods still bound to it start anew."""
    node_deleted: str = ""
    """A lost machine whose Node object is deleted: the pods still bound to it are garbage-collected within a minute."""
    out_of_service: str = ""
    """A lost machine that gets the taint node.kubernetes.io/out-of-service: its pods are deleted at once, without a
    kubelet that confirms it."""
    cordon: str = ""
    """The machine that takes no more pods from the scheduler."""
    uncordon: str = ""
    """The machine that takes pods again."""
    drain: DrainPart | None = None
    """A machine that is cordoned and whose pods are evicted through the API, as by kubectl drain."""
    kubelet_restart: str = ""
    """The machine whose kubelet restarts; its pods keep running."""
    kubelet_config: KubeletChangePart | None = None
    """Machines whose kubelet restarts with other settings."""
    resize: ResizePart | None = None
    """Pods whose resources are changed in place."""


_Made = Happening | WorkloadChange
EventOfKind = Callable[[EventPart, FieldPath], _Made | tuple[Happening, ...] | None]
"""Makes events of one kind, or reports what is wrong with it and returns None."""


class EventReader:
    """Turns the events of a file into happenings."""

    def __init__(self, nodes: Sequence[str], report: Report, others: Mapping[str, EventOfKind] | None = None) -> None:
        """Read events of nodes, and others by the names of their fields."""
        self._nodes = nodes
        self._known_nodes = frozenset(nodes)
        self._report = report
        self._readers: Mapping[str, EventOfKind] = {
            "node_lost": partial(self._of_node, NodeLost, "node_lost"),
            "node_joins": partial(self._of_node, NodeAdded, "node_joins"),
            "node_deleted": partial(self._of_node, NodeDeleted, "node_deleted"),
            "out_of_service": partial(self._of_node, OutOfService, "out_of_service"),
            "cordon": self._cordon,
            "uncordon": self._cordon,
            "drain": self._drain,
            **(others or {}),
        }

    def happenings(self, events: Sequence[EventPart]) -> Iterator[_Made]:
        """Yield what happens, in the order of the file."""
        for index, event in enumerate(events):
            path = ("spec", "events", index)
            kinds = [name for name in self._readers if getattr(event, name)]
            if len(kinds) != 1:
                names = ", ".join(_written(event, name) for name in self._readers)
                self._report(path, "exactly one event is required", f"write one of {names}")
                continue
            (kind,) = kinds
            happening = self._readers[kind](event, (*path, _written(event, kind)))
            if isinstance(happening, tuple):
                yield from happening
            elif happening is not None:
                yield happening

    def _of_node(
        self,
        made: type[NodeLost | NodeAdded | NodeDeleted | OutOfService],
        field: str,
        event: EventPart,
        path: FieldPath,
    ) -> Happening | None:
        name = getattr(event, field)
        return made(int(event.at), name) if self._is_node(name, path) else None

    def _cordon(self, event: EventPart, path: FieldPath) -> Happening | None:
        name = event.cordon or event.uncordon
        return Cordoned(int(event.at), name, takes_pods=bool(event.uncordon)) if self._is_node(name, path) else None

    def _drain(self, event: EventPart, path: FieldPath) -> Happening | None:
        part = event.drain
        assert part is not None
        if not self._is_node(part.node, (*path, "node")):
            return None
        grace = part.grace_period
        settings = DrainSettings(
            grace_period_seconds=None if grace is None else int(grace) // SECOND_US,
            timeout_us=int(part.timeout),
            ignore_daemon_sets=part.ignore_daemon_sets,
            delete_empty_dir_data=part.delete_empty_dir_data,
            force=part.force,
            disable_eviction=part.disable_eviction,
        )
        return Drained(int(event.at), part.node, settings)

    def _is_node(self, name: str, path: FieldPath) -> bool:
        if name in self._known_nodes:
            return True
        self._report(path, f'no such node: "{name}"', f"nodes are {', '.join(self._nodes[:5])}")
        return False


def _written(event: EventPart, name: str) -> str:
    """Return the name of a field as it is in a file."""
    return dict(zip(event.__struct_fields__, event.__struct_encode_fields__, strict=True))[name]
