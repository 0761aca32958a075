"""The panels of rows: the kubelet's checks, the node's conditions, and when pods ran."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podqos.answers.picture.cpu import short_of_cpu
from podqos.answers.picture.named import PodNames
from podqos.answers.run_picture import Measures, Panel, Row, TimeSpan
from podqos.answers.run_view import NodeView, RunView
from podqos.model.time_units import SECOND_US

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
