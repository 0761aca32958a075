"""What edits of workloads and of kubelets would do to the nodes they touch, and how a growing container ends there.

Only the edited workloads are read and admitted again, and only the nodes of their pods are ranked again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.drift import resize_verdict
from podqos.answers.forecast import ForecastReport, GrowthRequest, forecast
from podqos.answers.node_figures import first_by
from podqos.answers.node_state import NodeState, available_bytes
from podqos.answers.page.edit_costs import edit_costs
from podqos.answers.page.editing import edited, edited_alike, with_workloads
from podqos.answers.page.edits import PodEdit
from podqos.answers.page.fix_target import FixTarget, fix_target, target_lines, target_patch, written_fields
from podqos.answers.page.forecast import ForecastRequest, ForecastView
from podqos.answers.page.harm import Riskiest
from podqos.answers.page.nodes import PageNode
from podqos.answers.page.places import Places, turn
from podqos.answers.page.quotas import Charged
from podqos.answers.page.rehoming import rehomed
from podqos.answers.page.riskiest import growable, riskiest
from podqos.answers.page.shown import ByRate, ShownSource
from podqos.answers.page.what_if import (
    ChangedNode,
    ComparedPod,
    EditedPod,
    ForecastChange,
    KubeletEdit,
    ScoreChange,
    WhatIf,
    WhatIfView,
)
from podqos.answers.rank import RankRequest, rank
from podqos.answers.watched_memory import watched_memory
from podqos.errors import InputError, InvalidConfiguration
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import default_eviction_hard, parse_thresholds
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import PodUsage
from podqos.model.time_units import SECOND_US
from podqos.naming import published
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet
from podqos.objects.objects import FoundWorkload
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.survival.drift.resizing import Resizing, resizing
from podqos.wording import mebibytes
from podqos.words.first_actor import first_actor_text
from podqos.words.forecast import race_text

_LONGEST_INTERVAL_SECONDS = 3600
_FASTEST_BYTES_PER_SECOND = 1 << 40


class _Edited(Struct):
    """A workload, and what is written into it."""

    pod: str
    node: PageNode
    """Where that pod runs."""
    found: FoundWorkload
    """What it is read from."""
    pods: Sequence[tuple[PageNode, PodUsage]]
    """All that change."""
    target: FixTarget
    """What is to be patched."""
    fields: list[PodEdit] = []
    priority: int | None = None

    @property
    def name(self) -> str:
        """Of the workload."""
        return self.target.text


class WhatIfEngine:
    """Answers what-if questions about a page."""

    def __init__(self, page: ShownSource) -> None:
        self._page = page
        self._profile = page.nodes.profile
        self._examples: list[tuple[FoundWorkload, FoundWorkload, Sequence[PodEdit]]] = []
        """Pods before and after the same edits."""

    def answer(self, request: WhatIf) -> WhatIfView:
        """Return what the edits would do."""
        page, profile = self._page, self._profile
        changes = self._changes(request)
        node = self._page.node(request.node) if request.node or not changes else changes[0].node
        now = self._page.state(node)
        before = page.places(node)
        if before is None:
            raise InputError(node.problem or "its pods are not ranked", where=node.name)
        written = self._written(changes)
        notes = page.quotas.check(self._charged(changes, written))
        homes = rehomed(page, written)
        states = self._with_kubelet(request, node, homes.states)
        state = states.get(node.name, now)
        report = node.report if state is now else rank(state, RankRequest(profile=profile))
        if report is None:
            raise InputError("it has no pods", where=node.name)
        after = before if state is now else Places.of(report)
        touched = {entry.pod.key for change in changes for _, entry in change.pods}
        changed = [
            self._changed(state, states, after if state == node.name else None, touched)
            if request.is_whole or state == node.name
            else _uncounted(state, states[state], touched)
            for state in states
        ]
        changed.sort(
            key=lambda changed_node: (
                changed_node.node != node.name,
                -(changed_node.at_risk or 0) - (changed_node.safer or 0),
                changed_node.node,
            )
        )
        was = watched_memory(now, profile)
        then = was if state is now else watched_memory(state, profile)
        return WhatIfView(
            node=node.name,
            edited=tuple(self._edited_pod(change, node, (before, after), written) for change in changes),
            pods=tuple(
                ComparedPod(pod, pod in touched, before.standing(pod), after.standing(pod))
                for pod in dict.fromkeys((*after.evicted, *before.evicted))
            ),
            nodes=tuple(changed),
            is_whole=all(node.safer is not None for node in changed),
            safer=sum(node.safer or 0 for node in changed),
            at_risk=sum(node.at_risk or 0 for node in changed),
            mixed=sum(node.mixed or 0 for node in changed),
            moved=homes.moved,
            preempted=homes.preempted,
            threshold_before_bytes=was.threshold_bytes,
            threshold_after_bytes=then.threshold_bytes,
            headroom_before_bytes=was.headroom_bytes,
            headroom_after_bytes=then.headroom_bytes,
            headroom_signal=None if then.headroom is None else then.headroom.signal,
            first_by=first_by(report),
            kernel_left_before_bytes=(node.report or report).node.kernel_left_bytes,
            kernel_left_after_bytes=report.node.kernel_left_bytes,
            forecast=self._forecast_change(request.growing, node, state) if request.growing else None,
            notes=(*notes, *(note for state in states.values() for note in _notes(state, touched))),
            assumptions=report.assumptions,
        )

    def forecast(self, request: ForecastRequest) -> ForecastView:
        """Return what becomes of a growing container with other settings."""
        if not 0 < request.interval_seconds <= _LONGEST_INTERVAL_SECONDS:
            raise InputError(f"{request.interval_seconds} s is not a valid interval", fix="from 1 s to an hour")
        if not 0 < request.rate_bytes_per_second <= _FASTEST_BYTES_PER_SECOND:
            raise InputError("growth rate missing", where="rateBytesPerSecond", fix="for example 128Mi per second")
        node, chosen = self._grower(request)
        now = self._page.state(node)
        choices = growable(now)
        if not choices:
            raise InputError("it has no pods", where=node.name, fix="choose another node")
        growing = request.growing or (choices[0] if chosen is None else chosen.growing)
        kubelet = edited_kubelet(now, request.kubelet, self._profile)
        state = now if kubelet is None else replace(now, kubelet=kubelet)
        interval_us = round(request.interval_seconds * SECOND_US)
        report = forecast(
            state,
            GrowthRequest(
                growing=growing,
                rates=(request.rate_bytes_per_second,),
                interval_us=interval_us,
                fast_path=request.fast_path,
                profile=self._profile,
            ),
        )
        growth = report.growths[0]
        return ForecastView(
            node=node.name,
            growing=f"{growth.pod}:{growth.container}",
            threshold_bytes=watched_memory(state, self._profile).threshold_bytes,
            available_bytes=available_bytes(state, self._profile),
            report=report,
            race=race_text(growth),
            as_it_is=self._by_rate(growing, node).curve,
            choices=choices,
            verdict=growth.text,
            by_rate=_by_rate_text(report),
            chosen="" if chosen is None else chosen.text,
            classes={
                outcome.pod: str(standing.qos_class)
                for outcome in growth.outcomes
                if node.places is not None and (standing := node.places.standing(outcome.pod)) is not None
            },
        )

    def _grower(self, request: ForecastRequest) -> tuple[PageNode, Riskiest | None]:
        """Return the node that is asked about, and the container to look at where none is named."""
        page = self._page
        pod = request.growing.partition(":")[0]
        if pod:
            node = page.found(pod, request.node)[0]
            if node is None:
                raise InputError(f"{pod} is not on a node", fix="choose one that is")
            return node, None
        if request.node not in page.riskiest:
            nodes = [page.node(request.node)] if request.node else page.nodes_by_headroom()
            page.riskiest[request.node] = riskiest(page, nodes, self._profile)
        chosen = page.riskiest[request.node]
        return page.node(request.node if chosen is None else chosen.node), chosen

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def _changes(self, request: WhatIf) -> list[_Edited]:
        """Return what is written into which workloads."""
        page = self._page
        changes: dict[tuple[str, str], _Edited] = {}
        for edit in request.edits:
            at, entry, found = page.found(edit.pod)
            if at is None or at.state is None:
                if at is not None and at.problem:
                    raise InputError(at.problem, where=at.name)
                raise InputError(f"{edit.pod} is not on a node", fix="choose another")
            pods = [(at, entry)] if edit.alone and found.workload.is_stored else page.alike(at, entry)
            first = pods[0][1].pod.metadata.uid
            key = first, edit.pod if edit.alone else ""
            if key not in changes:
                alone = FixTarget(found.workload.kind, found.workload.pod.key, found)
                target = alone if edit.alone else fix_target(page, at, entry, found)
                changes[key] = _Edited(edit.pod, at, found, pods, target)
            if edit.container or edit.requests or edit.limits:
                changes[key].fields.append(edit)
            if edit.priority is not None:
                changes[key].priority = edit.priority
        return list(changes.values())

    # ---- what follows ------------------------------------------------------------------------------------------------

    def _written(self, changes: Sequence[_Edited]) -> dict[str, NodeState]:
        """Return the nodes of edited pods with these as they are then, each where it is."""
        page = self._page
        by_node: dict[str, dict[str, tuple[FoundWorkload, list[PodEdit]]]] = {}
        priorities: dict[str, int] = {}
        for change in changes:
            for node, entry in change.pods:
                found = page.made_from(node, entry)
                name = f"{found.workload.kind} {found.workload.pod.key}"
                _, edits = by_node.setdefault(node.name, {}).setdefault(name, (found, []))
                edits += (field for field in change.fields if field not in edits)
                if change.priority is not None:
                    priorities[name] = change.priority
        states = {}
        for node_name, own in by_node.items():
            made = [self._edited(found, edits) for found, edits in own.values()]
            states[node_name] = with_workloads(page.nodes.nodes[node_name], made, priorities, self._profile)
        return states

    def _edited(self, found: FoundWorkload, edits: Sequence[PodEdit]) -> FoundWorkload:
        """Return an edited workload; replicas are alike, so that one of them is read for all."""
        for example, made, same in self._examples:
            if same == edits and (alike := edited_alike(example, made, found)) is not None:
                return alike
        made = edited(self._page.nodes.objects, found, written_fields(edits, found))
        self._examples.append((found, made, edits))
        return made

    def _charged(self, changes: Sequence[_Edited], written: Mapping[str, NodeState]) -> list[Charged]:
        """Return the edited workloads as quotas see them."""
        after = {entry.pod.metadata.uid: entry.pod for state in written.values() for entry in state.snapshot.pods}
        return [
            Charged(
                edited(self._page.nodes.objects, change.found, written_fields(change.fields, change.found)),
                [(entry.pod, after[entry.pod.metadata.uid]) for _, entry in change.pods],
            )
            for change in changes
            if change.fields
        ]

    def _with_kubelet(self, request: WhatIf, node: PageNode, states: Mapping[str, NodeState]) -> dict[str, NodeState]:
        """Return the nodes that change, with the settings of their kubelets."""
        all_nodes = self._page.nodes.nodes
        found = dict(states)
        for name in all_nodes if request.everywhere else (node.name,):
            state = states.get(name) or all_nodes[name].state
            kubelet = None if state is None else edited_kubelet(state, request.kubelet, self._profile)
            if state is not None and kubelet is not None:
                found[name] = replace(state, kubelet=kubelet)
        return found

    def _changed(
        self, name: str, states: Mapping[str, NodeState], after: Places | None, touched: Collection[str]
    ) -> ChangedNode:
        """Return what becomes of the pods of a node; ``after`` is where they stand, if that is known."""
        node, state, profile = self._page.nodes.nodes[name], states[name], self._profile
        before, problem = self._page.places(node), node.problem
        if node.state is not None and self._has_same_orders(node.state, state):
            after = before
        if before is not None and after is None:
            try:
                after = Places.of(rank(state, RankRequest(profile=profile)))
            except InputError as error:
                problem = error.worded(published)
        turns = [] if before is None or after is None else [*_turns(before, after)]
        sooner = sum(min(each) < 0 and max(each) <= 0 for each in turns)
        later = sum(min(each) >= 0 and max(each) > 0 for each in turns)
        was, then = (watched_memory(found, profile) for found in (self._page.state(node), state))
        return ChangedNode(
            node=name,
            edited=sum(entry.pod.key in touched for entry in state.snapshot.pods),
            safer=later,
            at_risk=sooner,
            mixed=sum(min(each) < 0 < max(each) for each in turns),
            headroom_before_bytes=was.headroom_bytes,
            headroom_after_bytes=then.headroom_bytes,
            headroom_signal=None if then.headroom is None else then.headroom.signal,
            problem=problem,
        )

    def _has_same_orders(self, now: NodeState, then: NodeState) -> bool:
        """Whether only settings of the kubelet differ that decide nothing about the orders."""
        if now.snapshot is not then.snapshot:
            return False
        kubelets = (node_state.kubelet or DEFAULT_KUBELET for node_state in (now, then))
        one, other = (now.cgroups(kubelet, CgroupVersion.V2, self._profile) for kubelet in kubelets)
        return one == other

    def _edited_pod(
        self, change: _Edited, node: PageNode, places: tuple[Places, Places], written: Mapping[str, NodeState]
    ) -> EditedPod:
        page, (before, after) = self._page, places
        fields = list(written_fields(change.fields, change.found))
        old = page.explained(change.found, change.node).items[0]
        changed = edited(page.nodes.objects, change.found, fields) if fields else change.found
        new = page.explained(changed, change.node).items[0] if fields else old
        # The scores are those of one of its pods on the node that is looked at, if there is one.
        shown = next((entry.pod.key for at, entry in change.pods if at is node), change.pod)
        scores = {kill_place.container: kill_place for kill_place in after.kills.get(shown, ())}
        verdict = resizing(change.found.workload.pod, changed.workload.pod, self._profile) if fields else None
        resizes = verdict is not None and verdict.outcome is not Resizing.REFUSED
        return EditedPod(
            workload=change.name,
            pods=len(change.pods),
            nodes=len({at.name for at, _ in change.pods}),
            class_before=old.qos_class,
            class_after=new.qos_class,
            reason_before=old.reason,
            reason_after=new.reason,
            scores=tuple(
                ScoreChange(
                    kill_place.container,
                    kill_place.oom_score_adj,
                    scores[kill_place.container].oom_score_adj,
                    scores[kill_place.container].oom_reason,
                )
                for kill_place in before.kills.get(shown, ())
                if kill_place.container in scores
            ),
            patch=target_patch(page, change.target, change.fields, resizes=resizes),
            resize=None if verdict is None else resize_verdict(verdict),
            lines=target_lines(change.target, change.fields),
            costs=tuple(self._costs(change, written)),
        )

    def _costs(self, change: _Edited, written: Mapping[str, NodeState]) -> Iterator[str]:
        """Yield what the edit costs: one of its pods as it is stored, before and after."""
        at, entry = change.pods[0]
        uid = entry.pod.metadata.uid
        after = next(own.pod for own in written[at.name].snapshot.pods if own.pod.metadata.uid == uid)
        room = at.node.status.allocatable.get(MEMORY)
        room_bytes = None if room is None or at.is_assumed else room.value
        return edit_costs(entry.pod, after, len(change.pods), room_bytes, self._profile)

    def _forecast_change(self, growing: str, node: PageNode, state: NodeState) -> ForecastChange | None:
        """Return how a container's growth ends, if its pod stays on the node; unless one is named, the pod's first."""
        pod, _, container = growing.partition(":")
        earlier, entry = (
            next((pod_usage for pod_usage in own.snapshot.pods if pod_usage.pod.key == pod), None)
            for own in (self._page.state(node), state)
        )
        if earlier is None or entry is None or not entry.containers:
            return None
        growing = f"{pod}:{container or entry.containers[0].name}"
        was = self._by_rate(growing, node)
        then = was if state is node.state else self._by_rate_of(growing, state)
        return ForecastChange(growing, was.curve, then.curve, was.text, then.text)

    def _by_rate(self, growing: str, node: PageNode) -> ByRate:
        """Return who acts first as it is, which is computed once."""
        known = self._page.curves
        key = node.name, growing
        if key not in known:
            known[key] = self._by_rate_of(growing, self._page.state(node))
        return known[key]

    def _by_rate_of(self, growing: str, state: NodeState) -> ByRate:
        report = forecast(state, GrowthRequest(growing=growing, rates=(1,), profile=self._profile))
        return ByRate(report.curve, _by_rate_text(report))


def _by_rate_text(report: ForecastReport) -> str:
    assert report.turning is not None
    return first_actor_text(report.turning, report.growths[0], report.interval_seconds)


def edited_kubelet(state: NodeState, edit: KubeletEdit, profile: Profile) -> Kubelet | None:
    """Return the node's kubelet with other settings; None where they are those it has."""
    own = state.kubelet or DEFAULT_KUBELET
    config = own.config
    signal = Signal.MEMORY.value
    hard = default_eviction_hard(profile) if config.eviction_hard is None else config.eviction_hard
    if edit.eviction_hard and edit.eviction_hard != hard.get(signal):
        config = replace(config, eviction_hard={**hard, signal: edit.eviction_hard})
    if edit.eviction_soft:
        grace = edit.eviction_soft_grace_period or config.eviction_soft_grace_period.get(signal, "1m30s")
        config = replace(
            config,
            eviction_soft={**config.eviction_soft, signal: edit.eviction_soft},
            eviction_soft_grace_period={**config.eviction_soft_grace_period, signal: grace},
        )
    for amount in filter(None, (edit.system_reserved, edit.kube_reserved)):
        Quantity.parse(amount)
    if edit.system_reserved:
        config = replace(config, system_reserved={**config.system_reserved, MEMORY: edit.system_reserved})
    if edit.kube_reserved:
        config = replace(config, kube_reserved={**config.kube_reserved, MEMORY: edit.kube_reserved})
    if config == own.config:
        return None
    try:
        parse_thresholds(config)
    except InvalidConfiguration as error:
        raise InputError(error.what, where=error.where, fix=error.fix) from None
    return replace(own, config=config)


