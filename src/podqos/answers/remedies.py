"""What saves the pods of a node as it is now, each way tried by deciding again.

The same for ``podqos rank`` and the page: of each order the pod that goes first, or a pod when its turn comes.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.agent.journal import By
from podqos.answers.node_state import NodeState
from podqos.answers.places import PodRemedies
from podqos.answers.watched_memory import watched_memory
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.model.profile import Profile
from podqos.model.resources import MEMORY
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet
from podqos.objects.kubelet_settings import memory_allocatable
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.counterfactual.counterfactual import Counterfactual, PodChange
from podqos.survival.counterfactual.turn import NodeNow, Turn
from podqos.survival.orders.orders import Orders, both_orders
from podqos.survival.orders.outlook import outlook
from podqos.words.counterfactual import Saving, Telling, saving
from podqos.words.unknowns import unknown_usage


def node_now(state: NodeState, orders: Orders, settings: CgroupSettings, kubelet: Kubelet) -> NodeNow:
    """Return a node in which remedies can be tried."""
    room = state.allocatable_bytes
    if room is None:
        capacities = {Signal.MEMORY: state.snapshot.node.memory_bytes}
        room = memory_allocatable(kubelet.config, capacities).allocatable[MEMORY].value
    return NodeNow(state.snapshot, orders, settings, {MEMORY: room}, state.owners, state.limit_ranges)


def ranked_now(state: NodeState, profile: Profile) -> NodeNow:
    """Return a node whose kubelet is short of memory, in which remedies can be tried."""
    kubelet = state.kubelet or DEFAULT_KUBELET
    watched = watched_memory(state, profile, kubelet=kubelet)
    seen = outlook(state.snapshot, watched.settings, profile, watched.exhaustion.thresholds)
    ranking = Ranking(Signal.MEMORY, profile=profile)
    orders = both_orders(state.snapshot, ranking, watched.settings, seen.domain)
    return node_now(state, orders, watched.settings, kubelet)


def turns(now: NodeNow, state: NodeState, uid: str) -> Iterator[tuple[By, Turn]]:
    """Yield what saves a pod when its turn comes, from the kubelet and from the kernel."""
    found = zip((By.KUBELET, By.KERNEL), now.turns(uid), strict=True)
    yield from ((by, _known(turn, state)) for by, turn in found if turn is not None)


def _known(turn: Turn, state: NodeState) -> Turn:
    """Return what saves a pod, without amounts where it is not known what it uses."""
    if turn.pod.key not in state.unmeasured:
        return turn
    kept = (found for found in turn.counterfactuals if found.change is PodChange.PRIORITY)
    return replace(turn, counterfactuals=tuple(kept))


def first_remedies(now: NodeNow, state: NodeState) -> Iterator[PodRemedies]:
    """Yield what saves the pod that is evicted first, and the one that is killed first."""
    evicted = next((ranked_pod.pod for ranked_pod in now.orders.eviction if ranked_pod.spared is None), None)
    killed = next(iter(now.orders.kernel_pods), None)
    for by, first in ((By.KUBELET, evicted), (By.KERNEL, killed)):
        turn = None if first is None else dict(turns(now, state, first.metadata.uid)).get(by)
        if turn is not None and not turn.pod.is_windows:
            ways = tuple(worded(counterfactual, by, turn, state) for counterfactual in turn.counterfactuals)
            unknown = unknown_usage(turn.pod.key) if turn.pod.key in state.unmeasured else ""
            yield PodRemedies(by, turn.pod.key, turn.container, turn.place, ways, unknown)


def worded(counterfactual: Counterfactual, by: By, turn: Turn, state: NodeState) -> Saving:
    """Return a way to save a pod, with whose usage it rests on."""
    concerned = (turn.pod.key, counterfactual.decision.instead)
    assumed = tuple(pod for pod in concerned if pod is not None and pod in state.unmeasured)
    return saving(counterfactual, Telling(by, would_have=False, assumed=assumed))
