"""The families of ``podqos eval``: what each is asked, and the answer in the shape of the conformance vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from podqos.admission.as_written import fields_of, text_of
from podqos.admission.chain import admit
from podqos.admission.coverage import not_judged
from podqos.admission.decoding import read_pod
from podqos.admission.defaulting import defaulted
from podqos.admission.limit_range import ANNOTATION, apply_limit_ranges, defaulted_limit_range
from podqos.admission.limit_range_bounds import violations
from podqos.admission.pod_validation import validate_pod
from podqos.admission.policies import Policies
from podqos.admission.priority import admit_priority_class, apply_priority, validate_priority_class
from podqos.admission.refusal import Code, Denied, Refusal
from podqos.admission.resize import resize
from podqos.admission.tolerations import with_daemon_set_tolerations, with_memory_pressure_toleration
from podqos.admission.workload_validation import workload_refusal
from podqos.errors import InputError, InvalidConfiguration, InvalidQuantity
from podqos.eviction import manager
from podqos.eviction.manager import (
    CleanUpNode,
    Command,
    EvictPod,
    ManagerConfig,
    ManagerState,
    Pass,
    after_clean_up,
    synchronize,
)
from podqos.eviction.messages import PHASE, REASON
from podqos.eviction.ranking import Ranking, rank
from podqos.eviction.signals import CleanUp, Signal, layout_of, observe
from podqos.eviction.thresholds import Threshold, ThresholdValue, derive_containerfs, parse_thresholds
from podqos.manifest.decode import convert
from podqos.manifest.kinds import POD_HOLDERS
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.kubelet_flags import parse_pairs
from podqos.model.node import Node
from podqos.model.pod import Pod, QOSClass
from podqos.model.policy import LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass
from podqos.model.profile import LATEST
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList
from podqos.model.stats import PodStats, Summary
from podqos.placement.allocatable import node_allocatable
from podqos.placement.filters import Namespaces, SchedulerCluster, insufficient, static_reasons
from podqos.placement.place import Status, refusal
from podqos.placement.pods import Amounts, PodView, SchedulerNode, Views, is_scalar
from podqos.placement.reasons import GATED_MESSAGE, Unschedulable, UntoleratedTaint
from podqos.placement.schedule import Budgets, Candidate, Chooser, Preemption
from podqos.qos.cgroup_paths import cgroup_uid, pod_path
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, MemoryQoS, SwapBehavior
from podqos.qos.cgroup_tiers import TierRequests, node_values, tier_requests, tier_values
from podqos.qos.cgroup_values import CgroupValues, Rule, Value, container_values, pod_values
from podqos.qos.classes import classify, qos_class_of
from podqos.qos.cpu import (
    milli_from_quota,
    milli_from_shares,
    quota_from_milli,
    shares_from_milli,
    shares_from_weight,
    weight_from_shares,
)
from podqos.qos.oom import oom_scores
from podqos.text.placement import reason_text, refusal_message

Object = TypeVar("Object")
Input = dict[str, Any]
Answer = dict[str, object]


def evaluate(family: str, input: Input) -> Answer:  # noqa: A002 - the word of the interface
    """Answer one line of a family."""
    kind, answer = FAMILIES[family]
    return answer(convert(input, kind))


def _list(kind: type[Object], values: object) -> tuple[Object, ...]:
    """Read a list of objects; absent is empty."""
    return convert(values or [], tuple[kind, ...])  # type: ignore[valid-type]


def _plain(value: object, write: Callable[[Quantity], str] = Quantity.canonical) -> object:
    """Return a value of ours as JSON. ``str`` writes amounts as an API server stores them: ``+1`` and ``007`` stay."""
    return msgspec.to_builtins(value, enc_hook=write)


def _resources(pod: Pod, write: Callable[[Quantity], str] = Quantity.canonical) -> Answer:
    """Return the resources of every container by name, and of the pod where it has its own."""
    spec = pod.spec
    return {
        "containers": {container.name: _plain(container.resources, write) for container in spec.containers},
        "initContainers": {container.name: _plain(container.resources, write) for container in spec.init_containers},
        **({} if spec.resources is None else {"pod": _plain(spec.resources, write)}),
    }


# ---- amounts ------------------------------------------------------------------------------------------------------


def _quantity(question: dict[str, str]) -> Answer:
    if "string" in question:
        text = question["string"]
        return _parsed(Quantity.parse, text) | {"fromJSONString": _parsed(Quantity.from_json, text)}
    a = Quantity.parse(question["a"])
    match question["op"]:
        case "roundUpMilli":
            return _described(a.rounded_up_to_milli())
        case "add":
            return _described(a + Quantity.parse(question["b"]))
        case "sub":
            return _described(a - Quantity.parse(question["b"]))
        case "cmp":
            b = Quantity.parse(question["b"])
            return {"cmp": (a > b) - (a < b)}
        case operation:
            raise ValueError(f"unknown operation {operation!r}")


def _parsed(read: Callable[[str], Quantity], text: str) -> Answer:
    try:
        return _described(read(text))
    except InvalidQuantity as error:
        return {"ok": False, "error": error.what}


def _described(quantity: Quantity) -> Answer:
    return {
        "ok": True,
        "string": str(quantity),
        "canonical": quantity.canonical(),
        "value": quantity.value,
        "milliValue": quantity.milli_value,
        "sign": quantity.sign,
        "format": quantity.format,
    }


# ---- classes, scores, cgroups -------------------------------------------------------------------------------------


class PodQuestion(Struct, rename="camel"):
    """A pod on a node."""

    pod: Pod
    apply_defaults: bool = False
    node_memory_capacity: int = 0


class MemoryQoSInput(Struct, rename="camel"):
    """``memoryQoS`` of a pod's cgroups."""

    throttling_factor: float
    node_allocatable_memory: int
    reservation_policy: Literal["None", "TieredReservation"]


