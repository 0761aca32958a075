"""Long computations: a whole scenario, and leaks in every pod of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podqos.answers.cluster_state import cluster_state
from podqos.answers.node_state import NodeState
from podqos.answers.page.shown import ShownSource
from podqos.answers.page.source import PageSource
from podqos.answers.picture.layout import with_pictures
from podqos.answers.run_view import RunView
from podqos.errors import InputError
from podqos.library.blast_radius import blast
from podqos.library.simulation import simulate
from podqos.model.profile import LATEST
from podqos.sim.blast import BlastRadius
from podqos.web.ui.source_files import varied

Told = Callable[[float], None]
"""Called with the progress, from 0 to 1."""


def run_of(source: PageSource, edits: Sequence[str], told: Told) -> RunView:
    """Run a scenario with changed values, and return its view."""
    scenario = varied(source, edits)
    end_us = max(scenario.duration_us, 1)
    return with_pictures(simulate(scenario, progress=lambda now_us, _: told(now_us / end_us)).report)


def blast_of(source: PageSource, edits: Sequence[str], node: str, told: Told, cores: int = 1) -> BlastRadius:
    """Let each pod leak in turn: on all nodes of a scenario, or on the named node of a cluster."""

    def progress(done: int, total: int) -> None:
        told(done / max(total, 1))

    if source.scenario is not None:
        return blast(varied(source, edits), progress=progress, cores=cores)
    profile = LATEST if source.cluster is None else source.cluster.profile
    return blast(_state(source, node), profile=profile, progress=progress, cores=cores)


def _state(source: PageSource, node: str) -> NodeState:
    if source.cluster is not None and node:
        return cluster_state(source.cluster, node)
    shown = ShownSource(source)
    state = shown.state(shown.node(node))
    if not state.snapshot.pods:
        raise InputError("it has no pods", where=node, fix="choose another node")
    return state
