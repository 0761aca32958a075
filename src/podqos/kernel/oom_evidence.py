"""What the lines of an OOM report prove: whether it is one, whose memory ran out, and which kill is its own."""

from __future__ import annotations

from podqos.kernel.cgroup import ROOT
from podqos.kernel.oom_circumstances import Circumstances
from podqos.kernel.oom_lines import KillLine
from podqos.kernel.oom_reading import HEADER, constraint_of, read_line
from podqos.kernel.oom_report import Constraint, OOMReport, Victim

_ROWS_OF_A_TABLE = 2
"""One might be anything that looks alike."""
_MEMORY_INFO_ALONE = (3, 9)
"""Since then the report of a cgroup does not show the machine's memory."""


def is_oom(report: OOMReport) -> bool:
    """Whether what was read without a first line is of an OOM: only its reports have counters and a task table."""
    return bool(report.victims or report.counters or report.task_cgroup or report.tasks or report.is_hopeless)


def is_rest(report: OOMReport) -> bool:
    """Whether lines with which a log begins are the rest of a report: of its stack, or of its table."""
    return report.trace.is_of_report or report.headless_rows >= _ROWS_OF_A_TABLE


def is_only_context(report: OOMReport) -> bool:
    """Whether a report has nothing but the lines about its cgroup."""
    is_begun = report.trigger or report.trigger_pid is not None or report.gfp_mask is not None
    has_table = report.columns or report.headless_rows
    return not (is_begun or report.victims or report.chosen is not None or has_table or report.is_hopeless)


def is_repeated(report: OOMReport, text: str) -> bool:
    """Whether a line is one that a report has once, and has already."""
    if report.is_mixed:
        return False
    if text.startswith("memory: usage"):
        return "memory" in report.counters
    if text.startswith("Task in /"):
        return report.task_cgroup is not None
    return report.columns is not None and bool(HEADER.match(text))


def is_anothers(report: OOMReport, text: str, at: str) -> bool:
    """Whether a line about a cgroup is of another OOM than the lines about one that a report has so far.

    A report says it once; a log that has every line twice says the same again.
    """
    if not (is_only_context(report) and is_repeated(report, text)):
        return False
    other = OOMReport()
    read_line(other, text, is_other=False)
    if other.counters:
        counter = other.counters["memory"]
        return counter.failures is not None and counter != report.counters["memory"]  # the kernel writes how many
    if other.task_cgroup is None:
        return False  # it was broken
    if report.task_cgroup != other.task_cgroup or (other.oom_cgroup and report.oom_cgroup != other.oom_cgroup):
        return True
    return bool(at and report.at) and at != report.at and not report.trace.has_frames


def mix(report: OOMReport) -> None:
    """Forget what may be another report's."""
    report.is_mixed = report.is_cut = True
    report.counters.clear()
    report.oom_cgroup = report.task_cgroup = None
    report.trigger_pid = report.statistics = report.statistics_of = None
    report.statistics_below.clear()
    report.circumstances = Circumstances()


def fits(report: OOMReport, kill: KillLine) -> bool:
    """Whether a kill can be that of a report."""
    said = constraint_of(kill.message)
    known = report.constraint or (Constraint.MEMCG if report.counters and not report.is_mixed else None)
    if said is not None and known is not None and (said is Constraint.MEMCG) is not (known is Constraint.MEMCG):
        return False
    return kill.is_done or report.chosen in {None, kill.pid}


def complete(report: OOMReport) -> None:
    """Fill in what the lines of the kill would have said, where others say it too."""
    if not report.victims and report.chosen is not None and report.is_constraint_named and report.score is None:
        # Of the summary: no child dies in its place any more.
        report.victims[report.chosen] = Victim(report.chosen, report.chosen_name)
    if report.constraint is None and not report.is_mixed:
        report.constraint = _proven(report)
    if report.constraint is Constraint.MEMCG:
        is_first = bool(report.counters) or not report.statistics_below  # else the first may be one below it
        report.oom_cgroup = report.oom_cgroup or (report.statistics_of if is_first else None)
    elif report.constraint is not None:
        report.oom_cgroup = report.oom_cgroup or ROOT
    if report.columns is not None and _is_filtered(report):
        report.is_cut = True
    report.task_cgroup = report.task_cgroup or report.group  # all of it died, the victim with it
    if report.constraint is Constraint.MEMCG and not _is_below(report.task_cgroup, report.oom_cgroup):
        report.oom_cgroup = None  # a part of its path is lost


def _is_below(path: str | None, other: str | None) -> bool:
    """Whether a cgroup lies in another one, or is it, as the victim's does."""
    return path is None or other in {None, ROOT} or f"{path}/".startswith(f"{other}/")


def _proven(report: OOMReport) -> Constraint | None:
    """Return what ran out by the lines around the kill; None where none proves it."""
    if report.counters or report.statistics is not None or report.trace.is_cgroups:
        return Constraint.MEMCG  # only the report of a cgroup has them
    if report.trace.is_cgroups is False:
        return Constraint.NONE
    if report.trace.is_perhaps_cgroups:
        return Constraint.MEMCG if not report.has_memory_info else None
    return Constraint.NONE if report.has_memory_info and _is_memory_info_alone(report) else None


def _is_memory_info_alone(report: OOMReport) -> bool:
    """Whether the machine's memory is only shown where the machine ran out."""
    if report.release is not None and report.release >= _MEMORY_INFO_ALONE:
        return True
    if report.has_flag_names or (report.release is None and report.columns and "oom_adj" not in report.columns):
        return True
    # Older kernels show it for cgroups as well, after lines about the cgroup.
    return report.gfp_mask is not None and report.trace.has_frames


def _is_filtered(report: OOMReport) -> bool:
    """Whether only lines that were searched for are left: then rows of the table are missing, too."""
    has_context = (
        report.trigger_pid is not None
        or report.counters
        or report.has_memory_info
        or report.ram_pages is not None
        or report.statistics is not None
        or report.task_cgroup is not None
    )
    return bool(report.gfp_mask is not None and not has_context)