def _turns(before: Places, after: Places) -> Iterator[tuple[int, int]]:
    """Yield how the pods that stay turn among each other: that others come or go makes none of them go sooner."""
    orders = []
    for own, other in ((before, after), (after, before)):
        evicted = (pod for pod in own.evicted if pod in other.evicted)
        killed = (pod for pod in own.killed if pod in other.killed)
        orders.append([{pod: place for place, pod in enumerate(order)} for order in (evicted, killed)])
    for pod in orders[0][0]:
        was, becomes = (
            replace(standing, eviction_place=evicted[pod], kill_place=killed.get(pod))
            for places, (evicted, killed) in zip((before, after), orders, strict=True)
            if (standing := places.standing(pod)) is not None
        )
        yield turn(was, becomes)


def _uncounted(name: str, state: NodeState, touched: Collection[str]) -> ChangedNode:
    edited_pods = sum(entry.pod.key in touched for entry in state.snapshot.pods)
    return ChangedNode(name, edited_pods, None, None, None, None, None)


def _notes(state: NodeState, touched: Collection[str]) -> Iterator[str]:
    """Yield which containers use more than the limit they are given."""
    for entry in state.snapshot.pods:
        if entry.pod.key in touched:
            limits = {
                container.name: container.resources.limits.get(MEMORY) for container in entry.pod.running_containers
            }
            for usage in entry.containers:
                limit = limits.get(usage.name)
                if limit is not None and usage.working_set_bytes > limit.value:
                    used = mebibytes(usage.working_set_bytes)
                    yield f"{entry.pod.key} {usage.name} uses {used}: it is killed at its limit of {limit}"
