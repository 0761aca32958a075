"""The layout of the picture of a node's run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from math import ceil, floor, log2, log10

from msgspec import Struct
from msgspec.structs import replace

from podqos.amounts import amount, mebibytes
from podqos.eviction.signals import SIGNALS, Signal
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.model.time_units import SECOND_US
from podqos.runs.picture import (
    Axis,
    Curve,
    Label,
    Layer,
    LayerKind,
    Level,
    LineKind,
    Measures,
    NodePicture,
    Panel,
    Row,
    Tick,
    TimeSpan,
    Victim,
)
from podqos.runs.view import LEFT, Kill, NodeView, PodView, RunView, share_words
from podqos.sim.record import ThresholdLine
from podqos.sim.series import PodSeries, SignalSeries
from podqos.sim.services.outcome import ServiceOutcome, ServiceSample
from podqos.text.journal import latency


class PodNames:
    """Names pods, with their namespace where another pod has the same name."""

    def __init__(self, pods: Sequence[PodView]) -> None:
        self._pods = pods
        self._times = Counter(_bare(pod.key) for pod in pods)

    def of(self, place: int) -> str:
        """Return the name of the pod at a place of the list."""
        return self.by_key(self._pods[place].key)

    def by_key(self, key: str) -> str:
        """Return the name of a pod by its key."""
        return key if self._times[_bare(key)] > 1 else _bare(key)


def _bare(key: str) -> str:
    return key.partition("/")[2]


Words = Callable[[int], str]
_MEASURES = Measures()
# Labels stand this far above their line.
_ABOVE = 5


def linear_axis(high: float, words: Words, *, wanted: int, is_binary: bool = False) -> Axis:
    """Return an axis from zero with about so many ticks; those of bytes are powers of two apart."""
    high = max(high, 1)
    rough = high / max(1, wanted)
    step = 2 ** ceil(log2(rough)) if is_binary else round_step(rough)
    return axis_with(high, (step * place for place in range(floor(high / step + 1e-9) + 1)), words)


def axis_with(high: float, values: Iterable[float], words: Words) -> Axis:
    """Return an axis from zero with these ticks."""
    return Axis(0, high, is_logarithmic=False, ticks=tuple(Tick(value, words(round(value))) for value in values))


def logarithmic_axis(low: float, high: float, words: Words) -> Axis:
    """Return an axis with powers of two, about five of them."""
    first, last = ceil(log2(low)), floor(log2(high))
    step = max(1, round_step((last - first) / 5)) if last > first else 1
    powers = range(ceil(first / step) * step, last + 1, step)
    return Axis(low, high, is_logarithmic=True, ticks=tuple(Tick(2**power, words(2**power)) for power in powers))


def round_step(rough: float) -> int:
    """Return a step of 1, 2 or 5, or a multiple of ten of them, that is not smaller."""
    if rough <= 1:
        return 1
    power: int = 10 ** floor(log10(rough))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= rough or digit == 10)


def height_of(axis: Axis, height: float, value: float) -> float:
    """Return where a value lies, from the top of a panel."""
    if not axis.is_logarithmic:
        return height * (1 - (value - axis.low) / (axis.high - axis.low))
    power = log2(min(axis.high, max(axis.low, value)))
    return height * (1 - (power - log2(axis.low)) / (log2(axis.high) - log2(axis.low)))


def apart(labels: Sequence[Label], height: float) -> tuple[Label, ...]:
    """Return a place for each label: above its line where there is room, and never two on one another."""
    placed: list[Label] = []
    least = _MEASURES.line - 3
    for label in sorted(labels, key=lambda label: label.y):
        placed.append(replace(label, y=max(label.y - _ABOVE, least)))
        least = placed[-1].y + _MEASURES.line
    most = height - 3
    for index in reversed(range(len(placed))):
        placed[index] = replace(placed[index], y=round(min(placed[index].y, most), 2))
        most = placed[index].y - _MEASURES.line
    return tuple(placed)


_HEIGHT, _FIRST_HEIGHT = 100, 180


def threshold_levels(thresholds: Sequence[ThresholdLine]) -> tuple[Level, ...]:
    """Return a line for each threshold."""
    return tuple(Level(_kind(threshold), threshold.amount) for threshold in thresholds)


def threshold_labels(thresholds: Sequence[ThresholdLine], axis: Axis, height: float) -> Iterator[Label]:
    """Yield what thresholds say, at their lines."""
    for threshold in thresholds:
        kind = _kind(threshold)
        yield Label(kind, height_of(axis, height, threshold.amount), f"{kind}: {threshold.statement}")


def signal_panel(node: NodeView, series: SignalSeries) -> Panel:
    """Return what is left of a disk, of inodes or of process ids."""
    height = _FIRST_HEIGHT if node.panels[:1] == (series.signal.value,) else _HEIGHT
    resource = SIGNALS[series.signal].resource
    thresholds = [threshold for threshold in node.thresholds if threshold.signal is series.signal]
    high = max(1, *series.left, *(threshold.amount for threshold in thresholds)) * 1.08
    is_binary = resource in {MEMORY, EPHEMERAL_STORAGE}

    def words(value: int) -> str:
        return amount(value, resource) if is_binary else f"{value:,}"

    axis = linear_axis(high, words, wanted=4, is_binary=is_binary)
    return Panel(
        "signal",
        series.signal.value,
        f"what is left of {words(series.capacity)}",
        height,
        height,
        axis,
        levels=threshold_levels(thresholds),
        curves=(Curve(LineKind.AVAILABLE, series.left),),
        labels=apart([*threshold_labels(thresholds, axis, height)], height),
        hidden_as=series.signal.value,
    )


def _kind(threshold: ThresholdLine) -> LineKind:
    return LineKind.HARD if threshold.hard else LineKind.SOFT


_MI = 1 << 20
_MEMORY_HEIGHT, _LOW_HEIGHT, _LEFT_HEIGHT = 300, 230, 130
# A label below its line instead of above it.
_BELOW = 16


def memory_panel(node: NodeView, names: PodNames) -> Panel:
    """Return memory by pod; where most of it is never used the axis ends earlier, and the note says so."""
    layers = [Layer(LayerKind.SYSTEM, "system", values=node.system_bytes)]
    layers += (
        Layer(LayerKind.POD, names.of(series.pod), place, ("anonBytes", "activeFileBytes"))
        for place, series in enumerate(node.pods)
    )
    cache = _sums(*(series.inactive_file_bytes for series in node.pods))
    if any(cache):
        layers.append(Layer(LayerKind.CACHE, "inactive page cache", values=cache))
    used = (column for series in node.pods for column in (series.anon_bytes, series.active_file_bytes))
    most = max(_sums(node.system_bytes, cache, *used), default=0)
    is_whole = 2 * most >= node.memory_bytes or not most
    high = node.memory_bytes if is_whole else round(most * 1.15)
    height = _MEMORY_HEIGHT if is_whole else _LOW_HEIGHT
    axis = linear_axis(high, mebibytes, wanted=5, is_binary=True)
    curves, labels = _pods_limit(node, axis, height)
    levels = [
        Level(LineKind.HARD if threshold.hard else LineKind.SOFT, node.memory_bytes - threshold.amount)
        for threshold in node.thresholds
        if threshold.signal is Signal.MEMORY
    ]
    ends = "" if is_whole else f", the axis ends at {mebibytes(round(high / _MI) * _MI)}"
    least = min(node.available_bytes, default=node.memory_bytes)
    return Panel(
        MEMORY,
        "Memory by pod",
        f"working sets, stacked; the node has {mebibytes(node.memory_bytes)}{ends}",
        height,
        _LOW_HEIGHT,
        axis,
        tuple(layers),
        (*levels, Level(LineKind.CAPACITY, node.memory_bytes)) if is_whole else (),
        curves,
        labels,
        hidden_as=f"memory (at least {mebibytes(least)} available)",
    )


def _pods_limit(node: NodeView, axis: Axis, height: float) -> tuple[tuple[Curve, ...], tuple[Label, ...]]:
    """Return the line at which all pods together reach their limit, and its label.

    The system's memory is below them in the stack, but does not count.
    """
    limit, system = node.pods_limit_bytes, node.system_bytes
    if limit is None or min(system, default=0) + limit > axis.high:
        return (), ()
    # Where the system has grown they reach the machine's end before.
    reached = tuple(min(size + limit, axis.high) for size in system)
    last = next((size for time_us, size in zip(node.times_us, reached, strict=True) if _is_last(node, time_us)), limit)
    label = Label(LineKind.PODS, height_of(axis, height, last), f"limit of all pods, {mebibytes(limit)}")
    return (Curve(LineKind.PODS, reached),), apart([label], height)


def _is_last(node: NodeView, time_us: int) -> bool:
    end_us = node.times_us[-1] if node.drawn_until_us is None else node.drawn_until_us
    return time_us >= min(end_us, node.times_us[-1])


def left_panel(node: NodeView) -> Panel:
    """Return how much memory was left, as the kubelet and as the kernel count."""
    thresholds = [threshold for threshold in node.thresholds if threshold.signal is Signal.MEMORY]
    lowest = min([node.kernel_min_bytes or 64 * _MI, *(threshold.amount for threshold in thresholds)]) / 2
    low = 2 ** floor(log2(max(_MI, lowest)))
    axis = logarithmic_axis(low, max(low * 4, *node.available_bytes, *node.free_bytes), mebibytes)
    labels = [*threshold_labels(thresholds, axis, _LEFT_HEIGHT)]
    if node.kernel_min_bytes:
        at = height_of(axis, _LEFT_HEIGHT, node.kernel_min_bytes)
        # Below a threshold that would go through its words.
        lines = (height_of(axis, _LEFT_HEIGHT, threshold.amount) for threshold in thresholds)
        lowest_line = max(at, *(line for line in lines if line < at + Measures().line), at)
        words = f"the kernel kills at {mebibytes(node.kernel_min_bytes)}"
        labels.append(Label(LineKind.KERNEL, lowest_line + _BELOW, words))
    least = min(node.available_bytes, default=node.memory_bytes)
    return Panel(
        "left",
        "Memory left",
        "logarithmic; line: memory.available, as the kubelet counts; dots: free memory, as the kernel counts",
        _LEFT_HEIGHT,
        _LEFT_HEIGHT,
        axis,
        levels=threshold_levels(thresholds),
        curves=(Curve(LineKind.FREE, node.free_bytes), Curve(LineKind.AVAILABLE, node.available_bytes)),
        labels=apart(labels, _LEFT_HEIGHT),
        killing_below=node.kernel_min_bytes or None,
        hidden_as=f"memory left (at least {mebibytes(least)})" if MEMORY in node.panels else "",
    )


def _sums(*columns: Sequence[int | None]) -> tuple[int, ...]:
    """Return the sums of columns; those without values do not count."""
    return tuple(sum(value or 0 for value in values) for values in zip(*filter(None, columns), strict=True))


_CPU_HEIGHT, _CPU_FIRST_HEIGHT, _SHARE_HEIGHT = 130, 220, 110
MOST_LINES = 6
"""How many lines a panel has where each stands for one pod or service."""


def cpu_panel(node: NodeView, names: PodNames) -> Panel | None:
    """Return the CPU of pods, and what was denied to them; None if no pod wants any."""
    granted, denied = [0] * len(node.times_us), [0] * len(node.times_us)
    for series in node.pods:
        for index, (wants, gets) in enumerate(zip(*_cpu(series), strict=True)):
            granted[index] += gets or 0
            denied[index] += max(0, (wants or 0) - (gets or 0))
    wanted = tuple(map(sum, zip(granted, denied, strict=True)))
    most = max(wanted, default=0)
    if not most:
        return None
    layers = [
        Layer(LayerKind.POD, names.of(series.pod), place, ("cpuGrantedMilli",))
        for place, series in enumerate(node.pods)
    ]
    height = _CPU_FIRST_HEIGHT if node.panels[:1] == (CPU,) else _CPU_HEIGHT
    is_full = 2 * most > node.cpu_milli
    high = max(node.cpu_milli, most) * 1.02 if is_full else most * 1.15
    axis = linear_axis(high, lambda milli: f"{milli / 1000:g}", wanted=4)
    cores = f"{node.cpu_milli / 1000:g}"
    label = Label(LineKind.PODS, height_of(axis, height, node.cpu_milli), f"all {cores} cores")
    return Panel(
        CPU,
        "CPU granted and wanted",
        f"in cores; red: demand not granted; the node has {cores}",
        height,
        height,
        axis,
        (*layers, Layer(LayerKind.DENIED, "not granted", values=tuple(denied))),
        (Level(LineKind.CAPACITY, node.cpu_milli),) if is_full else (),
        (Curve(LineKind.WANTED, wanted),) if any(denied) else (),
        apart([label] if is_full else [], height),
        hidden_as="CPU (no contention)",
    )


def share_panel(node: NodeView, pods: Sequence[PodView], names: PodNames) -> Panel | None:
    """Return what pods got of the CPU they wanted; those that fared alike share a line. None if all got enough."""
    alike: dict[tuple[float | None, ...], list[PodSeries]] = {}
    for series in node.pods:
        if short_of_cpu(node, series):
            alike.setdefault(tuple(map(_share, *_cpu(series))), []).append(series)
    if not alike:
        return None
    axis = axis_with(108, (0, 50, 100), lambda percent: f"{percent} %")
    curves, labels = [], []
    for shares, same in sorted(alike.items(), key=lambda item: _least(item[0]))[:MOST_LINES]:
        pod, least = same[0].pod, _least(shares)
        curves.append(Curve(LineKind.SHARE, shares, pods[pod].colour))
        others = f" and {len(same) - 1} more" if len(same) > 1 else ""
        words = f"{names.of(pod)}{others}: {share_words(least / 100)}"
        labels.append(Label(LineKind.PODS, height_of(axis, _SHARE_HEIGHT, least), words))
    more = f"; the worst {MOST_LINES} of {len(alike)} lines" if len(alike) > MOST_LINES else ""
    return Panel(
        "cpu-share",
        "CPU share",
        f"granted of wanted, of pods that were short of CPU{more}",
        _SHARE_HEIGHT,
        _SHARE_HEIGHT,
        axis,
        curves=tuple(curves),
        labels=apart(labels, _SHARE_HEIGHT),
    )


def short_of_cpu(node: NodeView, series: PodSeries) -> tuple[TimeSpan, ...]:
    """Return when a pod got less CPU than it wanted."""
    denied = [(wanted or 0) - (granted or 0) for wanted, granted in zip(*_cpu(series), strict=True)]
    spans: list[TimeSpan] = []
    for (start_us, first), (end_us, last) in pairwise(zip(node.times_us, denied, strict=True)):
        if start_us < end_us and (first > 0 or last > 0):
            if spans and spans[-1].to_us == start_us:
                spans[-1] = TimeSpan(spans[-1].from_us, end_us)
            else:
                spans.append(TimeSpan(start_us, end_us))
    return tuple(spans)


def _least(shares: Sequence[float | None]) -> float:
    return min(share for share in shares if share is not None)


def _share(wanted: int | None, granted: int | None) -> float | None:
    """Return what a pod got of the CPU it wanted, in percent; None where it wanted nothing."""
    return round(100 * (granted or 0) / wanted, 2) if wanted else None


def _cpu(series: PodSeries) -> tuple[Sequence[int | None], Sequence[int | None]]:
    return series.cpu_wanted_milli, series.cpu_granted_milli


_SERVICES_HEIGHT = 110
# The worst first.
_COLOURS = ("#b3261e", "#1f6feb", "#9a6700", "#8250df", "#1a7f37", "#57606a")


class _Figure(Struct, frozen=True):
    """A number that is drawn of each service."""

    name: str
    title: str
    note: str
    value: Callable[[ServiceSample], int | None]
    words: Callable[[int], str]


_LATENCY = _Figure("latency", "Latency of services", "p99, a model", lambda sample: sample.p99_us, latency)
_ERRORS = _Figure(
    "errors",
    "Errors of services",
    "requests refused, late or failed, a model",
    lambda sample: sample.errors_permille,
    lambda permille: share_words(permille / 1000),
)


def service_panels(view: RunView) -> Iterator[Panel]:
    """Yield how services answered, and how often not."""
    services = sorted(view.summary.services, key=lambda service: (-service.errors, -(service.worst_p99_us or 0)))
    shown = services[:MOST_LINES]
    more = f"; the worst {MOST_LINES} of {len(services)}" if len(services) > MOST_LINES else ""
    if any(service.worst_p99_us is not None for service in shown):
        yield _panel(_LATENCY, shown, more)
    if any(service.worst_errors_permille for service in shown):
        yield _panel(_ERRORS, shown, more)


def _panel(figure: _Figure, services: Sequence[ServiceOutcome], more: str) -> Panel:
    curves = []
    for service, colour in zip(services, _COLOURS, strict=False):
        values = tuple(map(figure.value, service.samples))
        times_us = tuple(sample.time_us for sample in service.samples)
        curves.append(Curve(LineKind.SHARE, values, colour, times_us))
    highest = [max((round(value) for value in curve.values if value is not None), default=0) for curve in curves]
    most = max(1, *highest)
    axis = linear_axis(most * 1.08, figure.words, wanted=3)
    labels = [
        Label(
            LineKind.PODS,
            height_of(axis, _SERVICES_HEIGHT, value),
            f"{service.workload.partition('/')[2]}: {figure.words(value)} at most",
            curve.colour,
        )
        for service, curve, value in zip(services, curves, highest, strict=True)
    ]
    return Panel(
        figure.name,
        figure.title,
        f"{figure.note}{more}",
        _SERVICES_HEIGHT,
        _SERVICES_HEIGHT,
        axis,
        curves=tuple(curves),
        labels=apart(labels, _SERVICES_HEIGHT),
    )


_ROW = Measures().row
_CHECKS = 12
_MOST_ROWS = 40


def checks_panel(node: NodeView) -> Panel:
    """Return the kubelet's eviction checks, whether or not they found anything to do."""
    every = ", ".join(dict.fromkeys(f"every {span.every_us / SECOND_US:g} s" for span in node.looks))
    return Panel("checks", "Kubelet checks", f"of its eviction thresholds, {every}", _CHECKS, _CHECKS)


