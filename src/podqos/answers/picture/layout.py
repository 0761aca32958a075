"""The picture of a node's run, put together."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from podqos.answers.picture.cpu import cpu_panel, share_panel
from podqos.answers.picture.memory import left_panel, memory_panel
from podqos.answers.picture.named import PodNames
from podqos.answers.picture.rows import checks_panel, conditions_panel, pods_panel
from podqos.answers.picture.services import service_panels
from podqos.answers.picture.thresholds import signal_panel
from podqos.answers.run_picture import NodePicture, Panel, Victim
from podqos.answers.run_story import CPU, LEFT, MEMORY
from podqos.answers.run_view import Kill, NodeView, RunView


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
