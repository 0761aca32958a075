"""How CPU is divided when all pods burst at once: in proportion to requests, and never above a limit.

Every container wants all that it may use: its limit, or all cores if it has none. Weights and quotas come from the
cgroup plan (``qos``) and are divided as Linux does (``kernel.cpu``). No pod is killed for CPU; it only gets slower.
Exclusive cores of a static CPU manager belong to their container, and all others divide the rest.

A CPU reservation is no wall: the kubelet only leaves it out of the weight of the pods' cgroup. Daemons are assumed to
want all that is reserved for them, in one slice of systemd's default weight, as in simulations; pods may use the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.kernel.cpu import CORE_NANO, DEFAULT_PERIOD_USEC, CpuBound, CpuGroup, CpuShare, cpu_shares
from podqos.model.assumption import Assumption
from podqos.model.effective import pod_limits, pod_requests
from podqos.model.listing import Listing
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU
from podqos.naming import hint, naming
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.cgroup_tiers import TierRequests, node_values, tier_values
from podqos.qos.cgroup_values import CpuValues, Value, container_cpu, exclusive_cpus, pod_cpu
from podqos.qos.classes import qos_class_of
from podqos.qos.cpu import (
    DEFAULT_SHARES,
    DEFAULT_WEIGHT,
    MIN_SHARES,
    WeightConversion,
    shares_from_milli,
    weight_from_shares,
)

# Ratios that differ by less are the same to a reader.
_NOTABLE_BEND = Fraction(105, 100)


class ContainerCpu(Struct, frozen=True, gc=False, rename="camel"):
    """What a container wants and gets, in thousandths of a core."""

    name: str
    request: Quantity | None
    limit: Quantity | None
    wanted_milli: int
    granted_milli: int
    weight: int
    """``cpu.weight``, or ``cpu.shares`` on cgroup v1; only the ratio to others of the pod counts."""


class PodCpu(Struct, frozen=True, gc=False, rename="camel"):
    """What a pod wants and gets, in thousandths of a core."""

    pod: str
    qos_class: QOSClass
    weight: int
    """``cpu.weight``, or ``cpu.shares`` on cgroup v1; only the ratio to others of the class counts."""
    wanted_milli: int
    granted_milli: int
    denied_percent: float
    """How much slower it is than it could be."""
    bound: CpuBound | None
    """``contention`` where cores are shared, ``cpu.max`` where its own quota binds; null: it gets everything."""
    containers: tuple[ContainerCpu, ...]
    request: Quantity | None
    """The effective one, which the weight is made of."""
    limit: Quantity | None
    """Null where the pod as a whole has none."""


class BendCause(StrEnum):
    """Why weights are not in proportion to requests."""

    CURVE = "curve"
    """On cgroup v2 newer runtimes convert a container's shares by a curve."""
    ROUNDING = "rounding"
    """Shares and weights are whole numbers: one step of ``cpu.weight`` is 25.6m."""
    MINIMUM = "minimum"
    """The kernel gives nobody less than 2 shares."""


class WeightBend(Struct, frozen=True, gc=False, rename="camel"):
    """Two neighbours whose weights differ most from the ratio of their requests: the larger request first."""

    pod: str | None
    """The pod whose containers they are; null for pods of one class."""
    names: tuple[str, str]
    requests: tuple[Quantity, Quantity]
    weights: tuple[int, int]
    cause: BendCause


class DaemonsCpu(Struct, frozen=True, gc=False, rename="camel"):
    """What the daemons outside pods want and get: all that is reserved for them, by the weight of their slice."""

    reserved_milli: int
    granted_milli: int
    weight: int
    """systemd's default for a slice."""
    pods_weight: int
    """Of the cgroup of all pods, which competes with that slice."""


