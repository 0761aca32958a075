"""The panels of memory: by pod, and what is left of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log2

from podqos.answers.picture.axes import apart, height_of, linear_axis, logarithmic_axis
from podqos.answers.picture.named import PodNames
from podqos.answers.picture.thresholds import threshold_labels, threshold_levels
from podqos.answers.run_picture import Axis, Curve, Label, Layer, LayerKind, Level, LineKind, Measures, Panel
from podqos.answers.run_story import MEMORY
from podqos.answers.run_view import NodeView
from podqos.eviction.signals import Signal
from podqos.wording import mebibytes

_MI = 1 << 20
_HEIGHT, _LOW_HEIGHT, _LEFT_HEIGHT = 300, 230, 130
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
    height = _HEIGHT if is_whole else _LOW_HEIGHT
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
