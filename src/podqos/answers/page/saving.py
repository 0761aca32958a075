"""What saves a pod: each way is found by deciding again on its node, and tried as the what-if that a visitor can open.

The amounts are those of ``podqos rank``. No CPU limit is added, what is edited is the object that made the pod, and
what it costs is said. Where it is not known what a pod uses, no amount is offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By
from podqos.answers.node_state import NodeState
from podqos.answers.page.edits import PodEdit
from podqos.answers.page.fix_target import fix_target, written_fields
from podqos.answers.page.nodes import PageNode
from podqos.answers.page.places import is_safer
from podqos.answers.page.pod import PodStanding, SaferEdit, WithheldChange
from podqos.answers.page.shown import ShownSource
from podqos.answers.page.what_if import ComparedPod, WhatIf, WhatIfView
from podqos.answers.page.what_if_engine import WhatIfEngine
from podqos.answers.remedies import ranked_now, turns, worded
from podqos.errors import InputError
from podqos.manifest.plain import parse_path
from podqos.model.pod import Pod
from podqos.model.resources import CPU
from podqos.model.snapshot import PodUsage
from podqos.objects.objects import FoundWorkload
from podqos.qos.edits import Edit
from podqos.survival.counterfactual.counterfactual import Counterfactual, PodChange
from podqos.survival.counterfactual.turn import Turn
from podqos.words.counterfactual import Saving, tried_effect
from podqos.words.first_deaths import first_then


class PodToSave(Struct, frozen=True):
    """A pod of a node, and what it comes from."""

    page: ShownSource
    node: PageNode
    entry: PodUsage
    found: FoundWorkload
    now: PodStanding

    @property
    def pod(self) -> Pod:
        """The pod."""
        return self.entry.pod

    @property
    def is_measured(self) -> bool:
        """Whether it is known what it uses."""
        return self.node.state is not None and self.pod.key not in self.node.state.unmeasured


class _Tried(Struct, frozen=True):
    """Edits of a pod, and what becomes of its node with them."""

    edits: tuple[PodEdit, ...]
    view: WhatIfView
    after: PodStanding


def ways_to_save(pod: PodToSave) -> Iterator[SaferEdit]:
    """Yield what saves a pod when its turn comes, lines of YAML first; it goes sooner in none of the two orders."""
    state = pod.node.state
    if state is None:
        return
    profile = pod.page.nodes.profile
    ways = []
    for by, turn in turns(ranked_now(state, profile), state, pod.pod.metadata.uid):
        for counterfactual in turn.counterfactuals:
            if not counterfactual.saves or _adds_cpu_limit(counterfactual):
                continue
            if counterfactual.change is PodChange.LESS:
                later = _later(pod.now, counterfactual.decision.place - turn.place, by)
                less = _worded(pod, counterfactual, by, turn, state)
                ways.append(SaferEdit(PodChange.LESS, (), None, later, by, less))
                continue
            tried = _tried(pod, counterfactual)
            if tried is not None:
                ways.append(_way(pod, counterfactual, tried, _worded(pod, counterfactual, by, turn, state), by))
    offered: list[tuple[PodChange, tuple[Edit, ...]]] = []
    for way in sorted(ways, key=lambda way: way.change is PodChange.LESS):
        # What saves it from both is offered once.
        if not way.edits or (way.change, way.edits) not in offered:
            yield way
        offered.append((way.change, way.edits))


def _worded(pod: PodToSave, counterfactual: Counterfactual, by: By, turn: Turn, state: NodeState) -> Saving:
    """Return a way to save a pod as ``podqos rank`` tells it; of a scenario, with the time that it is about."""
    told = worded(counterfactual, by, turn, state)
    if pod.page.source.scenario is None:
        return told
    return replace(told, rests_on=(*told.rests_on, "the usage with which the scenario begins"))


def withheld_changes(pod: PodToSave, ways: Sequence[SaferEdit]) -> Iterator[WithheldChange]:
    """Yield what would save a pod from whichever of kubelet and kernel no edit among ``ways`` saves it from."""
    unsaved = [by for by in (By.KUBELET, By.KERNEL) if not any(way.tries and way.by is by for way in ways)]
    found = (withheld_change(pod, by) for by in unsaved)
    yield from {change.text: change for change in found if change is not None}.values()


def withheld_change(pod: PodToSave, by: By) -> WithheldChange | None:
    """Return what would save a pod from kubelet or kernel, and why it is not offered; None where nothing would."""
    state = pod.node.state
    if state is None or not pod.is_measured:
        return None
    for whose, turn in turns(ranked_now(state, pod.page.nodes.profile), state, pod.pod.metadata.uid):
        for counterfactual in turn.counterfactuals if whose is by else ():
            remedy = worded(counterfactual, by, turn, state)
            if _adds_cpu_limit(counterfactual):
                tried = _tried(pod, counterfactual) if counterfactual.saves else None
                if tried is not None:
                    why = f"{remedy.change}: that protects it, but adds a CPU limit, which can throttle it."
                    return WithheldChange(why, tried.edits)
            elif counterfactual.decision.spared and not counterfactual.saves:
                return WithheldChange(f"{remedy.change}: {remedy.effect}.")
    return None


def _adds_cpu_limit(counterfactual: Counterfactual) -> bool:
    """Whether a change limits CPU where nothing does: that throttles for as long as the pod runs."""
    return any(edit.replaces is None and edit.path.endswith(f".limits.{CPU}") for edit in counterfactual.edits)


def _container(pod: Pod, edit: Edit) -> str:
    """Return the container that a line is about; empty for the pod's own."""
    _, where, *rest = parse_path(edit.path)
    if where == "resources":
        return ""
    containers = pod.spec.init_containers if where == "initContainers" else pod.spec.containers
    return containers[int(rest[0])].name


