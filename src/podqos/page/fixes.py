"""What saves a pod, the answer of the cluster view, and the findings of check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from heapq import nsmallest
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.finding import FindingSeverity, Patch
from podqos.advice.checks.gate import CheckSummary
from podqos.advice.fixes.fixing import Fixes
from podqos.agent.journal import By
from podqos.amounts import counted
from podqos.errors import InputError
from podqos.manifest.plain import parse_path
from podqos.model.assumption import Assumption
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU
from podqos.model.snapshot import PodUsage
from podqos.naming import published
from podqos.objects.objects import FoundWorkload
from podqos.orders.counterfactual import Counterfactual, PodChange
from podqos.orders.plain_node import TurningRates
from podqos.page.cluster import NextDeath, NodePanel, PageNode, ShownSource
from podqos.page.pod import PodEdit, PodStanding, SaferEdit, WithheldChange, is_safer
from podqos.page.what_if import (
    ComparedPod,
    ForecastRequest,
    WhatIf,
    WhatIfEngine,
    WhatIfView,
    fix_target,
    written_fields,
)
from podqos.qos.edits import Edit
from podqos.questions.findings import CheckReport, patch_lines
from podqos.questions.patches import reason_words, unified
from podqos.questions.saving import NodeNow, Turn, unknown_usage
from podqos.text.saving import FATES, Saving, tried_effect
from podqos.text.why import first_then

_TEXTS = {
    "usage": "Memory usage is not known; assumed: {value}.",
    "kubelet settings": "The kubelet's settings are not known; assumed: {value}.",
    "node memory": "The memory of the node is not known; assumed: {value}.",
    "where pods run": "Where the pods run is not known; assumed: {value}.",
}
_FROM_FILES = {
    "usage": "Open a usage table together with the files: kubectl top pods -A --containers > usage.txt",
    "kubelet settings": "Open the kubelet's settings together with the files: "
    "kubectl get --raw /api/v1/nodes/NODE/proxy/configz > kubelet.json",
    "node memory": "Open the Node together with the files: kubectl get node NODE -o yaml > node.yaml",
    "where pods run": "Open a snapshot of the cluster instead: podqos snapshot > cluster.json",
}
_FROM_CLUSTER = {
    "usage": "It is read from the kubelets (permission: get nodes/proxy) or from metrics-server.",
    "kubelet settings": "They are read from the kubelet's configz (permission: get nodes/proxy).",
}


def how_to_know_usage(*, is_cluster: bool) -> str:
    """Return where to get the usage of pods."""
    return (_FROM_CLUSTER if is_cluster else _FROM_FILES)["usage"]


def unknown_text(assumption: Assumption) -> str:
    """Return what is not known and what is assumed; empty for what hardly matters to who dies first."""
    what, _, pods = assumption.what.partition(" of ")
    if what == "usage" and pods:
        return f"Memory usage of {pods} is not known; assumed: {assumption.value}."
    return _TEXTS.get(assumption.what, "").format(value=assumption.value)


def how_to_know(assumption: Assumption, *, is_cluster: bool) -> str:
    """Return where to get it: for files what to open with them, for a cluster what it is read from."""
    what = assumption.what.partition(" of ")[0]
    return (_FROM_CLUSTER if is_cluster else _FROM_FILES).get(what, "")


MOST_NEXT = 10
"""So many of the next deaths of a cluster are listed."""


class LikelyEnd(Struct, frozen=True, gc=False, rename="camel"):
    """What happens at a growth, and how likely that is."""

    by: By
    pod: str
    probability: Fraction
    text: str


class GrowthAnswer(Struct, frozen=True, rename="camel"):
    """Whether kubelet or kernel acts first while a container grows; ``podqos forecast`` says the same."""

    growing: str
    """``namespace/name:container``: what the forecast opens with."""
    rate_bytes_per_second: int
    """The growth that ``ends`` are about."""
    first_by: By
    """Which of the two is more likely to be first at that growth."""
    kubelet_first: Fraction
    turning: TurningRates
    text: str
    """Up to which growth the kubelet is first, and from which on the kernel."""
    ends: tuple[LikelyEnd, ...]
    """By time, as the forecast has them."""
    verdict: str = ""
    """How it ends at that growth, as one sentence."""


class Unknown(Struct, frozen=True, rename="camel"):
    """What the answer lacks: what is assumed instead, and how to get it."""

    text: str
    how: str


class AnswerFix(Struct, frozen=True, rename="camel"):
    """The safest fix that was found for a pod that is first in an order. It was applied, and the node ranked again."""

    pod: str
    by: By
    """Which of the two it is protected against, in whose order it is first now."""
    edit: SaferEdit
    copied: str
    """What *Copy* puts on the clipboard: a command of kubectl, or lines of YAML."""
    is_command: bool


class AnswerView(Struct, frozen=True, rename="camel"):
    """What is asked for after the cluster view, about one node."""

    node: str
    growth: GrowthAnswer | None
    """Null where nothing on the node can grow, or its pods are in no order."""
    fix: AnswerFix | None
    no_fix: str
    """Why there is none; empty where there is one."""
    unknowns: tuple[Unknown, ...]
    problem: str = ""
    """What keeps the node from being judged; empty where nothing does."""
    withheld: WithheldChange | None = None
    """What ``noFix`` says of a change that can be tried all the same."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "AnswerView"


