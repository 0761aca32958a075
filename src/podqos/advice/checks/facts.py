"""The facts of each check, as data: which container, which resource, which numbers.

One structure per kind of fact, tagged with its name, so that a finding written as JSON can be read back. Several checks
may share one. Amounts are texts, as Kubernetes prints them. Wording is the business of ``report.finding_words``.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from podqos.model.pod import QOSClass


class Fact(Struct, frozen=True, gc=False, tag_field="type", tag=True, rename="camel"):
    """The base of all facts; a finding's facts are one of the structures below."""


# ---- classes and sizes of workloads ------------------------------------------------------------------------------


class Spoiler(Struct, frozen=True, gc=False):
    """A resource of a container that keeps its pod from being Guaranteed."""

    container: str
    resource: str
    request: str | None
    limit: str | None


class NearlyGuaranteed(Fact, frozen=True, gc=False):
    """A pod that is Burstable because of a few fields."""

    in_order: tuple[str, ...]
    """Containers that are complete; empty where requests only nearly equal limits."""
    spoilers: tuple[Spoiler, ...]


class NothingSet(Fact, frozen=True, gc=False):
    """A pod without a request or limit of cpu or memory."""

    kind: str
    containers: tuple[str, ...]
    serves: str | None = None
    """The Service that sends it traffic, or the annotation that says so."""


class LimitFarAboveRequest(Fact, frozen=True, gc=False):
    """A container that may use many times what it reserves."""

    request: str
    limit: str
    ratio: float
    allowed_ratio: float


class RequestFollowsLimit(Fact, frozen=True, gc=False):
    """A container whose memory request is not written and becomes its limit."""

    limit: str


class NoMemoryLimit(Fact, frozen=True, gc=False):
    """A container that may take all memory there is."""

    request: str


class NoDiskLimit(Fact, frozen=True, gc=False):
    """Containers that may fill the node's disk."""

    containers: tuple[str, ...]


class UnboundedVolume(Fact, frozen=True, gc=False):
    """An emptyDir without a size limit."""

    volume: str
    in_memory: bool


class RequestAboveLimit(Fact, frozen=True, gc=False):
    """A request that the API server refuses because the limit is smaller."""

    resource: str
    request: str
    limit: str


class Refused(Fact, frozen=True, gc=False):
    """What the API server answers, in its own words."""

    step: str
    message: str
    source: str = ""
    """The policy object that refuses, where there is one."""


class ClassChange(Fact, frozen=True, gc=False):
    """A class that is not the one its manifest shows."""

    before: QOSClass
    after: QOSClass
    sources: tuple[str, ...] = ()
    """LimitRanges or the injector that did it."""
    containers: tuple[str, ...] = ()
    """Those that were filled in or added."""


class SmallSidecar(Fact, frozen=True, gc=False):
    """A small container that the kernel takes long before the one it serves."""

    oom_score_adj: int
    main: str
    main_oom_score_adj: int


class FractionalCPU(Fact, frozen=True, gc=False):
    """A Guaranteed container whose cores are not whole, under a static CPU manager."""

    cpu: str


class MayExceed(Struct, frozen=True, gc=False):
    """A container that may use more memory than it requests."""

    container: str
    """Empty for the pod as a whole."""
    request: str | None
    limit: str | None
    """None where nothing holds it back."""


class ComesBack(Fact, frozen=True, gc=False):
    """Pods that are put back on the node they were evicted from, while it is still under pressure."""

    tolerated_by: str | None
    """The field that tolerates memory pressure; None where the DaemonSet controller adds it."""
    containers: tuple[MayExceed, ...]


class ZeroAmount(Fact, frozen=True, gc=False):
    """An amount of zero, which counts as none."""

    resource: str
    side: str


class ImplausibleAmount(Fact, frozen=True, gc=False):
    """An amount that was probably meant in another unit."""

    resource: str
    side: str
    amount: str
    meant: str


# ---- policies ----------------------------------------------------------------------------------------------------


class HiddenLimit(Fact, frozen=True, gc=False):
    """A memory limit that no line of the manifest shows."""

    request: str
    limit: str
    limit_range: str


class TwoDefaults(Fact, frozen=True, gc=False):
    """LimitRanges that default one resource differently."""

    side: str
    resource: str
    limit_ranges: tuple[str, ...]
    amounts: tuple[str, ...]


class Unstated(Fact, frozen=True, gc=False):
    """What a quota demands of every container and some do not state."""

    quota: str
    resources: tuple[str, ...]
    containers: tuple[str, ...]


class OverQuota(Fact, frozen=True, gc=False):
    """A workload of which a quota has no room for all pods."""

    quota: str
    pods: int
    admitted: int
    message: str


# ---- priority and order ------------------------------------------------------------------------------------------


class NoPriority(Fact, frozen=True, gc=False):
    """A workload that names no priority class while others do."""

    priority: int
    """What it gets."""
    higher: str
    """The workload with the highest priority."""
    higher_priority: int | None
    """None where its class is not known."""