class CgroupQuestion(PodQuestion, kw_only=True, rename="camel"):
    """A pod whose cgroups are asked for."""

    cpu_period: int
    cgroup_root: str
    cgroup_driver: CgroupDriver
    enforce_cpu_limits: bool = field(name="enforceCPULimits", default=True)
    node_swap_capacity: int = 0
    swap_behavior: Literal["", "NoSwap", "LimitedSwap"] = ""
    memory_qos: MemoryQoSInput | None = field(name="memoryQoS", default=None)


def _qos(question: PodQuestion) -> Answer:
    pod = defaulted(question.pod)
    return {
        "qosClassAsGiven": classify(question.pod).qos_class,
        "qosClassAfterDefaulting": classify(pod).qos_class,
        "resourcesAfterDefaulting": _resources(pod),
        "apiValidationErrors": _validation_errors(pod),
    }


def _validation_errors(pod: Pod) -> list[str]:
    """Return what the API server would report about a defaulted pod; ephemeral containers no new pod has."""
    pod = replace(pod, spec=replace(pod.spec, ephemeral_containers=()))
    return sorted({f"{error.path}: {error.type}" for error in validate_pod(pod)})


def _oom(question: PodQuestion) -> Answer:
    after_defaulting = defaulted(question.pod)
    pod = after_defaulting if question.apply_defaults else question.pod
    qos_class = qos_class_of(pod)
    return {
        "qosClass": qos_class,
        "oomScoreAdj": _scores(pod, qos_class, question.node_memory_capacity),
        "apiValidationErrors": _validation_errors(after_defaulting),
    }


def _scores(pod: Pod, qos_class: QOSClass, node_memory_bytes: int) -> dict[str, int]:
    scores = oom_scores(pod, qos_class, node_memory_bytes, bounded=False)
    return {score.container: score.value for score in scores}


def _cgroup(question: Input) -> Answer:
    match question["kind"]:
        case "pod":
            return _pod_cgroups(convert(question, CgroupQuestion))
        case "qosTier":
            return _tiers(question)
        case "convert":
            return _conversions(question["milliCPU"], question["cpuPeriod"], question["cpuWeight"])
        case kind:
            raise ValueError(f"unknown kind {kind!r}")