def next_deaths(panels: Iterable[NodePanel]) -> tuple[NextDeath, ...]:
    """Return the next pods to die, on nodes with the least headroom; on a node of its own each."""
    deaths = []
    for panel in panels:
        is_kernel = panel.first_by is By.KERNEL
        victim = panel.next_killed if is_kernel else panel.next_evicted
        left = panel.kernel_left_bytes if is_kernel else panel.headroom_bytes
        if victim is not None and left is not None and panel.first_by is not None:
            why = victim.explanation, victim.is_assumed, victim.qos_class
            deaths.append(NextDeath(panel.name, victim.pod, panel.first_by, left, *why))
    return tuple(nsmallest(MOST_NEXT, deaths, key=lambda death: (death.headroom_bytes, death.node)))


class PodToSave(Struct, frozen=True):
    """A pod of a node, and what it comes from."""

    page: ShownSource
    node: PageNode
    entry: PodUsage
    found: FoundWorkload
    now: PodStanding

    @property
    def is_measured(self) -> bool:
        """Whether it is known what it uses."""
        return self.node.state is not None and self.entry.pod.key not in self.node.state.unmeasured


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
    ways = []
    now = NodeNow.of(state)
    for turn in now.turns(pod.entry.pod.metadata.uid):
        by = turn.by
        for counterfactual in turn.counterfactuals:
            if not counterfactual.saves or _adds_cpu_limit(counterfactual):
                continue
            if counterfactual.change is PodChange.LESS:
                later = _later(pod.now, counterfactual.decision.place - turn.place, by)
                less = _worded(pod, counterfactual, turn, now)
                ways.append(SaferEdit(PodChange.LESS, (), None, later, by, less))
                continue
            tried = _tried(pod, counterfactual)
            if tried is not None:
                ways.append(_way(pod, counterfactual, tried, _worded(pod, counterfactual, turn, now), by))
    offered: list[tuple[PodChange, tuple[Edit, ...]]] = []
    for way in sorted(ways, key=lambda way: way.change is PodChange.LESS):
        # What saves it from both is offered once.
        if not way.edits or (way.change, way.edits) not in offered:
            yield way
        offered.append((way.change, way.edits))


def _worded(pod: PodToSave, counterfactual: Counterfactual, turn: Turn, now: NodeNow) -> Saving:
    """Return a way to save a pod as ``podqos rank`` tells it; of a scenario, with the time that it is about."""
    told = now.worded(counterfactual, turn)
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
    now = NodeNow.of(state)
    for turn in now.turns(pod.entry.pod.metadata.uid):
        for counterfactual in turn.counterfactuals if turn.by is by else ():
            remedy = now.worded(counterfactual, turn)
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
        return (PodEdit(pod.entry.pod.key, priority=counterfactual.amount),)
    made: dict[str, tuple[dict[str, str | None], dict[str, str | None]]] = {}
    for edit in counterfactual.edits:
        *_, side, resource = parse_path(edit.path)
        if edit.value is None or side not in {"requests", "limits"}:
            return ()
        amounts = made.setdefault(_container(pod.entry.pod, edit), ({}, {}))
        amounts[side == "limits"][str(resource)] = str(edit.value)
    return tuple(PodEdit(pod.entry.pod.key, name, requests, limits) for name, (requests, limits) in made.items())