def _pod_edits(pod: PodToSave, counterfactual: Counterfactual) -> tuple[PodEdit, ...]:
    """Return a change as the edits of a what-if."""
    if counterfactual.change is PodChange.PRIORITY:
        return (PodEdit(pod.pod.key, priority=counterfactual.amount),)
    made: dict[str, tuple[dict[str, str | None], dict[str, str | None]]] = {}
    for edit in counterfactual.edits:
        *_, side, resource = parse_path(edit.path)
        if edit.value is None or side not in {"requests", "limits"}:
            return ()
        amounts = made.setdefault(_container(pod.pod, edit), ({}, {}))
        amounts[side == "limits"][str(resource)] = str(edit.value)
    return tuple(PodEdit(pod.pod.key, name, requests, limits) for name, (requests, limits) in made.items())


def _tried(pod: PodToSave, counterfactual: Counterfactual) -> _Tried | None:
    """Return what becomes of the node; None where the pod is not safer, does not fit, or is refused."""
    edits = _pod_edits(pod, counterfactual)
    if not edits:
        return None
    try:
        view = WhatIfEngine(pod.page).answer(WhatIf(node=pod.node.name, edits=edits))
    except InputError:
        return None
    own = next((compared for compared in view.pods if compared.pod == pod.pod.key), None)
    if own is None or own.after is None or view.moved or view.notes or not is_safer(pod.now, own.after):
        return None
    return _Tried(edits, view, own.after)


def _way(pod: PodToSave, counterfactual: Counterfactual, tried: _Tried, remedy: Saving, by: By) -> SaferEdit:
    target = fix_target(pod.page, pod.node, pod.entry, pod.found)
    (edited,) = tried.view.edited
    instead = _instead(tried.view.pods, pod.pod.key, by)
    place = tried.after.eviction_place if by is By.KUBELET else tried.after.kill_place
    score = tried.after.oom_score_adj if by is By.KERNEL else None
    evicted, killed = _firsts(tried.view.pods)
    told = replace(
        remedy,
        effect=tried_effect(by, (place, tried.after.pods), instead, score, spared=tried.after.spared or ""),
        instead=() if instead is None else (instead,),
        costs=edited.costs,
    )
    return SaferEdit(
        change=counterfactual.change,
        edits=_lines_of(pod, target.found or pod.found, counterfactual),
        patch=edited.patch,
        after=tried.after,
        by=by,
        remedy=told,
        target=target.name,
        lines=edited.lines,
        tries=tried.edits,
        then=first_then(evicted, killed),
        first_in_both=evicted if evicted is not None and evicted == killed else "",
        still_first=tuple(by for by, first in ((By.KUBELET, evicted), (By.KERNEL, killed)) if first == pod.pod.key),
    )


def _firsts(pods: Sequence[ComparedPod]) -> tuple[str | None, str | None]:
    """Return who is first in both orders after an edit."""
    standing = [(compared.pod, compared.after) for compared in pods if compared.after is not None]
    evicted = [(after.eviction_place, pod) for pod, after in standing if after.eviction_place and not after.spared]
    killed = [(after.kill_place, pod) for pod, after in standing if after.kill_place]
    return (min(evicted)[1] if evicted else None), (min(killed)[1] if killed else None)


def _lines_of(pod: PodToSave, found: FoundWorkload, counterfactual: Counterfactual) -> tuple[Edit, ...]:
    """Return the lines from the root of the object that is edited, whose containers may stand elsewhere."""
    lines = []
    for edit in counterfactual.edits:
        *_, side, resource = parse_path(edit.path)
        written = {str(side): {str(resource): str(edit.value)}}
        own = PodEdit(pod.pod.key, _container(pod.pod, edit), **written)  # type: ignore[arg-type] # requests or limits
        try:
            path = next(iter(written_fields((own,), found))).path
        except InputError:
            path = found.workload.at(edit.path)
        lines.append(replace(edit, path=path))
    return tuple(lines)


def _instead(pods: Sequence[ComparedPod], pod: str, by: By) -> str | None:
    """Return the first pod that goes before another with an edit, and did not before; edited pods do not count."""
    own = next(compared for compared in pods if compared.pod == pod)
    was, becomes = _place(own.before, by), _place(own.after, by)
    overtaken = [
        (after, compared.pod)
        for compared in pods
        if not compared.is_edited
        and _place(compared.before, by) > was
        and (after := _place(compared.after, by)) < becomes
    ]
    return min(overtaken, default=(0, None))[1]


def _place(standing: PodStanding | None, by: By) -> float:
    """Return a place in an order; what is never evicted or killed is behind all others."""
    if standing is None or (by is By.KUBELET and standing.spared):
        return inf
    place = standing.eviction_place if by is By.KUBELET else standing.kill_place
    return inf if place is None else place


def _later(now: PodStanding, places: int, by: By) -> PodStanding:
    if by is By.KERNEL:
        return replace(now, kill_place=None if now.kill_place is None else now.kill_place + places)
    return replace(now, eviction_place=None if now.eviction_place is None else now.eviction_place + places)