def conditions_panel(view: RunView, node: NodeView) -> Panel:
    """Return the conditions that a node reported."""
    spans: dict[str, list[TimeSpan]] = {}
    for span in sorted(node.conditions, key=lambda span: span.condition):
        end_us = view.end_us if span.end_us is None else span.end_us
        spans.setdefault(span.condition, []).append(TimeSpan(span.start_us, end_us))
    rows = tuple(Row(condition, tuple(times)) for condition, times in spans.items())
    height = _ROW * len(rows)
    return Panel("conditions", "Conditions", "as the node reported them", height, height, rows=rows)


def pods_panel(view: RunView, node: NodeView, names: PodNames) -> Panel:
    """Return when pods ran, when they were short of CPU, and where they ended."""
    victims = [kill.pod for kill in view.kills if kill.node == node.name]
    rows = tuple(
        Row(
            names.of(series.pod),
            tuple(_running(node.times_us, series.anon_bytes)),
            series.pod,
            short_of_cpu(node, series),
            tuple(place for place, key in enumerate(victims) if key == view.pods[series.pod].key),
        )
        for series in node.pods[:_MOST_ROWS]
    )
    hidden = len(node.pods) - len(rows)
    notes = ["running time"]
    if any(row.short_of_cpu for row in rows):
        notes.append("red: short of CPU")
    if hidden > 0:
        notes.append(f"{hidden} more not shown")
    height = _ROW * len(rows)
    return Panel("lifelines", "Pods", "; ".join(notes), height, height, rows=rows)


