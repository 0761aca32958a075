"""Stacked bands of a still picture, with their names where they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil

from podqos.answers import palette
from podqos.answers.run_picture import Layer, LayerKind
from podqos.report.simulation.plot import LEFT, RIGHT, Plot
from podqos.report.text.svg_elements import INK, LETTER, PAPER, path, text
from podqos.sim.series import PodSeries

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
