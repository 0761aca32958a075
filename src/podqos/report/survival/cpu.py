"""``podqos cpu`` as text and CSV: what each pod gets when all burst at once."""

from __future__ import annotations

from podqos.kernel.cpu import CpuBound
from podqos.report.text.encoding import Table, csv_table
from podqos.report.text.style import Style, columns, wrapped
from podqos.survival.cpu import CpuReport, PodCpu


def table(report: CpuReport, style: Style) -> list[str]:
    """Return what all pods want together, and a line per pod."""
    rows = [
        (
            pod.pod,
            style.qos_class(pod.qos_class),
            _asked(pod),
            str(pod.weight),
            _cores(pod.wanted_milli),
            _cores(pod.granted_milli),
            f"{pod.denied_percent:.0f} %" if pod.denied_percent >= 0.5 else "–",
            {CpuBound.CONTENTION: "contention", CpuBound.QUOTA: "its own limit", None: ""}[pod.bound],
        )
        for pod in report.pods
    ]
    headers = ("POD", "CLASS", "REQUEST / LIMIT", "WEIGHT", "WANTS", "GETS", "DENIED", "BECAUSE")
    total = (
        f"All pods together want {_cores(report.wanted_milli)} cores; {report.cores:g} are available, "
        f"{_cores(report.granted_milli)} are used. A CPU shortage kills no pod."
    )
    return [*wrapped(total, style, ""), "", *columns(headers, rows, style)]


def csv_rows(report: CpuReport) -> Table:
    """Return headings, and a row per pod: its fields without its containers."""
    pod, _, *figures, _ = PodCpu.__struct_fields__
    return csv_table(report.pods, pod, "class=qos_class", *figures)


def _asked(pod: PodCpu) -> str:
    """Return request and limit of each container; without a limit all cores are the ceiling."""
    return ", ".join(
        "–" if each.request is None and each.limit is None else f"{each.request or '–'} / {each.limit or 'node'}"
        for each in pod.containers
    )


def _cores(amount_milli: int) -> str:
    return f"{amount_milli / 1000:.2f}"