def _pod_cgroups(question: CgroupQuestion) -> Answer:
    """Leave out the key of what the kubelet leaves unset; 0 and -1 are its own words for "no limit"."""
    after_defaulting, memory_qos = defaulted(question.pod), question.memory_qos
    pod = after_defaulting if question.apply_defaults else question.pod
    settings = CgroupSettings(
        node_memory_bytes=question.node_memory_capacity,
        node_swap_bytes=question.node_swap_capacity,
        cgroup_driver=question.cgroup_driver,
        cgroup_root=question.cgroup_root,
        cpu_cfs_quota=question.enforce_cpu_limits,
        cpu_cfs_period_us=question.cpu_period,
        swap_behavior=SwapBehavior(question.swap_behavior or "NoSwap"),
        memory_qos=None
        if memory_qos is None
        else MemoryQoS(memory_qos.throttling_factor, memory_qos.reservation_policy, memory_qos.node_allocatable_memory),
    )
    qos_class = qos_class_of(pod)
    scores = _scores(pod, qos_class, question.node_memory_capacity)
    paths = {
        driver: pod_path(cgroup_uid(pod), qos_class, replace(settings, cgroup_driver=driver)) for driver in CgroupDriver
    }
    return {
        "qosClass": qos_class,
        "pod": _pod_values(pod_values(pod, qos_class, settings)),
        "containers": {
            container.name: _container_values(container_values(pod, container, qos_class, settings))
            | {"oomScoreAdj": scores[container.name]}
            for container in (*pod.spec.containers, *pod.spec.init_containers)
        },
        "podCgroupPath": paths[question.cgroup_driver],
        "podCgroupPathCgroupfs": paths[CgroupDriver.CGROUPFS],
        "podCgroupPathSystemd": paths[CgroupDriver.SYSTEMD],
        "apiValidationErrors": _validation_errors(after_defaulting),
    }


def _pod_values(values: CgroupValues) -> Answer:
    answer = _shares(values)
    quota, memory = values.cpu_quota_us, values.memory_limit_bytes
    if quota is not None and values.cpu_period_us is not None:
        answer["cpuQuota"] = -1 if quota.because.rule is Rule.QUOTA_DISABLED else quota.amount or 0
        answer["cpuPeriod"] = values.cpu_period_us
    if memory is not None and memory.because.amount is not None:
        answer["memory"] = memory.amount or 0
    unified = _unified(values)
    return answer | _hugepages(values) | ({"unified": unified} if unified else {})


def _container_values(values: CgroupValues) -> Answer:
    shares = _amount(values.cpu_shares)
    return {
        "cpuShares": shares,
        "cpuWeightLinear": weight_from_shares(shares),
        "cpuWeightQuadratic": weight_from_shares(shares, "quadratic"),
        "cpuQuota": _amount(values.cpu_quota_us),
        "cpuPeriod": values.cpu_period_us or 0,
        "memoryLimitInBytes": _amount(values.memory_limit_bytes),
        "unified": _unified(values),
    }


def _unified(values: CgroupValues) -> dict[str, str]:
    files = {
        "memory.min": values.memory_min_bytes,
        "memory.low": values.memory_low_bytes,
        "memory.high": values.memory_high_bytes,
        "memory.swap.max": values.memory_swap_bytes,
    }
    return {name: str(value.amount) for name, value in files.items() if value is not None}


def _amount(value: Value | None) -> int:
    return (value.amount or 0) if value is not None else 0


def _shares(values: CgroupValues) -> Answer:
    shares = _amount(values.cpu_shares)
    return {} if values.cpu_shares is None else {"cpuShares": shares, "cpuWeight": weight_from_shares(shares)}


def _hugepages(values: CgroupValues) -> Answer:
    limits = {str(limit.page_size_bytes): limit.limit_bytes.amount for limit in values.hugepage_limits}
    return {"hugePageLimit": limits} if limits else {}