def _tried(pod: PodToSave, counterfactual: Counterfactual) -> _Tried | None:
    """Return what becomes of the node; None where the pod is not safer, does not fit, or is refused."""
    edits = _pod_edits(pod, counterfactual)
    if not edits:
        return None
    try:
        view = WhatIfEngine(pod.page).answer(WhatIf(node=pod.node.name, edits=edits))
    except InputError:
        return None
    own = next((compared for compared in view.pods if compared.pod == pod.entry.pod.key), None)
    if own is None or own.after is None or view.moved or view.notes or not is_safer(pod.now, own.after):
        return None
    return _Tried(edits, view, own.after)


def _way(pod: PodToSave, counterfactual: Counterfactual, tried: _Tried, remedy: Saving, by: By) -> SaferEdit:
    target = fix_target(pod.page, pod.node, pod.entry, pod.found)
    (edited,) = tried.view.edited
    instead = _instead(tried.view.pods, pod.entry.pod.key, by)
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
        still_first=tuple(
            by for by, first in ((By.KUBELET, evicted), (By.KERNEL, killed)) if first == pod.entry.pod.key
        ),
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
        own = PodEdit(pod.entry.pod.key, _container(pod.entry.pod, edit), **written)  # type: ignore[arg-type] # requests or limits
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
                command = None if best.patch is None or not is_running else best.patch.kubectl
                fix = AnswerFix(pod, by, best, best.lines if command is None else command, command is not None)
                return fix, "", None
            else:
                change = withheld_change(saved, by)
                if tried:  # which leaves the pod first in an order
                    remedy, still = tried[0].remedy, " and ".join(FATES[by] for by in tried[0].still_first)
                    assert remedy is not None
                    text = f"{remedy.change}: {remedy.effect}; but it is still {still} first."
                    change = WithheldChange(text, tried[0].tries)
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


def _danger(way: SaferEdit) -> tuple[bool, int]:
    """Return what ways are compared by: a priority, which may preempt, and what is reserved."""
    reserved = sum(
        Quantity.parse(amount).value
        for edit in way.tries
        for name, amount in edit.requests.items()
        if name == "memory" and amount is not None
    )
    return way.change is PodChange.PRIORITY, reserved


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
    for assumption in state.resting_on:
        text = unknown_text(assumption)
        if text:
            yield Unknown(text, how_to_know(assumption, is_cluster=is_cluster))


class CheckItem(Struct, frozen=True, rename="camel"):
    """One finding."""

    check: str
    check_name: str
    severity: FindingSeverity
    title: str
    subject: str
    """``Deployment shop/web``."""
    namespace: str
    container: str | None
    place: str
    """File, line and column, or the field of an object of a cluster."""
    reason: str
    consequence: str
    patch: str
    """What to write, a line for each edit."""
    is_fixed: bool
    """Whether applying all fixes writes it."""
    on_request: bool
    """Whether it is written only where its check is chosen."""
    fingerprint: str
    can_be_fixed: bool = False
    """Whether a request that names its check tries to fix it."""
    also: str = ""
    """What it is about as well: copies in other files, or other objects at the same place."""


_NAMED = 2
_ORDER = (FindingSeverity.ERROR, FindingSeverity.WARNING, FindingSeverity.INFO)


class CheckGroup(Struct, frozen=True, rename="camel"):
    """All findings of one check."""

    check: str
    check_name: str
    severity: FindingSeverity
    """Of the most severe."""
    title: str
    items: tuple[int, ...]
    """Which findings, as indexes of ``CheckView.items``: most severe first, then in the order of the files."""
    objects: int
    """How many objects have such a finding."""
    subjects: str
    """These in words: ``Deployment shop/web, Pod shop/shell and 42 more``."""
    reason: str
    """Where it is the same for all; otherwise empty."""
    consequence: str
    """The same."""
    patch: str
    """The lines that the fixes of all have in common; otherwise empty."""
    fixable: int
    """For how many findings one request for this check tries a fix."""
    fix: str
    """That request in words, such as ``Fix all 44``; empty where nothing can be fixed."""


def check_groups(items: Sequence[CheckItem]) -> tuple[CheckGroup, ...]:
    """Return the findings by check: the most severe first, then the most frequent."""
    by_check: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        by_check.setdefault(item.check, []).append(index)
    groups = [_group(items, indexes) for indexes in by_check.values()]
    return tuple(sorted(groups, key=lambda group: (_ORDER.index(group.severity), -len(group.items), group.check)))


