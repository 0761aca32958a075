"""An OOM in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.kernel.oom import OldRule
from podqos.kernel.oom_report import Constraint
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.survival.autopsy.autopsy import AutopsyTask, Call, OOMAutopsy, Reason
from podqos.survival.autopsy.causes import Cause
from podqos.survival.autopsy.inside import OwnScore
from podqos.survival.autopsy.shortage import OF_NO_USE, ShortageKind
from podqos.wording import listed, mebibytes, verb
from podqos.words.autopsy import (
    amount,
    cause_words,
    is_of_container,
    process,
    savings_words,
    short_path,
    shortage_words,
)
from podqos.words.autopsy_death import FIRST, NEXT, AutopsyDeath, Fact, MemoryPart, RankedRow
from podqos.words.autopsy_tree import tree_rows
from podqos.words.moments import moment

_MOST_NAMED = 3
_ID_CHARACTERS = 12
_WHEN = ("at", "host", "kernel")
_ROOT_UID = 0
_RAN_OUT = {
    CgroupLevel.MACHINE: "The machine ran out of memory",
    CgroupLevel.KUBEPODS: "The pods together reached their limit",
    CgroupLevel.CLASS: "A QoS class reached its limit",
    CgroupLevel.POD: "A pod reached its limit",
    CgroupLevel.CONTAINER: "A container reached its limit",
    CgroupLevel.SYSTEM: "A cgroup reached its limit",
    CgroupLevel.CGROUP: "A cgroup reached its limit",
    CgroupLevel.UNKNOWN: "The machine or a cgroup ran out of memory (the log doesn't say which)",
}
_CONSTRAINED = {
    Constraint.CPUSET: "The NUMA nodes of a cpuset ran out of memory",
    Constraint.MEMORY_POLICY: "The NUMA nodes of a memory policy ran out of memory",
}
_WHY = {
    Reason.HIGHEST: "the highest badness",
    Reason.HIGHEST_WITH_SWAP: "it has the highest badness if the machine has {swap} of swap; the report does not say",
    Reason.HIGHEST_BY_PRIVILEGE: "it has the highest badness if it lacks CAP_SYS_ADMIN, which this kernel treats "
    "preferentially",
    Reason.NONE_KILLABLE: "every process has an oom_score_adj of -1000, which is never chosen",
    Reason.ORIGIN: "the kernel kills first what turns off swap or KSM, whatever its badness",
    Reason.ASKED: "vm.oom_kill_allocating_task is set, and it requested the memory",
    Reason.OTHER_IS_HIGHER: "{first} has a higher badness, unless an earlier OOM that is not in the log had killed it "
    "already",
    Reason.DID_NOT_ASK: "vm.oom_kill_allocating_task is set, but another process requested the memory",
    Reason.IS_EXEMPT: "it has an oom_score_adj of -1000, which is never chosen",
    Reason.NO_TABLE: "the report has no task table (rate-limited, vm.oom_dump_tasks=0, or truncated)",
    Reason.TABLE_IS_CUT: "rows of the task table are missing",
    Reason.NOT_IN_TABLE: "the chosen process is not in the task table",
    Reason.TABLE_LACKS_COLUMNS: "this old kernel's table lists neither swap nor page tables, which decide here",
    Reason.TOTAL_UNKNOWN: "the report doesn't show the limit or the machine's size, and the scores differ",
    Reason.NO_VICTIM: "the report ends before the kill",
    Reason.OLD_RULE: "kernels before 2.6.36 chose by another rule, whose figures the report doesn't show",
    Reason.PANIC: "vm.panic_on_oom is set, so the kernel panics instead of killing a process",
}
_NAMED = {
    True: "the kernel {killed} the process its rule names",
    False: "the kernel {killed} another process than its rule names",
    None: "cannot be verified",
}
"""Whether the victim is the one that the rule names."""
_AS_THE_RULE_SAYS = "as the kernel's rule says"
"""Where it chose none."""
_CAUSES = {
    Cause.OWN_LIMIT: "its own limit",
    Cause.OWN_USE: "its own usage",
    Cause.NEIGHBOUR: "a neighbour",
    Cause.SYSTEM_DAEMONS: "system daemons",
    Cause.PAGE_CACHE: "page cache",
    Cause.TMPFS: "tmpfs",
    Cause.KERNEL_MEMORY: "kernel memory",
    Cause.THRESHOLD: "threshold too low",
    Cause.NOT_COUNTED: "page cache counted as free",
    Cause.SWAPOFF: "swapoff",
    Cause.KSM_OFF: "KSM turned off",
    Cause.HUGE_PAGES: "huge pages",
    Cause.UNLISTED: "processes not in the table",
    Cause.UNACCOUNTED: "not in the report",
    Cause.ELSEWHERE: "free memory unusable",
}
_ELSEWHERE = {
    ShortageKind.FRAGMENTATION: "fragmentation",
    ShortageKind.ZONES: "memory zones",
    ShortageKind.NODES: "NUMA nodes",
    ShortageKind.PAGE_FAULT: "page fault",
    ShortageKind.SYSRQ: "by hand",
    ShortageKind.FREED: "freed again",
}
_PARTS = (("anon_bytes", "processes"), ("file_bytes", "page cache"), ("shmem_bytes", "tmpfs and shared memory"),
          ("kernel_bytes", "the kernel's own"))  # fmt: skip

_KERNEL_COLUMNS = ("NAME", "PID", "BADNESS", "USED", "ADJ")
_SWAP_COLUMNS = ("NAME", "PID", "BADNESS", "USED", "SWAP", "ADJ")
_OLD_RULES = {
    OldRule.AT_LEAST_ONE: "at least 1",
    OldRule.ROOT_OF_USE: "root has 3 % of its usage taken off",
    OldRule.ROOT_OF_TOTAL: "root has 3 % of the total taken off",
    OldRule.PER_MILLE: "rounded down to thousandths of the total",
}


def of_kill(kill: OOMAutopsy) -> AutopsyDeath:
    """Return an OOM in words."""
    names = [process(victim.name, victim.pid) for victim in kill.victims]
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    of = f" of {kill.pod}" if kill.pod else ""
    died = (
        f"{listed([*names[:_MOST_NAMED], *more])}{of} {verb(names, 'was', 'were')} killed" if names else _spared(kill)
    )
    first = process(kill.ranking[0].name, kill.ranking[0].pid) if kill.ranking else ""
    swap = mebibytes((kill.swap_pages_needed or 0) * kill.page_bytes)
    shortage = kill.shortage
    return AutopsyDeath(
        by="kernel",
        at=kill.at,
        host=kill.host,
        who=_who(kill),
        what=f"{_what_ran_out(kill)}: {died}.",
        verdict=f"{_named(kill)}: {_WHY[kill.reason].format(first=first, swap=swap)}",
        follows_rule=kill.follows_rule,
        cause=_main_cause(kill),
        causes=tuple(filter(None, (cause_words(cause, kill) for cause in kill.causes))),
        next=_next(kill),
        saved_by=tuple(savings_words(kill)),
        facts=tuple(_facts(kill)),
        rule=_rule(kill),
        columns=_SWAP_COLUMNS if _has_swap(kill) else _KERNEL_COLUMNS,
        ranking=tuple(_rank(task, kill) for task in kill.ranking),
        candidates=kill.tasks,
        memory=tuple(_parts(kill)),
        memory_bytes=0 if shortage is None or shortage.counter == "free" else shortage.limit_bytes,
        tree=tuple(tree_rows(kill)),
        pod=kill.pod,
        qos_class=str(kill.qos_class or ""),
    )


def _named(kill: OOMAutopsy) -> str:
    """Return whether the victim is the one that the kernel's rule names."""
    if kill.chosen_pid is None and not kill.victims and kill.follows_rule:
        return _AS_THE_RULE_SAYS
    return _NAMED[kill.follows_rule].format(killed="killed" if kill.victims else "chose")