def _tiers(question: Input) -> Answer:
    allocatable: ResourceList = {
        name: Quantity.from_json(str(amount)) for name, amount in question["nodeAllocatable"].items()
    }
    percent = question.get("qosReservedMemoryPercent")
    settings = CgroupSettings(node_memory_bytes=0, node_allocatable=allocatable, qos_reserved_memory_percent=percent)
    tiers = tier_values(tier_requests(_list(Pod, question["pods"])), settings)
    return {"tiers": {qos_class: _tier(values) for qos_class, values in tiers.items()}}


def _tier(values: CgroupValues) -> Answer:
    memory = values.memory_limit_bytes
    return _shares(values) | _hugepages(values) | ({} if memory is None else {"memory": memory.amount})


def _conversions(milli_cpu: int, period_us: int, weight: int) -> Answer:
    shares, quota_us = shares_from_milli(milli_cpu), quota_from_milli(milli_cpu, period_us)
    return {
        "cpuShares": shares,
        "cpuWeightLinear": weight_from_shares(shares),
        "cpuWeightQuadratic": weight_from_shares(shares, "quadratic"),
        "cpuQuota": quota_us or 0,
        "milliCPUFromShares": milli_from_shares(shares),
        "milliCPUFromQuota": milli_from_quota(quota_us, period_us) or 0,
        "sharesFromWeight": shares_from_weight(weight),
    }


# ---- the API server -----------------------------------------------------------------------------------------------

_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


def _policies(question: Input) -> Policies:
    namespace = question.get("namespace")
    return Policies(
        namespace=None if namespace is None else convert(namespace, Namespace),
        limit_ranges=_list(LimitRange, question.get("limitRanges")),
        resource_quotas=_list(ResourceQuota, question.get("resourceQuotas")),
        priority_classes=_list(PriorityClass, question.get("priorityClasses")),
        runtime_classes=_list(RuntimeClass, question.get("runtimeClasses")),
    )


def _admission(question: Input) -> Answer:
    value, policies = question["pod"], _policies(question)
    pod = read_pod(value)
    if isinstance(pod, Refusal):
        result = _refused(pod)
    elif policies.namespace is not None and pod.metadata.namespace not in {"", policies.namespace.metadata.name}:
        result = _refused(Refusal(Code.BAD_REQUEST, _OTHER_NAMESPACE))
    else:
        admission = admit(pod, policies)
        result = _admitted(admission.pod) if admission.refusal is None else _refused(admission.refusal)
    skipped = not_judged(value, namespace=policies.namespace)
    return result | {"notJudged": list(skipped)} if skipped else result


def _admitted(pod: Pod) -> Answer:
    return {
        "allowed": True,
        "qosClass": pod.status.qos_class,
        "priority": pod.spec.priority,
        "priorityClassName": pod.spec.priority_class_name,
        "preemptionPolicy": pod.spec.preemption_policy,
        "resources": _resources(pod, str),
        **({"overhead": _plain(pod.spec.overhead, str)} if pod.spec.overhead else {}),
    }


def _refused(refusal: Refusal) -> Answer:
    answer: Answer = {"allowed": False, "code": int(refusal.code), "error": refusal.message}
    return answer | ({"fields": list(refusal.fields)} if refusal.fields else {})


def _resize(question: Input) -> Answer:
    new = read_pod(question["resized"])
    if isinstance(new, Refusal):
        return _refused(new)
    admission = resize(convert(question["stored"], Pod), new, _policies(question))
    if admission.refusal is not None:
        return _refused(admission.refusal)
    return {"allowed": True, "resources": _resources(admission.pod, str)}


def _workload_admission(value: Input) -> Answer:
    kind = text_of(fields_of(value), "kind")
    if kind not in POD_HOLDERS or kind == "Pod":
        kinds = ", ".join(holder for holder in POD_HOLDERS if holder != "Pod")
        raise InputError(f"{kind!r} is not a kind of workload", where="kind", fix=f"use one of {kinds}")
    refusal = workload_refusal(value, kind)
    return {"code": 201, "message": ""} if refusal is None else {"code": int(refusal.code), "message": refusal.message}


