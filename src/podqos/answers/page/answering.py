"""The race and the fix of the answer card, computed for one node: as ``forecast`` and the page of a pod do it."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.agent.journal import By
from podqos.answers.page.answer import AnswerFix, AnswerView, GrowthAnswer, LikelyEnd, Unknown
from podqos.answers.page.forecast import ForecastRequest
from podqos.answers.page.nodes import PageNode
from podqos.answers.page.pod import SaferEdit, WithheldChange
from podqos.answers.page.saving import PodToSave, ways_to_save, withheld_change
from podqos.answers.page.shown import ShownSource
from podqos.answers.page.what_if_engine import WhatIfEngine
from podqos.errors import InputError
from podqos.model.quantity import Quantity
from podqos.naming import published
from podqos.objects.kubelet_node import DEFAULT_KUBELET
from podqos.survival.counterfactual.counterfactual import PodChange
from podqos.words.counterfactual import FATES
from podqos.words.unknowns import how_to_know, how_to_know_usage, unknown_text, unknown_usage


def answer_about(page: ShownSource, node: PageNode) -> AnswerView:
    """Return who acts first on a node while memory grows, and the safest fix for who dies first."""
    if node.report is None:
        return AnswerView(node.name, None, None, "", tuple(_unknowns(page, node)), node.problem)
    problem = ""
    growth: GrowthAnswer | None = None
    try:
        growth = _growth(page, node)
    except InputError as error:
        problem = error.worded(published)
    fix, no_fix, withheld = _safest(page, node, growth)
    return AnswerView(node.name, growth, fix, no_fix, tuple(_unknowns(page, node)), problem, withheld)


def _growth(page: ShownSource, node: PageNode) -> GrowthAnswer:
    """Return how the growth ends that the page's forecast of the node opens with."""
    asked = ForecastRequest(node=node.name)
    shown = WhatIfEngine(page).forecast(asked)
    (growth,), turning = shown.report.growths, shown.report.turning
    assert turning is not None
    return GrowthAnswer(
        growing=shown.growing,
        rate_bytes_per_second=growth.rate_bytes_per_second,
        first_by=By.KUBELET if growth.kubelet_first * 2 >= 1 else By.KERNEL,
        kubelet_first=growth.kubelet_first,
        turning=turning,
        text=shown.by_rate,
        verdict=shown.verdict,
        ends=tuple(LikelyEnd(end.by, end.pod, end.probability, end.text) for end in growth.outcomes),
    )


def _safest(
    page: ShownSource, node: PageNode, growth: GrowthAnswer | None
) -> tuple[AnswerFix | None, str, WithheldChange | None]:
    """Return the safest fix for a pod that is first in an order, or why there is none and what to try all the same."""
    reasons: dict[str, str] = {}
    withheld: WithheldChange | None = None
    is_unmeasured = False
    when = "" if page.source.scenario is None else " as the scenario begins"
    ways: dict[str, list[SaferEdit]] = {}
    for by, pod in _first_pods(node, growth):
        at, entry, found = page.found(pod, node.name)
        places = None if at is None else page.places(at)
        now = None if places is None else places.standing(pod)
        if at is None or now is None or entry.pod.is_windows:
            continue
        saved = PodToSave(page, at, entry, found, now)
        if now.pods == 1:
            reasons.setdefault(
                pod, f"{pod} is the only pod on its node: no other can be evicted or killed in its place."
            )
        elif not saved.is_measured:
            is_unmeasured = True
            reasons.setdefault(pod, unknown_usage(pod))
        else:
            if pod not in ways:
                ways[pod] = list(ways_to_save(saved))
            tried = [way for way in ways[pod] if way.tries and way.remedy is not None and by not in way.still_first]
            best = min((way for way in tried if not way.still_first), key=_danger, default=None)
            if best is not None and best.change is PodChange.PRIORITY and best.first_in_both:
                # Who matters more is not for podqos to say.
                other = f"{best.first_in_both} would be evicted and OOM-killed first"
                reasons.setdefault(pod, f"Only a higher priority would protect {pod}, and then {other}.")
            elif best is not None:
                is_running = found.workload.is_stored and page.source.scenario is None
                return _fix(pod, by, best, is_running=is_running), "", None
            else:
                change = next((_in_part(way) for way in tried), None) or withheld_change(saved, by)
                nothing = f"No change to its manifest that was tried protects {pod}."
                reasons.setdefault(pod, nothing if change is None else f"No safe fix for {pod}{when}. {change.text}")
                withheld = change if withheld is None and change is not None and change.tries else withheld
    how = how_to_know_usage(is_cluster=page.source.cluster is not None) if is_unmeasured else ""
    return None, " ".join((*reasons.values(), *filter(None, (how,)))), withheld


def _first_pods(node: PageNode, growth: GrowthAnswer | None) -> Iterator[tuple[By, str]]:
    """Yield the pods that are first in the orders, that of who acts first before the other, if that ever acts first."""
    report = node.report
    assert report is not None
    evicted = next((place.pod for place in report.eviction_order if place.spared is None), None)
    killed = next((place.pod for place in report.kill_order), None)
    firsts = {By.KUBELET: evicted, By.KERNEL: killed}
    acting = [By.KUBELET, By.KERNEL]
    if growth is not None and growth.first_by is By.KERNEL:
        acting = [By.KERNEL] if growth.turning.kernel_from == 1 else [By.KERNEL, By.KUBELET]
    for by in acting:
        pod = firsts[by]
        if pod is not None:
            yield by, pod


def _in_part(way: SaferEdit) -> WithheldChange:
    """Return a change that leaves the pod first in an order."""
    assert way.remedy is not None
    still = " and ".join(FATES[by] for by in way.still_first)
    return WithheldChange(f"{way.remedy.change}: {way.remedy.effect}; but it is still {still} first.", way.tries)


def _danger(way: SaferEdit) -> tuple[bool, int]:
    """Return what ways are compared by: a priority, which may preempt, and what is reserved."""
    reserved = sum(
        Quantity.parse(amount).value
        for edit in way.tries
        for name, amount in edit.requests.items()
        if name == "memory" and amount is not None
    )
    return way.change is PodChange.PRIORITY, reserved


def _fix(pod: str, by: By, way: SaferEdit, *, is_running: bool) -> AnswerFix:
    command = None if way.patch is None or not is_running else way.patch.kubectl
    return AnswerFix(pod, by, way, way.lines if command is None else command, is_command=command is not None)


def _unknowns(page: ShownSource, node: PageNode) -> Iterator[Unknown]:
    """Yield what is assumed about the node that decides who dies first."""
    state = node.state
    if state is None:
        return
    is_cluster = page.source.cluster is not None
    if page.source.scenario is not None:
        yield Unknown(
            "This is the node as the scenario begins.",
            "See the Run view for who dies later, and what would have saved it then.",
        )
    for assumption in state.resting_on(state.kubelet or DEFAULT_KUBELET, page.nodes.profile):
        text = unknown_text(assumption)
        if text:
            yield Unknown(text, how_to_know(assumption, is_cluster=is_cluster))
