"""The panels of a still picture: memory by pod, memory left, CPU and disks where they matter, when pods ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, log2

from msgspec import Struct

from podqos.eviction.signals import SIGNALS
from podqos.report.simulation.plot import LEFT, RIGHT, Plot
from podqos.report.survival.ranking import amount
from podqos.report.text import palette
from podqos.report.text.svg_elements import ACCENT, GRID, INK, PAPER, QUIET, SOFT, line, path, rect, text
from podqos.sim.node.recording import ThresholdLine
from podqos.sim.series import PodSeries, SignalSeries
from podqos.wording import mebibytes

_MEMORY = "memory.available"
_ROW = 17
_MOST_ROWS = 24
_NAME_HEIGHT = 13
_CACHE = "#dfe4ea"
_LETTER = 6.8
"""Width of a letter, about."""

Scale = Callable[[float], float]
Draw = Callable[[Plot, float], Iterator[str]]


class Panel(Struct, frozen=True):
    """A part of the picture; ``draw`` gets the position of its top."""

    title: str
    note: str
    height: float
    draw: Draw


class _Layer(Struct, frozen=True):
    name: str
    colour: str
    values: Sequence[int]


def panels(plot: Plot) -> Iterator[Panel]:
    """Yield the panels, from the top."""
    node = plot.node
    stacked = f"working sets, stacked; the node has {mebibytes(node.memory_bytes)}"
    yield Panel("Memory by pod", stacked, _memory_height(plot), _memory)
    note = "logarithmic; line: memory.available as the kubelet counts, dots: free as the kernel counts"
    yield Panel("Memory left", note, 110, _memory_left)
    if any(map(_is_short, node.pods)):
        yield Panel(
            "CPU granted", f"red: wanted and not granted; the node has {node.cpu_milli / 1000:g} cores", 110, _cpu
        )
    for series in node.signals:
        of = amount(series.capacity, SIGNALS[series.signal].resource)
        yield Panel(series.signal, f"what is left of {of}", 70, _signal(series))
    conditions = sorted({span.condition for span in node.conditions})
    if conditions:
        yield Panel("Conditions", "as the node reported them", _ROW * len(conditions), _conditions)
    hidden = len(node.pods) - _MOST_ROWS
    note = f"while they ran; {hidden} more are not drawn" if hidden > 0 else "while they ran"
    yield Panel("Pods", note, _ROW * min(_MOST_ROWS, len(node.pods)), _pods)


# ---- memory ----------------------------------------------------------------------------------------------------------


def _memory_height(plot: Plot) -> int:
    """Return the height of the memory panel: less if most memory is never used."""
    return 300 if 2 * min(plot.node.available_bytes, default=0) < plot.node.memory_bytes else 160


def _memory(plot: Plot, top: float) -> Iterator[str]:
    node = plot.node
    y = _linear(top, _memory_height(plot), node.memory_bytes)
    step = 2 ** ceil(log2(node.memory_bytes / 5))
    yield from _grid(y, range(0, node.memory_bytes + 1, step), lambda size: mebibytes(size) if size else "0")
    layers = [_Layer("system", palette.SYSTEM, node.system_bytes)]
    for series in node.pods:
        pod = plot.view.pods[series.pod]
        both = zip(series.anon_bytes, series.active_file_bytes, strict=True)
        layers.append(_Layer(_bare(pod.key), pod.colour, [(anon or 0) + (file or 0) for anon, file in both]))
    cache = [
        sum(each or 0 for each in at) for at in zip(*(series.inactive_file_bytes for series in node.pods), strict=True)
    ]
    if any(cache):
        layers.append(_Layer("inactive page cache", _CACHE, cache))
    yield from _stack(plot, y, layers)
    yield from _active_cache(plot, y)
    for threshold in _thresholds(plot, _MEMORY):
        at = y(node.memory_bytes - threshold.amount)
        yield line(LEFT, at, RIGHT, at, _colour(threshold), dash="6 4")
    yield line(LEFT, top, RIGHT, top, INK)


def _active_cache(plot: Plot, y: Scale) -> Iterator[str]:
    """Yield a veil over the page cache of each pod: the kubelet counts it, but the kernel can reclaim it."""
    node = plot.node
    base = list(node.system_bytes)
    for series in node.pods:
        anon = [low + (each or 0) for low, each in zip(base, series.anon_bytes, strict=True)]
        base = [low + (each or 0) for low, each in zip(anon, series.active_file_bytes, strict=True)]
        if any(series.active_file_bytes):
            yield _band(plot, y, anon, base, f'fill="{PAPER}" opacity=".35"')


def _memory_left(plot: Plot, top: float) -> Iterator[str]:
    node = plot.node
    marks = _thresholds(plot, _MEMORY)
    lowest = min([node.kernel_min_bytes or 64 << 20, *(each.amount for each in marks)]) / 2
    low = floor(log2(max(1 << 20, lowest)))
    high = max(low + 2.0, log2(max(1, *node.available_bytes, *node.free_bytes)))

    def y(size: float) -> float:
        power = log2(size) if size > 0 else low
        return top + 110 * (1 - (min(high, max(low, power)) - low) / (high - low))

    powers = range(low, floor(high) + 1, max(1, round((high - low) / 5)))
    yield from _grid(y, [2**power for power in powers], mebibytes)
    if node.kernel_min_bytes:
        at = y(node.kernel_min_bytes)
        yield f'{rect(LEFT, at, RIGHT - LEFT, top + 110 - at)} fill="{palette.KERNEL}" opacity=".13"/>'
        words = f"the kernel kills at {mebibytes(node.kernel_min_bytes)}"
        yield text(LEFT + 6, min(top + 106, at + 12), words, fill=palette.KERNEL)
    yield from _marks(y, marks)
    yield _curve(plot, y, node.free_bytes, QUIET, dash="2 3")
    yield _curve(plot, y, node.available_bytes, ACCENT)


# ---- CPU, disks, process ids -----------------------------------------------------------------------------------------


def _is_short(series: PodSeries) -> bool:
    both = zip(series.cpu_wanted_milli, series.cpu_granted_milli, strict=True)
    return any((wanted or 0) > (granted or 0) for wanted, granted in both)


def _cpu(plot: Plot, top: float) -> Iterator[str]:
    node = plot.node
    layers, missing = [], [0] * len(node.times_us)
    for series in node.pods:
        pod = plot.view.pods[series.pod]
        granted = [each or 0 for each in series.cpu_granted_milli]
        layers.append(_Layer(_bare(pod.key), pod.colour, granted))
        for index, wanted in enumerate(series.cpu_wanted_milli):
            missing[index] += max(0, (wanted or 0) - granted[index])
    layers.append(_Layer("", "#e59a9a", missing))
    most = max(map(sum, zip(*(layer.values for layer in layers), strict=True)))
    highest = max(most, node.cpu_milli) if most > node.cpu_milli // 2 else most
    y = _linear(top, 110, highest * 1.04)
    step = _round_step(highest / 4)
    yield from _grid(y, range(0, highest + 1, step), lambda milli: f"{milli / 1000:g}")
    yield from _stack(plot, y, layers)
    if highest >= node.cpu_milli:
        yield line(LEFT, y(node.cpu_milli), RIGHT, y(node.cpu_milli), INK)


def _signal(series: SignalSeries) -> Draw:
    def draw(plot: Plot, top: float) -> Iterator[str]:
        marks = _thresholds(plot, series.signal)
        highest = max(1, *series.left, *(each.amount for each in marks))
        y = _linear(top, 70, highest * 1.08)
        resource = SIGNALS[series.signal].resource
        step = 2 ** ceil(log2(highest / 3)) if highest >= 1 << 20 else _round_step(highest / 3)
        yield from _grid(y, range(0, highest + 1, step), lambda left: amount(left, resource) if left else "0")
        yield from _marks(y, marks)
        yield _curve(plot, y, series.left, ACCENT)

    return draw


def _round_step(rough: float) -> int:
    power = 10 ** floor(log2(max(1, rough)) / log2(10))
    return next(int(power * each) for each in (1, 2, 5, 10) if power * each >= rough or each == 10)


# ---- when pods ran ---------------------------------------------------------------------------------------------------


def _conditions(plot: Plot, top: float) -> Iterator[str]:
    names = sorted({span.condition for span in plot.node.conditions})
    for span in plot.node.conditions:
        at = top + names.index(span.condition) * _ROW
        start = max(LEFT, plot.x(span.start_us))
        end = min(RIGHT, plot.x(plot.view.end_us if span.end_us is None else span.end_us))
        if end > LEFT and start < RIGHT:
            yield f'{rect(start, at + 1, max(2, end - start), _ROW - 4)} rx="3" fill="{SOFT}"/>'
            inside = end - start > 110
            yield text(
                (start if inside else end) + 6, at + 12, span.condition, fill="#fff" if inside else SOFT, size=11
            )


def _pods(plot: Plot, top: float) -> Iterator[str]:
    node = plot.node
    for row, series in enumerate(node.pods[:_MOST_ROWS]):
        pod = plot.view.pods[series.pod]
        at = top + row * _ROW
        spans = [
            (max(LEFT, plot.x(start_us)), min(RIGHT, plot.x(end_us)))
            for start_us, end_us in _running(node.times_us, series.anon_bytes)
        ]
        for start, end in spans:
            if end > LEFT and start < RIGHT:
                yield f'{rect(start, at + 1, max(1.5, end - start), _ROW - 4)} rx="3" fill="{pod.colour}"/>'
        name = _bare(pod.key)
        start, end = spans[0] if spans else (LEFT, LEFT)
        width = _LETTER * len(name) + 14
        x, anchor, fill = end + 14, "", INK
        if end - start > width:
            x, fill = start + 6, "#fff" if palette.is_dark(pod.colour) else INK
        elif end + width > RIGHT:
            x, anchor = start - 8, "end"
        yield text(x, at + 12, name, anchor=anchor, weight=550, fill=fill, size=11)


def _running(times_us: Sequence[int], values: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    start: int | None = None
    for time_us, value in zip(times_us, values, strict=True):
        if value is not None and start is None:
            start = time_us
        elif value is None and start is not None:
            yield start, time_us
            start = None
    if start is not None:
        yield start, times_us[-1]


# ---- what panels share -----------------------------------------------------------------------------------------------


def _bare(key: str) -> str:
    return key.partition("/")[2]


def _linear(top: float, height: float, highest: float) -> Scale:
    return lambda value: top + height * (1 - value / highest)


def _thresholds(plot: Plot, signal: str) -> list[ThresholdLine]:
    return [each for each in plot.node.thresholds if each.signal == signal]


def _colour(threshold: ThresholdLine) -> str:
    return palette.KERNEL if threshold.hard else SOFT


def _marks(y: Scale, thresholds: Sequence[ThresholdLine]) -> Iterator[str]:
    """Yield thresholds with labels: above the line for a soft one, below for a hard one if there is room."""
    for threshold in thresholds:
        at, colour = y(threshold.amount), _colour(threshold)
        words = f"{'hard' if threshold.hard else 'soft'}: {threshold.statement}"
        yield line(LEFT, at, RIGHT, at, colour, dash="6 4")
        below = threshold.hard and at + 14 < y(0)
        yield text(RIGHT - 6, at + 13 if below else at - 4, words, anchor="end", fill=colour)


def _grid(y: Scale, values: Sequence[int], words: Callable[[int], str]) -> Iterator[str]:
    for value in values:
        yield line(LEFT, y(value), RIGHT, y(value), GRID)
        yield text(LEFT - 8, y(value) + 4, words(value), anchor="end")


def _curve(plot: Plot, y: Scale, values: Sequence[int], colour: str, *, dash: str = "") -> str:
    d = path([(plot.x(time_us), y(value)) for time_us, value in _points(plot, values)])
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path clip-path="url(#c)" d="{d}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>'


def _points(plot: Plot, values: Sequence[int]) -> Iterator[tuple[float, float]]:
    """Yield the points of a series, closer where it is steep, because a logarithmic scale bends lines."""
    times, indices = plot.node.times_us, plot.indices
    for index, following in zip(indices, [*indices[1:], indices[-1]], strict=True):
        time_us, value = times[index], values[index]
        yield time_us, value
        span_us, change = times[following] - time_us, values[following] - value
        if span_us and 4 * abs(change) > min(value, values[following]):
            yield from ((time_us + span_us * step / 12, value + change * step / 12) for step in range(1, 12))


def _stack(plot: Plot, y: Scale, layers: Sequence[_Layer]) -> Iterator[str]:
    """Yield stacked bands, then their names where they fit."""
    times, indices = plot.node.times_us, plot.indices
    base = [0] * len(times)
    names: list[str] = []
    for layer in layers:
        if not any(layer.values):
            continue
        upper = [low + value for low, value in zip(base, layer.values, strict=True)]
        yield _band(plot, y, base, upper, f'fill="{layer.colour}" stroke="{PAPER}" stroke-width=".6"')
        names += _name(layer, [(plot.x(times[index]), y(base[index]), y(upper[index])) for index in indices])
        base = upper
    yield from names


def _band(plot: Plot, y: Scale, low: Sequence[int], high: Sequence[int], paint: str) -> str:
    """Return the area between two series."""
    times, indices = plot.node.times_us, plot.indices
    points = [(plot.x(times[index]), y(high[index])) for index in indices]
    points += [(plot.x(times[index]), y(low[index])) for index in reversed(indices)]
    return f'<path clip-path="url(#c)" d="{path(points)}Z" {paint}/>'


def _name(layer: _Layer, spans: Sequence[tuple[float, float, float]]) -> Iterator[str]:
    """Yield the name of a band at the first place where it fits."""
    width = _LETTER * len(layer.name) + 12
    for at, (start, _, _) in enumerate(spans):
        x = max(LEFT, start)
        if x + width > RIGHT or (at + 1 < len(spans) and spans[at + 1][0] <= x):
            continue
        low, high = _narrowest(spans[at:], x + width)
        if layer.name and low - high >= _NAME_HEIGHT:
            fill = "#fff" if palette.is_dark(layer.colour) else INK
            yield text(x + 8, (low + high) / 2 + 4, layer.name, weight=550, fill=fill)
            return


def _narrowest(spans: Sequence[tuple[float, float, float]], end: float) -> tuple[float, float]:
    """Return the lower and upper bound within which a band stays from its first point to ``end``."""
    _, low, high = spans[0]
    for (x, x_low, x_high), (next_x, next_low, next_high) in pairwise(spans):
        share = (end - x) / (next_x - x) if next_x > end else 1.0
        low = min(low, x_low + (next_low - x_low) * share)
        high = max(high, x_high + (next_high - x_high) * share)
        if share < 1:
            break
    return low, high