def _limitrange(question: Input) -> Answer:
    limit_ranges = [defaulted_limit_range(each) for each in _list(LimitRange, question["limitRanges"])]
    before = defaulted(convert(question["pod"], Pod))
    pod = apply_limit_ranges(before, limit_ranges)
    validation = [
        {"limitRange": each.metadata.name, "errors": sorted(map(str, violations(pod, each)))} for each in limit_ranges
    ]
    return {
        "limitRangesAfterDefaulting": [
            {"name": each.metadata.name, "limits": [_plain(item) for item in each.spec.limits]} for each in limit_ranges
        ],
        "resources": _resources(pod),
        "annotation": pod.metadata.annotations.get(ANNOTATION, ""),
        "validation": validation,
        "allowed": not any(entry["errors"] for entry in validation),
        "qosClassBeforeLimitRange": classify(before).qos_class,
        "qosClass": classify(pod).qos_class,
    }


def _priority(question: Input) -> Answer:
    classes = _list(PriorityClass, question.get("priorityClasses"))
    if question.get("kind") == "createClass":
        new = convert(question["newClass"], PriorityClass)
        errors, denied = sorted(map(str, validate_priority_class(new))), admit_priority_class(new, classes)
        what = f'priorityclasses.scheduling.k8s.io "{new.metadata.name}" is forbidden: '
        admission = "" if denied is None else f"{what}{denied.message}"
        return {"ok": not errors and not admission, "validationErrors": errors, "admissionError": admission}
    pod = apply_priority(given := convert(question["pod"], Pod), classes)
    if isinstance(pod, Denied):
        return {"ok": False, "error": f'pods "{given.metadata.name}" is forbidden: {pod.message}'}
    return {
        "ok": True,
        "priorityClassName": pod.spec.priority_class_name,
        "priority": pod.spec.priority,
        "preemptionPolicy": pod.spec.preemption_policy,
    }


# ---- nodes and the scheduler --------------------------------------------------------------------------------------


def _allocatable(question: Input) -> Answer:
    """Take thresholds as the kubelet's container manager gets them: without ``evictionHard`` there are none."""
    stated = {name: value for name, value in question.items() if value is not None}
    config = msgspec.convert({"evictionHard": {}, **stated}, KubeletConfiguration)
    capacity = {name: Quantity.parse(text) for name, text in question["capacity"].items()}
    node = node_allocatable(capacity, config)
    pods = node_values(TierRequests(), CgroupSettings(node_memory_bytes=0, node_allocatable=node.enforced))
    return {
        "reservation": _plain(node.reservation),
        "nodeStatusCapacity": _plain(node.capacity),
        "nodeStatusAllocatable": _plain(node.allocatable),
        "enforcementAllocatable": _plain(node.enforced),
        "podsCgroup": _tier(pods),
        "configValid": not node.over_reserved,
        "overReserved": list(node.over_reserved),
    }


class FitQuestion(Struct, rename="camel"):
    """One pod as given against one node, and the pods that are there."""

    pod: Pod
    node: Input
    existing_pods: tuple[Pod, ...] = ()
    is_daemon_set_pod: bool = False
    pod_toleration_restriction_plugin: bool = False