def _running(times_us: Sequence[int], values: Sequence[int | None]) -> Iterator[TimeSpan]:
    """Yield when a series has values."""
    start_us: int | None = None
    for time_us, value in zip(times_us, values, strict=True):
        if value is not None and start_us is None:
            start_us = time_us
        elif value is None and start_us is not None:
            yield TimeSpan(start_us, time_us)
            start_us = None
    if start_us is not None:
        yield TimeSpan(start_us, times_us[-1])


def with_pictures(view: RunView) -> RunView:
    """Return a run with the pictures of its nodes, as pages need it."""
    return replace(view, pictures=tuple(node_picture(view, node) for node in view.nodes))


def node_picture(view: RunView, node: NodeView) -> NodePicture:
    """Return the picture of a node: what its story is about, then what is hidden, services, checks and rows."""
    names = PodNames(view.pods)
    charts = {name: panels for name, panels in _charts(view, node, names) if panels}
    panels = [panel for name in node.panels for panel in charts.get(name, ())]
    hidden = [panel for name, shown in charts.items() if name not in node.panels for panel in shown]
    panels += (replace(panel, is_hidden=True) for panel in hidden)
    # Services are those of the whole run: once is enough.
    if not view.nodes or view.nodes[0].name == node.name:
        panels += service_panels(view)
    if node.looks:
        panels.append(checks_panel(node))
    if node.conditions:
        panels.append(conditions_panel(view, node))
    return NodePicture(node.name, (*panels, pods_panel(view, node, names)), tuple(_victims(view, node, names)))


def _charts(view: RunView, node: NodeView, names: PodNames) -> Iterator[tuple[str, tuple[Panel, ...]]]:
    """Yield what can be drawn of a node, by the names in its list of panels."""
    yield MEMORY, (memory_panel(node, names),)
    yield LEFT, (left_panel(node),)
    cpu = (cpu_panel(node, names), share_panel(node, view.pods, names))
    yield CPU, tuple(panel for panel in cpu if panel is not None)
    for series in node.signals:
        yield series.signal.value, (signal_panel(node, series),)


def _victims(view: RunView, node: NodeView, names: PodNames) -> Iterator[Victim]:
    """Yield the victims of a node; the same again is the same workload for the same reason, whatever the figures."""
    workloads = {pod.key: pod.workload for pod in view.pods}
    firsts: dict[tuple[str, str, str], int] = {}

    def alike(kill: Kill) -> tuple[str, str, str]:
        return workloads.get(kill.pod, kill.pod), kill.by, re.sub(r"\d[\d.]*", "", kill.cause)

    kills = [kill for kill in view.kills if kill.node == node.name]
    for place, kill in enumerate(kills):
        yield Victim(names.by_key(kill.pod), firsts.setdefault(alike(kill), place))
