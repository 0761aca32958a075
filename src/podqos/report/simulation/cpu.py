"""What workloads got of the CPU they wanted, as a table: for the terminal, and the columns of ``-o csv``."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.model.time_units import SECOND_US
from podqos.report.text.style import Style, columns
from podqos.sim.cpu_outcome import CpuOutcome
from podqos.sim.summary import RunSummary, WorkloadSummary
from podqos.words.outcome import share_words

CSV_HEADINGS = (
    "slowed",
    "cpu_wanted_seconds",
    "cpu_granted_seconds",
    "cpu_denied_seconds",
    "least_share",
    "mean_share",
    "slowdown",
    "throttled_periods",
    "work_done",
    "work_unfinished",
    "work_taken_seconds",
    "work_alone_seconds",
)
"""One for every field of ``CpuOutcome``."""


def csv_cells(cpu: CpuOutcome | None) -> Sequence[object]:
    """Return the cells of a workload; those of one that got all it wanted are empty."""
    if cpu is None:
        return 0, *(None for _ in CSV_HEADINGS[1:])
    values = ((name, getattr(cpu, name)) for name in cpu.__struct_fields__)
    return tuple(value / SECOND_US if name.endswith("_us") else value for name, value in values)


def cpu_table(summary: RunSummary, style: Style) -> list[str]:
    """Return a row for each workload that was short of CPU or had work to do."""
    rows = [(row, row.cpu) for row in summary.workloads if row.cpu is not None]
    if not rows:
        return []
    has_periods, has_work = (
        any(cpu.throttled_periods for _, cpu in rows),
        any(cpu.work_done + cpu.work_unfinished for _, cpu in rows),
    )
    headers = ["WORKLOAD", "SHORT OF CPU", "CPU WANTED", "GRANTED", "DENIED", "LEAST SHARE", "MEAN SHARE"]
    headers += [
        *(["THROTTLED PERIODS"] if has_periods else []),
        "SLOWDOWN",
        *(["WORK DONE", "TOOK", "ALONE"] if has_work else []),
    ]
    return columns(headers, [_row(row, cpu, has_periods, has_work) for row, cpu in rows], style)


def _row(row: WorkloadSummary, cpu: CpuOutcome, has_periods: bool, has_work: bool) -> list[str]:
    return [
        row.workload,
        f"{cpu.slowed}/{row.pods}",
        *map(cpu_seconds, (cpu.wanted_us, cpu.granted_us)),
        cpu_seconds(cpu.denied_us) if cpu.denied_us else "–",
        *map(share_words, (cpu.least_share, cpu.mean_share)),
        *([f"{cpu.throttled_periods:,}" if cpu.throttled_periods else "–"] if has_periods else []),
        "no progress" if cpu.slowdown is None else f"{cpu.slowdown:,.3g}×",
        *(_work(cpu) if has_work else []),
    ]


def _work(cpu: CpuOutcome) -> list[str]:
    """Return how often work was done, how long that took on average, and how long it takes alone."""
    works = cpu.work_done + cpu.work_unfinished
    spans = (
        f"{time_us / cpu.work_done / SECOND_US:,.1f} s" if time_us else "–"
        for time_us in (cpu.work_taken_us, cpu.work_alone_us)
    )
    return [f"{cpu.work_done}/{works}" if works else "–", *spans]


def cpu_seconds(time_us: int) -> str:
    """Return an amount of CPU time: ``60 cpu-s``, ``1.5 cpu-s``."""
    seconds = time_us / SECOND_US
    return f"{seconds:,.0f} cpu-s" if seconds >= 100 or seconds == round(seconds) else f"{seconds:.3g} cpu-s"
