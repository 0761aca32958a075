"""``podqos cpu``: what every pod gets when all burst at once, as a documented value and as a table.

The value is stable: fields are added, never renamed or removed; ``docs/schema/cpu.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from podqos.kernel.cpu import CORE_NANO, CpuBound, CpuShare
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.model.profile import Profile
from podqos.model.resources import CPU
from podqos.report.text.style import Style, columns
from podqos.survival.cpu import Burst, PodCpu

_NANO_PER_MILLI = 1_000_000

CSV_COLUMNS = ("pod", "class", "weight", "wanted_milli", "granted_milli", "denied_percent", "bound")


class ContainerCpuReport(Struct, frozen=True, rename="camel"):
    """What one container wants and gets, in thousandths of a core."""

    name: str
    request: str | None
    limit: str | None
    wanted_milli: int
    granted_milli: int


class PodCpuReport(Struct, frozen=True, rename="camel"):
    """What one pod wants and gets, in thousandths of a core."""

    pod: str
    qos_class: QOSClass
    weight: int
    wanted_milli: int
    granted_milli: int
    denied_percent: float
    """How much slower it is than it could be."""
    bound: CpuBound | None
    """``contention`` where the cores are shared out, ``cpu.max`` where its own quota binds; null: it gets all."""
    containers: tuple[ContainerCpuReport, ...]


class CpuReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos cpu -o json``."""

    kubernetes_version: str
    cores: int
    wanted_milli: int
    granted_milli: int
    pods: tuple[PodCpuReport, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CPUBurst"
    assumptions: tuple[Assumption, ...] = ()
    """What the answer rests on that nobody stated."""


def cpu_report(burst: Burst, profile: Profile, assumptions: tuple[Assumption, ...] = ()) -> CpuReport:
    """Render a burst into the documented shape, pods in the order given."""
    return CpuReport(
        kubernetes_version=".".join(map(str, profile.version)),
        cores=burst.cores,
        wanted_milli=_milli(burst.wanted_nano),
        granted_milli=_milli(burst.granted_nano),
        pods=tuple(map(_pod, burst.pods)),
        assumptions=assumptions,
    )


def table(report: CpuReport, style: Style) -> list[str]:
    """Return a line per pod, and one for all."""
    rows = [
        (
            pod.pod,
            style.qos_class(pod.qos_class),
            _asked(pod),
            str(pod.weight),
            _cores(pod.wanted_milli),
            _cores(pod.granted_milli),
            f"−{pod.denied_percent:.0f} %" if pod.denied_percent >= 0.5 else "all",
            {CpuBound.CONTENTION: "shared out", CpuBound.QUOTA: "its own limit", None: ""}[pod.bound],
        )
        for pod in report.pods
    ]
    headers = ("POD", "CLASS", "REQUEST / LIMIT", "WEIGHT", "WANTS", "GETS", "OF THAT", "BECAUSE")
    total = (
        f"All together want {_cores(report.wanted_milli)} cores, {report.cores} are there, "
        f"{_cores(report.granted_milli)} are used. Nobody is killed for CPU."
    )
    return [*columns(headers, rows, style), "", total]


def csv_rows(report: CpuReport) -> Iterator[tuple[str | int | float | None, ...]]:
    """Yield a row per pod."""
    for pod in report.pods:
        bound = None if pod.bound is None else pod.bound.value
        yield (
            pod.pod,
            pod.qos_class.value,
            pod.weight,
            pod.wanted_milli,
            pod.granted_milli,
            pod.denied_percent,
            bound,
        )


def _pod(entry: PodCpu) -> PodCpuReport:
    wanted = entry.wanted_nano
    containers = zip(entry.pod.running_containers, entry.containers, strict=True)
    return PodCpuReport(
        pod=entry.pod.key,
        qos_class=entry.qos_class,
        weight=entry.weight,
        wanted_milli=_milli(wanted),
        granted_milli=_milli(entry.share.granted_nano),
        denied_percent=round(100 * entry.denied_nano / wanted, 1) if wanted else 0.0,
        bound=_bound(entry.share, wanted),
        containers=tuple(
            ContainerCpuReport(
                name=cpu.name,
                request=_text(container.resources.requests.get(CPU)),
                limit=_text(container.resources.limits.get(CPU)),
                wanted_milli=_milli(cpu.share.demand_nano),
                granted_milli=_milli(cpu.share.granted_nano),
            )
            for container, cpu in containers
        ),
    )


def _bound(share: CpuShare, wanted_nano: int) -> CpuBound | None:
    return share.bound or (CpuBound.QUOTA if share.granted_nano < wanted_nano else None)


def _asked(pod: PodCpuReport) -> str:
    """Return request and limit of each container; without a limit all cores are the ceiling."""
    return ", ".join(
        "–" if each.request is None and each.limit is None else f"{each.request or '–'} / {each.limit or 'node'}"
        for each in pod.containers
    )


def _text(amount: object) -> str | None:
    return None if amount is None else str(amount)


def _milli(nano: int) -> int:
    return round(nano / _NANO_PER_MILLI)


def _cores(milli: int) -> str:
    return f"{milli * _NANO_PER_MILLI / CORE_NANO:.2f}"
