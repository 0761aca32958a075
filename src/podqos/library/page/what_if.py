"""What edits of pods and of their kubelet would do to a node, and how a growing container ends there.

Only the edited workloads are read and admitted again, and only their node is ranked again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.finding import FieldEdit
from podqos.errors import InputError, InvalidConfiguration
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import default_eviction_hard, parse_thresholds
from podqos.library.forecast import forecast
from podqos.library.inputs.kubelet_node import DEFAULT_KUBELET, Kubelet
from podqos.library.inputs.objects import FoundWorkload
from podqos.library.node_figures import headroom_bytes, threshold_bytes, used_bytes
from podqos.library.node_state import NodeState
from podqos.library.page.editing import edited, patch_of, with_workloads
from podqos.library.page.nodes import PageNode
from podqos.library.page.places import Places
from podqos.library.page.shown import Shown
from podqos.library.rank import rank
from podqos.manifest.plain import format_path
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_US
from podqos.report.page.forecast import ForecastRequest, ForecastView
from podqos.report.page.what_if import (
    ComparedPod,
    EditedPod,
    ForecastChange,
    KubeletEdit,
    PodEdit,
    ScoreChange,
    WhatIf,
    WhatIfView,
)
from podqos.report.survival.forecast import race_text
from podqos.survival.forecast import CurvePoint
from podqos.wording import mebibytes

_MOST_CHOICES = 500
_LONGEST_INTERVAL_SECONDS = 3600
_FASTEST_BYTES_PER_SECOND = 1 << 40


class _Edited(Struct):
    """A workload, and what is written into it."""

    pod: str
    found: FoundWorkload
    fields: list[FieldEdit]
    priority: int | None = None
    alike: Sequence[FoundWorkload] = ()
    """Live pods of the same owner, which change with it."""


class WhatIfEngine:
    """Answers what-if questions about a page."""

    def __init__(self, page: Shown) -> None:
        self._page = page
        self._profile = page.nodes.profile

    def answer(self, request: WhatIf) -> WhatIfView:
        """Return what the edits would do."""
        page, profile = self._page, self._profile
        node, changes = self._changes(request)
        now = self._state(node)
        before = page.places(node)
        if before is None:
            raise InputError(node.problem or "its pods are in no order", where=node.name)
        state = self._edited_state(node, changes)
        kubelet = edited_kubelet(now, request.kubelet, profile)
        if kubelet is not None:
            state = replace(state, kubelet=kubelet)
        report = node.report if state is now else rank(state, profile=profile)
        assert report is not None
        after = before if state is now else Places.of(report)
        touched = [_touched(change, now) for change in changes]
        pods = []
        for pod in after.evicted:
            old, new = before.standing(pod), after.standing(pod)
            if old is not None and new is not None:
                pods.append(ComparedPod(pod, any(pod in each for each in touched), old, new))
        return WhatIfView(
            node=node.name,
            edited=tuple(
                self._edited_pod(change, before, after, len(own)) for change, own in zip(changes, touched, strict=True)
            ),
            pods=tuple(pods),
            threshold_before_bytes=threshold_bytes(now, profile),
            threshold_after_bytes=threshold_bytes(state, profile),
            headroom_before_bytes=headroom_bytes(now, profile),
            headroom_after_bytes=headroom_bytes(state, profile),
            forecast=self._forecast_change(request.growing, node, state) if request.growing else None,
            notes=tuple(_notes(state, set().union(*touched))),
            assumptions=report.assumptions,
        )

    def forecast(self, request: ForecastRequest) -> ForecastView:
        """Return what becomes of a growing container with other settings."""
        if not 0 < request.interval_seconds <= _LONGEST_INTERVAL_SECONDS:
            raise InputError(f"{request.interval_seconds} s are no interval", fix="from 1 s to an hour")
        if not 0 < request.rate_bytes_per_second <= _FASTEST_BYTES_PER_SECOND:
            raise InputError("no rate of growth", where="rateBytesPerSecond", fix="for example 128Mi per second")
        pod = request.growing.partition(":")[0]
        node = self._page.found(pod, request.node)[0] if pod else self._node(request.node)
        if node is None:
            raise InputError(f"{pod} runs on no node", fix="choose one that does")
        now = self._state(node)
        choices = _choices(now)
        growing = request.growing or choices[0]
        kubelet = edited_kubelet(now, request.kubelet, self._profile)
        state = now if kubelet is None else replace(now, kubelet=kubelet)
        interval_us = round(request.interval_seconds * SECOND_US)
        report = forecast(
            state,
            growing=growing,
            rates=(request.rate_bytes_per_second,),
            interval_us=interval_us,
            fast_path=request.fast_path,
            profile=self._profile,
        )
        memory_bytes = now.snapshot.node.memory_bytes
        return ForecastView(
            node=node.name,
            growing=f"{report.growths[0].pod}:{report.growths[0].container}",
            threshold_bytes=threshold_bytes(state, self._profile),
            available_bytes=memory_bytes - used_bytes(state),
            report=report,
            race=race_text(report.growths[0]),
            as_it_is=self._curve(growing, node),
            choices=choices,
        )

    # ---- what is asked -----------------------------------------------------------------------------------------------

    def _changes(self, request: WhatIf) -> tuple[PageNode, list[_Edited]]:
        """Return the node, and what is written into its workloads."""
        changes: dict[str, _Edited] = {}
        node = self._node(request.node) if request.node or not request.edits else None
        for edit in request.edits:
            at, entry, found = self._page.found(edit.pod, request.node if node is None else node.name)
            if at is None:
                raise InputError(f"{edit.pod} runs on no node", fix="choose one that does")
            if node is not None and at is not node:
                raise InputError(f"{edit.pod} runs on {at.name}, not on {node.name}", fix="edit pods of one node")
            node = at
            key = f"{found.workload.kind} {found.workload.pod.key}"
            if key not in changes:
                changes[key] = _Edited(edit.pod, found, [], alike=self._alike(at, found, entry.pod))
            changes[key].fields += _fields(edit, found)
            if edit.priority is not None:
                changes[key].priority = edit.priority
        assert node is not None
        return node, list(changes.values())

    def _node(self, name: str) -> PageNode:
        nodes = self._page.nodes.nodes
        if name in nodes:
            return nodes[name]
        if name:
            raise InputError(f"there is no node {name}", fix="it may be gone: see the cluster")
        ranked = [each for each in nodes.values() if each.state is not None]
        if not ranked:
            raise InputError("there are no pods", fix="give manifests, or a snapshot of a cluster")
        return min(ranked, key=lambda each: headroom_bytes(self._state(each), self._profile))

    def _state(self, node: PageNode) -> NodeState:
        if node.state is None:
            raise InputError(node.problem or "it has no pods", where=node.name)
        return node.state

    def _alike(self, node: PageNode, found: FoundWorkload, pod: Pod) -> list[FoundWorkload]:
        """Return the objects that change together: live pods of one owner are made from one template."""
        owners = {(each.kind, each.name) for each in pod.metadata.owner_references if each.controller}
        if not found.workload.is_stored or not owners:
            return [found]
        return [
            each
            for each in node.objects.workloads
            if each.workload.metadata.namespace == found.workload.metadata.namespace
            and owners & {(owner.kind, owner.name) for owner in each.workload.metadata.owner_references}
        ]

    # ---- what follows ------------------------------------------------------------------------------------------------

    def _edited_state(self, node: PageNode, changes: Sequence[_Edited]) -> NodeState:
        if not changes:
            return self._state(node)
        objects, made, priorities = self._page.nodes.objects, [], {}
        for change in changes:
            for each in change.alike:
                made.append(edited(objects, each, change.fields))
                if change.priority is not None:
                    priorities[f"{each.workload.kind} {each.workload.pod.key}"] = change.priority
        return with_workloads(node, made, priorities, self._profile)

    def _edited_pod(self, change: _Edited, before: Places, after: Places, pods: int) -> EditedPod:
        page = self._page
        old = page.explained(change.found).items[0]
        new = page.explained(edited(page.nodes.objects, change.found, change.fields)).items[0] if change.fields else old
        scores = {each.container: each for each in after.kills.get(change.pod, ())}
        return EditedPod(
            workload=f"{change.found.workload.kind} {change.found.workload.pod.key}",
            pods=pods,
            class_before=old.qos_class,
            class_after=new.qos_class,
            reason_before=old.reason,
            reason_after=new.reason,
            scores=tuple(
                ScoreChange(
                    each.container,
                    each.oom_score_adj,
                    scores[each.container].oom_score_adj,
                    scores[each.container].oom_reason,
                )
                for each in before.kills.get(change.pod, ())
                if each.container in scores
            ),
            patch=patch_of(page.nodes.objects, change.found, change.fields),
        )

    def _forecast_change(self, growing: str, node: PageNode, state: NodeState) -> ForecastChange:
        before = self._curve(growing, node)
        after = (
            before if state is node.state else forecast(state, growing=growing, rates=(), profile=self._profile).curve
        )
        return ForecastChange(growing, before, after)

    def _curve(self, growing: str, node: PageNode) -> tuple[CurvePoint, ...]:
        """Return the curve as it is, which is computed once."""
        known = self._page.curves
        key = node.name, growing
        if key not in known:
            known[key] = forecast(self._state(node), growing=growing, rates=(), profile=self._profile).curve
        return known[key]


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


def _fields(edit: PodEdit, found: FoundWorkload) -> Iterator[FieldEdit]:
    """Yield the fields of an object that an edit writes."""
    spec = found.workload.pod.spec
    path = "spec"
    if edit.container:
        lists = (("containers", spec.containers), ("initContainers", spec.init_containers))
        places = {each.name: f"spec.{field}[{number}]" for field, of in lists for number, each in enumerate(of)}
        if edit.container not in places:
            raise InputError(f"{edit.pod} has no container {edit.container}", fix=f"one of {', '.join(places)}")
        path = places[edit.container]
    for side, amounts in (("requests", edit.requests), ("limits", edit.limits)):
        for resource, amount in amounts.items():
            key = format_path(("resources", side, resource))
            yield FieldEdit(found.workload.at(f"{path}.{key}"), amount)


def _touched(change: _Edited, state: NodeState) -> set[str]:
    """Return the pods of a node that change."""
    keys = {(each.workload.kind, each.workload.pod.key) for each in change.alike}
    return {entry.pod.key for entry in state.snapshot.pods if state.owners.get(entry.pod.metadata.uid) in keys}


def _notes(state: NodeState, touched: set[str]) -> Iterator[str]:
    """Yield which containers use more than the limit they are given."""
    for entry in state.snapshot.pods:
        if entry.pod.key in touched:
            limits = {each.name: each.resources.limits.get(MEMORY) for each in entry.pod.running_containers}
            for usage in entry.containers:
                limit = limits.get(usage.name)
                if limit is not None and usage.working_set_bytes > limit.value:
                    used = mebibytes(usage.working_set_bytes)
                    yield f"{entry.pod.key} {usage.name} uses {used}: it is killed at its limit of {limit}"


def _choices(state: NodeState) -> tuple[str, ...]:
    """Return what can grow: first what no limit of its own ends, most memory first."""
    found = [
        (_is_limited(entry.pod, usage.name), -usage.working_set_bytes, f"{entry.pod.key}:{usage.name}")
        for entry in state.snapshot.pods
        for usage in entry.containers
    ]
    return tuple(name for _, _, name in sorted(found)[:_MOST_CHOICES])


def _is_limited(pod: Pod, container: str) -> bool:
    return any(each.name == container and MEMORY in each.resources.limits for each in pod.running_containers)
