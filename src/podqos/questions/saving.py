"""What saves a pod of a node as it is now, when its turn comes: to be evicted by the kubelet, or killed by the kernel.

Each way is tried by deciding again. Whoever goes before the pod is gone by then; of the pods of one manifest, which
change together, the first counts. The same for ``podqos rank``, about the first of each order, and for the page.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import SIGNALS, Signal
from podqos.model.effective import pod_limits
from podqos.model.pod import Pod
from podqos.model.resources import MEMORY
from podqos.orders.counterfactual import (
    Counterfactual,
    PodChange,
    Surroundings,
    controlled_alike,
    in_mebibytes,
    resources_of,
    room_beside,
    with_headroom,
)
from podqos.orders.memory import outlook
from podqos.orders.orders import Orders, both_orders
from podqos.orders.trials import KernelMoment, at_threshold, kernel_counterfactuals, kubelet_counterfactuals
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.questions.node import NodeState, watched_memory
from podqos.text.saving import Saving, saving

_MOST = 1 << 44
"""Of what has no capacity that is known here: more than any pod requests."""


class PodRemedies(Struct, frozen=True, rename="camel"):
    """What saves a pod from the kubelet, or from the kernel; each way was tried."""

    by: By
    pod: str
    container: str | None
    """Which the kernel kills."""
    place: int
    remedies: tuple[Saving, ...]
    """Lines of the manifest first, then what it could use less; also what was tried and does not help."""
    unknown: str = ""
    """Why there are no amounts among them: what the pod uses is not known; empty where it is."""


class Turn(Struct, frozen=True):
    """A pod whose turn has come, and what would save it then."""

    by: By
    pod: Pod
    """The first of its manifest's."""
    place: int
    """Among all pods that can go; 1 is first."""
    container: str | None
    """Which the kernel kills."""
    counterfactuals: tuple[Counterfactual, ...]
    """With their places among all."""


def unknown_usage(pod: str) -> str:
    """Return why no request or limit is told of a pod."""
    return f"What {pod} uses is not known, so no request or limit can be computed for it."


_Amounts = Mapping[tuple[PodChange, str | None], int]
"""By change and container."""


