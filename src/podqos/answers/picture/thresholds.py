"""Eviction thresholds as lines with labels, and the panels of other signals than memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.answers.picture.axes import apart, height_of, linear_axis
from podqos.answers.run_picture import Axis, Curve, Label, Level, LineKind, Panel
from podqos.answers.run_view import NodeView
from podqos.eviction.signals import SIGNALS
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.sim.node.recording import ThresholdLine
from podqos.sim.series import SignalSeries
from podqos.words.ranking import amount

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
