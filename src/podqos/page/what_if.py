"""What-if: edits of pods and of their kubelet, and what becomes of class, score, both orders and the forecast."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from itertools import islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import within_bounds
from podqos.admission.pod_validation import validate_pod
from podqos.advice.checks.costs import pod_costs
from podqos.advice.checks.finding import FieldEdit, plain_value
from podqos.advice.fixes.patches import object_patch
from podqos.agent.journal import By
from podqos.agent.reasons import OOMLevel
from podqos.amounts import counted, mebibytes, rounded, size
from podqos.errors import InputError, InvalidConfiguration, InvalidManifest
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import default_eviction_hard, parse_thresholds
from podqos.manifest.edits.refusal import EditRefusal
from podqos.manifest.edits.values import with_field
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.plain import Plain, format_path, parse_path
from podqos.manifest.problems import Problem
from podqos.model.assumption import Assumption
from podqos.model.effective import pod_requests
from podqos.model.node import PODS
from podqos.model.owners import controllers
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import PodUsage
from podqos.model.time_units import SECOND_US
from podqos.naming import published
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.node_pods import node_pods
from podqos.objects.objects import FoundWorkload, Objects, in_namespace
from podqos.objects.sources import Source
from podqos.orders.counterfactual import with_priority
from podqos.orders.plain_node import TurningRates
from podqos.orders.versions import ResizeCost, Resizing, resizing
from podqos.page.cluster import ByRate, Charged, PageNode, Riskiest, ShownSource, owner
from podqos.page.pod import PatchText, Places, PodEdit, PodStanding, turn
from podqos.placement.filters import lacking
from podqos.placement.place import Placement, Status, place_views
from podqos.placement.pods import Amounts, PodView, demand_of
from podqos.placement.pods import counted as amounts_of
from podqos.placement.reasons import Insufficient
from podqos.placement.workloads import POD
from podqos.qos.classes import qos_class_of
from podqos.questions.drift import resize_words
from podqos.questions.forecast import DEFAULT_RATES, CurvePoint, ForecastReport, forecast, growing_node
from podqos.questions.growth import Forecast, forecast_growth, race_text
from podqos.questions.node import NodeState, watched_memory
from podqos.questions.overview import first_by
from podqos.questions.patches import json_patch, kubectl_patch, kustomize_patch, template_lines, template_patch
from podqos.questions.place import surroundings_of
from podqos.questions.rank import rank
from podqos.text.placement import reason_words, refusal_message

_UNITS = ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_FEW = 10
"""From so many of a unit on, whole ones are precise enough."""

_OWN_LIMITS = {
    OOMLevel.CONTAINER: "The container's own memory limit",
    OOMLevel.POD: "The pod's own memory limit",
}
_RUNS_OUT = {
    OOMLevel.CONTAINER: "the container reaches its own memory limit",
    OOMLevel.POD: "the pod reaches its own memory limit",
    OOMLevel.CLASS: "the pods of its class reach their memory limit",
    OOMLevel.KUBEPODS: "all pods together reach their memory limit",
    OOMLevel.NODE: "the machine runs out of memory",
}


def first_actor_text(turning: TurningRates, growth: Forecast, interval_seconds: float) -> str:
    """Return up to which growth the kubelet acts first, and from which on the kernel does."""
    up_to, kernel_from = turning.kubelet_up_to, turning.kernel_from
    if turning.is_always_kubelet:
        return "The kubelet acts first at every growth rate."
    if kernel_from == 1:
        own = _OWN_LIMITS.get(growth.out_of_memory)
        if own is not None and growth.thresholds:
            return f"{own} ends the growth at every rate: the kubelet has no reason to act."
        return f"The kernel acts first at every growth rate: {_too_late(growth)}."
    chance = f"it depends on when the kubelet checks, every {rounded(interval_seconds)}"
    lost = kernel_from or turning.kernel_likely_from
    likely = "is first" if kernel_from is not None else "is more likely to be first"
    if up_to is None:
        return f"At any growth {chance}." if lost is None else f"Above {rate_text(lost, up=True)} the kernel {likely}."
    sure = f"Up to {rate_text(up_to)} the kubelet evicts before the kernel kills"
    if lost is None:
        return f"{sure}; above that {chance}."
    if rate_text(up_to) == rate_text(lost, up=True) or lost <= up_to + 1:
        return f"{sure}; above that the kernel {likely}."
    return f"{sure}; above {rate_text(lost, up=True)} the kernel {likely}."


def _too_late(growth: Forecast) -> str:
    """Return why the kubelet never is first."""
    if not growth.thresholds:
        return "no eviction threshold of memory is set"
    first = min(growth.thresholds, key=lambda crossing: crossing.crossed_after_seconds)
    if first.crossed_after_seconds < growth.out_of_memory_after_seconds:
        return "the kubelet may evict none of these pods"
    above = f"{first.signal} is still above the eviction threshold of {mebibytes(first.amount)}"
    return f"{_RUNS_OUT[growth.out_of_memory]} while {above}"


def rate_text(bytes_per_second: int, *, up: bool = False) -> str:
    """Return a growth in two or three digits, rounded to the side on which what is said of it stays true."""
    for unit, name in _UNITS:
        if bytes_per_second >= unit:
            tenths = -(-bytes_per_second * 10 // unit) if up else bytes_per_second * 10 // unit
            if tenths >= _FEW * 10:
                tenths = (-(-tenths // 10) if up else tenths // 10) * 10
            return f"{tenths / 10:g}{name}/s"
    return f"{bytes_per_second} B/s"


class KubeletEdit(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Settings of the node's kubelet; what is empty stays as it is."""

    eviction_hard: str = ""
    """Of memory.available: ``500Mi`` or ``5%``."""
    eviction_soft: str = ""
    eviction_soft_grace_period: str = ""
    """Such as ``1m30s``."""
    system_reserved: str = ""
    """Memory."""
    kube_reserved: str = ""


