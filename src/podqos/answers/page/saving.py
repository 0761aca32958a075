"""What saves a pod, on its page: each way is tried on its node, and again as an edit of its object, admitted anew."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.finding import FieldEdit
from podqos.agent.journal import By
from podqos.answers.page.editing import edited, patch_of, with_workloads
from podqos.answers.page.nodes import PageNode
from podqos.answers.page.places import Places, is_safer
from podqos.answers.page.pod import PodStanding, SaferEdit
from podqos.answers.remedies import ranked_now, turns, worded
from podqos.errors import InputError
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.objects.objects import FoundWorkload, Objects
from podqos.qos.edits import Edit
from podqos.survival.counterfactual.counterfactual import Counterfactual, PodChange
from podqos.survival.counterfactual.pod_changes import SOME_CPU
from podqos.survival.counterfactual.turn import NodeNow
from podqos.survival.orders.orders import both_orders


class PodToSave(Struct, frozen=True):
    """A pod of a node, and what it comes from."""

    node: PageNode
    pod: Pod
    found: FoundWorkload
    now: PodStanding
    objects: Objects
    profile: Profile


def ways_to_save(pod: PodToSave) -> Iterator[SaferEdit]:
    """Yield what saves a pod when its turn comes, lines of YAML first; it goes sooner in none of the two orders."""
    state = pod.node.state
    if state is None:
        return
    now = ranked_now(state, pod.profile)
    ways = []
    for by, turn in turns(now, state, pod.pod.metadata.uid):
        for counterfactual in turn.counterfactuals:
            if not counterfactual.saves:
                continue
            if counterfactual.change is PodChange.LESS:
                later = _later(pod.now, counterfactual.decision.place - 1 - turn.ahead, by)
                way: SaferEdit | None = SaferEdit(PodChange.LESS, (), None, later)
            else:
                way = _tried(pod, counterfactual, now)
            if way is not None:
                ways.append(replace(way, by=by, remedy=worded(counterfactual, by, turn, state)))
    offered: list[tuple[PodChange, tuple[Edit, ...]]] = []
    for way in sorted(ways, key=lambda way: way.change is PodChange.LESS):
        # What saves it from both is offered once.
        if not way.edits or (way.change, way.edits) not in offered:
            yield way
        offered.append((way.change, way.edits))


def _tried(pod: PodToSave, counterfactual: Counterfactual, now: NodeNow) -> SaferEdit | None:
    """Return a way to save a pod; None where its object, with those lines and admitted anew, does not make it safer."""
    found, change = pod.found, counterfactual.change
    lines = tuple(
        replace(edit, path=found.workload.at(edit.path), value=SOME_CPU if edit.value is None else edit.value)
        for edit in counterfactual.edits
    )
    fields = [
        FieldEdit(edit.path, str(edit.value), None if edit.replaces is None else str(edit.replaces)) for edit in lines
    ]
    workload = f"{found.workload.kind} {found.workload.pod.key}"
    priorities = {workload: counterfactual.amount or 0} if change is PodChange.PRIORITY else {}
    try:
        made = edited(pod.objects, found, fields) if fields else found
        state = with_workloads(pod.node, [made], priorities, pod.profile)
    except InputError:
        return None
    # What is edited changes places, and not where memory runs out.
    orders = both_orders(state.snapshot, now.orders.ranking, now.settings, now.orders.domain)
    after = Places.of_orders(orders, state.snapshot.node).standing(pod.pod.key)
    if after is None or not is_safer(pod.now, after):
        return None
    return SaferEdit(change, lines, patch_of(pod.objects, found, fields) if fields else None, after)


def _later(now: PodStanding, places: int, by: By) -> PodStanding:
    if by is By.KERNEL:
        return replace(now, kill_place=None if now.kill_place is None else now.kill_place + places)
    return replace(now, eviction_place=None if now.eviction_place is None else now.eviction_place + places)
