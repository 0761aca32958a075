"""The events of a scenario file: one field per kind, of which each event has exactly one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from podqos.manifest.plain import FieldPath
from podqos.sim.scenario.happenings import Happening, NodeAdded, NodeLost
from podqos.sim.scenario_format.parts import Part
from podqos.sim.scenario_format.shape_document import Duration, Report


class EventPart(Part, frozen=True):
    """An event that happens to a machine."""

    at: Duration = Duration(0)
    node_lost: str = ""
    """The machine that is lost, with everything on it."""
    node_joins: str = ""
    """A machine that joins, for the first time or after it was lost; pods still bound to it start anew."""


_Reader = Callable[[EventPart, FieldPath], Happening | None]
"""Makes an event of one kind, or reports what is wrong with it and returns None."""


class EventReader:
    """Turns the events of a file into happenings."""

    def __init__(self, nodes: Sequence[str], report: Report) -> None:
        self._nodes = nodes
        self._known_nodes = frozenset(nodes)
        self._report = report
        self._readers: Mapping[str, _Reader] = {
            "node_lost": partial(self._of_node, NodeLost, "node_lost"),
            "node_joins": partial(self._of_node, NodeAdded, "node_joins"),
        }

    def happenings(self, events: Sequence[EventPart]) -> Iterator[Happening]:
        """Yield what happens, in the order of the file."""
        for index, event in enumerate(events):
            path = ("spec", "events", index)
            kinds = [name for name in self._readers if getattr(event, name)]
            if len(kinds) != 1:
                names = ", ".join(map(_written, self._readers))
                self._report(path, "exactly one event is required", f"write one of {names}")
                continue
            (kind,) = kinds
            happening = self._readers[kind](event, (*path, _written(kind)))
            if happening is not None:
                yield happening

    def _of_node(
        self, made: type[NodeLost | NodeAdded], field: str, event: EventPart, path: FieldPath
    ) -> Happening | None:
        name = getattr(event, field)
        return made(int(event.at), name) if self._is_node(name, path) else None

    def _is_node(self, name: str, path: FieldPath) -> bool:
        if name in self._known_nodes:
            return True
        self._report(path, f'no such node: "{name}"', f"nodes are {', '.join(self._nodes[:5])}")
        return False


def _written(name: str) -> str:
    """Return the name of a field as it is in a file."""
    return dict(zip(EventPart.__struct_fields__, EventPart.__struct_encode_fields__, strict=True))[name]