class NodeNow(Struct, frozen=True):
    """A node whose pods stand in both orders."""

    state: NodeState
    orders: Orders
    settings: CgroupSettings

    @staticmethod
    def of(state: NodeState) -> NodeNow:
        """Return a node whose kubelet is short of memory."""
        watched = watched_memory(state)
        seen = outlook(state.snapshot, watched.settings, state.profile, watched.exhaustion.thresholds)
        ranking = Ranking(Signal.MEMORY, profile=state.profile)
        return NodeNow(state, both_orders(state.snapshot, ranking, watched.settings, seen.domain), watched.settings)

    def first(self) -> Iterator[PodRemedies]:
        """Yield what saves the pod that is evicted first, and the one that is killed first."""
        evicted = next((ranked_pod.pod for ranked_pod in self.orders.eviction if ranked_pod.spared is None), None)
        killed = next(iter(self.orders.kernel_pods), None)
        for by, first in ((By.KUBELET, evicted), (By.KERNEL, killed)):
            for turn in () if first is None or first.is_windows else self.turns(first.metadata.uid):
                if turn.by is by:
                    key = turn.pod.key
                    ways = tuple(self.worded(counterfactual, turn) for counterfactual in turn.counterfactuals)
                    is_unknown = key in self.state.unmeasured
                    yield PodRemedies(
                        by, key, turn.container, turn.place, ways, unknown_usage(key) if is_unknown else ""
                    )

    def worded(self, counterfactual: Counterfactual, turn: Turn) -> Saving:
        """Return a way to save a pod, with whose usage it rests on."""
        concerned = (turn.pod.key, counterfactual.decision.instead)
        assumed = tuple(pod for pod in concerned if pod is not None and pod in self.state.unmeasured)
        return saving(counterfactual, turn.by, would_have=False, assumed=assumed)

    def turns(self, uid: str) -> Iterator[Turn]:
        """Yield what keeps a pod from being evicted, and from being OOM-killed, when its turn comes, if it ever does.

        A request has headroom above what is in use, as a limit has, where there is room for that. To a pod that is
        first in both orders, an amount is told that helps in both. Where it is not known what a pod uses, no amounts
        are told.
        """
        evicted, killed = self._evicted(uid, {}), self._killed(uid, {})
        of_evicted, of_killed = self._needed(evicted), self._needed(killed)
        if evicted is not None and killed is not None and evicted.place == killed.place == 1:
            larger = {key: max(amount, of_killed.get(key, 0)) for key, amount in of_evicted.items()}
            of_evicted, of_killed = larger, {**of_killed, **{key: larger[key] for key in of_killed if key in larger}}
        for turn in (
            _raised(evicted, of_evicted, lambda: self._evicted(uid, of_evicted)),
            _raised(killed, of_killed, lambda: self._killed(uid, of_killed)),
        ):
            if turn is not None and turn.pod.key in self.state.unmeasured:
                kept = (found for found in turn.counterfactuals if found.change is PodChange.PRIORITY)
                yield replace(turn, counterfactuals=tuple(kept))
            elif turn is not None:
                yield turn

    def _needed(self, turn: Turn | None) -> _Amounts:
        """Return how much of which change is told."""
        if turn is None:
            return {}
        own = self._alike(turn.pod.metadata.uid)
        amounts = _amounts(turn.counterfactuals)
        for key, amount in amounts.items():
            change, name = key
            if change is PodChange.REQUEST:
                used = max(
                    sum(usage.working_set_bytes for usage in entry.containers if name in {None, usage.name})
                    for entry in self.state.snapshot.pods
                    if entry.pod.metadata.uid in own
                )
                limits = pod_limits(turn.pod) if name is None else resources_of(turn.pod, name).limits
                wanted = in_mebibytes(with_headroom(used))
                amounts[key] = max(amount, min(wanted, limits.get(MEMORY, wanted)).value)
        return amounts

    def _evicted(self, uid: str, at_least: _Amounts) -> Turn | None:
        order = [ranked_pod.pod for ranked_pod in self.orders.eviction if ranked_pod.spared is None]
        own = self._alike(uid)
        place = next((at for at, pod in enumerate(order) if pod.metadata.uid in own), None)
        if place is None:
            return None
        snapshot, ranking, first = self.state.snapshot, self.orders.ranking, order[place]
        gone = {pod.metadata.uid for pod in order[:place]}
        left = tuple(pod.pod for pod in snapshot.pods if pod.pod.metadata.uid not in gone)
        capacity = snapshot.node.memory_bytes if SIGNALS[ranking.signal].resource == MEMORY else _MOST
        moment = at_threshold(left, snapshot.stats, ranking, capacity)
        found = kubelet_counterfactuals(moment, first.metadata.uid, self._surroundings(first, own, gone, at_least))
        return Turn(By.KUBELET, first, place + 1, None, _among_all(found, place))

    def _killed(self, uid: str, at_least: _Amounts) -> Turn | None:
        own = self._alike(uid)
        order = self.orders.kernel_pods
        place = next((at for at, pod in enumerate(order) if pod.metadata.uid in own), None)
        if place is None:
            return None
        snapshot, first = self.state.snapshot, order[place]
        gone = {pod.metadata.uid for pod in order[:place]}
        left = tuple(pod for pod in snapshot.pods if pod.pod.metadata.uid not in gone)
        container = next(
            container.usage.name for container in self.orders.kernel if container.pod.metadata.uid == first.metadata.uid
        )
        profile = self.orders.ranking.profile
        moment = KernelMoment(replace(snapshot, pods=left), self.settings, self.orders.domain, profile)
        victim = (first.metadata.uid, container)
        found = kernel_counterfactuals(moment, victim, self._surroundings(first, own, gone, at_least))
        tried = () if found is None else found.counterfactuals
        return Turn(By.KERNEL, first, place + 1, container, _among_all(tried, place))

    def _alike(self, uid: str) -> frozenset[str]:
        """Return the uids of the pods from the same manifest, with its own."""
        owner = self.state.owners.get(uid)
        same = (each for each, other in self.state.owners.items() if owner is not None and other == owner)
        pods = [entry.pod for entry in self.state.snapshot.pods]
        pod = next((pod for pod in pods if pod.metadata.uid == uid), None)
        return frozenset({uid, *same, *(() if pod is None else controlled_alike(pod, pods))})

    def _surroundings(self, pod: Pod, own: frozenset[str], gone: Collection[str], at_least: _Amounts) -> Surroundings:
        away = [entry.pod for entry in self.state.snapshot.pods if entry.pod.metadata.uid in gone]
        room = room_beside(away, {MEMORY: self.state.requestable_bytes}, self.orders.ranking.profile)
        return Surroundings(room, own, self.state.limit_ranges.get(pod.metadata.namespace, ()), at_least)


def _amounts(counterfactuals: Iterable[Counterfactual]) -> dict[tuple[PodChange, str | None], int]:
    """Return how much of which change saves a pod of memory."""
    return {
        (found.change, found.container): found.amount
        for found in counterfactuals
        if found.change in {PodChange.REQUEST, PodChange.LESS}
        and found.saves
        and found.resource == MEMORY
        and found.amount is not None
    }


def _raised(turn: Turn | None, at_least: _Amounts, again: Callable[[], Turn | None]) -> Turn | None:
    """Return a turn with larger amounts, as far as these save the pod ``again``."""
    if turn is None or at_least == _amounts(turn.counterfactuals):
        return turn
    tried = again()
    raised = () if tried is None else tried.counterfactuals
    saving = _amounts(raised)
    larger = {key: found for found in raised if (key := (found.change, found.container)) in saving}
    found = tuple(larger.get((found.change, found.container), found) for found in turn.counterfactuals)
    return replace(turn, counterfactuals=found)


def _among_all(found: Iterable[Counterfactual], ahead: int) -> tuple[Counterfactual, ...]:
    """Return what was tried among those that are left, with the places that they have among all."""
    return tuple(
        replace(
            each,
            decision=replace(each.decision, place=each.decision.place + ahead, others=each.decision.others + ahead),
        )
        for each in found
    )