def _scheduling_fit(asked: FitQuestion) -> Answer:
    pod, qos_class = asked.pod, classify(asked.pod).qos_class
    if asked.is_daemon_set_pod:
        pod = with_daemon_set_tolerations(pod)
    if asked.pod_toleration_restriction_plugin:
        pod = with_memory_pressure_toleration(pod, qos_class)
    views = Views(LATEST)
    view = views.of(pod)
    state = SchedulerNode(msgspec.convert(asked.node, Node, dec_hook=lambda _, text: Quantity.from_json(str(text))))
    for index, existing in enumerate(asked.existing_pods):
        other = views.of(existing)
        other.key = f"{other.key}#{index}"  # Nothing in the family says that names differ.
        state.add(other)
    missing = insufficient(view.shape.demand, state)
    against = tuple(static_reasons(view.shape, state, LATEST))
    taints = [reason.taint for reason in against if isinstance(reason, UntoleratedTaint)]
    return {
        "podRequests": _plain(pod_requests(pod)),
        "podLimits": _plain(pod_limits(pod)),
        "insufficient": [
            {**asdict(reason), "reason": reason_text(reason), "unresolvable": reason.unresolvable}
            for reason in sorted(missing, key=lambda reason: reason.resource)
        ],
        "resourcesFit": not missing,
        "untoleratedTaint": asdict(taints[0]) if taints else None,
        "unschedulableBlocks": any(isinstance(reason, Unschedulable) for reason in against),
        "schedulable": not missing and not against,
        "nodeRequested": _counted(state.requested, 0),
        "nodeAllocatable": _counted(state.allocatable, state.allowed_pods),
        "qosClass": qos_class,
    }


def _counted(counted: Amounts, allowed_pods: int) -> Answer:
    return {
        "milliCPU": counted.get(CPU, 0),
        "memory": counted.get(MEMORY, 0),
        "ephemeralStorage": counted.get(EPHEMERAL_STORAGE, 0),
        "allowedPodNumber": allowed_pods,
        "scalar": {name: amount for name, amount in sorted(counted.items()) if is_scalar(name)},
    }


class SchedulingStep(Struct, rename="camel"):
    """The pod that arrives and where every other pod is then."""

    pod: str
    bound: dict[str, str] = {}
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()


class SchedulingQuestion(Struct):
    """One cluster, and the stored pods that arrive in it one at a time."""

    nodes: tuple[Node, ...]
    pods: dict[str, Pod]
    steps: tuple[SchedulingStep, ...]
    namespaces: tuple[Namespace, ...] = ()


def _scheduling(asked: SchedulingQuestion) -> Answer:
    namespaces = Namespaces({each.metadata.name: each.metadata.labels for each in asked.namespaces})
    views = Views(LATEST)
    pods = {key: views.of(pod) for key, pod in asked.pods.items()}
    steps = []
    for step in asked.steps:
        states = {node.name: SchedulerNode(node, LATEST) for node in asked.nodes}
        for key, name in step.bound.items():
            states[name].add(pods[key])
        cluster = SchedulerCluster(states.values(), namespaces)
        budgets = Budgets(step.disruption_budgets, pods.values())
        steps.append({"pod": step.pod, **_decision(pods[step.pod], cluster, budgets)})
    return {"steps": steps}


def _decision(view: PodView, cluster: SchedulerCluster, budgets: Budgets) -> Answer:
    if view.pod.spec.scheduling_gates:
        return {"outcome": Status.GATED, "message": GATED_MESSAGE}
    best = Chooser(cluster).best(view)
    if best:
        return {"outcome": Status.PLACED, "best": [state.name for state in best]}
    found = Preemption(cluster, budgets).candidate(view)
    if isinstance(found, Candidate):
        victims = sorted(victim.key for victim in found.victims)
        return {"outcome": "Preempts", "nominatedNode": found.state.name, "victims": victims}
    return {"outcome": Status.PENDING, "message": refusal_message(refusal(view, cluster, found))}


# ---- the eviction manager -----------------------------------------------------------------------------------------

_SEPARATORS = {"flagLessThan": "<", "flagEquals": "="}


def _thresholds(question: Input) -> Answer:
    kind = str(question.get("kind", ""))
    try:
        if kind in _SEPARATORS:
            return {"ok": True, "map": parse_pairs(str(question["flag"]), _SEPARATORS[kind])}
        return {"ok": True, **_configured_answer(question, _configured(question))}
    except InvalidConfiguration as error:
        return {"ok": False, "possibleErrors": [error.what], "error": str(error)}


def _configured(fields: Input) -> tuple[Threshold, ...]:
    """Read the threshold fields of a line. Unlike in a kubelet's configuration, nothing is enforced by default."""
    given = {name: value for name, value in fields.items() if value is not None}
    try:
        settings = msgspec.convert({"enforceNodeAllocatable": (), **given}, KubeletConfiguration)
    except msgspec.ValidationError as error:
        raise InvalidConfiguration(str(error)) from error
    return parse_thresholds(settings)


