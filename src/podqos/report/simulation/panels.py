"""The panels of a still picture: of memory, CPU, disks and process ids those that matter; when pods ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, log2

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers import palette
from podqos.answers import run_story as story
from podqos.eviction.signals import SIGNALS
from podqos.model.time_units import SECOND_US
from podqos.report.simulation.plot import LEFT, RIGHT, Plot
from podqos.report.text.svg_elements import (
    ACCENT,
    GRID,
    INK,
    LETTER,
    PAPER,
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
from podqos.sim.node.recording import ThresholdLine
from podqos.sim.series import PodSeries, SignalSeries
from podqos.sim.services.outcome import ServiceOutcome, ServiceSample
from podqos.wording import mebibytes
from podqos.words.outcome import share_words
from podqos.words.ranking import amount
from podqos.words.services import latency

_MEMORY = "memory.available"
_ROW = 17
_MOST_ROWS = 24
_NAME_HEIGHT = 13
_LINE = 14
_LEFT_HEIGHT = 110
_CHECKS = 10
# Ticks that are closer than this are drawn as one.
_CLOSE = 4
_CACHE = "#dfe4ea"
# CPU that was wanted and not granted, and when.
_DENIED = "#e59a9a"
_SHORT = "#b3261e"
_SHARE_HEIGHT = 100
_MOST_SHARES = 6
# The lines of services, the worst first.
_SERVICES = ("#b3261e", "#1f6feb", "#9a6700", "#8250df", "#1a7f37", "#57606a")

Scale = Callable[[float], float]
Draw = Callable[[Plot, float], Iterator[str]]


class Panel(Struct, frozen=True):
    """A part of the picture; ``draw`` gets the position of its top."""

    title: str
    note: str
    height: float
    draw: Draw


class _Words(Struct, frozen=True):
    """A label at the right of a panel."""

    y: float
    words: str
    colour: str


class _Layer(Struct, frozen=True):
    name: str
    colour: str
    values: Sequence[int]


def panels(plot: Plot) -> Iterator[Panel]:
    """Yield the panels worth drawing, from the top; then what the node reported, and when pods ran."""
    node = plot.node
    signals = {series.signal.value: series for series in node.signals}
    for name in node.panels:
        if name == story.MEMORY:
            yield _memory_panel(plot)
        elif name == story.LEFT:
            note = "logarithmic; line: memory.available (kubelet); dots: free memory (kernel)"
            yield Panel("Memory left", note, _LEFT_HEIGHT, _memory_left)
        elif name == story.CPU:
            yield _cpu_panel(plot)
            if any(_slowed(node.times_us, series) for series in node.pods):
                yield _share_panel(plot)
        else:
            yield _signal_panel(plot, signals[name])
    if plot.view.nodes[0] is node:
        yield from _service_panels(plot)
    if node.looks:
        every = dict.fromkeys(f"every {span.every_us / SECOND_US:g} s" for span in node.looks)
        yield Panel("Kubelet checks", f"of its eviction thresholds, {', '.join(every)}", _CHECKS, _checks)
    conditions = sorted({span.condition for span in node.conditions})
    if conditions:
        yield Panel("Conditions", "as the node reported them", _ROW * len(conditions), _conditions)
    hidden = len(node.pods) - _MOST_ROWS
    is_slowed = any(_slowed(node.times_us, series) for series in node.pods)
    notes = ["while they ran", *(["red: short of CPU"] if is_slowed else [])]
    note = "; ".join([*notes, *([f"{hidden} more not shown"] if hidden > 0 else [])])
    yield Panel("Pods", note, _ROW * min(_MOST_ROWS, len(node.pods)), _pods)


# ---- memory ----------------------------------------------------------------------------------------------------------


def _memory_panel(plot: Plot) -> Panel:
    """Return memory by pod; where most of it is never used the axis ends earlier, and the note says so."""
    node = plot.node
    layers = _memory_layers(plot)
    most = max(map(sum, zip(*(layer.values for layer in layers), strict=True)), default=0)
    is_whole = 2 * most >= node.memory_bytes or not most
    highest = node.memory_bytes if is_whole else round(most * 1.15)
    height = 300 if is_whole else 230
    ends = "" if is_whole else f", the axis ends at {mebibytes(highest - highest % (1 << 20))}"
    note = f"working sets, stacked; the node has {mebibytes(node.memory_bytes)}{ends}"

    def draw(plot: Plot, top: float) -> Iterator[str]:
        y = _linear(top, height, highest)
        step = 2 ** ceil(log2(highest / 5))
        yield from _grid(y, range(0, highest + 1, step), lambda size: mebibytes(size) if size else "0")
        limit, limit_words = _pods_limit(plot, y, highest)
        yield from _stack(plot, y, layers, limit_words)
        yield from _active_cache(plot, y)
        if is_whole:
            for threshold in _thresholds(plot, _MEMORY):
                at = y(node.memory_bytes - threshold.amount)
                yield line(LEFT, at, RIGHT, at, _colour(threshold), dash="6 4")
            yield line(LEFT, top, RIGHT, top, INK)
        yield from limit
        yield from _words(limit_words)

    return Panel("Memory by pod", note, height, draw)


def _memory_layers(plot: Plot) -> list[_Layer]:
    node = plot.node
    layers = [_Layer("system", palette.SYSTEM, node.system_bytes)]
    for series in node.pods:
        pod = plot.view.pods[series.pod]
        both = zip(series.anon_bytes, series.active_file_bytes, strict=True)
        layers.append(_Layer(plot.name(pod.key), pod.colour, [(anon or 0) + (file or 0) for anon, file in both]))
    cache = [
        sum(each or 0 for each in at) for at in zip(*(series.inactive_file_bytes for series in node.pods), strict=True)
    ]
    if any(cache):
        layers.append(_Layer("inactive page cache", _CACHE, cache))
    return layers


def _pods_limit(plot: Plot, y: Scale, highest: int) -> tuple[list[str], list[_Words]]:
    """Return the line at which all pods together reach their limit, and its label.

    The system's memory is below them in the stack, but does not count.
    """
    limit, system = plot.node.pods_limit_bytes, plot.node.system_bytes
    if limit is None or min(system, default=0) + limit > highest:
        return [], []
    # Where the system has grown they reach the machine's end before.
    reached = [min(each + limit, highest) for each in system]
    at = y(reached[plot.indices[-1]])
    curve = _curve(plot, y, reached, INK, dash="6 4")
    return [curve], _apart([_Words(at, f"limit of all pods, {mebibytes(limit)}", INK)], y(highest), y(0))


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
    node, bottom = plot.node, top + _LEFT_HEIGHT
    thresholds = _thresholds(plot, _MEMORY)
    lowest = min([node.kernel_min_bytes or 64 << 20, *(threshold.amount for threshold in thresholds)]) / 2
    low = floor(log2(max(1 << 20, lowest)))
    high = max(low + 2.0, log2(max(1, *node.available_bytes, *node.free_bytes)))

    def y(size: float) -> float:
        power = log2(size) if size > 0 else low
        return top + _LEFT_HEIGHT * (1 - (min(high, max(low, power)) - low) / (high - low))

    powers = range(low, floor(high) + 1, max(1, round((high - low) / 5)))
    yield from _grid(y, [2**power for power in powers], mebibytes)
    words = [_threshold_words(threshold, y) for threshold in thresholds]
    if node.kernel_min_bytes:
        at = y(node.kernel_min_bytes)
        yield f'{rect(LEFT, at, RIGHT - LEFT, bottom - at)} fill="{palette.KERNEL}" opacity=".13"/>'
        words.append(_Words(at + 16, f"the kernel kills at {mebibytes(node.kernel_min_bytes)}", palette.KERNEL))
    yield from _threshold_lines(y, thresholds)
    yield _curve(plot, y, node.free_bytes, QUIET, dash="2 3")
    yield _curve(plot, y, node.available_bytes, ACCENT)
    yield from _words(_apart(words, top, bottom))


# ---- CPU, disks, process ids -----------------------------------------------------------------------------------------


def _cpu_panel(plot: Plot) -> Panel:
    node = plot.node
    height = 220 if node.panels[0] == story.CPU else 130
    layers, missing = [], [0] * len(node.times_us)
    for series in node.pods:
        pod = plot.view.pods[series.pod]
        granted = [each or 0 for each in series.cpu_granted_milli]
        layers.append(_Layer(plot.name(pod.key), pod.colour, granted))
        for index, wanted in enumerate(series.cpu_wanted_milli):
            missing[index] += max(0, (wanted or 0) - granted[index])
    layers.append(_Layer("not granted", _DENIED, missing))
    most = max(map(sum, zip(*(layer.values for layer in layers), strict=True)))
    is_full = most > node.cpu_milli // 2
    highest = max(most, node.cpu_milli) if is_full else most

    def draw(plot: Plot, top: float) -> Iterator[str]:
        y = _linear(top, height, highest * 1.04)
        yield from _grid(y, range(0, highest + 1, _round_step(highest / 4)), lambda milli: f"{milli / 1000:g}")
        all_cores = _Words(y(node.cpu_milli), f"all {node.cpu_milli / 1000:g} cores", INK)
        words = _apart([all_cores] if is_full else [], top, top + height)
        yield from _stack(plot, y, layers, words)
        if any(missing):
            wanted = [sum(values) for values in zip(*(layer.values for layer in layers), strict=True)]
            points = [(plot.x(node.times_us[index]), y(wanted[index])) for index in plot.indices]
            yield f'<path clip-path="url(#c)" d="{path(points)}" fill="none" stroke="{_SHORT}" stroke-width="1.5"/>'
        if is_full:
            yield line(LEFT, y(node.cpu_milli), RIGHT, y(node.cpu_milli), INK)
        yield from _words(words)

    note = f"in cores; red: wanted but not granted; the node has {node.cpu_milli / 1000:g}"
    return Panel("CPU granted and wanted", note, height, draw)


def _share_panel(plot: Plot) -> Panel:
    """Return what pods got of the CPU they wanted; those that fared alike share a line."""
    node = plot.node
    alike: dict[tuple[float | None, ...], list[PodSeries]] = {}
    for series in node.pods:
        if _slowed(node.times_us, series):
            alike.setdefault(tuple(map(_share, *_cpu(series))), []).append(series)
    worst = sorted(alike.items(), key=lambda item: _least(item[0]))[:_MOST_SHARES]

    def draw(plot: Plot, top: float) -> Iterator[str]:
        y = _linear(top, _SHARE_HEIGHT, 108)
        yield from _grid(y, (0, 50, 100), lambda percent: f"{percent} %")
        labels = []
        for shares, same in worst:
            pod = plot.view.pods[same[0].pod]
            yield from _share_lines(plot, y, shares, pod.colour)
            names = plot.name(pod.key) + (f" and {len(same) - 1} more" if len(same) > 1 else "")
            least = _least(shares)
            labels.append(_Words(y(least), f"{names}: {share_words(least / 100)}", INK))
        yield from _words(_apart(labels, top, top + _SHARE_HEIGHT))

    more = f"; the worst {_MOST_SHARES} of {len(alike)} lines" if len(alike) > _MOST_SHARES else ""
    return Panel("CPU share", f"granted of wanted, of pods that were short of CPU{more}", _SHARE_HEIGHT, draw)


def _least(shares: Sequence[float | None]) -> float:
    return min(share for share in shares if share is not None)


def _share(wanted: int | None, granted: int | None) -> float | None:
    """Return what a pod got of the CPU it wanted, in percent; None where it wanted nothing."""
    return 100 * (granted or 0) / wanted if wanted else None


def _share_lines(plot: Plot, y: Scale, shares: Sequence[float | None], colour: str) -> Iterator[str]:
    points: list[tuple[float, float]] = []
    for index in [*plot.indices, -1]:
        share = None if index < 0 else shares[index]
        if share is not None:
            points.append((plot.x(plot.node.times_us[index]), y(share)))
        elif points:
            yield f'<path clip-path="url(#c)" d="{path(points)}" fill="none" stroke="{colour}" stroke-width="2.2"/>'
            points = []


def _slowed(times_us: Sequence[int], series: PodSeries) -> list[tuple[int, int]]:
    """Return when a pod got less CPU than it wanted."""
    denied = [(wanted or 0) - (granted or 0) for wanted, granted in zip(*_cpu(series), strict=True)]
    spans: list[tuple[int, int]] = []
    for (start_us, first), (end_us, last) in pairwise(zip(times_us, denied, strict=True)):
        if start_us < end_us and (first > 0 or last > 0):
            if spans and spans[-1][1] == start_us:
                spans[-1] = spans[-1][0], end_us
            else:
                spans.append((start_us, end_us))
    return spans


def _cpu(series: PodSeries) -> tuple[Sequence[int | None], Sequence[int | None]]:
    return series.cpu_wanted_milli, series.cpu_granted_milli


# ---- services --------------------------------------------------------------------------------------------------------


def _service_panels(plot: Plot) -> Iterator[Panel]:
    """Yield how services answered, and how often not: those of the whole run, once."""
    services = sorted(plot.view.summary.services, key=lambda service: (-service.errors, -(service.worst_p99_us or 0)))
    shown = services[:_MOST_SHARES]
    more = f"; the worst {_MOST_SHARES} of {len(services)}" if len(services) > _MOST_SHARES else ""
    if any(service.worst_p99_us is not None for service in shown):
        yield _service_panel(shown, "Latency of services", f"p99, a model{more}", lambda sample: sample.p99_us, latency)
    if any(service.worst_errors_permille for service in shown):
        note = f"requests refused, late or failed, a model{more}"
        yield _service_panel(
            shown, "Errors of services", note, lambda sample: sample.errors_permille, lambda value: f"{value / 10:g} %"
        )


def _service_panel(
    services: Sequence[ServiceOutcome],
    title: str,
    note: str,
    value: Callable[[ServiceSample], int | None],
    words: Callable[[int], str],
) -> Panel:
    """Return one value of each service over time; between two samples the earlier one holds."""
    courses = [[(sample.time_us, value(sample)) for sample in service.samples] for service in services]
    highest = max((number for course in courses for _, number in course if number is not None), default=0) or 1

    def draw(plot: Plot, top: float) -> Iterator[str]:
        y = _linear(top, _SHARE_HEIGHT, highest * 1.08)
        yield from _grid(y, range(0, highest + 1, max(1, _round_step(highest / 3))), words)
        labels = []
        for service, course, colour in zip(services, courses, _SERVICES, strict=False):
            most = max((number for _, number in course if number is not None), default=0)
            yield from _service_lines(plot, y, course, colour)
            name = service.workload.partition("/")[2]
            labels.append(_Words(y(most), f"{name}: {words(most)} at most", colour))
        yield from _words(_apart(labels, top, top + _SHARE_HEIGHT))

    return Panel(title, note, _SHARE_HEIGHT, draw)


def _service_lines(plot: Plot, y: Scale, course: Sequence[tuple[int, int | None]], colour: str) -> Iterator[str]:
    points: list[tuple[float, float]] = []
    for (from_us, number), (to_us, _) in pairwise([*course, (plot.view.end_us, None)]):
        if number is not None and to_us >= plot.from_us and from_us <= plot.to_us:
            points += ((plot.x(time_us), y(number)) for time_us in (from_us, to_us))
        if points and (number is None or to_us == plot.view.end_us):
            yield f'<path clip-path="url(#c)" d="{path(points)}" fill="none" stroke="{colour}" stroke-width="2"/>'
            points = []


def _signal_panel(plot: Plot, series: SignalSeries) -> Panel:
    height = 180 if plot.node.panels[0] == series.signal.value else 100
    resource = SIGNALS[series.signal].resource

    def draw(plot: Plot, top: float) -> Iterator[str]:
        thresholds = _thresholds(plot, series.signal)
        highest = max(1, *series.left, *(threshold.amount for threshold in thresholds))
        y = _linear(top, height, highest * 1.08)
        step = 2 ** ceil(log2(highest / 4)) if highest >= 1 << 20 else _round_step(highest / 4)
        yield from _grid(y, range(0, highest + 1, step), lambda left: amount(left, resource) if left else "0")
        yield from _threshold_lines(y, thresholds)
        yield _curve(plot, y, series.left, ACCENT)
        yield from _words(_apart([_threshold_words(threshold, y) for threshold in thresholds], top, top + height))

    return Panel(series.signal, f"left of {amount(series.capacity, resource)}", height, draw)


def _round_step(rough: float) -> int:
    power = 10 ** floor(log2(max(1, rough)) / log2(10))
    return next(int(power * each) for each in (1, 2, 5, 10) if power * each >= rough or each == 10)


# ---- when pods ran ---------------------------------------------------------------------------------------------------


def _checks(plot: Plot, top: float) -> Iterator[str]:
    """Yield a tick for each look of the kubelet; those too close to tell apart are a band."""
    for span in plot.node.looks:
        last_us = min(span.last_us, plot.to_us)
        if span.first_us > last_us:
            continue
        left, right = plot.x(span.first_us), plot.x(last_us)
        if plot.x(span.first_us + span.every_us) - left < _CLOSE:
            yield f'{rect(left, top, max(1.5, right - left), _CHECKS)} fill="{palette.KUBELET}" opacity=".45"/>'
        else:
            ticks = "".join(
                f"M{round(plot.x(time_us), 1):g} {round(top, 1):g}v{_CHECKS}"
                for time_us in range(span.first_us, last_us + 1, span.every_us)
            )
            yield f'<path d="{ticks}" stroke="{palette.KUBELET}" stroke-width="1.5"/>'


def _conditions(plot: Plot, top: float) -> Iterator[str]:
    names = sorted({span.condition for span in plot.node.conditions})
    for span in plot.node.conditions:
        at = top + names.index(span.condition) * _ROW
        start = max(LEFT, plot.x(span.start_us))
        end = min(RIGHT, plot.x(plot.view.end_us if span.end_us is None else span.end_us))
        if end > LEFT and start < RIGHT:
            yield f'{rect(start, at + 1, max(2, end - start), _ROW - 4)} rx="3" fill="{SOFT}"/>'
            inside = end - start > 110
            x, anchor = (start + 6, "") if inside else (end + 6, "") if end + 110 < RIGHT else (start - 6, "end")
            yield text(x, at + 12, span.condition, anchor=anchor, fill="#fff" if inside else SOFT, size=11)


def _pods(plot: Plot, top: float) -> Iterator[str]:
    node = plot.node
    for row, series in enumerate(node.pods[:_MOST_ROWS]):
        pod = plot.view.pods[series.pod]
        at = top + row * _ROW
        spans = [
            (max(LEFT, plot.x(start_us)), min(RIGHT, plot.x(end_us)))
            for start_us, end_us in _running(node.times_us, series.anon_bytes)
            if plot.x(end_us) > LEFT and plot.x(start_us) < RIGHT
        ]
        for start, end in spans:
            yield f'{rect(start, at + 1, max(1.5, end - start), _ROW - 4)} rx="3" fill="{pod.colour}"/>'
        for start_us, end_us in _slowed(node.times_us, series):
            start, end = max(LEFT, plot.x(start_us)), min(RIGHT, plot.x(end_us))
            if end > LEFT and start < RIGHT:
                yield f'{rect(start, at + _ROW - 5, max(1.5, end - start), 3)} fill="{_SHORT}"/>'
        kills = [kill for kill in plot.kills if kill.pod == pod.key]
        signs = [plot.x(kill.time_us) for kill in kills]
        yield from _row_name(plot.name(pod.key), pod.colour, at + 12, spans, signs)
        yield from (sign(kill.by, x, at + _ROW / 2 - 1, 4) for kill, x in zip(kills, signs, strict=True))


def _row_name(
    name: str, colour: str, y: float, spans: Sequence[tuple[float, float]], signs: Sequence[float]
) -> Iterator[str]:
    """Yield a name where it fits: on one of the spans, or else between them, clear of signs."""
    width = LETTER * len(name) + 12
    edges = [LEFT, RIGHT, *(edge for span in spans for edge in span), *(x + side for x in signs for side in (-8, 8))]
    parts = [
        (start, end)
        for start, end in pairwise(sorted(set(edges)))
        if not any(start < x + 8 and end > x - 8 for x in signs)
    ]
    inside = {part for part in parts if any(span[0] <= part[0] and part[1] <= span[1] for span in spans)}
    # Where it fits, rather on a span than beside it; where it fits nowhere, in the widest part.
    place = min(parts, key=lambda part: (max(0, width - part[1] + part[0]), part not in inside), default=None)
    if place is not None:
        fill = "#fff" if place in inside and palette.is_dark(colour) else INK
        words = fitted(name, place[1] - place[0] - 8) if place[1] - place[0] < width else name
        yield text(place[0] + 6, y, words, weight=550, fill=fill, size=11)


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


def _linear(top: float, height: float, highest: float) -> Scale:
    return lambda value: top + height * (1 - value / highest)


def _thresholds(plot: Plot, signal: str) -> list[ThresholdLine]:
    return [threshold for threshold in plot.node.thresholds if threshold.signal == signal]


def _colour(threshold: ThresholdLine) -> str:
    return palette.KERNEL if threshold.hard else SOFT


def _threshold_lines(y: Scale, thresholds: Sequence[ThresholdLine]) -> Iterator[str]:
    for threshold in thresholds:
        yield line(LEFT, y(threshold.amount), RIGHT, y(threshold.amount), _colour(threshold), dash="6 4")


def _threshold_words(threshold: ThresholdLine, y: Scale) -> _Words:
    kind = "hard" if threshold.hard else "soft"
    return _Words(y(threshold.amount), f"{kind}: {threshold.statement}", _colour(threshold))


def _apart(labels: Sequence[_Words], top: float, bottom: float) -> list[_Words]:
    """Return a place for each label: above its line where there is room, and never two on one another."""
    placed: list[_Words] = []
    least = top + _LINE - 3
    for words in sorted(labels, key=lambda label: label.y):
        placed.append(replace(words, y=max(words.y - 5, least)))
        least = placed[-1].y + _LINE
    most = bottom - 3
    for index in reversed(range(len(placed))):
        placed[index] = replace(placed[index], y=min(placed[index].y, most))
        most = placed[index].y - _LINE
    return placed


def _words(labels: Sequence[_Words]) -> Iterator[str]:
    for label in labels:
        yield halo(RIGHT - 6, label.y, label.words, anchor="end", fill=label.colour)


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


def _stack(plot: Plot, y: Scale, layers: Sequence[_Layer], taken: Sequence[_Words]) -> Iterator[str]:
    """Yield stacked bands, then their names where they fit, clear of labels."""
    times, indices = plot.node.times_us, plot.indices
    base = [0] * len(times)
    names: list[str] = []
    for layer in layers:
        if not any(layer.values):
            continue
        upper = [low + value for low, value in zip(base, layer.values, strict=True)]
        yield _band(plot, y, base, upper, f'fill="{layer.colour}" stroke="{PAPER}" stroke-width=".6"')
        spans = [(plot.x(times[index]), y(base[index]), y(upper[index])) for index in indices]
        names += _name(layer, [*_closer(spans)], taken)
        base = upper
    yield from names


def _band(plot: Plot, y: Scale, low: Sequence[int], high: Sequence[int], paint: str) -> str:
    """Return the area between two series."""
    times, indices = plot.node.times_us, plot.indices
    points = [(plot.x(times[index]), y(high[index])) for index in indices]
    points += [(plot.x(times[index]), y(low[index])) for index in reversed(indices)]
    return f'<path clip-path="url(#c)" d="{path(points)}Z" {paint}/>'


def _name(layer: _Layer, spans: Sequence[tuple[float, float, float]], taken: Sequence[_Words]) -> Iterator[str]:
    """Yield the name of a band at the first place where it fits."""
    width = LETTER * len(layer.name) + 12
    for at, (start, _, _) in enumerate(spans):
        x = max(LEFT, start)
        if x + width > RIGHT or (at + 1 < len(spans) and spans[at + 1][0] <= x):
            continue
        low, high = _narrowest(spans[at:], x + width)
        y = (low + high) / 2 + 4
        is_free = all(x + width < RIGHT - 6 - LETTER * len(words.words) or abs(words.y - y) > _LINE for words in taken)
        if low - high >= _NAME_HEIGHT and is_free:
            fill = "#fff" if palette.is_dark(layer.colour) else INK
            yield text(x + 8, y, layer.name, weight=550, fill=fill)
            return


def _closer(spans: Sequence[tuple[float, float, float]]) -> Iterator[tuple[float, float, float]]:
    """Yield the points of a band, and some between those that are far apart: a name may begin there."""
    for one, other in pairwise(spans):
        steps = max(1, ceil((min(RIGHT, other[0]) - max(LEFT, one[0])) / 24))
        for step in range(steps):
            low, middle, high = (start + (end - start) * step / steps for start, end in zip(one, other, strict=True))
            yield low, middle, high
    yield spans[-1]


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
