"""The events of a scenario file: one field per kind, of which each event has exactly one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from podqos.manifest.plain import FieldPath
from podqos.sim.scenario.scenario import (
    Cordoned,
    Drained,
    Happening,
    NodeAdded,
    NodeDeleted,
    NodeLost,
    OutOfService,
    WorkloadChange,
)
from podqos.sim.scenario_format.shape_document import Duration, Part, Report


class DrainPart(Part, frozen=True):
    """A drain: pods of DaemonSets stay, all others are evicted as their PodDisruptionBudgets allow."""

    node: str = ""


class EventPart(Part, frozen=True):
    """An event that happens to a machine."""

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
        return Drained(int(event.at), part.node)

    def _is_node(self, name: str, path: FieldPath) -> bool:
        if name in self._known_nodes:
            return True
        self._report(path, f'no such node: "{name}"', f"nodes are {', '.join(self._nodes[:5])}")
        return False


def _written(event: EventPart, name: str) -> str:
    """Return the name of a field as it is in a file."""
    return dict(zip(event.__struct_fields__, event.__struct_encode_fields__, strict=True))[name]