def _configured_answer(fields: Input, thresholds: tuple[Threshold, ...]) -> Answer:
    answer: Answer = {"thresholds": _listed(thresholds)}
    if "capacity" in fields:
        effective = [_at_capacity(threshold, msgspec.convert(fields["capacity"], int)) for threshold in thresholds]
        answer["effectiveAtCapacity"] = sorted(effective, key=_by_signal_grace_and("quantityValue"))
    if "dedicatedImageFs" in fields:
        layout = layout_of(
            dedicated_image_fs=bool(fields["dedicatedImageFs"]), split_container_fs=bool(fields.get("splitContainerFs"))
        )
        derived = derive_containerfs(thresholds, layout)
        answer["afterContainerFsUpdate"] = _listed(derived.in_place + derived.added)
        answer["containerFsIgnoredWarning"] = bool(derived.ignored)
    return answer


def _listed(thresholds: Iterable[Threshold]) -> list[Answer]:
    listed: list[Answer] = [
        {
            "signal": threshold.signal,
            "operator": "LessThan",
            "gracePeriodSeconds": threshold.grace_period_ns / 10**9,
            "value": _value(threshold.value),
            **({} if threshold.min_reclaim is None else {"minReclaim": _value(threshold.min_reclaim)}),
        }
        for threshold in thresholds
    ]
    return sorted(listed, key=_by_signal_grace_and("value"))


def _by_signal_grace_and(name: str) -> Callable[[Answer], tuple[str, float, str]]:
    """Return the order of the family's lists; among equals (a soft threshold without grace) the JSON text decides."""

    def key(line: Answer) -> tuple[str, float, str]:
        grace = msgspec.convert(line["gracePeriodSeconds"], float)
        return str(line["signal"]), grace, msgspec.json.encode(line[name]).decode()

    return key


def _value(value: ThresholdValue) -> Answer:
    if value.quantity is not None:
        return {"quantity": str(value.quantity), "quantityValue": value.quantity.value}
    return {"percentage": "NaN" if math.isnan(value.fraction) else value.fraction}


def _at_capacity(threshold: Threshold, capacity: int) -> Answer:
    amount = threshold.amount(capacity)
    answer: Answer = {
        "signal": threshold.signal,
        "gracePeriodSeconds": threshold.grace_period_ns / 10**9,
        "quantity": str(amount),
        "quantityValue": amount.value,
    }
    if threshold.min_reclaim is not None:
        answer["withMinReclaim"] = threshold.amount(capacity, with_min_reclaim=True).value
    return answer


class RankQuestion(Struct, rename="camel"):
    """The pods of a node that runs short."""

    signal: Signal
    pods: tuple[Pod, ...]
    pod_stats: tuple[PodStats, ...] | None
    dedicated_image_fs: bool
    split_container_fs: bool


def _eviction_rank(asked: RankQuestion) -> Answer:
    layout = layout_of(dedicated_image_fs=asked.dedicated_image_fs, split_container_fs=asked.split_container_fs)
    stats = {entry.pod_ref.uid: entry for entry in asked.pod_stats or ()}
    return {"order": [entry.pod.metadata.name for entry in rank(asked.pods, stats, Ranking(asked.signal, layout))]}


class ManagerStep(Struct, frozen=True, rename="camel"):
    """One pass of the manager: the clock, the pods, and what the node shows before and after each clean-up."""

    at_seconds: float
    active_pods: tuple[str, ...] | None
    summary: Summary
    summary_after_container_gc: Summary | None = field(default=None, name="summaryAfterContainerGC")
    summary_after_image_gc: Summary | None = field(default=None, name="summaryAfterImageGC")


class Setup(Struct, frozen=True, rename="camel"):
    """The settings of the manager that are not thresholds."""

    eviction_pressure_transition_period_seconds: float = 0
    eviction_max_pod_grace_period_seconds: int = 0
    dedicated_image_fs: bool = False
    split_container_fs: bool = False
    local_storage_capacity_isolation: bool = True


