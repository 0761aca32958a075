"""Victims above the panels of a still picture: a sign with a number, the name, and the reason in a few words.

Those too close to tell apart share a sign. What happens again to the same workload for the same reason has only a
number. Earlier names stand higher, so that the lines down to their signs stay free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from podqos.agent.journal import By
from podqos.answers import palette
from podqos.answers.run_picture import Measures
from podqos.answers.run_view import Kill
from podqos.report.simulation.plot import LEFT, RIGHT, Plot
from podqos.report.text.svg_elements import INK, LETTER, PAPER, fitted, line, rect, sign, text, through


class _Label(Struct, frozen=True):
    x: float
    left: float
    width: float
    lane: int
    name: str
    cause: str
    colour: str


class Rail(Struct, frozen=True):
    """The victims of a plot, in groups, and the names there is room for."""

    groups: tuple[tuple[Kill, ...], ...]
    labels: tuple[_Label, ...]
    measures: Measures

    @property
    def height(self) -> float:
        """How much room it takes."""
        lanes = max((label.lane + 1 for label in self.labels), default=0)
        return self.measures.signs + self.measures.lane * lanes if self.groups else 0

    def draw(self, plot: Plot, top: float, panels: Sequence[tuple[float, float]]) -> Iterator[str]:
        """Yield names and signs, and a line through each of the panels, given from top to bottom."""
        bottom, measures = top + self.height, self.measures
        for label in self.labels:
            yield line(label.x, top + label.lane * measures.lane + 20, label.x, bottom - measures.signs, label.colour)
        for label in self.labels:
            at = top + label.lane * measures.lane
            yield f'{rect(label.left - 3, at, label.width + 6, measures.lane - 2)} fill="{PAPER}"/>'
            yield text(label.left, at + 12, label.name, weight=600, fill=label.colour)
            yield text(label.left, at + 25.5, label.cause, fill=INK)
        number = 1
        for group in self.groups:
            x, by = plot.x(group[0].time_us), group[0].by
            yield through(x, panels, _colour(by), dash="3 3")
            yield sign(by, x, bottom - 19, 10)
            words = str(number) if len(group) == 1 else f"{len(group)}×"
            size = 11 if len(words) < 3 else 8.5 if len(words) == 3 else 7
            yield text(x, bottom - 19 + size * 0.36, words, anchor="middle", weight=700, fill=PAPER, size=size)
            number += len(group)


def rail(plot: Plot) -> Rail:
    """Return the victims of a plot."""
    groups: list[list[Kill]] = []
    for kill in plot.kills:
        if groups and plot.x(kill.time_us) - plot.x(groups[-1][0].time_us) < plot.measures.sign_gap:
            groups[-1].append(kill)
        else:
            groups.append([kill])
    return Rail(tuple(map(tuple, groups)), tuple(_labels(plot, groups)), plot.measures)


def _labels(plot: Plot, groups: Sequence[Sequence[Kill]]) -> Iterator[_Label]:
    victims = {id(kill): victim for kill, victim in zip(plot.node_kills, plot.picture.victims, strict=True)}

    def alike(kill: Kill) -> int:
        return victims[id(kill)].alike

    times = Counter(map(alike, plot.kills))
    seen: set[int] = set()
    ends: list[float] = []
    for group in groups:
        firsts = {alike(kill): kill for kill in reversed(group) if alike(kill) not in seen}
        fresh = sorted(firsts.values(), key=group.index)
        seen.update(map(alike, group))
        if not fresh:
            continue
        first = fresh[0]
        often = times[alike(first)]
        others = f" and {len(fresh) - 1} more" if len(fresh) > 1 else f" ×{often}" if often > 1 else ""
        name = f"{fitted(victims[id(first)].name, RIGHT - LEFT - LETTER * len(others))}{others}"
        width = LETTER * max(len(name), len(first.cause))
        x = plot.x(first.time_us)
        left = max(LEFT, min(x - 6, RIGHT - width))
        lane = next((lane for lane, end in enumerate(ends) if end + 12 < left), len(ends))
        if lane < plot.measures.lanes:
            ends[lane : lane + 1] = [left + width]
            yield _Label(x, left, width, lane, name, first.cause, _colour(first.by))


def _colour(by: By) -> str:
    return palette.KERNEL if by is By.KERNEL else palette.KUBELET