def _main_cause(kill: OOMAutopsy) -> str:
    """Return the first cause in two or three words."""
    if not kill.causes:
        return ""
    cause = kill.causes[0].cause
    if cause is Cause.ELSEWHERE and kill.shortage is not None:
        return _ELSEWHERE.get(kill.shortage.kind, _CAUSES[cause])
    return _CAUSES[cause]


def _what_ran_out(kill: OOMAutopsy) -> str:
    """Return what was full, as far as the report proves it."""
    if kill.trigger.call is Call.SYSRQ:
        return "Someone triggered the OOM killer by hand (SysRq f)"
    shortage = kill.shortage
    if kill.trigger.call is Call.PAGE_FAULT and (shortage is None or shortage.kind is ShortageKind.PAGE_FAULT):
        return "A page fault got no memory"
    if shortage is not None and shortage.kind is ShortageKind.FRAGMENTATION and shortage.block_bytes is not None:
        return f"The machine had no free block of {amount(shortage.block_bytes)}"
    if shortage is not None and shortage.kind is ShortageKind.ZONES:
        names = list(dict.fromkeys(zone.zone for zone in shortage.zones if zone.is_allowed))
        return f"The machine's {listed(names)} {verb(names, 'zone', 'zones')} ran out of memory"
    scope = CgroupLevel.CONTAINER if is_of_container(kill) else kill.scope
    return _CONSTRAINED.get(kill.constraint) or _RAN_OUT[scope]