class ManagerQuestion(Struct, rename="camel"):
    """The eviction manager stepped through time."""

    config: Input
    pods: tuple[Pod, ...]
    admission_probes: dict[str, Pod]
    steps: tuple[ManagerStep, ...]


def _eviction_manager(asked: ManagerQuestion) -> Answer:
    setup = msgspec.convert(asked.config, Setup)
    config = ManagerConfig(
        thresholds=_configured(asked.config),
        pressure_transition_period_ns=int(setup.eviction_pressure_transition_period_seconds * 10**9),
        max_pod_grace_seconds=setup.eviction_max_pod_grace_period_seconds,
        layout=layout_of(dedicated_image_fs=setup.dedicated_image_fs, split_container_fs=setup.split_container_fs),
        local_storage_capacity_isolation=setup.local_storage_capacity_isolation,
    )
    pods = {pod.metadata.name: pod for pod in asked.pods}
    state, answers = ManagerState(), []
    for step in asked.steps:
        result, commands = _pass(config, state, step, [pods[name] for name in step.active_pods or ()])
        state = result.state
        cleaned = {command.what for command in commands if isinstance(command, CleanUpNode)}
        answers.append(
            {
                "nodeConditions": list(state.conditions),
                "thresholdsMet": sorted(
                    f"{met.signal}:{'hard' if met.is_hard else 'soft'}" for met in state.thresholds_met
                ),
                "reclaimAttempted": result.reclaiming.resource if result.reclaiming is not None else "",
                "containerGCCalled": CleanUp.CONTAINERS in cleaned,
                "imageGCCalled": CleanUp.IMAGES in cleaned,
                "evictions": [_eviction(command) for command in commands if isinstance(command, EvictPod)],
                "admission": {
                    name: asdict(manager.admit(pod, state.conditions)) for name, pod in asked.admission_probes.items()
                },
            }
        )
    return {"steps": answers}


def _pass(config: ManagerConfig, state: ManagerState, step: ManagerStep, pods: list[Pod]) -> tuple[Pass, list[Command]]:
    """Run both phases of a pass, showing the manager what the clean-up left."""
    now_us = round(step.at_seconds * 10**6)
    result = synchronize(config, state, now_us=now_us, observation=observe(step.summary), pods=pods)
    commands = list(result.commands)
    if result.awaiting is not None:
        summary = step.summary
        after = {CleanUp.CONTAINERS: step.summary_after_container_gc, CleanUp.IMAGES: step.summary_after_image_gc}
        for command in commands:
            if isinstance(command, CleanUpNode):
                summary = after[command.what] or summary
        result = after_clean_up(config, result, observe(summary))
        commands += result.commands
    return result, commands


def _eviction(command: EvictPod) -> Answer:
    return {
        "pod": command.pod.metadata.name,
        "gracePeriodSeconds": command.grace_period_seconds,
        "phase": PHASE,
        "reason": REASON,
        "message": command.message,
        "eventAnnotations": command.annotations,
        "podCondition": command.condition and asdict(command.condition),
    }


# What each family is asked, and who answers it.
FAMILIES: dict[str, tuple[Any, Callable[[Any], Answer]]] = {
    "quantity": (dict[str, str], _quantity),
    "qos": (PodQuestion, _qos),
    "oom": (PodQuestion, _oom),
    "cgroup": (Input, _cgroup),
    "limitrange": (Input, _limitrange),
    "priority": (Input, _priority),
    "admission": (Input, _admission),
    "workload_admission": (Input, _workload_admission),
    "resize": (Input, _resize),
    "allocatable": (Input, _allocatable),
    "scheduling_fit": (FitQuestion, _scheduling_fit),
    "scheduling": (SchedulingQuestion, _scheduling),
    "thresholds": (Input, _thresholds),
    "eviction_rank": (RankQuestion, _eviction_rank),
    "eviction_manager": (ManagerQuestion, _eviction_manager),
}
