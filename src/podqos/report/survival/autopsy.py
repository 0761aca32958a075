"""``podqos autopsy`` as text and CSV: the verdict of every OOM first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.kernel.oom_report import Constraint
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.report.survival.evictions import eviction_lines, sign_lines, termination_lines
from podqos.report.text.encoding import Table
from podqos.report.text.style import Style, columns, labelled, wrapped
from podqos.survival.autopsy import Autopsies, AutopsyTask, OOMAutopsy, Reason
from podqos.wording import counted, mebibytes, verb

_MOST_NAMED = 5
_RAN_OUT = {
    CgroupLevel.MACHINE: "The machine ran out of memory",
    CgroupLevel.KUBEPODS: "All pods together reached their limit",
    CgroupLevel.CLASS: "The cgroup of a QoS class reached its limit",
    CgroupLevel.POD: "A pod reached its limit",
    CgroupLevel.CONTAINER: "A container reached its limit",
    CgroupLevel.SYSTEM: "A cgroup reached its limit",
}
_CONSTRAINED = {
    Constraint.CPUSET: "The memory nodes of a cpuset ran out",
    Constraint.MEMORY_POLICY: "The memory nodes of a policy ran out",
}
_WHY = {
    Reason.HIGHEST: "it has the highest badness",
    Reason.HIGHEST_WITH_SWAP: "it has the highest badness if the machine has {swap} of swap; the report does not say",
    Reason.HIGHEST_BY_PRIVILEGE: "it has the highest badness if it lacks CAP_SYS_ADMIN, which this kernel favours",
    Reason.ASKED: "vm.oom_kill_allocating_task is set, and it asked for the memory",
    Reason.OTHER_IS_HIGHER: "{first} has a higher badness; maybe an earlier OOM, not in the log, had killed it already",
    Reason.DID_NOT_ASK: "vm.oom_kill_allocating_task is set, and another process asked",
    Reason.IS_EXEMPT: "it has an oom_score_adj of -1000, which is never chosen",
    Reason.NO_TABLE: "the report has no task table: rate limited, vm.oom_dump_tasks=0, or cut",
    Reason.TABLE_IS_CUT: "rows of the task table are missing",
    Reason.NOT_IN_TABLE: "the chosen process is not in the task table",
    Reason.TABLE_LACKS_COLUMNS: "the table of this old kernel has neither swap nor page tables, which decide here",
    Reason.TOTAL_UNKNOWN: "the report lacks the limit or the machine's size, and scores differ",
    Reason.NO_VICTIM: "the report ends before the kill",
}
_COUNTED = {True: "as the rule says", False: "against the rule", None: "cannot be verified"}
_FOLLOWS = {True: "follows from the rule", False: "does not follow from the rule", None: "cannot be verified"}


def text(found: Autopsies, style: Style) -> list[str]:
    """Return a paragraph per OOM and per eviction."""
    if not (found.kills or found.evictions or found.terminations or found.node_events):
        return ["No OOM kill and no eviction found."]
    lines: list[str] = []
    if len(found.kills) > 1:
        verdicts = [kill.follows_rule for kill in found.kills]
        parts = [f"{verdicts.count(each)} {words}" for each, words in _COUNTED.items() if each in verdicts]
        lines += [style.strong(f"{counted(len(found.kills), 'OOM')}: {', '.join(parts)}"), ""]
    for kill in found.kills:
        lines += [*_kill_lines(kill, style), ""]
    for eviction in found.evictions:
        lines += [*eviction_lines(eviction, style), ""]
    for others in (termination_lines(found, style), sign_lines(found.node_events, style)):
        lines += others
        lines += [""] * bool(lines and lines[-1])
    return lines[:-1]


def csv_rows(found: Autopsies) -> Table:
    """Return headings, and a row per process that was killed."""
    headings = (
        "at", "host", "scope", "cgroup", "pod", "container", "class", "pid", "name", "oomScoreAdj", "badness",
        "followsRule", "reason", "runnerUp", "marginPages",
    )  # fmt: skip
    return headings, _csv(found)


def _csv(found: Autopsies) -> Iterator[tuple[object, ...]]:
    runner_up: int | str | None
    for kill in found.kills:
        runner_up = None if kill.runner_up is None else kill.runner_up.pid
        for victim in kill.victims:
            yield (
                kill.at, kill.host, kill.scope, kill.cgroup, kill.pod or kill.pod_uid,
                kill.container or kill.container_id, kill.qos_class, victim.pid, victim.name,
                victim.oom_score_adj, victim.badness, kill.follows_rule, kill.reason, runner_up, kill.margin_pages,
            )  # fmt: skip
    for eviction in found.evictions:
        runner_up = None if eviction.runner_up is None else eviction.runner_up.pod
        yield (
            eviction.at, eviction.node, "eviction", "", eviction.pod, "", eviction.qos_class, None, eviction.cause,
            None, None, eviction.follows_rule, eviction.reason, runner_up, None,
        )  # fmt: skip


def _kill_lines(kill: OOMAutopsy, style: Style) -> Iterator[str]:
    names = [each.name if each.pid is None else f"{each.name} (pid {each.pid})" for each in kill.victims]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    what = _CONSTRAINED.get(kill.constraint) or _RAN_OUT[kill.scope]
    died = f"{', '.join(names[:_MOST_NAMED])}{more} {verb(names, 'was', 'were')} killed" if names else "no kill"
    yield from wrapped(style.strong(f"{what}: {died}."), style, "")
    for label, words in _facts(kill):
        yield from labelled(label, [words], style, 2, 10)
    if kill.ranking:
        rows = [_row(each, kill) for each in kill.ranking]
        yield from columns(("PID", "NAME", "BADNESS", "USED", "ADJ", ""), rows, style, "  ")
        if kill.tasks > len(kill.ranking):
            yield f"  … of {counted(kill.tasks, 'task')}"


def _facts(kill: OOMAutopsy) -> Iterator[tuple[str, str]]:
    first = f"{kill.ranking[0].name} (pid {kill.ranking[0].pid})" if kill.ranking else ""
    swap = mebibytes((kill.swap_pages_needed or 0) * kill.page_bytes)
    yield "verdict", f"{_FOLLOWS[kill.follows_rule]}: {_WHY[kill.reason].format(first=first, swap=swap)}"
    if kill.chosen_pid is not None and kill.victims and kill.chosen_pid not in {each.pid for each in kill.victims}:
        yield "", f"the kernel chose pid {kill.chosen_pid} and sacrificed a child of it"
    if kill.group:
        yield "", f"memory.oom.group: all of {kill.group} died together"
    if pod := kill.pod or kill.pod_uid:
        container = kill.container or kill.container_id[:12]
        known = [f"container {container}"] * bool(container) + [str(kill.qos_class)] * (kill.qos_class is not None)
        yield "pod", f"{pod} ({', '.join(known)})" if known else pod
    if where := _full(kill):
        yield "full", where
    asked = kill.trigger.name
    if asked:
        pid = "" if kill.trigger.pid is None else f" (pid {kill.trigger.pid})"
        pages = f", {2**kill.trigger.order} pages at once" if kill.trigger.order and kill.trigger.order > 0 else ""
        yield "asked", f"{asked}{pid}{pages}"
    if kill.runner_up is not None and kill.margin_pages is not None:
        margin = f"{abs(kill.margin_pages):,} pages ({mebibytes(abs(kill.margin_pages) * kill.page_bytes)})"
        side = "behind" if kill.margin_pages >= 0 else "ahead"
        yield "next", f"{kill.runner_up.name} (pid {kill.runner_up.pid}), {margin} {side}"
    if kill.ranking and kill.total_pages is not None:
        total = f"{kill.total_pages:,} pages of {kill.page_bytes // 1024} KiB"
        yield "rule", f"badness = pages used + oom_score_adj × total / 1000; total = {total}"
    when = [kill.at, kill.host and f"host {kill.host}", kill.kernel and f"kernel {kill.kernel}"]
    if any(when):
        yield "at", ", ".join(filter(None, when))


def _full(kill: OOMAutopsy) -> str:
    """Return what ran out, and how far."""
    where = "" if kill.scope is CgroupLevel.MACHINE else kill.cgroup
    if kill.shortage is None:
        return where
    used, limit = mebibytes(kill.shortage.usage_bytes), mebibytes(kill.shortage.limit_bytes)
    if kill.shortage.counter == "free":
        return f"{used} free, of which the kernel keeps {limit}"
    return f"{where}: {kill.shortage.counter} {used} of {limit}".removeprefix(": ")


def _row(each: AutopsyTask, kill: OOMAutopsy) -> tuple[str, ...]:
    badness = "–" if each.badness is None else f"{each.badness:,}"
    marks = "killed" if each.pid in {victim.pid for victim in kill.victims} else ""
    marks = marks or ("chosen" if each.pid == kill.chosen_pid else "")
    used = mebibytes(each.used_pages * kill.page_bytes)
    return str(each.pid), each.name, badness, used, str(each.oom_score_adj), marks