class PriorityContradictsClass(Fact, frozen=True, gc=False):
    """A priority that promises what the class does not keep, or the other way round."""

    qos_class: QOSClass
    priority: int
    other: str | None = None
    other_class: QOSClass | None = None
    other_priority: int | None = None


class SystemPriority(Fact, frozen=True, gc=False):
    """A workload outside kube-system with a priority of the system."""

    class_name: str


class UnknownPriorityClass(Fact, frozen=True, gc=False):
    """A priority class that does not exist."""

    class_name: str
    known: tuple[str, ...]


class BudgetIsNoShield(Fact, frozen=True, gc=False):
    """A PodDisruptionBudget over pods that node pressure may end."""

    budget: str
    qos_class: QOSClass


# ---- the kubelet -------------------------------------------------------------------------------------------------


class MemoryUnwatched(Fact, frozen=True, gc=False):
    """A kubelet without a hard threshold for memory."""

    named: tuple[str, ...]
    """The signals that evictionHard names instead."""


class SoftAfterHard(Fact, frozen=True, gc=False):
    """A soft threshold that is not reached before the hard one."""

    signal: str
    soft: str
    hard: str


class SoftWithoutGrace(Fact, frozen=True, gc=False):
    """A soft threshold without a grace period."""

    signal: str
    grace_period: str | None
    """None where there is none: the kubelet does not start."""


class KernelFirst(Fact, frozen=True, gc=False):
    """A threshold that memory falls through faster than the kubelet looks."""

    threshold_bytes: int
    growth_bytes_per_second: int
    interval_seconds: int
    kubelet_first: float
    """Probability that the kubelet acts before the kernel."""
    needed_bytes: int
    """The smallest threshold with which it always does."""


class SoftNotCovered(Fact, frozen=True, gc=False):
    """A soft threshold that pods within their allocatable can reach."""

    resource: str
    soft_bytes: int
    allocatable_bytes: int
    usable_before_soft_bytes: int


class NothingReserved(Fact, frozen=True, gc=False):
    """A node that offers all of its memory to pods."""

    resources: tuple[str, ...]


class SwapHidesPressure(Fact, frozen=True, gc=False):
    """A kubelet that lets pods swap."""

    swap_behavior: str


class PodsNotEnforced(Fact, frozen=True, gc=False):
    """A node whose pods are not held to what is allocatable."""

    enforced: tuple[str, ...]


class ReclaimsTooMuch(Fact, frozen=True, gc=False):
    """A minimum reclaim that evicts several pods where one would do."""

    signal: str
    minimum_reclaim: str
    threshold: str


class NoEffect(Fact, frozen=True, gc=False):
    """An eviction setting that does nothing."""

    signal: str
    setting: str
    kind: str


class GraceCut(Fact, frozen=True, gc=False):
    """A grace period that a soft eviction does not give."""

    workload: str
    stated_seconds: int
    given_seconds: int


class KubeletRefuses(Fact, frozen=True, gc=False):
    """A configuration with which the kubelet does not start."""

    message: str


class OverReserved(Fact, frozen=True, gc=False):
    """A node that holds back more than it has, with which the kubelet does not start."""

    resource: str
    reserved: str
    capacity: str


class QOSCgroupsOff(Fact, frozen=True, gc=False):
    """A kubelet that makes no cgroups for the classes."""


# ---- what nodes can hold -----------------------------------------------------------------------------------------


class Overcommitted(Fact, frozen=True, gc=False):
    """More promised than the budget allows."""

    resource: str
    limits: str
    allocatable: str
    ratio: float
    budget: float
    nodes: int
    largest: tuple[str, ...]
    """The workloads that may exceed their requests most."""


class Overfull(Fact, frozen=True, gc=False):
    """More requested than all nodes have."""

    resource: str
    requests: str
    allocatable: str
    nodes: int


class LargerThanAnyNode(Fact, frozen=True, gc=False):
    """A pod that fits no node, however empty."""

    resource: str
    request: str
    largest: str
    node: str


Facts: TypeAlias = (
    NearlyGuaranteed
    | NothingSet
    | LimitFarAboveRequest
    | RequestFollowsLimit
    | NoMemoryLimit
    | NoDiskLimit
    | UnboundedVolume
    | RequestAboveLimit
    | Refused
    | ClassChange
    | SmallSidecar
    | FractionalCPU
    | ComesBack
    | ZeroAmount
    | ImplausibleAmount
    | HiddenLimit
    | TwoDefaults
    | Unstated
    | OverQuota
    | NoPriority
    | PriorityContradictsClass
    | SystemPriority
    | UnknownPriorityClass
    | BudgetIsNoShield
    | MemoryUnwatched
    | SoftAfterHard
    | SoftWithoutGrace
    | KernelFirst
    | SoftNotCovered
    | NothingReserved
    | SwapHidesPressure
    | PodsNotEnforced
    | ReclaimsTooMuch
    | NoEffect
    | GraceCut
    | KubeletRefuses
    | OverReserved
    | QOSCgroupsOff
    | Overcommitted
    | Overfull
    | LargerThanAnyNode
)
