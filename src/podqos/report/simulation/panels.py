"""The panels of a still picture, drawn from the layout that the page draws from, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from podqos.answers import palette
from podqos.answers.picture.axes import height_of
from podqos.answers.run_picture import Curve, LineKind, Panel, Row, TimeSpan
from podqos.report.simulation.plot import LEFT, RIGHT, Plot
from podqos.report.simulation.stack import stack
from podqos.report.text.svg_elements import (
    ACCENT,
    GRID,
    INK,
    LETTER,
    QUIET,
    SOFT,
    fitted,
    halo,
    line,
    path,
    rect,
    sign,
    text,
)

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

Scale = Callable[[float], float]


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