class CpuReport(Listing[PodCpu], Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos cpu -o json``."""

    kubernetes_version: str
    cores: int | float
    """Those that are left for pods: all of the node but what its daemons use."""
    wanted_milli: int
    granted_milli: int
    pods: tuple[PodCpu, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CPUBurst"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""
    node_cores: int | float | None = None
    daemons: DaemonsCpu | None = None
    """Null where no CPU is reserved."""
    bends: tuple[WeightBend, ...] = ()
    """Where weights are not in proportion to requests: the worst among pods and the worst within a pod."""

    def _listed(self) -> tuple[PodCpu, ...]:
        return self.pods


class PodDivision(Struct, frozen=True, gc=False):
    """What one pod gets, to the nanocore."""

    pod: Pod
    qos_class: QOSClass
    weight: int
    share: CpuShare
    containers: tuple[CpuShare, ...]
    """In the order of ``running_containers``."""
    container_weights: tuple[int, ...]
    request: Quantity | None
    limit: Quantity | None

    @property
    def wanted_nano(self) -> int:
        """What its containers may use together."""
        return sum(container.demand_nano for container in self.containers)

    @property
    def denied_nano(self) -> int:
        """What it does not get of that."""
        return self.wanted_nano - self.share.granted_nano

    def told(self) -> PodCpu:
        """Return the same in thousandths of a core, with what binds it."""
        wanted, share = self.wanted_nano, self.share
        containers = zip(self.pod.running_containers, self.containers, self.container_weights, strict=True)
        return PodCpu(
            pod=self.pod.key,
            qos_class=self.qos_class,
            weight=self.weight,
            wanted_milli=milli(wanted),
            granted_milli=milli(share.granted_nano),
            denied_percent=round(100 * self.denied_nano / wanted, 1) if wanted else 0.0,
            bound=share.bound or (CpuBound.QUOTA if share.granted_nano < wanted else None),
            containers=tuple(
                ContainerCpu(
                    name=container.name,
                    request=container.resources.requests.get(CPU),
                    limit=container.resources.limits.get(CPU),
                    wanted_milli=milli(own.demand_nano),
                    granted_milli=milli(own.granted_nano),
                    weight=weight,
                )
                for container, own, weight in containers
            ),
            request=self.request,
            limit=self.limit,
        )


class Burst(Struct, frozen=True):
    """What every pod gets, in the order given, and the daemons beside them."""

    pods: tuple[PodDivision, ...]
    cores: int | Fraction
    daemons: DaemonsCpu | None
    bends: tuple[WeightBend, ...]


def cpu_report(burst: Burst, profile: Profile, assumptions: tuple[Assumption, ...] = ()) -> CpuReport:
    """Put pods together, in the order given."""
    used_by_daemons = Fraction(burst.daemons.granted_milli, 1000) if burst.daemons is not None else 0
    return CpuReport(
        kubernetes_version=profile.version_text,
        cores=_number(burst.cores - used_by_daemons),
        wanted_milli=milli(sum(pod.wanted_nano for pod in burst.pods)),
        granted_milli=milli(sum(pod.share.granted_nano for pod in burst.pods)),
        pods=tuple(pod.told() for pod in burst.pods),
        assumptions=assumptions,
        node_cores=_number(burst.cores),
        daemons=burst.daemons,
        bends=burst.bends,
    )


def _number(cores: int | Fraction) -> int | float:
    return int(cores) if cores == int(cores) else float(cores)


def milli(nano: int) -> int:
    """Return nanocores in thousandths of a core."""
    return round(nano * 1000 / CORE_NANO)


def burst(
    pods: Iterable[Pod],
    cores: int | Fraction,
    settings: CgroupSettings,
    profile: Profile = LATEST,
    *,
    reserved_milli: int = 0,
) -> Burst:
    """Divide ``cores`` among pods that all want as much as they may use, in the order given.

    ``reserved_milli`` is what the daemons want. Raises InputError where more cores are to be exclusive than there are.
    """
    plans: list[_Plan] = []
    burstable_milli = 0
    pods = tuple(pods)
    assignable = cores - math.ceil(Fraction(reserved_milli, 1000))
    shared_cores = cores - _exclusive_cores(pods, assignable, settings, profile)
    for index, pod in enumerate(pods):
        qos_class = qos_class_of(pod, profile)
        requests = pod_requests(pod, pod_level=profile.pod_level_resources)
        if qos_class is QOSClass.BURSTABLE:
            burstable_milli += requests.get(CPU, ZERO).milli_value
        path = f"{_TIERS[qos_class]}/{index}"
        own = pod_cpu(pod, requests, qos_class, settings, profile)
        exclusive = _exclusive(pod, qos_class, settings, profile)
        if settings.cgroups_per_qos and _is_one_container(pod) and not any(exclusive):
            values = [own]
        else:
            values = [
                container_cpu(pod, container, qos_class, settings, profile) for container in pod.running_containers
            ]
        below = [value for value, count in zip(values, exclusive, strict=True) if not count]
        if settings.cgroups_per_qos:
            groups = _groups(path, own, below, settings, shared_cores) if below else []
        else:
            groups = list(_container_groups(f"{_PODS}/{index}.", below, settings, shared_cores))
        plans.append(
            _Plan(
                pod=pod,
                qos_class=qos_class,
                weight=_weight(own.shares, settings, "linear"),
                groups=groups,
                exclusive=exclusive,
                weights=tuple(_weight(value.shares, settings, settings.weight_conversion) for value in values),
                request=requests.get(CPU),
                limit=_pod_limit(pod, profile),
            )
        )
    around = [*_around(burstable_milli, settings, reserved_milli)]
    weights = {group.path: group.weight for group in around}
    if shared_cores != cores:
        # The weight of all pods counts on all cores, also on those that a container has to itself.
        around[0] = replace(around[0], weight=max(1, int(around[0].weight * shared_cores / cores)))
    shares = cpu_shares([*around, *(group for plan in plans for group in plan.groups)], shared_cores)
    divisions = tuple(_division(plan, shares, per_qos=settings.cgroups_per_qos) for plan in plans)
    return Burst(divisions, cores, _daemons(weights, shares), tuple(_bends(divisions, settings)))


def _around(burstable_milli: int, settings: CgroupSettings, reserved_milli: int) -> Iterator[CpuGroup]:
    """Yield the groups above and beside the pods. Without QoS cgroups there is none that holds all pods."""
    if settings.cgroups_per_qos:
        shares = node_values(TierRequests(), settings).cpu_shares
        yield CpuGroup(_PODS) if shares is None else CpuGroup(_PODS, _weight(shares, settings, "linear"))
        yield from _tiers(burstable_milli, settings)
    else:
        yield CpuGroup(_PODS)
    if reserved_milli:
        is_v1 = settings.cgroup_version is CgroupVersion.V1
        path = _DAEMONS if settings.cgroups_per_qos else f"{_PODS}{_DAEMONS}"
        weight = DEFAULT_SHARES if is_v1 else DEFAULT_WEIGHT
        yield CpuGroup(path, weight, demand_nano=reserved_milli * CORE_NANO // 1000)


def _daemons(weights: dict[str, int], shares: dict[str, CpuShare]) -> DaemonsCpu | None:
    path = next((path for path in (_DAEMONS, f"{_PODS}{_DAEMONS}") if path in weights), None)
    if path is None:
        return None
    own = shares[path]
    return DaemonsCpu(milli(own.demand_nano), milli(own.granted_nano), weights[path], weights[_PODS])


def _pod_limit(pod: Pod, profile: Profile) -> Quantity | None:
    """Return the limit of the whole pod; one container without a limit leaves it without one."""
    has_pod_level = profile.pod_level_resources and pod.spec.resources is not None and CPU in pod.spec.resources.limits
    if not has_pod_level and not all(container.resources.limits.get(CPU) for container in pod.running_containers):
        return None
    return pod_limits(pod, pod_level=profile.pod_level_resources).get(CPU)


def _is_one_container(pod: Pod) -> bool:
    """Whether the pod's limit is that of its only container; most pods are like that, and it saves time."""
    spec = pod.spec
    return len(spec.containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None


# Paths of the calculation only: the model needs a tree, whatever its names.
_PODS = "/pods"
_DAEMONS = "/system"
_TIERS = {
    QOSClass.GUARANTEED: _PODS,
    QOSClass.BURSTABLE: f"{_PODS}/burstable",
    QOSClass.BEST_EFFORT: f"{_PODS}/besteffort",
}


class _Plan(Struct, gc=False):
    """The groups of one pod: its own, and those of its containers if there are several.

    Without QoS cgroups those of its containers alone. None where every container has cores of its own.
    """

    pod: Pod
    qos_class: QOSClass
    weight: int
    groups: list[CpuGroup]
    exclusive: Sequence[int]
    """How many cores are its own, for each container."""
    weights: tuple[int, ...]
    """Of the containers."""
    request: Quantity | None
    limit: Quantity | None


def _exclusive(pod: Pod, qos_class: QOSClass, settings: CgroupSettings, profile: Profile) -> Sequence[int]:
    containers = pod.running_containers
    if not settings.static_cpu_manager:
        return (0,) * len(containers)
    return [exclusive_cpus(pod, container, qos_class, settings, profile) for container in containers]


def _exclusive_cores(pods: Iterable[Pod], cores: int | Fraction, settings: CgroupSettings, profile: Profile) -> int:
    if not settings.static_cpu_manager:
        return 0
    classes = ((pod, qos_class_of(pod, profile)) for pod in pods)
    total = sum(sum(_exclusive(pod, qos_class, settings, profile)) for pod, qos_class in classes)
    if total > cores:
        have = f"pods have {float(cores):g}"
        what = f"containers need {total} exclusive CPUs (cpuManagerPolicy: static), but {have}"
        raise InputError(what, fix=hint("give more with " + naming("cores")))
    return total


def _groups(
    path: str, own: CpuValues, below: list[CpuValues], settings: CgroupSettings, cores: int | Fraction
) -> list[CpuGroup]:
    """Return a pod's groups. A container without others beside it is one with its pod: it gets all the pod gets."""
    weight = _weight(own.shares, settings, "linear")
    quota_us, period_us = own.quota_us.amount, own.period_us or DEFAULT_PERIOD_USEC
    if len(below) == 1:
        return [CpuGroup(path, weight, quota_us, period_us, _wanted_nano(below[0], cores))]
    return [CpuGroup(path, weight, quota_us, period_us), *_container_groups(f"{path}/", below, settings, cores)]


def _container_groups(
    prefix: str, below: list[CpuValues], settings: CgroupSettings, cores: int | Fraction
) -> Iterator[CpuGroup]:
    for number, values in enumerate(below):
        yield CpuGroup(
            f"{prefix}{number}",
            _weight(values.shares, settings, settings.weight_conversion),
            values.quota_us.amount,
            values.period_us or DEFAULT_PERIOD_USEC,
            _wanted_nano(values, cores),
        )


def _wanted_nano(values: CpuValues, cores: int | Fraction) -> int:
    """Return all that a container may use: its limit, and never more than there is."""
    quota_us, period_us = values.quota_us.amount, values.period_us
    if quota_us is None or period_us is None:
        return int(cores * CORE_NANO)
    return min(int(cores * CORE_NANO), quota_us * CORE_NANO // period_us)


def _division(plan: _Plan, shares: dict[str, CpuShare], *, per_qos: bool) -> PodDivision:
    found = [shares[group.path] for group in plan.groups]
    own = found[0] if found and per_qos else _together(found)
    below = iter((found[1:] if per_qos else found) or [own])
    containers = tuple(_own_cores(count) if count else next(below) for count in plan.exclusive)
    exclusive_nano = sum(plan.exclusive) * CORE_NANO
    if exclusive_nano:
        own = replace(own, demand_nano=own.demand_nano + exclusive_nano, granted_nano=own.granted_nano + exclusive_nano)
    return PodDivision(
        pod=plan.pod,
        qos_class=plan.qos_class,
        weight=plan.weight,
        share=own,
        containers=containers,
        container_weights=plan.weights,
        request=plan.request,
        limit=plan.limit,
    )


def _together(shares: Sequence[CpuShare]) -> CpuShare:
    """Return the sum of containers without a common cgroup."""
    return CpuShare(
        "",
        sum(share.demand_nano for share in shares),
        sum(share.granted_nano for share in shares),
        next((share.bound for share in shares if share.bound is not None), None),
    )


def _own_cores(count: int) -> CpuShare:
    return CpuShare("", count * CORE_NANO, count * CORE_NANO)


def _tiers(burstable_milli: int, settings: CgroupSettings) -> Iterator[CpuGroup]:
    values = tier_values(TierRequests(burstable_cpu_milli=burstable_milli), settings)
    for qos_class in (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT):
        shares = values[qos_class].cpu_shares
        assert shares is not None
        yield CpuGroup(_TIERS[qos_class], _weight(shares, settings, "linear"))


def _weight(shares: Value, settings: CgroupSettings, conversion: WeightConversion) -> int:
    assert shares.amount is not None
    return (
        shares.amount if settings.cgroup_version is CgroupVersion.V1 else weight_from_shares(shares.amount, conversion)
    )


# ---- weights and requests ----------------------------------------------------------------------------------------


class _Weighed(Struct, frozen=True, gc=False):
    """A neighbour among others: its request, and the weight made of it."""

    name: str
    request: Quantity
    weight: int

    @property
    def per_milli(self) -> Fraction:
        """What a thousandth of a core weighs."""
        return Fraction(self.weight, self.request.milli_value)


def _bends(divisions: Sequence[PodDivision], settings: CgroupSettings) -> Iterator[WeightBend]:
    """Yield the two neighbours that are furthest from the ratio of their requests: pods of a class, and containers."""
    if settings.cgroups_per_qos:
        classes = (
            [
                _Weighed(division.pod.key, division.request, division.weight)
                for division in divisions
                if division.qos_class is qos_class and division.request
            ]
            for qos_class in (QOSClass.GUARANTEED, QOSClass.BURSTABLE)
        )
        yield from _worst(((None, qos_class) for qos_class in classes), settings, "linear")
    pods = (
        (
            division.pod.key,
            [
                _Weighed(container.name, request, weight)
                for container, weight in zip(division.pod.running_containers, division.container_weights, strict=True)
                if (request := container.resources.requests.get(CPU))
            ],
        )
        for division in divisions
    )
    yield from _worst(pods, settings, settings.weight_conversion)


def _worst(
    groups: Iterable[tuple[str | None, list[_Weighed]]], settings: CgroupSettings, conversion: WeightConversion
) -> Iterator[WeightBend]:
    worst, found = _NOTABLE_BEND, None
    for pod, neighbours in groups:
        if len(neighbours) > 1:
            heavy = max(neighbours, key=lambda neighbour: neighbour.per_milli)
            light = min(neighbours, key=lambda neighbour: neighbour.per_milli)
            if heavy.per_milli / light.per_milli > worst:
                worst, found = heavy.per_milli / light.per_milli, (pod, heavy, light)
    if found is not None:
        pod, *pair = found
        larger, smaller = sorted(pair, key=lambda weighed: -weighed.request.milli_value)
        yield WeightBend(
            pod,
            (larger.name, smaller.name),
            (larger.request, smaller.request),
            (larger.weight, smaller.weight),
            _cause(smaller.request, settings, conversion),
        )


def _cause(smaller: Quantity, settings: CgroupSettings, conversion: WeightConversion) -> BendCause:
    if shares_from_milli(smaller.milli_value) == MIN_SHARES:
        return BendCause.MINIMUM
    is_curve = settings.cgroup_version is CgroupVersion.V2 and conversion == "quadratic"
    return BendCause.CURVE if is_curve else BendCause.ROUNDING
