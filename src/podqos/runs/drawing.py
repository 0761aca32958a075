"""A run as one still picture."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil
from xml.sax.saxutils import escape

from msgspec import Struct

from podqos.agent.journal import By, Kind
from podqos.model.pod import QOSClass
from podqos.model.time_units import DAY_US, SECOND_US
from podqos.runs.layout import height_of, node_picture
from podqos.runs.picture import Curve, Layer, LayerKind, LineKind, Measures, NodePicture, Panel, Row, TimeSpan
from podqos.runs.timeline import seconds
from podqos.runs.view import Kill, NodeView, RunView
from podqos.sim.series import PodSeries
from podqos.text import svg as palette
from podqos.text.svg import (
    ACCENT,
    GRID,
    INK,
    LETTER,
    PAPER,
    QUIET,
    SOFT,
    fitted,
    halo,
    heading,
    line,
    path,
    rect,
    sign,
    text,
    through,
)

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


_FILLS = {LayerKind.SYSTEM: palette.SYSTEM, LayerKind.CACHE: "#dfe4ea", LayerKind.DENIED: "#e59a9a"}
_FIELDS = dict(zip(PodSeries.__struct_encode_fields__, PodSeries.__struct_fields__, strict=True))

Scale = Callable[[float], float]
Point = tuple[float, float, float]


def stack(plot: Plot, y: Scale, layers: Sequence[Layer], taken: Sequence[tuple[float, str]]) -> Iterator[str]:
    """Yield stacked bands, then their names clear of labels, which are given as height and words."""
    times, indices = plot.node.times_us, plot.indices
    base = [0] * len(times)
    names: list[str] = []
    for layer in layers:
        columns = _columns(plot, layer)
        upper = [low + sum(values) for low, values in zip(base, zip(*columns, strict=True), strict=True)]
        if upper == base:
            continue
        fill = _fill(plot, layer)
        yield _band(plot, y, base, upper, f'fill="{fill}" stroke="{PAPER}" stroke-width=".6"')
        if len(columns) > 1 and any(columns[-1]):
            # The kubelet counts page cache, but the kernel can reclaim it.
            plain = [high - cache for high, cache in zip(upper, columns[-1], strict=True)]
            yield _band(plot, y, plain, upper, f'fill="{PAPER}" opacity=".35"')
        spans = [(plot.x(times[index]), y(base[index]), y(upper[index])) for index in indices]
        names += _name(plot, layer.label, fill, [*_closer(plot, spans)], taken)
        base = upper
    yield from names


def _columns(plot: Plot, layer: Layer) -> list[list[int]]:
    if layer.series is None:
        return [[*layer.values]]
    series = plot.node.pods[layer.series]
    return [[value or 0 for value in getattr(series, _FIELDS[name])] for name in layer.columns]


def _fill(plot: Plot, layer: Layer) -> str:
    return _FILLS[layer.kind] if layer.series is None else plot.view.pods[plot.node.pods[layer.series].pod].colour


def _band(plot: Plot, y: Scale, low: Sequence[int], high: Sequence[int], paint: str) -> str:
    """Return the area between two series."""
    times, indices = plot.node.times_us, plot.indices
    points = [(plot.x(times[index]), y(high[index])) for index in indices]
    points += [(plot.x(times[index]), y(low[index])) for index in reversed(indices)]
    return f'<path clip-path="url(#c)" d="{path(points)}Z" {paint}/>'


def _name(
    plot: Plot, name: str, fill: str, spans: Sequence[Point], taken: Sequence[tuple[float, str]]
) -> Iterator[str]:
    """Yield the name of a band at the first place where it fits."""
    width = LETTER * len(name) + 12
    for at, (start, _, _) in enumerate(spans):
        x = max(LEFT, start)
        if x + width > RIGHT or (at + 1 < len(spans) and spans[at + 1][0] <= x):
            continue
        low, high = _narrowest(spans[at:], x + width)
        y = (low + high) / 2 + 4
        is_free = all(
            x + width < RIGHT - 6 - LETTER * len(words) or abs(height - y) > plot.measures.line
            for height, words in taken
        )
        if low - high >= plot.measures.name_height and is_free:
            yield text(x + 8, y, name, weight=550, fill="#fff" if palette.is_dark(fill) else INK)
            return


def _closer(plot: Plot, spans: Sequence[Point]) -> Iterator[Point]:
    """Yield the points of a band, and some between those that are far apart: a name may begin there."""
    for one, other in pairwise(spans):
        steps = max(1, ceil((min(RIGHT, other[0]) - max(LEFT, one[0])) / plot.measures.name_step))
        for step in range(steps):
            low, middle, high = (start + (end - start) * step / steps for start, end in zip(one, other, strict=True))
            yield low, middle, high
    yield spans[-1]


def _narrowest(spans: Sequence[Point], end: float) -> tuple[float, float]:
    """Return the lower and upper bound within which a band stays from its first point to ``end``."""
    _, low, high = spans[0]
    for (x, x_low, x_high), (next_x, next_low, next_high) in pairwise(spans):
        share = (end - x) / (next_x - x) if next_x > end else 1.0
        low = min(low, x_low + (next_low - x_low) * share)
        high = max(high, x_high + (next_high - x_high) * share)
        if share < 1:
            break
    return low, high


_SHORT = "#b3261e"
_COLOURS = {
    LineKind.HARD: palette.KERNEL,
    LineKind.SOFT: SOFT,
    LineKind.CAPACITY: INK,
    LineKind.KERNEL: palette.KERNEL,
    LineKind.PODS: INK,
    LineKind.AVAILABLE: ACCENT,
    LineKind.FREE: QUIET,
    LineKind.WANTED: _SHORT,
}
_DASHES = {LineKind.HARD: "6 4", LineKind.SOFT: "6 4", LineKind.PODS: "6 4", LineKind.FREE: "2 3"}
_WIDTHS = {LineKind.WANTED: 1.5, LineKind.SHARE: 2.2}
# A steep piece on a logarithmic scale is drawn in so many parts.
_PARTS = 12


def draw_panel(plot: Plot, panel: Panel, top: float) -> Iterator[str]:
    """Yield a panel below a height."""
    if panel.axis is not None:
        yield from _chart(plot, panel, top)
    elif panel.rows:
        for place, row in enumerate(panel.rows):
            yield from _row(plot, row, top + place * plot.measures.row)
    else:
        yield from _checks(plot, panel, top)


# ---- charts ----------------------------------------------------------------------------------------------------------


def _chart(plot: Plot, panel: Panel, top: float) -> Iterator[str]:
    axis, height = panel.axis, panel.height
    assert axis is not None

    def y(value: float) -> float:
        return top + height_of(axis, height, value)

    for tick in axis.ticks:
        yield line(LEFT, y(tick.value), RIGHT, y(tick.value), GRID)
        yield text(LEFT - 8, y(tick.value) + 4, tick.words, anchor="end")
    labels = [(label, top + label.y) for label in panel.labels]
    yield from stack(plot, y, panel.layers, [(at, label.words) for label, at in labels])
    if panel.killing_below is not None:
        at = y(panel.killing_below)
        yield f'{rect(LEFT, at, RIGHT - LEFT, top + height - at)} fill="{palette.KERNEL}" opacity=".13"/>'
    for level in panel.levels:
        at = y(level.value)
        yield line(LEFT, at, RIGHT, at, _COLOURS[level.kind], dash=_DASHES.get(level.kind, ""))
    for curve in panel.curves:
        yield from _curve(plot, y, curve)
    for label, at in labels:
        yield halo(RIGHT - 6, at, label.words, anchor="end", fill=label.colour or _COLOURS[label.kind])


def _curve(plot: Plot, y: Scale, curve: Curve) -> Iterator[str]:
    dash = _DASHES.get(curve.kind, "")
    look = f'stroke="{curve.colour or _COLOURS[curve.kind]}" stroke-width="{_WIDTHS.get(curve.kind, 1.8)}"'
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    for points in _pieces(_steps(plot, curve) if curve.times_us else _points(plot, curve.values)):
        d = path([(plot.x(time_us), y(value)) for time_us, value in points])
        yield f'<path clip-path="url(#c)" d="{d}" fill="none" {look}{dashes}/>'


def _pieces(points: Iterator[tuple[float, float | None]]) -> Iterator[list[tuple[float, float]]]:
    """Yield the parts of a curve between its gaps."""
    piece: list[tuple[float, float]] = []
    for time_us, value in points:
        if value is not None:
            piece.append((time_us, value))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _steps(plot: Plot, curve: Curve) -> Iterator[tuple[float, float | None]]:
    """Yield the points of a curve with times of its own: a value holds until the next."""
    samples = zip(curve.times_us, curve.values, strict=True)
    for (from_us, value), (to_us, _) in pairwise([*samples, (plot.view.end_us, None)]):
        if to_us >= plot.from_us and from_us <= plot.to_us:
            yield from_us, value
            yield to_us, value


def _points(plot: Plot, values: Sequence[float | None]) -> Iterator[tuple[float, float | None]]:
    """Yield the points of a series, closer where it is steep, because a logarithmic scale bends lines."""
    times, indices = plot.node.times_us, plot.indices
    for index, following in zip(indices, [*indices[1:], indices[-1]], strict=True):
        time_us, value, other = times[index], values[index], values[following]
        yield time_us, value
        span_us = times[following] - time_us
        if value is None or other is None or not span_us or 4 * abs(other - value) <= min(value, other):
            continue
        for part in range(1, _PARTS):
            yield time_us + span_us * part / _PARTS, value + (other - value) * part / _PARTS


# ---- rows ------------------------------------------------------------------------------------------------------------


def _checks(plot: Plot, panel: Panel, top: float) -> Iterator[str]:
    """Yield a tick for each check of the kubelet; those too close to tell apart are a band."""
    for span in plot.node.looks:
        last_us = min(span.last_us, plot.to_us)
        if span.first_us > last_us:
            continue
        left, right = plot.x(span.first_us), plot.x(last_us)
        if plot.x(span.first_us + span.every_us) - left < plot.measures.check_gap:
            yield f'{rect(left, top, max(1.5, right - left), panel.height)} fill="{palette.KUBELET}" opacity=".45"/>'
        else:
            ticks = "".join(
                f"M{round(plot.x(time_us), 1):g} {round(top, 1):g}v{panel.height:g}"
                for time_us in range(span.first_us, last_us + 1, span.every_us)
            )
            yield f'<path d="{ticks}" stroke="{palette.KUBELET}" stroke-width="1.5"/>'


def _row(plot: Plot, row: Row, top: float) -> Iterator[str]:
    height = plot.measures.row
    colour = SOFT if row.pod is None else plot.view.pods[row.pod].colour
    spans = [*_on_screen(plot, row.spans)]
    for start, end in spans:
        yield f'{rect(start, top + 1, max(1.5, end - start), height - 4)} rx="3" fill="{colour}"/>'
    for start, end in _on_screen(plot, row.short_of_cpu):
        yield f'{rect(start, top + height - 6, max(1.5, end - start), 3)} fill="{_SHORT}"/>'
    kills = [plot.node_kills[place] for place in row.victims]
    shown = [(kill.by, plot.x(kill.time_us)) for kill in kills if plot.from_us <= kill.time_us <= plot.to_us]
    yield from _row_name(plot, row.label, (top + 12.5, colour), spans, [x for _, x in shown])
    yield from (sign(by, x, top + height / 2 - 1, 5) for by, x in shown)


def _on_screen(plot: Plot, spans: Sequence[TimeSpan]) -> Iterator[tuple[float, float]]:
    """Yield the visible parts of spans."""
    for span in spans:
        start, end = max(LEFT, plot.x(span.from_us)), min(RIGHT, plot.x(span.to_us))
        if end > LEFT and start < RIGHT:
            yield start, end


def _row_name(
    plot: Plot, name: str, place: tuple[float, str], spans: Sequence[tuple[float, float]], signs: Sequence[float]
) -> Iterator[str]:
    """Yield a name where it fits: on one of the spans, or else between them, clear of signs."""
    y, colour = place
    margin = plot.measures.sign_margin
    width = LETTER * len(name) + 12
    edges = [LEFT, RIGHT, *(edge for span in spans for edge in span)]
    edges += (x + side for x in signs for side in (-margin, margin))
    parts = [
        (start, end)
        for start, end in pairwise(sorted(set(edges)))
        if not any(start < x + margin and end > x - margin for x in signs)
    ]
    inside = {part for part in parts if any(span[0] <= part[0] and part[1] <= span[1] for span in spans)}
    # Where it fits, rather on a span than beside it; where it fits nowhere, in the widest part.
    best = min(parts, key=lambda part: (max(0, width - part[1] + part[0]), part not in inside), default=None)
    if best is not None:
        fill = "#fff" if best in inside and palette.is_dark(colour) else INK
        words = fitted(name, best[1] - best[0] - 8) if best[1] - best[0] < width else name
        yield text(best[0] + 6, y, words, weight=550, fill=fill, size=11)


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


# Headlines with more letters are written smaller.
_LONG = 150
_TOP = 92
_NODE = 22
_NEXT_NODE = 58
_FONT = f'font-family="system-ui, Segoe UI, Roboto, DejaVu Sans, sans-serif" font-size="11.5" fill="{QUIET}"'
_TIME_STEPS_US = tuple(
    step * 1000
    for step in (
        *(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000),
        *(600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000),
    )
)


def run_svg(view: RunView, *nodes: NodeView) -> str:
    """Draw nodes of a run below each other, over the same time."""
    plots = plots_of(view, nodes)
    body: list[str] = []
    top: float = _TOP
    for plot in plots:
        if len(plots) > 1:
            body.append(text(LEFT, top + 12, plot.node.name, size=15, weight=650, fill=INK))
            top += _NODE
        drawn, top = _node(plot, top)
        body += drawn
    height = round(top - _NEXT_NODE + 34)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" {_FONT}>',
        f"<title>{escape(view.name)}: {escape(view.headline)}</title>",
        f'{rect(0, 0, WIDTH, height)} fill="{PAPER}"/>',
        f'<clipPath id="c">{rect(LEFT, 0, RIGHT - LEFT, height)}/></clipPath>',
        *_head(plots),
        *body,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _node(plot: Plot, start: float) -> tuple[list[str], float]:
    """Draw one node from a height on; return where the next one begins, too."""
    victims, measures = rail(plot), plot.measures
    body: list[str] = []
    bottom = start + victims.height
    drawn: list[tuple[float, float]] = []
    for panel in plot.picture.panels:
        if panel.is_hidden:
            continue
        top = bottom + (measures.gap if drawn else 0) + measures.title
        bottom = top + panel.height
        body += [heading(LEFT, top - 9, panel.title, panel.note), *draw_panel(plot, panel, top)]
        drawn.append((top, bottom))
    return [*_times(plot, drawn), *body, *victims.draw(plot, start, drawn)], bottom + _NEXT_NODE


def _head(plots: Sequence[Plot]) -> Iterator[str]:
    plot, view = plots[0], plots[0].view
    facts = f"podqos simulate: {seconds(view.end_us, 0)}, Kubernetes {view.kubernetes_version}"
    node = f", {plot.node.name}" if len(plots) == 1 < view.summary.nodes else ""
    yield text(LEFT, 32, view.name, size=20, weight=650, fill=INK)
    yield text(RIGHT, 32, f"{facts}{node}", anchor="end")
    size = 13 if len(view.headline) <= _LONG else round(13 * _LONG / len(view.headline), 1)
    yield text(LEFT, 53, view.headline, size=size, fill=INK)
    x = LEFT
    for qos_class in QOSClass:
        yield f'{rect(x, 64, 11, 11)} rx="3" fill="{palette.class_colour(qos_class)}"/>'
        yield text(x + 16, 74, qos_class.value)
        x += 100
    for by, words in ((By.KERNEL, "OOM-killed by the kernel"), (By.KUBELET, "evicted by the kubelet")):
        yield sign(by, x + 6, 70, 5)
        yield text(x + 16, 74, words)
        x += 164
    untold = sum(plot.untold for plot in plots)
    if untold:
        words = f"later victims not marked: {untold:,}"
        yield text(RIGHT, 74, words, anchor="end", size=13, weight=600, fill=ACCENT)
    if not plot.is_whole:
        part = f"only the first {seconds(plot.to_us, 1)} of {seconds(view.end_us, 0)} are shown"
        yield text(RIGHT, 53, part, anchor="end", size=13, weight=600, fill=ACCENT)


def _times(plot: Plot, panels: Sequence[tuple[float, float]]) -> Iterator[str]:
    rough = (plot.to_us - plot.from_us) / 9
    step = next((each for each in _TIME_STEPS_US if each >= rough), DAY_US * ceil(rough / DAY_US))
    digits = 0 if step >= SECOND_US else 1 if step >= 100_000 else 3
    for time_us in range(plot.from_us, plot.to_us + 1, step):
        x = plot.x(time_us)
        yield through(x, panels, GRID)
        yield text(min(x, RIGHT - 14), panels[-1][1] + 18, seconds(time_us, digits), anchor="middle")
