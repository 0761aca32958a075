"""How CPU is divided when all pods burst at once: in proportion to requests, and never above a limit.

Every container wants all that it may use: its limit, or all cores if it has none. Weights and quotas come from the
cgroup plan (``qos``) and are divided as Linux does (``kernel.cpu``). No pod is killed for CPU; it only gets slower.
What runs outside the pods' cgroup is left out: state the cores that are left for pods. Exclusive cores of a static CPU
manager belong to their container, and all others divide the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError
from podqos.kernel.cpu import CORE_NANO, DEFAULT_PERIOD_USEC, CpuBound, CpuGroup, CpuShare, cpu_shares
from podqos.model.assumption import Assumption
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.cgroup_tiers import TierRequests, tier_values
from podqos.qos.cgroup_values import CpuValues, Value, container_cpu, exclusive_cpus, pod_cpu
from podqos.qos.classes import qos_class_of
from podqos.qos.cpu import WeightConversion, weight_from_shares


class ContainerCpu(Struct, frozen=True, gc=False, rename="camel"):
    """What a container wants and gets, in thousandths of a core."""

    name: str
    request: Quantity | None
    limit: Quantity | None
    wanted_milli: int
    granted_milli: int


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


class CpuReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos cpu -o json``."""

    kubernetes_version: str
    cores: int | float
    wanted_milli: int
    granted_milli: int
    pods: tuple[PodCpu, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CPUBurst"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated."""


class PodDivision(Struct, frozen=True, gc=False):
    """What one pod gets, to the nanocore."""

    pod: Pod
    qos_class: QOSClass
    weight: int
    share: CpuShare
    containers: tuple[CpuShare, ...]
    """In the order of ``running_containers``."""

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
        containers = zip(self.pod.running_containers, self.containers, strict=True)
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
                )
                for container, own in containers
            ),
        )


def cpu_report(
    pods: Sequence[PodDivision], cores: int | Fraction, profile: Profile, assumptions: tuple[Assumption, ...] = ()
) -> CpuReport:
    """Put pods together, in the order given."""
    return CpuReport(
        kubernetes_version=".".join(map(str, profile.version)),
        cores=int(cores) if cores == int(cores) else float(cores),
        wanted_milli=milli(sum(pod.wanted_nano for pod in pods)),
        granted_milli=milli(sum(pod.share.granted_nano for pod in pods)),
        pods=tuple(pod.told() for pod in pods),
        assumptions=assumptions,
    )


def milli(nano: int) -> int:
    """Return nanocores in thousandths of a core."""
    return round(nano * 1000 / CORE_NANO)


def burst(
    pods: Iterable[Pod], cores: int | Fraction, settings: CgroupSettings, profile: Profile = LATEST
) -> tuple[PodDivision, ...]:
    """Divide ``cores`` among pods that all want as much as they may use, in the order given.

    Raises InputError where more cores are to be exclusive than there are.
    """
    plans: list[_Plan] = []
    burstable_milli = 0
    pods = tuple(pods)
    shared_cores = cores - _exclusive_cores(pods, cores, settings, profile)
    for index, pod in enumerate(pods):
        qos_class = qos_class_of(pod, profile)
        requests = pod_requests(pod, pod_level=profile.pod_level_resources)
        if qos_class is QOSClass.BURSTABLE:
            burstable_milli += requests.get(CPU, ZERO).milli_value
        path = f"{_TIERS[qos_class]}/{index}"
        own = pod_cpu(pod, requests, qos_class, settings, profile)
        exclusive = _exclusive(pod, qos_class, settings, profile)
        if settings.cgroups_per_qos and _is_one_container(pod) and not any(exclusive):
            below = [own]
        else:
            below = [
                container_cpu(pod, container, qos_class, settings, profile)
                for container, count in zip(pod.running_containers, exclusive, strict=True)
                if not count
            ]
        if settings.cgroups_per_qos:
            groups = _groups(path, own, below, settings, shared_cores) if below else []
        else:
            groups = list(_container_groups(f"{_PODS}/{index}.", below, settings, shared_cores))
        plans.append(_Plan(pod, qos_class, _weight(own.shares, settings, "linear"), groups, exclusive))
    groups = [CpuGroup(_PODS), *(_tiers(burstable_milli, settings) if settings.cgroups_per_qos else ())]
    for plan in plans:
        groups += plan.groups
    shares = cpu_shares(groups, shared_cores)
    return tuple(_division(plan, shares, per_qos=settings.cgroups_per_qos) for plan in plans)


def _is_one_container(pod: Pod) -> bool:
    """Whether the pod's limit is that of its only container; most pods are like that, and it saves time."""
    spec = pod.spec
    return len(spec.containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None


# Paths of the calculation only: the model needs a tree, whatever its names.
_PODS = "/pods"
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
        what = f"containers are to have {total} CPUs of their own (cpuManagerPolicy: static), and {have}"
        raise InputError(what, fix="give more with --cores")
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
    return PodDivision(plan.pod, plan.qos_class, plan.weight, own, containers)


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