def _has_swap(kill: OOMAutopsy) -> bool:
    return any(task.swap_bytes for task in kill.ranking)


def _spared(kill: OOMAutopsy) -> str:
    """Return what happened where no process is said to be killed."""
    if kill.chosen_pid is not None:
        return f"{process(kill.chosen_name, kill.chosen_pid)} was chosen; the log ends before the kill"
    if kill.reason is Reason.PANIC:
        return "the kernel panicked"
    return (
        "the kill itself is not in the log"
        if kill.reason is Reason.NO_VICTIM
        else "the kernel found no killable process"
    )


def _who(kill: OOMAutopsy) -> str:
    if kill.pod:
        return f"{kill.pod} ({kill.container})" if kill.container else kill.pod
    if kill.pod_uid:
        return f"pod {kill.pod_uid}"
    return process(kill.victims[0].name, None) if kill.victims else "–"


def _instead(kill: OOMAutopsy) -> str:
    """Return who died in place of the chosen one, which may be a thread: the table has processes alone."""
    if any(task.pid == kill.chosen_pid for task in kill.ranking):
        return "the kernel killed one of its children instead"
    return "it is a thread of the killed process, or its parent"


def _facts(kill: OOMAutopsy) -> Iterator[Fact]:
    if kill.chosen_pid is not None and kill.victims and kill.chosen_pid not in {victim.pid for victim in kill.victims}:
        yield Fact(
            "chosen",
            f"{process(kill.chosen_name, kill.chosen_pid)}; {_instead(kill)}",
        )
    if kill.group:
        yield Fact("group", f"memory.oom.group: everything in {short_path(kill.group)} died together")
    if pod := kill.pod or kill.pod_uid:
        container = kill.container or kill.container_id[:_ID_CHARACTERS]
        known = [f"container {container}"] * bool(container) + [str(kill.qos_class)] * (kill.qos_class is not None)
        yield Fact("pod", f"{pod} ({', '.join(known)})" if known else pod)
    sizes = [(victim, victim.rss_bytes) for victim in kill.victims if victim.rss_bytes is not None]
    if sizes and not kill.ranking:  # of a report without a table all that is known of them
        used = [f"{process(victim.name, victim.pid)} {amount(size)}" for victim, size in sizes[:_MOST_NAMED]]
        yield Fact("used", f"{listed(used)} in memory")
    if full := shortage_words(kill):
        is_machine = kill.shortage is not None and kill.shortage.counter == "free"
        yield Fact("memory" if is_machine else "full", full)
    yield from _inside_facts(kill)
    if swap := _swap(kill):
        yield Fact("swap", swap)
    if kill.trigger.name:
        asked = process(kill.trigger.name, kill.trigger.pid)
        order = kill.trigger.order or 0
        pages = f", {2**order} pages at once" if 0 < order < 64 else ""
        yield Fact("trigger", f"{asked}{pages}")
    when = [
        (label, value) for label, value in zip(_WHEN, (moment(kill.at), kill.host, kill.kernel), strict=True) if value
    ]
    if when:
        # The first is its own label.
        label, value = when[0]
        yield Fact(label, ", ".join([value, *(" ".join(each) for each in when[1:])]))


def _inside_facts(kill: OOMAutopsy) -> Iterator[Fact]:
    """Yield what processes below the limit did themselves, and which of them live on."""
    inside = kill.inside
    if inside is None:
        return
    if inside.survivors:
        live_on = "1 other process lives" if inside.survivors == 1 else f"{inside.survivors:,} other processes live"
        yield Fact("group", f"memory.oom.group is not set: {live_on} on")
    if inside.own_scores:
        more = [f"{inside.own_scores_left_out:,} more"] if inside.own_scores_left_out else []
        yield Fact("own score", f"{listed([*map(_own_score, inside.own_scores), *more])}: set by the process itself")


