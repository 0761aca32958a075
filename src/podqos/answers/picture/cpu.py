"""The panels of CPU: what was wanted and granted, and what pods got of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from podqos.answers.picture.axes import apart, axis_with, height_of, linear_axis
from podqos.answers.picture.named import PodNames
from podqos.answers.run_picture import Curve, Label, Layer, LayerKind, Level, LineKind, Panel, TimeSpan
from podqos.answers.run_story import CPU
from podqos.answers.run_view import NodeView, PodView
from podqos.sim.series import PodSeries
from podqos.words.outcome import share_words

_HEIGHT, _FIRST_HEIGHT, _SHARE_HEIGHT = 130, 220, 110
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
    height = _FIRST_HEIGHT if node.panels[:1] == (CPU,) else _HEIGHT
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