def _group(items: Sequence[CheckItem], indexes: list[int]) -> CheckGroup:
    own = sorted(indexes, key=lambda index: _ORDER.index(items[index].severity))
    found = [items[index] for index in own]
    first, subjects = found[0], list(dict.fromkeys(item.subject for item in found))
    more = len(subjects) - _NAMED
    fixable = sum(item.can_be_fixed for item in found)
    some = f"Fix all {len(own):,}" if fixable == len(own) else f"Fix {fixable:,} of {counted(len(own), 'finding')}"
    common = set.intersection(*(set(item.patch.splitlines()) for item in found))
    return CheckGroup(
        check=first.check,
        check_name=first.check_name,
        severity=first.severity,
        title=first.title,
        items=tuple(own),
        objects=len(subjects),
        subjects=f"{', '.join(subjects[:_NAMED])} and {more:,} more" if more > 0 else " and ".join(subjects),
        reason=first.reason if len({item.reason for item in found}) == 1 else "",
        consequence=first.consequence if len({item.consequence for item in found}) == 1 else "",
        patch="\n".join(line for line in first.patch.splitlines() if line in common),
        fixable=fixable,
        fix="" if not fixable else "Fix it" if len(own) == 1 else some,
    )


class CheckView(Struct, frozen=True, rename="camel"):
    """Everything that was found, in the order of the files."""

    items: tuple[CheckItem, ...]
    summary: CheckSummary
    verdict: str
    """The worst in a sentence; empty where nothing was found."""
    can_fix: bool
    """Whether there are files to fix; of a cluster there are patches."""
    notes: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...] = ()
    groups: tuple[CheckGroup, ...] = ()
    """The same by check: errors first."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CheckView"


class FixRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is asked."""

    checks: tuple[str, ...] = ()
    """The checks whose findings to fix, such as ``PQ101``; none: all that ``check --fix`` fixes."""


class FixedText(Struct, frozen=True):
    """A file that changes."""

    name: str
    diff: str
    """Unified; ``patch -p0`` takes it."""
    text: str
    """The whole file as it is then."""
    findings: tuple[str, ...]
    """What is fixed."""


class FixView(Struct, frozen=True, rename="camel"):
    """What is answered."""

    files: tuple[FixedText, ...]
    refused: tuple[str, ...]
    """What is not fixed, and why."""
    patches: tuple[str, ...]
    """Of a cluster: commands of kubectl, or patches where it would refuse them."""
    remaining: int
    """Findings that are left."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "FixView"


def check_view(report: CheckReport, *, can_fix: bool) -> CheckView:
    """Return a report as the page shows it."""
    items = tuple(
        CheckItem(
            check=item.check,
            check_name=item.check_name,
            severity=item.severity,
            title=item.title,
            subject=item.subject,
            namespace=item.namespace,
            container=item.container,
            place=item.place,
            reason=item.reason,
            consequence=item.consequence,
            patch=_patch_text(item.patch),
            is_fixed=item.patch.is_applied,
            on_request=item.patch.on_request,
            fingerprint=item.fingerprint,
            can_be_fixed=item.patch.is_complete,
            also=item.also_text,
        )
        for item in report.items
    )
    verdict = "" if report.verdict is None else report.verdict.text
    return CheckView(items, report.summary, verdict, can_fix, report.notes, report.assumptions, check_groups(items))


def _patch_text(patch: Patch) -> str:
    if patch.is_complete and not patch.is_tried:
        return "With this many objects, a fix is tried only when you ask for it."
    return "\n".join(patch_lines(patch)).removeprefix("fix: ")


def fix_view(fixes: Fixes, remaining: int) -> FixView:
    """Return what was fixed as the page shows it."""
    files = tuple(
        FixedText(
            file.source,
            "".join(f"{line}\n" for line in unified(file)),
            file.after.decode(errors="replace"),
            tuple(f"{finding.check} {finding.subject.kind} {finding.subject.key}" for finding in file.findings),
        )
        for file in fixes.files
    )
    refused = tuple(
        f"{fix.finding.check} {refused.subject.kind} {refused.subject.key}: {reason_words(fix.why)}"
        for refused in fixes.refused
        for fix in refused.fixes
    )
    return FixView(files, refused, (), remaining)
