"""``podqos eval cgroup``: pods, QoS tiers and CPU unit conversions.

A field that the kubelet leaves unset has no key in the answer, as in the vectors; 0 and -1 are its own words for "no
limit" and come back here, where its interface is spoken.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from podqos.admission.defaulting import defaulted
from podqos.cli.eval.qos import api_validation_errors
from podqos.cli.eval.resources import pod_of
from podqos.model.pod import Pod, QOSClass
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceList
from podqos.qos.cgroup_paths import cgroup_uid, pod_path
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, MemoryQoS, SwapBehavior
from podqos.qos.cgroup_tiers import tier_requests, tier_values
from podqos.qos.cgroup_values import CgroupValues, Rule, Value, container_values, pod_values
from podqos.qos.classes import qos_class_of
from podqos.qos.cpu import (
    milli_from_quota,
    milli_from_shares,
    quota_from_milli,
    shares_from_milli,
    shares_from_weight,
    weight_from_shares,
)
from podqos.qos.oom import oom_scores


class MemoryQoSInput(msgspec.Struct, rename="camel"):
    """``memoryQoS`` of a pod question."""

    throttling_factor: float
    node_allocatable_memory: int
    reservation_policy: Literal["None", "TieredReservation"]


class PodInput(msgspec.Struct, rename="camel"):
    """A question of kind ``pod``."""

    pod: object
    node_memory_capacity: int
    cpu_period: int
    cgroup_root: str
    cgroup_driver: CgroupDriver
    apply_defaults: bool = False
    enforce_cpu_limits: bool = msgspec.field(name="enforceCPULimits", default=True)
    node_swap_capacity: int = 0
    swap_behavior: Literal["", "NoSwap", "LimitedSwap"] = ""
    memory_qos: MemoryQoSInput | None = msgspec.field(name="memoryQoS", default=None)


class TierInput(msgspec.Struct, rename="camel"):
    """A question of kind ``qosTier``."""

    pods: list[object]
    node_allocatable: dict[str, str | int | float]
    qos_reserved_memory_percent: int | None = None


class ConvertInput(msgspec.Struct, rename="camel"):
    """A question of kind ``convert``."""

    milli_cpu: int = msgspec.field(name="milliCPU")
    cpu_period: int
    cpu_weight: int


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``cgroup``."""
    match input["kind"]:
        case "pod":
            return _pod(msgspec.convert(input, PodInput))
        case "qosTier":
            return _tiers(msgspec.convert(input, TierInput))
        case "convert":
            return _conversions(msgspec.convert(input, ConvertInput))
        case kind:
            raise ValueError(f"unknown kind {kind!r}")


def _pod(question: PodInput) -> dict[str, object]:
    given = pod_of(question.pod)
    after_defaulting = defaulted(given)
    pod = after_defaulting if question.apply_defaults else given
    settings = _settings(question)
    qos_class = qos_class_of(pod)
    paths = {
        driver: pod_path(cgroup_uid(pod), qos_class, msgspec.structs.replace(settings, cgroup_driver=driver))
        for driver in CgroupDriver
    }
    return {
        "qosClass": qos_class,
        "pod": _pod_answer(pod_values(pod, qos_class, settings)),
        "containers": _containers_answer(pod, qos_class, settings),
        "podCgroupPath": paths[question.cgroup_driver],
        "podCgroupPathCgroupfs": paths[CgroupDriver.CGROUPFS],
        "podCgroupPathSystemd": paths[CgroupDriver.SYSTEMD],
        "apiValidationErrors": api_validation_errors(after_defaulting),
    }


def _settings(question: PodInput) -> CgroupSettings:
    given = question.memory_qos
    return CgroupSettings(
        node_memory_bytes=question.node_memory_capacity,
        node_swap_bytes=question.node_swap_capacity,
        cgroup_driver=question.cgroup_driver,
        cgroup_root=question.cgroup_root,
        cpu_cfs_quota=question.enforce_cpu_limits,
        cpu_cfs_period_us=question.cpu_period,
        swap_behavior=SwapBehavior(question.swap_behavior or "NoSwap"),
        memory_qos=None
        if given is None
        else MemoryQoS(given.throttling_factor, given.reservation_policy, given.node_allocatable_memory),
    )


def _pod_answer(values: CgroupValues) -> dict[str, object]:
    answer = _shares_answer(values)
    quota, memory = values.cpu_quota_us, values.memory_limit_bytes
    if quota is not None and values.cpu_period_us is not None:
        answer["cpuQuota"] = -1 if quota.because.rule is Rule.QUOTA_DISABLED else quota.amount or 0
        answer["cpuPeriod"] = values.cpu_period_us
    if memory is not None and memory.because.amount is not None:
        answer["memory"] = memory.amount or 0
    answer |= _hugepages(values)
    unified = _unified(values)
    return answer | {"unified": unified} if unified else answer


def _containers_answer(pod: Pod, qos_class: QOSClass, settings: CgroupSettings) -> dict[str, object]:
    scores = {
        score.container: score.value for score in oom_scores(pod, qos_class, settings.node_memory_bytes, bounded=False)
    }
    return {
        container.name: _container_answer(container_values(pod, container, qos_class, settings))
        | {"oomScoreAdj": scores[container.name]}
        for container in (*pod.spec.containers, *pod.spec.init_containers)
    }


def _container_answer(values: CgroupValues) -> dict[str, object]:
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


def _shares_answer(values: CgroupValues) -> dict[str, object]:
    if values.cpu_shares is None:
        return {}
    shares = _amount(values.cpu_shares)
    return {"cpuShares": shares, "cpuWeight": weight_from_shares(shares)}


def _amount(value: Value | None) -> int:
    return (value.amount or 0) if value is not None else 0


def _tiers(question: TierInput) -> dict[str, object]:
    allocatable: ResourceList = {
        name: Quantity.from_json(str(amount)) for name, amount in question.node_allocatable.items()
    }
    settings = CgroupSettings(
        node_memory_bytes=0,
        node_allocatable=allocatable,
        qos_reserved_memory_percent=question.qos_reserved_memory_percent,
    )
    tiers = tier_values(tier_requests(pod_of(pod) for pod in question.pods), settings)
    return {"tiers": {qos_class: tier_answer(values) for qos_class, values in tiers.items()}}


def tier_answer(values: CgroupValues) -> dict[str, object]:
    """Return what is set for a cgroup of many pods."""
    memory = values.memory_limit_bytes
    answer = _shares_answer(values) | _hugepages(values)
    return answer if memory is None else answer | {"memory": memory.amount}


def _hugepages(values: CgroupValues) -> dict[str, object]:
    limits = {str(limit.page_size_bytes): limit.limit_bytes.amount for limit in values.hugepage_limits}
    return {"hugePageLimit": limits} if limits else {}


def _conversions(question: ConvertInput) -> dict[str, object]:
    shares = shares_from_milli(question.milli_cpu)
    quota_us = quota_from_milli(question.milli_cpu, question.cpu_period)
    return {
        "cpuShares": shares,
        "cpuWeightLinear": weight_from_shares(shares),
        "cpuWeightQuadratic": weight_from_shares(shares, "quadratic"),
        "cpuQuota": quota_us or 0,
        "milliCPUFromShares": milli_from_shares(shares),
        "milliCPUFromQuota": milli_from_quota(quota_us, question.cpu_period) or 0,
        "sharesFromWeight": shares_from_weight(question.cpu_weight),
    }
