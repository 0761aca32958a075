"""``podqos cpu``: how CPU is divided when all pods burst at once: in proportion to requests, and never above a limit.

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
from podqos.model.node import Node
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import ZERO, Quantity
from podqos.model.resources import CPU
from podqos.naming import hint, naming
from podqos.objects.assumptions import KUBELET_SETTINGS, cluster_assumptions, node_cores, without_policies
from podqos.objects.kubelet_node import Kubelet, cgroups_of, chosen_kubelet, rules_of
from podqos.objects.node_pods import chosen_node, node_pods
from podqos.objects.objects import Objects
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
from podqos.text.style import Style, columns, wrapped
from podqos.text.tables import Table, csv_table

_PLENTY_BYTES = 1 << 50
_NOTABLE_BEND = Fraction(105, 100)
"""Ratios that differ by less are the same to a reader."""
# Paths of the calculation only: the model needs a tree, whatever its names.
_PODS, _DAEMONS = "/pods", "/system"
_TIERS = {
    QOSClass.GUARANTEED: _PODS,
    QOSClass.BURSTABLE: f"{_PODS}/burstable",
    QOSClass.BEST_EFFORT: f"{_PODS}/besteffort",
}

# ---- the answer ------------------------------------------------------------------------------------------------------


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


def cpu(
    objects: Objects,
    *,
    cores: int | Fraction | None = None,
    node: str | None = None,
    kubelet: Kubelet | None = None,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    profile: Profile = LATEST,
) -> CpuReport:
    """Return what each pod of a node wants and gets.

    ``cores`` are the node's, by default those of its Node, or 16; of those the daemons use what ``kubelet`` reserves,
    as far as the kernel gives it to them. ``node`` chooses among the pods of several. Raises InputError where there are
    no pods.
    """
    pods = node_pods(objects, profile=profile, node=node)
    if not pods:
        fix = "fix the errors above" if objects.errors else "give manifests with pods"
        raise InputError("no pods to show", fix=fix)
    assumed: list[Assumption] = []
    kubelet = chosen_kubelet(objects, kubelet)
    if cores is None:
        # What a kubelet reserves the daemons get below; of one that is not known the Node states what it leaves.
        name = chosen_node(objects, node)
        cores, assumed_cores = node_cores(name, objects.of(Node), left_for_pods=kubelet is None)
        assumed += assumed_cores
    if kubelet is None:
        kubelet = Kubelet()
        assumed.append(KUBELET_SETTINGS)
    settings = cgroups_of(
        kubelet, memory_bytes=_PLENTY_BYTES, cores=cores, cgroup_version=cgroup_version, profile=profile
    )
    reserved = (kubelet.config.reserved_for_kube, kubelet.config.reserved_for_system)
    reserved_milli = sum(each.get(CPU, ZERO).milli_value for each in reserved)
    if reserved_milli:
        assumed.append(Assumption("CPU of daemons", "all of their reservation", "kubeReserved, systemReserved"))
    report = burst([entry.pod for entry in pods], cores, settings, profile, reserved_milli=reserved_milli)
    chosen = {entry.pod.key for entry in pods if entry.is_chosen}
    return replace(
        report,
        pods=tuple(pod for pod in report.pods if pod.pod in chosen),
        assumptions=(
            *rules_of(kubelet, profile),
            *assumed,
            *without_policies(objects),
            *cluster_assumptions(objects),
        ),
    )


# ---- the rule --------------------------------------------------------------------------------------------------------


class _Plan(Struct, gc=False):
    """A pod's part of the tree: its own group and those of its containers if there are several.

    Without QoS cgroups only its containers have groups; a container with cores of its own has none.
    """

    pod: Pod
    qos_class: QOSClass
    weight: int
    request: Quantity | None
    exclusive: Sequence[int]
    """How many cores are its own, for each container."""
    weights: Sequence[int]
    """Of the containers."""
    groups: Sequence[CpuGroup] = ()


def burst(
    pods: Iterable[Pod],
    cores: int | Fraction,
    settings: CgroupSettings,
    profile: Profile = LATEST,
    *,
    reserved_milli: int = 0,
) -> CpuReport:
    """Divide ``cores`` among pods that all want as much as they may use, in the order given.

    ``reserved_milli`` is what the daemons want. Raises InputError where more cores are to be exclusive than there are.
    """
    per_qos = settings.cgroups_per_qos
    plans: list[_Plan] = []
    below: list[list[CpuValues]] = []
    own_values: list[CpuValues] = []
    for pod in pods:
        qos_class = qos_class_of(pod, profile)
        requests = pod_requests(pod, pod_level=profile.pod_level_resources)
        own = pod_cpu(pod, requests, qos_class, settings, profile)
        running = pod.running_containers
        exclusive: Sequence[int] = (0,) * len(running)
        if settings.static_cpu_manager:
            exclusive = [exclusive_cpus(pod, container, qos_class, settings, profile) for container in running]
        # The only container of a pod has the pod's values; most pods are like that, and it saves time.
        values = [own]
        if not (per_qos and _is_one_container(pod)) or any(exclusive):
            values = [container_cpu(pod, container, qos_class, settings, profile) for container in running]
        weights = [_weight(value.shares, settings, settings.weight_conversion) for value in values]
        plans.append(
            _Plan(pod, qos_class, _weight(own.shares, settings), requests.get(CPU), exclusive, weights),
        )
        below.append([value for value, count in zip(values, exclusive, strict=True) if not count])
        own_values.append(own)

    exclusive_cores = sum(sum(plan.exclusive) for plan in plans)
    assignable = cores - math.ceil(Fraction(reserved_milli, 1000))
    if exclusive_cores > assignable:
        have = f"pods have {float(assignable):g}"
        what = f"containers need {exclusive_cores} exclusive CPUs (cpuManagerPolicy: static), but {have}"
        raise InputError(what, fix=hint("give more with " + naming("cores")))
    shared = cores - exclusive_cores
    for index, (plan, own, values) in enumerate(zip(plans, own_values, below, strict=True)):
        plan.groups = _groups(f"{_TIERS[plan.qos_class]}/{index}", own, values, settings, shared)

    burstable = (plan.request for plan in plans if plan.qos_class is QOSClass.BURSTABLE and plan.request)
    around = list(_around(sum(request.milli_value for request in burstable), settings, reserved_milli))
    pods_weight = around[0].weight
    if exclusive_cores:
        # The weight of all pods counts on all cores, also on those that a container has to itself.
        around[0] = replace(around[0], weight=max(1, int(pods_weight * shared / cores)))
    shares = cpu_shares([*around, *(group for plan in plans for group in plan.groups)], shared)

    daemons = None
    if reserved_milli:
        slice_of_daemons = around[-1]
        share = shares[slice_of_daemons.path]
        daemons = DaemonsCpu(
            _milli(share.demand_nano), _milli(share.granted_nano), slice_of_daemons.weight, pods_weight
        )
    found = [_division(plan, [shares[group.path] for group in plan.groups], profile, per_qos) for plan in plans]
    divided = tuple(pod for pod, _, _ in found)
    used_by_daemons = 0 if daemons is None else Fraction(daemons.granted_milli, 1000)
    return CpuReport(
        kubernetes_version=profile.version_text,
        cores=_number(cores - used_by_daemons),
        wanted_milli=_milli(sum(wanted for _, wanted, _ in found)),
        granted_milli=_milli(sum(granted for _, _, granted in found)),
        pods=divided,
        node_cores=_number(cores),
        daemons=daemons,
        bends=tuple(_bends(divided, settings)),
    )


def _is_one_container(pod: Pod) -> bool:
    spec = pod.spec
    return len(spec.containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None


def _weight(shares: Value, settings: CgroupSettings, conversion: WeightConversion = "linear") -> int:
    assert shares.amount is not None
    is_v1 = settings.cgroup_version is CgroupVersion.V1
    return shares.amount if is_v1 else weight_from_shares(shares.amount, conversion)


def _groups(
    path: str, own: CpuValues, below: Sequence[CpuValues], settings: CgroupSettings, cores: int | Fraction
) -> list[CpuGroup]:
    """Return a pod's groups. A container without others beside it is one with its pod: it gets all the pod gets."""

    def group(where: str, values: CpuValues, conversion: WeightConversion, limited: CpuValues | None) -> CpuGroup:
        demand_nano = 0
        if limited is not None:  # it wants its limit, and never more than there is
            demand_nano = int(cores * CORE_NANO)
            if limited.quota_us.amount is not None and limited.period_us is not None:
                demand_nano = min(demand_nano, limited.quota_us.amount * CORE_NANO // limited.period_us)
        weight, period_us = _weight(values.shares, settings, conversion), values.period_us or DEFAULT_PERIOD_USEC
        return CpuGroup(where, weight, values.quota_us.amount, period_us, demand_nano)

    if not below:
        return []
    if settings.cgroups_per_qos and len(below) == 1:
        return [group(path, own, "linear", below[0])]
    prefix = f"{path}/" if settings.cgroups_per_qos else f"{_PODS}/{path.rpartition('/')[2]}."
    containers = [
        group(f"{prefix}{number}", values, settings.weight_conversion, values) for number, values in enumerate(below)
    ]
    return [group(path, own, "linear", None), *containers] if settings.cgroups_per_qos else containers


def _around(burstable_milli: int, settings: CgroupSettings, reserved_milli: int) -> Iterator[CpuGroup]:
    """Yield the groups above the pods and, last, that of the daemons. Without QoS cgroups none holds all pods."""
    per_qos = settings.cgroups_per_qos
    of_all = node_values(TierRequests(), settings).cpu_shares if per_qos else None
    yield CpuGroup(_PODS) if of_all is None else CpuGroup(_PODS, _weight(of_all, settings))
    if per_qos:
        tiers = tier_values(TierRequests(burstable_cpu_milli=burstable_milli), settings)
        for qos_class in (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT):
            of_tier = tiers[qos_class].cpu_shares
            assert of_tier is not None
            yield CpuGroup(_TIERS[qos_class], _weight(of_tier, settings))
    if reserved_milli:
        weight = DEFAULT_SHARES if settings.cgroup_version is CgroupVersion.V1 else DEFAULT_WEIGHT
        path = _DAEMONS if per_qos else f"{_PODS}{_DAEMONS}"
        yield CpuGroup(path, weight, demand_nano=reserved_milli * CORE_NANO // 1000)


def _division(plan: _Plan, shares: Sequence[CpuShare], profile: Profile, per_qos: bool) -> tuple[PodCpu, int, int]:
    """Return what a pod gets, and to the nanocore what it wants and is granted."""
    granted_nano = sum(share.granted_nano for share in (shares[:1] if per_qos else shares))
    bound = next((share.bound for share in (shares[:1] if per_qos else shares) if share.bound is not None), None)
    shared = iter(shares[1:] if per_qos and len(shares) > 1 else shares)
    exclusive = (CpuShare("", count * CORE_NANO, count * CORE_NANO) if count else None for count in plan.exclusive)
    own = [each or next(shared) for each in exclusive]
    wanted_nano = sum(share.demand_nano for share in own)
    granted_nano += sum(plan.exclusive) * CORE_NANO
    pod = PodCpu(
        pod=plan.pod.key,
        qos_class=plan.qos_class,
        weight=plan.weight,
        wanted_milli=_milli(wanted_nano),
        granted_milli=_milli(granted_nano),
        denied_percent=round(100 * (wanted_nano - granted_nano) / wanted_nano, 1) if wanted_nano else 0.0,
        bound=bound or (CpuBound.QUOTA if granted_nano < wanted_nano else None),
        containers=tuple(
            ContainerCpu(
                name=container.name,
                request=container.resources.requests.get(CPU),
                limit=container.resources.limits.get(CPU),
                wanted_milli=_milli(share.demand_nano),
                granted_milli=_milli(share.granted_nano),
                weight=weight,
            )
            for container, share, weight in zip(plan.pod.running_containers, own, plan.weights, strict=True)
        ),
        request=plan.request,
        limit=_pod_limit(plan.pod, profile),
    )
    return pod, wanted_nano, granted_nano


def _pod_limit(pod: Pod, profile: Profile) -> Quantity | None:
    """Return the limit of the whole pod; one container without a limit leaves it without one."""
    has_pod_level = profile.pod_level_resources and pod.spec.resources is not None and CPU in pod.spec.resources.limits
    if not has_pod_level and not all(container.resources.limits.get(CPU) for container in pod.running_containers):
        return None
    return pod_limits(pod, pod_level=profile.pod_level_resources).get(CPU)


def _milli(nano: int) -> int:
    return round(nano * 1000 / CORE_NANO)


def _number(cores: int | Fraction) -> int | float:
    return int(cores) if cores == int(cores) else float(cores)


def _bends(pods: Sequence[PodCpu], settings: CgroupSettings) -> Iterator[WeightBend]:
    """Yield the two neighbours that are furthest from the ratio of their requests: pods of a class, and containers."""
    is_v2 = settings.cgroup_version is CgroupVersion.V2
    if settings.cgroups_per_qos:
        classes = [
            (None, [(pod.pod, pod.request, pod.weight) for pod in pods if pod.qos_class is qos_class])
            for qos_class in (QOSClass.GUARANTEED, QOSClass.BURSTABLE)
        ]
        yield from _worst(classes, BendCause.ROUNDING)
    by_pod = ((pod.pod, [(each.name, each.request, each.weight) for each in pod.containers]) for pod in pods)
    is_curved = is_v2 and settings.weight_conversion == "quadratic"
    yield from _worst(by_pod, BendCause.CURVE if is_curved else BendCause.ROUNDING)


def _worst(
    families: Iterable[tuple[str | None, list[tuple[str, Quantity | None, int]]]], usual: BendCause
) -> Iterator[WeightBend]:
    most, found = _NOTABLE_BEND, None
    for family, members in families:
        by_weight = sorted(
            (
                (Fraction(weight, request.milli_value), name, request, weight)
                for name, request, weight in members
                if request
            ),
            key=lambda member: member[0],
        )
        if len(by_weight) > 1 and by_weight[-1][0] / by_weight[0][0] > most:
            # The first of equals, as in a list that is read from the top.
            heaviest = next(member for member in by_weight if member[0] == by_weight[-1][0])
            most, found = heaviest[0] / by_weight[0][0], (family, heaviest[1:], by_weight[0][1:])
    if found is not None:
        family, *pair = found
        (larger, large, heavy), (smaller, small, light) = sorted(pair, key=lambda member: -member[1].milli_value)
        cause = BendCause.MINIMUM if shares_from_milli(small.milli_value) == MIN_SHARES else usual
        yield WeightBend(family, (larger, smaller), (large, small), (heavy, light), cause)


# ---- as text ---------------------------------------------------------------------------------------------------------

_BOUNDS = {CpuBound.CONTENTION: "contention", CpuBound.QUOTA: "its own limit", None: ""}
_CAUSES = {
    BendCause.CURVE: (
        "On cgroup v2 the runtime converts a container's cpu.shares to cpu.weight by a curve (runc since 1.3.2, crun "
        "since 1.23). Pods and classes keep the ratio, and so does cgroup v1."
    ),
    BendCause.ROUNDING: "cpu.weight is an integer: one step per 25.6m requested.",
    BendCause.MINIMUM: "The kernel's minimum is 2 cpu.shares, the equivalent of 2m.",
}


def table(report: CpuReport, style: Style) -> list[str]:
    """Return what all pods want together, a line per pod and per container beside others, and what bends the ratio."""
    total = (
        f"The pods want {_cores(report.wanted_milli)} cores in total; {round(report.cores, 2):g} are available, "
        f"{_cores(report.granted_milli)} are used. A CPU shortage kills no pod."
    )
    lines = wrapped(total, style, "")
    if report.daemons is not None:
        lines += wrapped(_daemons_words(report.daemons, report.node_cores or 0), style, "")
    rows = []
    for pod in report.pods:
        figures = _figures(pod, pod.denied_percent)
        rows.append((pod.pod, style.qos_class(pod.qos_class), *figures, _BOUNDS[pod.bound]))
        for one in pod.containers if len(pod.containers) > 1 else ():
            denied = 100 * (one.wanted_milli - one.granted_milli) / one.wanted_milli if one.wanted_milli else 0.0
            rows.append((f"  {one.name}", "", *_figures(one, denied), ""))
    headers = ("POD", "CLASS", "REQUEST / LIMIT", "WEIGHT", "WANTS", "GETS", "DENIED", "REASON")
    lines += ["", *columns(headers, rows, style)]
    for bend in report.bends:
        lines += ["", *wrapped(_bend_words(bend), style, "")]
    return lines


def _figures(one: PodCpu | ContainerCpu, denied: float) -> tuple[str, ...]:
    asked = f"{one.request or '–'} / {one.limit or 'no limit'}" if one.request or one.limit else "–"
    # All but everything is not everything: whoever gets a little is not denied 100 %.
    share = f"{denied if denied == 100 else min(denied, 99):.0f} %" if denied >= 0.5 else "–"
    return asked, str(one.weight), _cores(one.wanted_milli), _cores(one.granted_milli), share


def _daemons_words(daemons: DaemonsCpu, cores: float) -> str:
    """Return what the reservation means: daemons get it as far as their weight goes, and pods may use what is idle."""
    reserved = f"{daemons.reserved_milli / 1000:g}"
    if daemons.granted_milli == daemons.reserved_milli:
        return (
            f"Of the node's {cores:g} cores the daemons are assumed to use the {reserved} reserved for them; pods may "
            "use what the daemons leave idle."
        )
    return (
        f"Of the node's {cores:g} cores {reserved} are reserved for daemons, which get {_cores(daemons.granted_milli)} "
        f"if they want all of it: their slice weighs {daemons.weight}, all pods together weigh {daemons.pods_weight}."
    )


def _bend_words(bend: WeightBend) -> str:
    (larger, smaller), (large, small), (heavy, light) = bend.names, bend.requests, bend.weights
    where = "" if bend.pod is None else f"In {bend.pod}, "
    requested = f"{_ratio(large.milli_value, small.milli_value)} ({large} : {small})"
    weights = f"{_ratio(heavy, light)} ({heavy} : {light})"
    return f"{where}{larger} and {smaller} request CPU {requested}, but weigh {weights}. {_CAUSES[bend.cause]}"


def _ratio(larger: int, smaller: int) -> str:
    ratio = larger / smaller
    return f"{ratio:.0f} : 1" if ratio >= 100 else f"{ratio:.3g} : 1"


def _cores(amount_milli: int) -> str:
    return f"{amount_milli / 1000:.2f}"


def csv_rows(report: CpuReport) -> Table:
    """Return headings, and a row per pod: its fields without its containers."""
    figures = ("weight", "wanted_milli", "granted_milli", "denied_percent", "bound", "request", "limit")
    return csv_table(report.pods, "pod", "class=qos_class", *figures)
