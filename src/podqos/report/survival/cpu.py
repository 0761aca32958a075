"""``podqos cpu``: what every pod gets when all burst at once, as a documented value and as a table.

The value is stable: fields are added, never renamed or removed; ``docs/schema/cpu.json`` is made from these classes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from podqos.kernel.cpu import CpuBound
from podqos.model.assumption import Assumption
from podqos.model.profile import Profile
from podqos.report.text.style import Style, columns
from podqos.survival.cpu import PodCpu, PodDivision, milli

CSV_COLUMNS = ("pod", "class", "weight", "wanted_milli", "granted_milli", "denied_percent", "bound")


class CpuReport(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos cpu -o json``."""

    kubernetes_version: str
    cores: int
    wanted_milli: int
    granted_milli: int
    pods: tuple[PodCpu, ...]
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CPUBurst"
    assumptions: tuple[Assumption, ...] = ()
    """What the answer rests on that nobody stated."""


def cpu_report(
    pods: Sequence[PodDivision], cores: int, profile: Profile, assumptions: tuple[Assumption, ...] = ()
) -> CpuReport:
    """Put pods together, in the order given."""
    return CpuReport(
        kubernetes_version=".".join(map(str, profile.version)),
        cores=cores,
        wanted_milli=milli(sum(pod.wanted_nano for pod in pods)),
        granted_milli=milli(sum(pod.share.granted_nano for pod in pods)),
        pods=tuple(pod.told() for pod in pods),
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


def _asked(pod: PodCpu) -> str:
    """Return request and limit of each container; without a limit all cores are the ceiling."""
    return ", ".join(
        "–" if each.request is None and each.limit is None else f"{each.request or '–'} / {each.limit or 'node'}"
        for each in pod.containers
    )


def _cores(amount_milli: int) -> str:
    return f"{amount_milli / 1000:.2f}"
