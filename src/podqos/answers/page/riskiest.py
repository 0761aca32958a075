"""Which container a page opens on: the one whose growth does most harm, by ``forecast``'s own answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from podqos.answers.forecast import DEFAULT_RATES, GrowthRequest, growing_node
from podqos.answers.node_state import NodeState
from podqos.answers.page.harm import Harm, Riskiest
from podqos.answers.page.nodes import PageNode
from podqos.answers.page.shown import ShownSource
from podqos.errors import InputError
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.model.resources import MEMORY
from podqos.survival.forecast.forecast import forecast
from podqos.survival.forecast.growing import GrowingNode

_MOST_CHOICES = 500
_MOST_TRIED = 12
"""Containers of a node whose growth is forecast: those without a limit first, and of these the largest."""
_MOST_NODES = 3
_RATE = DEFAULT_RATES[1]
_ALL_RATES = (1 << 20, _RATE, 1 << 33)
"""A slow growth, a usual one and a fast one."""


def riskiest(page: ShownSource, nodes: Iterable[PageNode], profile: Profile) -> Riskiest | None:
    """Return the container whose growth is worst, of the nodes in their order; None where there is none."""
    worst: Riskiest | None = None
    tried = 0
    for node in nodes:
        if node.state is None:
            continue
        for candidate in _candidates(node, page.state(node), profile):
            if worst is None or candidate.harm > worst.harm:
                worst = candidate
        tried += 1
        if tried == _MOST_NODES or (worst is not None and worst.harm.is_open_ended):
            break
    return worst


def growable(state: NodeState) -> tuple[str, ...]:
    """Return what can grow: first what no limit of its own ends, most memory first."""
    containers = [
        (_is_limited(entry.pod, usage.name), -usage.working_set_bytes, f"{entry.pod.key}:{usage.name}")
        for entry in state.snapshot.pods
        for usage in entry.containers
    ]
    return tuple(name for _, _, name in sorted(containers)[:_MOST_CHOICES])


def _candidates(node: PageNode, state: NodeState, profile: Profile) -> Iterator[Riskiest]:
    for growing in growable(state)[:_MOST_TRIED]:
        try:
            grows = growing_node(state, GrowthRequest(growing=growing, profile=profile))
        except InputError:  # its pods do not fit: the node says so itself
            return
        yield Riskiest(node.name, growing, _harm(grows))


def _harm(grows: GrowingNode) -> Harm:
    growth = forecast(grows, _RATE)
    return Harm(
        is_open_ended=growth.needed is not None,
        has_race=len({grows.kubelet_first(rate) for rate in _ALL_RATES}) > 1,
        of_others=sum((outcome.probability for outcome in growth.outcomes if not outcome.ends_growth), Fraction(0)),
        by_kernel=1 - growth.kubelet_first,
        hurry=-growth.out_of_memory_after_seconds,
    )


def _is_limited(pod: Pod, container: str) -> bool:
    return any(
        running_container.name == container and MEMORY in running_container.resources.limits
        for running_container in pod.running_containers
    )
