"""The part of a run that a still picture shows, and the scale of its time axis, which all its nodes share."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import ceil

from msgspec import Struct

from podqos.agent.journal import Kind
from podqos.answers.picture.layout import node_picture
from podqos.answers.run_picture import Measures, NodePicture
from podqos.answers.run_view import Kill, NodeView, RunView

WIDTH = 1200
LEFT, RIGHT = 70, WIDTH - 24
_MOST_POINTS = 1500


class Plot(Struct, frozen=True):
    """A node between two times."""

    view: RunView
    node: NodeView
    from_us: int
    to_us: int
    picture: NodePicture

    @property
    def measures(self) -> Measures:
        """The distances between its parts."""
        return self.picture.measures

    def x(self, time_us: float) -> float:
        """Return the x coordinate of a time."""
        return LEFT + (RIGHT - LEFT) * (time_us - self.from_us) / (self.to_us - self.from_us)

    @property
    def is_whole(self) -> bool:
        """Whether all of the run is drawn."""
        return self.from_us == 0 and self.to_us == self.view.end_us

    @property
    def untold(self) -> int:
        """How many more victims the node has than are marked."""
        kinds = (Kind.OOM_KILLED, Kind.EVICTED)
        found = sum(event.node == self.node.name and event.kind in kinds for event in self.view.events)
        return max(0, found - len(self.node_kills))

    @property
    def node_kills(self) -> list[Kill]:
        """The kills of the node, in the order of its victims."""
        return [kill for kill in self.view.kills if kill.node == self.node.name]

    @property
    def kills(self) -> list[Kill]:
        """The kills within the two times."""
        return [kill for kill in self.node_kills if self.from_us <= kill.time_us <= self.to_us]

    @property
    def indices(self) -> Sequence[int]:
        """The points to draw: those within the two times and one on either side, thinned if there are too many."""
        times = self.node.times_us
        first = max(0, bisect_left(times, self.from_us) - 1)
        last = min(len(times), bisect_right(times, self.to_us) + 1)
        every = range(first, last)
        most = max(12, _MOST_POINTS // (len(self.node.pods) + 2))
        if len(every) <= most:
            return every
        kept = {first, last - 1, *range(first, last, ceil(len(every) / most))}
        for kill in self.kills:
            kept.update(range(bisect_left(times, kill.time_us), min(last, bisect_right(times, kill.time_us))))
        return sorted(kept)


def plots_of(view: RunView, nodes: Sequence[NodeView]) -> list[Plot]:
    """Return the part of each node to draw: all of the run, or less if everything happens early on all of them."""
    ends = [view.end_us if node.drawn_until_us is None else min(node.drawn_until_us, view.end_us) for node in nodes]
    return [Plot(view, node, 0, max(ends), node_picture(view, node)) for node in nodes]
