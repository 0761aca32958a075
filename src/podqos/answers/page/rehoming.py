"""Edited pods that their nodes have no room for any more, and where the scheduler puts them.

A pod that fits where it is stays there. Of one that does not, a kubelet defers the resize; a new pod is placed among
all others, as ``podqos place`` does it, and until it has a node the old one runs on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.node_state import NodeState
from podqos.answers.page.nodes import PageNode
from podqos.answers.page.shown import ShownSource
from podqos.answers.page.what_if import MovedPod, PreemptedPod, ResizeWait
from podqos.answers.place import surroundings_of
from podqos.errors import InvalidManifest
from podqos.model.node import PODS
from podqos.model.pod import Pod
from podqos.model.resources import MEMORY
from podqos.model.snapshot import PodUsage
from podqos.naming import published
from podqos.placement.demand import Amounts, counted, demand_of
from podqos.placement.fit import lacking
from podqos.placement.outcome import Placement, Status
from podqos.placement.place import place_views
from podqos.placement.pod_view import PodView
from podqos.placement.reasons import Insufficient
from podqos.survival.drift.resizing import Resizing, resizing
from podqos.words.placement import refusal_message
from podqos.words.placement_reasons import reason_words


class Rehomed(Struct, frozen=True):
    """The nodes with their pods where these end up."""

    states: Mapping[str, NodeState]
    """Of all nodes that changed."""
    moved: tuple[MovedPod, ...] = ()
    preempted: tuple[PreemptedPod, ...] = ()


class _Homeless(Struct, frozen=True):
    """An edited pod without room."""

    node: PageNode
    old: PodUsage
    new: Pod
    lacks: tuple[Insufficient, ...]


def rehomed(page: ShownSource, states: Mapping[str, NodeState]) -> Rehomed:
    """Return where pods end up; ``states`` are the nodes with edited pods, each where it was."""
    homeless = [
        homeless for name, state in states.items() for homeless in _homeless(page, page.nodes.nodes[name], state)
    ]
    if not homeless:
        return Rehomed(states)
    return _Move(page, states, homeless).result()


def _homeless(page: ShownSource, node: PageNode, state: NodeState) -> Iterator[_Homeless]:
    """Yield the edited pods of a node that want more than it has left, the most important last to go."""
    if not is_known(node) or node.state is None:
        return
    profile = page.nodes.profile
    before = {entry.pod.metadata.uid: entry for entry in node.state.snapshot.pods}
    edited = [entry.pod for entry in state.snapshot.pods if before[entry.pod.metadata.uid].pod is not entry.pod]
    if not edited:
        return
    allocatable = counted(node.node.status.allocatable)
    used: Amounts = dict(page.requested(node))
    for pod in sorted(edited, key=lambda pod: -(pod.spec.priority or 0)):
        old = before[pod.metadata.uid]
        had, wants = demand_of(old.pod, profile).requested, demand_of(pod, profile).requested
        rest = {name: amount - had.get(name, 0) for name, amount in used.items()}
        more = {name: amount for name, amount in wants.items() if amount > had.get(name, 0)}
        lacks = lacking(more, rest, allocatable, 0, 1)
        if lacks:
            yield _Homeless(node, old, pod, lacks)
        else:
            used = {name: rest.get(name, 0) + wants.get(name, 0) for name in {**rest, **wants}}


def is_known(node: PageNode) -> bool:
    """Whether it is known what a node has: one that is only named, or assumed, has room for everything."""
    status = node.node.status
    return not node.is_assumed and (MEMORY in status.capacity or PODS in status.allocatable)


class _Move:
    """Homeless pods on their way to other nodes."""

    def __init__(self, page: ShownSource, states: Mapping[str, NodeState], homeless: Sequence[_Homeless]) -> None:
        self._page = page
        self._homeless = {each.new.key: each for each in homeless}
        self._states = {
            name: states.get(name) or page.state(node)
            for name, node in page.nodes.nodes.items()
            if name in states or (node.state is not None and is_known(node))
        }
        self._touched = set(states)

    def result(self) -> Rehomed:
        """Place them, and return the nodes as they are then."""
        try:
            placed: Placement | None = self._place()
            message = ""
        except InvalidManifest as error:
            placed, message = None, error.worded(published)
        to, waiting = {}, {}
        if placed is not None:
            to = {
                outcome.pod: outcome.node
                for outcome in placed.outcomes
                if outcome.status is Status.PLACED and outcome.node
            }
            waiting = {view.key: view for view in placed.pending}
        moved = []
        for key, homeless in self._homeless.items():
            goes_to = to.get(key)
            if goes_to is None:
                self._put(homeless.node.name, homeless.old)
                if placed is not None and key in waiting:
                    message = refusal_message(placed.refusal(waiting[key]))
            elif goes_to == homeless.node.name:
                pass  # another edited pod has left it
            else:
                self._take(homeless.node.name, homeless.new.metadata.uid)
                self._put(goes_to, replace(homeless.old, pod=_bound(homeless.new, goes_to)), self._owner(homeless))
            moved.append(self._moved(homeless, goes_to, "" if goes_to else message))
        preempted = () if placed is None else tuple(self._preempted(placed, to))
        return Rehomed(
            {name: state for name, state in self._states.items() if name in self._touched},
            tuple(moved),
            preempted,
        )

    def _place(self) -> Placement:
        page, profile, objects = self._page, self._page.nodes.profile, self._page.nodes.objects
        nodes = (node.node for node in page.nodes.nodes.values() if is_known(node))
        surroundings = surroundings_of(objects, nodes, profile)
        made, known = surroundings.views, page.views
        views: dict[int, PodView] = {}
        bare = set()
        for name, state in self._states.items():
            for entry in state.snapshot.pods:
                pod, home = entry.pod, "" if entry.pod.key in self._homeless else name
                view = known.get(id(pod)) or made.of(pod if pod.spec.node_name == home else _bound(pod, home))
                views[id(view.pod)] = view
                if not page.workload_of(state, pod):
                    bare.add(pod.key)
        pods = [view.pod for view in views.values()]
        return place_views((views[id(pod)] for pod in pods), surroundings, bare=bare)

    def _preempted(self, placed: Placement, to: Mapping[str, str]) -> Iterator[PreemptedPod]:
        for displacement in placed.displacements:
            yield PreemptedPod(displacement.pod, displacement.node, displacement.by)
            state = self._states.get(displacement.node)
            entry = None if state is None else _entry(state, displacement.pod)
            if state is None or entry is None:
                continue
            own = state.owners.get(entry.pod.metadata.uid)
            self._take(displacement.node, entry.pod.metadata.uid)
            if displacement.pod in to:
                self._put(to[displacement.pod], replace(entry, pod=_bound(entry.pod, to[displacement.pod])), own)

    def _moved(self, each: _Homeless, to: str | None, message: str) -> MovedPod:
        verdict = resizing(each.old.pod, each.new, self._page.nodes.profile)
        wait = None
        if verdict is not None and verdict.outcome is not Resizing.REFUSED:
            never = any(lack.unresolvable for lack in each.lacks)
            wait = ResizeWait.INFEASIBLE if never else ResizeWait.DEFERRED
        lacks = ", ".join(map(reason_words, each.lacks))
        return MovedPod(each.new.key, each.node.name, lacks, wait, to, message)

    def _owner(self, each: _Homeless) -> tuple[str, str] | None:
        return None if each.node.state is None else each.node.state.owners.get(each.old.pod.metadata.uid)

    def _take(self, node: str, uid: str) -> None:
        state = self._states[node]
        self._keep(node, state, (entry for entry in state.snapshot.pods if entry.pod.metadata.uid != uid))

    def _put(self, node: str, entry: PodUsage, own: tuple[str, str] | None = None) -> None:
        """Put a pod on a node, in the place of the one with its uid."""
        state = self._states.get(node) or self._page.state(self._page.nodes.nodes[node])
        uid = entry.pod.metadata.uid
        others = (pod for pod in state.snapshot.pods if pod.pod.metadata.uid != uid)
        self._keep(node, state if own is None else replace(state, owners={**state.owners, uid: own}), (*others, entry))

    def _keep(self, node: str, state: NodeState, pods: Iterable[PodUsage]) -> None:
        self._touched.add(node)
        self._states[node] = replace(state, snapshot=replace(state.snapshot, pods=tuple(pods)))


def _bound(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))


def _entry(state: NodeState, pod: str) -> PodUsage | None:
    return next((pod_usage for pod_usage in state.snapshot.pods if pod_usage.pod.key == pod), None)