class WhatIf(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is asked."""

    node: str = ""
    """The node to look at; empty: that of the first edit, or the only one."""
    edits: tuple[PodEdit, ...] = ()
    kubelet: KubeletEdit = KubeletEdit()
    everywhere: bool = False
    """Whether all kubelets have these settings; otherwise that of the node alone."""
    is_whole: bool = False
    """Whether to count the pods of all nodes that are touched, which takes longer; otherwise of one."""
    growing: str = ""
    """``namespace/name:container`` that grows, or the first container of a pod, for the forecast; empty: none."""


class ScoreChange(Struct, frozen=True, rename="camel"):
    """The oom_score_adj of a container."""

    container: str
    before: int | None
    after: int | None
    reason: str
    """Of the score after."""


class EditedPod(Struct, frozen=True, rename="camel"):
    """An edited workload: its class, and why."""

    workload: str
    """``Deployment shop/web``, or ``Pod shop/web``."""
    pods: int
    """How many of them run."""
    nodes: int
    """On how many nodes."""
    class_before: QOSClass
    class_after: QOSClass
    reason_before: str
    reason_after: str
    scores: tuple[ScoreChange, ...]
    patch: PatchText | None
    """The edit, to be copied; null where nothing but the priority changes, where a container was injected, and where
    the object is not known here."""
    resize: ResizeCost | None
    """Whether running pods can have it in place; null where no amount changes."""
    lines: str = ""
    """The edit as YAML of the object that a user edits, also where that object is not known here."""
    costs: tuple[str, ...] = ()
    """What it costs: what is reserved, how many such pods a node holds, new limits, class and priority."""


class ComparedPod(Struct, frozen=True, rename="camel"):
    """A pod of the node, before and after."""

    pod: str
    is_edited: bool
    before: PodStanding | None
    """Null where it comes from another node."""
    after: PodStanding | None
    """Null where it goes to another node, or to none."""


class ChangedNode(Struct, frozen=True, rename="camel"):
    """A node that edits touch: its pods change, come or go, or its kubelet has other settings."""

    node: str
    edited: int
    """How many of its pods are edited."""
    safer: int | None
    """How many pods go later in one of the orders, and sooner in none; null where that is not counted yet."""
    at_risk: int | None
    """How many go sooner in one, and later in none."""
    mixed: int | None
    """How many go sooner in one, and later in the other."""
    headroom_before_bytes: int | None
    headroom_after_bytes: int | None
    problem: str = ""
    """Why its pods are in no order then; empty where they are."""
    headroom_signal: Signal | None = None
    """The signal that ``headroomAfterBytes`` is about; null where there is none."""


class ResizeWait(StrEnum):
    """What a kubelet says to a resize that its node has no room for."""

    DEFERRED = "Deferred"
    """Not now: other pods request it."""
    INFEASIBLE = "Infeasible"
    """Never: the node has less."""


class MovedPod(Struct, frozen=True, rename="camel"):
    """An edited pod that its node has no room for any more; where it waits it runs on as it is."""

    pod: str
    node: str
    """Where it is now."""
    lacks: str
    """Which resources, with the amounts."""
    resize: ResizeWait | None
    """What becomes of a resize in place; null where the API server refuses one."""
    to: str | None
    """Where the scheduler puts a new pod; null where no node has room, and it waits."""
    message: str
    """The scheduler's, where it waits."""


class PreemptedPod(Struct, frozen=True, rename="camel"):
    """A pod that the scheduler removes so that an edited one has room."""

    pod: str
    node: str
    by: str


class ForecastChange(Struct, frozen=True, rename="camel"):
    """How likely the kubelet is to act first, by how fast the container grows."""

    growing: str
    before: tuple[CurvePoint, ...]
    after: tuple[CurvePoint, ...]
    text_before: str = ""
    """Who acts first at which growth rates."""
    text_after: str = ""


class WhatIfView(Struct, frozen=True, rename="camel"):
    """What is answered."""

    node: str
    edited: tuple[EditedPod, ...]
    pods: tuple[ComparedPod, ...]
    """Of that node, in the kubelet's order after the edits; those that leave it last."""
    nodes: tuple[ChangedNode, ...]
    """All that the edits touch, this one first."""
    is_whole: bool
    """Whether the pods of all these nodes are counted."""
    safer: int
    """Pods of all counted nodes together."""
    at_risk: int
    mixed: int
    moved: tuple[MovedPod, ...]
    """Edited pods that do not fit where they are."""
    preempted: tuple[PreemptedPod, ...]
    headroom_before_bytes: int
    headroom_after_bytes: int
    forecast: ForecastChange | None
    """Null where none is asked for, or the pod is not on the node then."""
    notes: tuple[str, ...]
    """What to know about the edits: a limit below what is used, a quota that then refuses another workload."""
    assumptions: tuple[Assumption, ...] = ()
    headroom_signal: Signal | None = None
    """The signal that ``headroomAfterBytes`` is about; null where the kubelet has no threshold of memory."""
    first_by: By = By.KUBELET
    """Who acts first after the edits while memory grows slowly."""
    kernel_left_before_bytes: int = 0
    """What the kernel could still allocate before it kills."""
    kernel_left_after_bytes: int = 0
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "WhatIfView"


_MOST_CHOICES = 500
_MOST_TRIED = 12
"""Containers of a node whose growth is forecast: those without a limit first, and of these the largest."""
_MOST_NODES = 3
_RATE = DEFAULT_RATES[1]
_ALL_RATES = (1 << 20, _RATE, 1 << 33)
"""A slow growth, a usual one and a fast one."""


def riskiest(page: ShownSource, nodes: Iterable[PageNode]) -> Riskiest | None:
    """Return the container whose growth is worst, of the nodes in their order; None where there is none."""
    worst: Riskiest | None = None
    worst_harm = _Harm()
    for node in islice((node for node in nodes if node.state is not None), _MOST_NODES):
        state = page.state(node)
        for growing in growable(state)[:_MOST_TRIED]:
            try:
                grows = growing_node(state, growing)
            except InputError:  # its pods do not fit: the node says so itself
                break
            growth = forecast_growth(grows, _RATE)
            harm = _Harm(
                is_open_ended=growth.needed is not None,
                has_race=len({grows.kubelet_first(rate) for rate in _ALL_RATES}) > 1,
                of_others=sum((end.probability for end in growth.outcomes if not end.ends_growth), Fraction(0)),
                by_kernel=1 - growth.kubelet_first,
                hurry=-growth.out_of_memory_after_seconds,
            )
            if worst is None or harm > worst_harm:
                worst, worst_harm = Riskiest(node.name, growing, harm.text), harm
        if worst_harm.is_open_ended:
            break
    return worst


class _Harm(Struct, frozen=True, order=True):
    """What the growth of a container does; greater is worse."""

    is_open_ended: bool = False
    """No limit of its own ends it, so that others can be hit."""
    has_race: bool = False
    """Whether kubelet or kernel acts first depends on the rate."""
    of_others: Fraction = Fraction(0)
    """How likely it is that another pod is hit first."""
    by_kernel: Fraction = Fraction(0)
    """How likely the kernel acts before the kubelet."""
    hurry: Fraction = Fraction(0)
    """How soon: the negative number of seconds."""

    @property
    def text(self) -> str:
        """Why a container is chosen for it."""
        if not self.is_open_ended:
            return "Every container here has a memory limit that stops its growth: none can use up the node alone."
        if self.of_others:
            return "Selected because its growth does the most harm: another pod is evicted or killed first."
        return "Selected because its growth does the most harm: no memory limit stops it."


def growable(state: NodeState) -> tuple[str, ...]:
    """Return what can grow: first what no limit of its own ends, most memory first."""
    containers: list[tuple[bool, int, str]] = []
    for entry in state.snapshot.pods:
        limited = {each.name for each in entry.pod.running_containers if MEMORY in each.resources.limits}
        containers += (
            (usage.name in limited, -usage.working_set_bytes, f"{entry.pod.key}:{usage.name}")
            for usage in entry.containers
        )
    return tuple(name for _, _, name in sorted(containers)[:_MOST_CHOICES])


class ForecastRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What is asked."""

    growing: str = ""
    """``namespace/name:container``; empty: the one whose growth does most harm."""
    node: str = ""
    """Empty: that of the pod, or the node with least headroom."""
    kubelet: KubeletEdit = KubeletEdit()
    interval_seconds: float = 10
    """Between two eviction checks."""
    rate_bytes_per_second: int = 128 << 20
    fast_path: bool = False
    """Whether the agent is told as soon as a threshold is met, as ``podqos node`` is."""


class ForecastView(Struct, frozen=True, rename="camel"):
    """What is answered."""

    node: str
    growing: str
    threshold_bytes: int
    available_bytes: int
    """Before anything grows, as the kubelet counts."""
    report: ForecastReport
    """What ``podqos forecast`` says, at one rate, with the curve over all rates."""
    race: str
    """When memory runs out and when thresholds are met, in words."""
    as_it_is: tuple[CurvePoint, ...]
    """The curve with the node's own settings."""
    choices: tuple[str, ...]
    """What can grow, as ``namespace/name:container``: first what no limit of its own ends, most memory first."""
    verdict: str = ""
    """How the growth ends, as one sentence."""
    by_rate: str = ""
    """Who acts first at which growth rates."""
    chosen: str = ""
    """Why this container is shown where none was named, or that no growth can use up the node."""
    classes: dict[str, str] = {}
    """Of the pods that may die, by ``namespace/name``."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "ForecastView"


RECORDED_CLASS = FieldEdit("status.qosClass", None)
"""What the API server recorded of a pod is not true of one that is made anew."""


def edited(objects: Objects, found: FoundWorkload, edits: Iterable[FieldEdit]) -> FoundWorkload:
    """Return a workload as it is with other fields.

    Raises ``InputError`` where that says nothing, or where the API server would not let a pod that runs have it.
    """
    value: Plain = _object(objects, found)
    fields = (*edits, *((RECORDED_CLASS,) if found.workload.is_stored else ()))
    for edit in fields:
        try:
            value = with_field(value, parse_path(edit.path), plain_value(edit.value))
        except EditRefusal:
            raise InputError("no such field", where=edit.path) from None
    reading = Source(found.source, msgspec.json.encode(value), kinds=objects.kinds).reading
    if len(reading.workloads) != 1 or reading.problems:
        raise _refusal(reading.problems)
    made = replace(found, workload=in_namespace(reading.workloads[0], objects.namespace))
    if found.workload.is_stored:
        _check_running(objects, found.workload.pod, made)
    return made


def patch_of(
    objects: Objects, found: FoundWorkload, edits: Sequence[FieldEdit], *, resizes: bool = False
) -> PatchText | None:
    """Return edits as patches to copy; None where they change nothing or the object is only a part of one.

    ``resizes``: whether a pod that runs can have them in place.
    """
    patch = object_patch(objects.plain(found) if found.place.taken_for else _object(objects, found), edits)
    if patch is None:
        return None
    namespace = found.workload.metadata.namespace
    return PatchText(
        kubectl_patch(patch, namespace, resizes=resizes and found.workload.is_stored),
        kustomize_patch(patch),
        json_patch(patch),
    )


def with_workloads(
    node: PageNode, changed: Sequence[FoundWorkload], priorities: Mapping[str, int], profile: Profile
) -> NodeState:
    """Return a node on which some workloads are others: admitted anew, using what they use now.

    ``priorities`` are those of the pods of workloads, by kind and name. Raises ``InputError`` where the API server
    would not store one.
    """
    assert node.state is not None
    state = node.state
    objects = node.objects.only(changed)
    keys = {(workload.workload.kind, workload.workload.pod.key) for workload in changed}
    named = [entry.pod.key for entry in state.snapshot.pods if state.owners.get(entry.pod.metadata.uid) in keys]
    made = {}
    for node_pod in node_pods(objects, named=named, profile=profile):
        priority = priorities.get(f"{node_pod.kind} {node_pod.workload}")
        made[node_pod.pod.metadata.uid] = node_pod.pod if priority is None else with_priority(node_pod.pod, priority)
    if not made:
        raise _refusal(objects.problems)
    pods = tuple(
        replace(entry, pod=made[entry.pod.metadata.uid]) if entry.pod.metadata.uid in made else entry
        for entry in state.snapshot.pods
    )
    return replace(state, snapshot=replace(state.snapshot, pods=pods))


def _check_running(objects: Objects, before: Pod, found: FoundWorkload) -> None:
    """Raise ``InputError`` where the API server would not let a pod that runs have other resources.

    What it has let in, or what a snapshot leaves out of a pod, is no fault of an edit.
    """
    pod = found.workload.pod
    known = validate_pod(before, is_stored=True)
    error = next((field_error for field_error in validate_pod(pod, is_stored=True) if field_error not in known), None)
    if error is not None:
        raise InputError(error.words, where=error.path)
    policies = objects.namespace_policies(found.source).of(pod.metadata.namespace)
    bounded = within_bounds(pod, policies.stored_limit_ranges())
    if not isinstance(bounded, Pod):
        raise InputError(bounded.message)


def _object(objects: Objects, found: FoundWorkload) -> dict[str, Plain]:
    """Return what an object says, with its kind, which items of lists leave out."""
    value = objects.plain(found)
    assert isinstance(value, dict)
    if "kind" in value:
        return value
    kind = found.workload.kind
    return {"apiVersion": POD_HOLDERS[kind].api_version if kind in POD_HOLDERS else "v1", "kind": kind, **value}


def _refusal(problems: Sequence[Problem]) -> InputError:
    first = next(iter(problems), None)
    if first is None:
        return InputError("the object would contain no pod")
    return InputError(first.what, where=first.field, fix=first.fix)


_DEPLOYMENT, _REPLICA_SET = "Deployment", "ReplicaSet"
_MIRROR_OWNER = "Node"
"""The controller of a static pod's mirror: what is edited is a file on that node."""


class FixTarget(Struct, frozen=True):
    """An object that a user edits."""

    kind: str
    key: str
    """``namespace/name``."""
    found: FoundWorkload | None = None
    """The object; None where only its name is known."""

    @property
    def name(self) -> str:
        """As ``Deployment shop/web``; a static pod's file has no name here."""
        return f"static pod file on {self.key.partition('/')[2]}" if self.kind == _MIRROR_OWNER else self.text

    @property
    def text(self) -> str:
        """Kind and key."""
        return f"{self.kind} {self.key}"


def fix_target(page: ShownSource, at: PageNode, entry: PodUsage, found: FoundWorkload) -> FixTarget:
    """Return what is edited so that a pod, which is read from ``found``, becomes another."""
    if page.source.scenario is not None:
        kind, _, key = page.maker_of(entry.pod).partition(" ")
        return FixTarget(kind, key) if kind else FixTarget(POD, entry.pod.key, found)
    kind, key = found.workload.kind, found.workload.pod.key
    if found.workload.is_stored and at.state is not None:
        made_by = page.workload_of(at.state, entry.pod) or owner(kind, key) or f"{POD} {entry.pod.key}"
        kind, _, key = made_by.partition(" ")
    known = found if (found.workload.kind, found.workload.pod.key) == (kind, key) else page.makers.get((kind, key))
    # A dump of a cluster also has what is made by others.
    makers = [] if known is None else list(controllers(known.workload.metadata))
    if makers:
        kind, name = makers[-1]
        key = f"{key.partition('/')[0]}/{name}"
        known = page.makers.get((kind, key))
    if kind == _REPLICA_SET and known is None:
        # Without the label that tells the hash, the name of a Deployment that is known tells as much.
        known = page.makers.get((_DEPLOYMENT, key.rpartition("-")[0]))
        kind, key = (kind, key) if known is None else (_DEPLOYMENT, known.workload.pod.key)
    return FixTarget(kind, key, known)


def target_patch(page: ShownSource, target: FixTarget, edits: Sequence[PodEdit], *, resizes: bool) -> PatchText | None:
    """Return edits as patches of the object; None where they have no amounts, and for a container that was injected."""
    if target.found is None:
        patch = template_patch(target.kind, target.key, _resources(edits)) if _resources(edits) else None
        return None if patch is None else PatchText(kubectl_patch(patch), kustomize_patch(patch), "")
    try:
        fields = list(written_fields(edits, target.found))
    except InputError:
        return None
    objects = page.nodes.objects if target.found.workload.is_stored else page.declared  # a pod of its own, or a maker
    return patch_of(objects, target.found, fields, resizes=resizes)


def target_lines(target: FixTarget, edits: Iterable[PodEdit]) -> str:
    """Return the lines to write into the object, as YAML."""
    resources = _resources(edits)
    return template_lines(target.kind, target.key, resources) if resources else ""


def _resources(edits: Iterable[PodEdit]) -> dict[str, dict[str, dict[str, str | None]]]:
    resources: dict[str, dict[str, dict[str, str | None]]] = {}
    for edit in edits:
        for side, amounts in (("requests", edit.requests), ("limits", edit.limits)):
            if amounts:
                resources.setdefault(edit.container, {}).setdefault(side, {}).update(amounts)
    return resources


def written_fields(edits: Iterable[PodEdit], found: FoundWorkload) -> Iterator[FieldEdit]:
    """Yield the fields of an object that edits write, where its containers are."""
    spec = found.workload.pod.spec
    lists = (("containers", spec.containers), ("initContainers", spec.init_containers))
    places = {container.name: f"spec.{field}[{number}]" for field, of in lists for number, container in enumerate(of)}
    for edit in edits:
        if edit.container and edit.container not in places:
            raise InputError(f"{edit.pod} has no container {edit.container}", fix=f"one of {', '.join(places)}")
        path = places[edit.container] if edit.container else "spec"
        for side, amounts in (("requests", edit.requests), ("limits", edit.limits)):
            for resource, amount in amounts.items():
                key = format_path(("resources", side, resource))
                yield FieldEdit(found.workload.at(f"{path}.{key}"), amount)


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
    allocatable = amounts_of(node.node.status.allocatable)
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

    def answer(self, request: WhatIf) -> WhatIfView:
        """Return what the edits would do."""
        page = self._page
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
        report = node.report if state is now else rank(state, remedies=False)
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
        was = watched_memory(now)
        then = was if state is now else watched_memory(state)
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
            growing=growing,
            rates=(request.rate_bytes_per_second,),
            interval_us=interval_us,
            fast_path=request.fast_path,
        )
        growth = report.growths[0]
        return ForecastView(
            node=node.name,
            growing=f"{growth.pod}:{growth.container}",
            threshold_bytes=watched_memory(state).threshold_bytes,
            available_bytes=state.available_bytes,
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
            page.riskiest[request.node] = riskiest(page, nodes)
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
            made = [edited(page.nodes.objects, found, written_fields(edits, found)) for found, edits in own.values()]
            states[node_name] = with_workloads(page.nodes.nodes[node_name], made, priorities, self._profile)
        return states

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
        node, state = self._page.nodes.nodes[name], states[name]
        before, problem = self._page.places(node), node.problem
        if before is not None and after is None:
            try:
                after = Places.of(rank(state, remedies=False))
            except InputError as error:
                problem = error.worded(published)
        turns = [] if before is None or after is None else [*_turns(before, after)]
        sooner = sum(min(each) < 0 and max(each) <= 0 for each in turns)
        later = sum(min(each) >= 0 and max(each) > 0 for each in turns)
        was, then = (watched_memory(found) for found in (self._page.state(node), state))
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
            resize=None if verdict is None else replace(verdict, text=resize_words(verdict)),
            lines=target_lines(change.target, change.fields),
            costs=tuple(self._costs(change, written)),
        )

    def _costs(self, change: _Edited, written: Mapping[str, NodeState]) -> Iterator[str]:
        """Yield what the edit costs: one of its pods as it is stored, before and after."""
        (at, entry), replicas = change.pods[0], len(change.pods)
        before, uid = entry.pod, entry.pod.metadata.uid
        after = next(own.pod for own in written[at.name].snapshot.pods if own.pod.metadata.uid == uid)
        yield from (cost.text for cost in pod_costs(before, after, replicas))
        was, becomes = (pod_requests(pod).get(MEMORY, ZERO).value for pod in (before, after))
        if replicas > 1 and was < becomes:
            yield f"{size((becomes - was) * replicas)} more memory in all"
        room = at.node.status.allocatable.get(MEMORY)
        if room is not None and not at.is_assumed and 0 < was < becomes:
            held, holds = room.value // was, room.value // becomes
            if holds < held:
                such = counted(holds, "such pod")
                yield f"by its memory requests, an empty node of this size holds {such}, not {held:,}"
        classes = qos_class_of(before, self._profile), qos_class_of(after, self._profile)
        if classes[0] is not classes[1]:
            yield f"its QoS class becomes {classes[1]} (was {classes[0]})"
        priority = after.spec.priority or 0
        if (before.spec.priority or 0) < priority:
            yield f"it needs a PriorityClass with value {priority}, whose pods may preempt others"

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
        report = forecast(state, growing=growing, rates=(1,))
        return ByRate(report.curve, _by_rate_text(report))


def _by_rate_text(report: ForecastReport) -> str:
    assert report.turning is not None
    return first_actor_text(report.turning, report.growths[0], report.interval_seconds)


def edited_kubelet(state: NodeState, edit: KubeletEdit, profile: Profile) -> Kubelet | None:
    """Return the node's kubelet with other settings; None where they are those it has."""
    own = state.kubelet
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