def _own_score(score: OwnScore) -> str:
    given = score.container_oom_score_adj
    instead = "" if given is None else f", not {given} like its container"
    return f"{process(score.name, score.pid)} has oom_score_adj {score.oom_score_adj}{instead}"


def _swap(kill: OOMAutopsy) -> str:
    """Return how much swap there was, where that says why nothing more could be moved there."""
    shortage = kill.shortage
    if shortage is None or shortage.swap_limit_bytes is None or shortage.kind in OF_NO_USE:
        return ""
    if not shortage.swap_limit_bytes:
        return "none"
    limit = amount(shortage.swap_limit_bytes)
    return limit if shortage.swap_usage_bytes is None else f"{amount(shortage.swap_usage_bytes)} of {limit} used"


def _next(kill: OOMAutopsy) -> str:
    if kill.runner_up is None or kill.margin_pages is None or kill.reason is Reason.ORIGIN:
        return ""
    pages = abs(kill.margin_pages)
    side = "behind" if kill.margin_pages > 0 else "ahead"
    margin = f"{pages:,} pages ({mebibytes(pages * kill.page_bytes)}) {side}" if pages else "with the same badness"
    died = "; it died as well" if kill.runner_up.pid in {victim.pid for victim in kill.victims} else ""
    return f"{process(kill.runner_up.name, kill.runner_up.pid)}, {margin}{died}"


def _rule(kill: OOMAutopsy) -> str:
    if not kill.ranking or kill.total_pages is None:
        return ""
    total = f"{kill.total_pages:,} pages of {kill.page_bytes // 1024} KiB"
    old = [_OLD_RULES[rule] for rule in kill.old_rules if _matters(rule, kill.ranking)]
    differs = f"; kernel {kill.kernel}: {', '.join(old)}" if old else ""
    return f"badness = pages used + oom_score_adj × total / 1000; total = {total}{differs}"


def _matters(rule: OldRule, ranking: Iterable[AutopsyTask]) -> bool:
    """Whether what an old kernel does differently shows in the ranking."""
    if rule is OldRule.AT_LEAST_ONE:
        return any(task.badness == 1 for task in ranking)
    return rule is OldRule.PER_MILLE or any(task.uid == _ROOT_UID for task in ranking)


def _rank(each: AutopsyTask, kill: OOMAutopsy) -> RankedRow:
    is_dead = each.pid in {victim.pid for victim in kill.victims}
    badness = "–" if each.badness is None else f"{each.badness:,}"
    used = each.used_pages * kill.page_bytes
    swap = [amount(each.swap_bytes or 0)] if _has_swap(kill) else []
    return RankedRow(
        name=each.name,
        cells=(str(each.pid), badness, mebibytes(used), *swap, str(each.oom_score_adj)),
        mark="killed" if is_dead else "chosen" if each.pid == kill.chosen_pid else "",
        used=None if each.badness is None else used,
        added=(each.adjustment_pages or 0) * kill.page_bytes,
        standing="" if is_dead else _standing(each, kill),
        behind="" if is_dead else _behind(each, kill),
    )


def _standing(each: AutopsyTask, kill: OOMAutopsy) -> str:
    """Return whether a process would have been the next victim, or should have been the first."""
    is_runner_up = kill.runner_up is not None and each.pid == kill.runner_up.pid
    if not is_runner_up or kill.margin_pages is None or kill.reason is Reason.ORIGIN:
        return ""
    if kill.margin_pages >= 0:
        return NEXT
    return FIRST if kill.follows_rule is False else ""


def _behind(each: AutopsyTask, kill: OOMAutopsy) -> str:
    """Return by how much memory a process is behind the chosen one."""
    chosen = next((task for task in kill.ranking if task.pid == kill.chosen_pid), None)
    if chosen is None or chosen is each or chosen.badness is None or each.badness is None:
        return ""
    pages = chosen.badness - each.badness
    if pages == 0:
        return "same score"
    return f"{amount(abs(pages) * kill.page_bytes)}{' ahead' if pages < 0 else ''}"


def _parts(kill: OOMAutopsy) -> Iterable[MemoryPart]:
    parts = None if kill.shortage is None else kill.shortage.parts
    for field, name in _PARTS:
        if (size := getattr(parts, field, None)) is not None:
            yield MemoryPart(name, size)
