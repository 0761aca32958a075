"""A death in words: what happened, why to this one, what was behind it, what would have saved it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from podqos.amounts import amount, counted, listed, mebibytes, verb
from podqos.eviction.messages import QuotedUsage
from podqos.eviction.pods import LocalStorageLimit
from podqos.kernel.oom import OldRule
from podqos.logs.report import Constraint
from podqos.logs.said import (
    SIGKILL,
    EvictionCause,
    FailureKind,
    KillBasis,
    Killer,
    NodeSign,
    ProgramFailure,
    SignKind,
    TraceSource,
    UserspaceKill,
    WhatWasRead,
)
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.naming import stated_with
from podqos.orders.counterfactual import HEADROOM_PERCENT
from podqos.qos.cgroup_paths import CgroupLevel, is_runtime_container
from podqos.questions.autopsy_death import (
    OOM,
    Call,
    Cause,
    ContainerEnd,
    Death,
    DeathCause,
    DeathSaving,
    EndCause,
    Eviction,
    Fact,
    Inside,
    Manner,
    Process,
    RankedRow,
    Reason,
    SavedBy,
    Shortage,
    ShortageKind,
    UsageSource,
)
from podqos.questions.autopsy_ended import SIGNAL_BASE
from podqos.questions.autopsy_eviction import GUARD
from podqos.questions.autopsy_memory import OF_NO_USE

_NAME_CHARACTERS, _PATH_CHARACTERS, _ID_CHARACTERS = 24, 60, 12
_KIB, _MIB = 1 << 10, 1 << 20
_MOST_NAMED = 3
_SINCE_1970 = re.compile(r"(\d{10})(\.\d{1,9})?")
NOT_RANKED = "not decided by ranking"
"""The verdict on what no ranking decides, such as a drain."""
_UNVERIFIED = "cannot be verified"
_PODS = f"give {stated_with('files')}, {stated_with('snapshot')} or {stated_with('context')}"
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
    Reason.TOTAL_UNKNOWN: "the report doesn't show the limit or the machine's size, and the scores differ",
    Reason.NO_VICTIM: "the report ends before the kill",
    Reason.PANIC: "vm.panic_on_oom is set, so the kernel panics instead of killing a process",
    Reason.NO_REPORT: "the kernel's report is not in the input",
    Reason.FIRST: "it ranks first, no matter what the others used",
    Reason.FIRST_IN_LOG: "it ranks first in the node's own log",
    Reason.FIRST_AS_MEASURED: "it ranks first with the last measured usage of the others",
    Reason.OWN_LIMIT: "it exceeded its own limit; other pods don't matter",
    Reason.OTHER_IS_FIRST: "{rivals} ranks before it, no matter what it used, unless it was not on the node then",
    Reason.IS_CRITICAL: "it is critical, and the kubelet never evicts critical pods",
    Reason.USAGE_DECIDES: "it depends on the usage of {rivals} at that moment, which is unknown",
    Reason.PODS_UNKNOWN: f"the other pods on the node are unknown ({_PODS})",
    Reason.POD_UNKNOWN: f"its requests and priority are unknown ({_PODS})",
    Reason.NO_MESSAGE: "the eviction message is missing",
    Reason.SIGNAL_UNKNOWN: "the message doesn't say what ran short",
}


def worded(death: Death) -> Death:
    """Return a death in words."""
    if death.manner is Manner.EVICTION:
        death = _eviction(death)
    elif death.manner is Manner.PROGRAM:
        death = _program_kill(death)
    elif death.oom is not None:
        death = _kill(death, death.oom)
    elif death.status is not None:
        death = _ended(death, death.status)
    end = death.status
    if end is not None and death.manner is not Manner.CONTAINER:
        at = "" if end.at == death.when else end.at
        words = ", ".join(filter(None, (_status(end), at and f"ended {moment(at)}")))
        death = replace(death, evidence=(*death.evidence, *[Fact("status", words)] * bool(words)))
    return replace(death, evidence=(*death.evidence, *_when(death)))


def moment(at: str) -> str:
    """Return when something happened: a date where a log counts seconds since 1970."""
    found = _SINCE_1970.fullmatch(at)
    if found is None:
        return at
    return f"{datetime.fromtimestamp(int(found[1]), UTC):%Y-%m-%dT%H:%M:%S}{found[2] or ''}Z"


def process(name: str, pid: int | None) -> str:
    """Return a process; its name as far as a line has room: the kernel's own have at most 15 characters."""
    if not name and pid is not None:
        return f"pid {pid}"
    known = name if len(name) <= _NAME_CHARACTERS else f"{name[: _NAME_CHARACTERS - 1]}…"
    return known if pid is None else f"{known} (pid {pid})"


def _bytes(count: int) -> str:
    """Return bytes for people, also a few of them."""
    return f"{-(-count // _KIB)}Ki" if 0 < count < _MIB else mebibytes(count)


def _short_path(path: str) -> str:
    """Return a cgroup's path as far as a line has room: its end tells cgroups apart, of ids their beginning."""
    if len(path) <= _PATH_CHARACTERS:
        return path
    last = path.rpartition("/")[2]
    room = _PATH_CHARACTERS - 2
    return f"…/{last}" if len(last) <= room else f"…/{last[: room // 2]}…{last[-(room // 4) :]}"


def _bracketed(details: Sequence[str]) -> str:
    words = ", ".join(filter(None, details))
    return f" ({words})" if words else ""


def _who(death: Death, otherwise: str) -> str:
    if death.pod:
        return f"{death.pod} ({death.container})" if death.container else death.pod
    return f"pod {death.pod_uid}" if death.pod_uid else otherwise


def _pod_fact(death: Death) -> Iterator[Fact]:
    if pod := death.pod or death.pod_uid:
        container = death.container or death.container_id[:_ID_CHARACTERS]
        yield Fact("pod", f"{pod}{_bracketed([container and f'container {container}', str(death.qos_class or '')])}")


def _when(death: Death) -> Iterator[Fact]:
    """Yield when and where; the first of them is the label."""
    sources = () if death.eviction is None else death.eviction.found_in
    kernel = "" if death.oom is None else death.oom.kernel
    host = "host" if death.oom is not None or death.program is not None else "node"
    known = [("at", moment(death.when)), (host, death.where), ("kernel", kernel)]
    known = [(label, words) for label, words in known if words]
    said = [" ".join(each) for each in known[1:]] + [f"from {listed([_SOURCES[each] for each in sources])}"] * bool(
        sources
    )
    if known:
        yield Fact(known[0][0], ", ".join([known[0][1], *said]))
    elif sources:
        yield Fact("source", said[0].removeprefix("from "))


# ---- kills by the kernel ---------------------------------------------------------------------------------------------

_WHOSE = {CgroupLevel.CONTAINER: "the container", CgroupLevel.POD: "the pod"}
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
_NAMED = {
    True: "the kernel {killed} the process its rule names",
    False: "the kernel {killed} another process than its rule names",
    None: _UNVERIFIED,
}
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
_OLD_RULES = {
    OldRule.AT_LEAST_ONE: "at least 1",
    OldRule.ROOT_OF_USE: "root has 3 % of its usage taken off",
    OldRule.ROOT_OF_TOTAL: "root has 3 % of the total taken off",
    OldRule.PER_MILLE: "rounded down to thousandths of the total",
}


def _kill(death: Death, oom: OOM) -> Death:
    names = [process(victim.name, victim.pid) for victim in death.victims]
    more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
    of = f" of {death.pod}" if death.pod else ""
    were = verb(names, "was", "were")
    died = f"{listed([*names[:_MOST_NAMED], *more])}{of} {were} killed" if names else _spared(death, oom)
    first = process(death.ranking[0].name, death.ranking[0].pid) if death.ranking else ""
    named = _NAMED[death.follows_rule].format(killed="killed" if names else "chose")
    if oom.chosen is None and not names and death.follows_rule:
        named = "as the kernel's rule says"
    why = _WHY[death.reason].format(first=first, swap=mebibytes((oom.swap_pages_needed or 0) * oom.page_bytes))
    has_swap = any(row.swap_bytes for row in death.ranking)
    chosen = next((row for row in death.ranking if oom.chosen is not None and row.pid == oom.chosen.pid), None)
    causes = [replace(cause, words=_cause_words(cause, oom)) for cause in death.causes]
    main = ""
    if causes:
        is_elsewhere = causes[0].cause is Cause.ELSEWHERE and oom.shortage is not None
        main = _ELSEWHERE[oom.shortage.kind] if is_elsewhere and oom.shortage else _CAUSES[causes[0].cause]
    return replace(
        death,
        who=_who(death, process(death.victims[0].name, None) if death.victims else "–"),
        what=f"{_what_ran_out(oom)}: {died}.",
        why=f"{named}: {why}",
        cause=main,
        causes=tuple(causes),
        next=_next(death, oom),
        saved_by=tuple(replace(saving, words=_saving_words(saving, death, oom)) for saving in death.saved_by),
        evidence=(*_kill_facts(death, oom), *death.evidence),
        rule=_rule(death, oom),
        columns=("NAME", "PID", "BADNESS", "USED", *["SWAP"] * has_swap, "ADJ"),
        ranking=tuple(_task(row, oom, chosen, has_swap=has_swap) for row in death.ranking),
        tree=tuple(replace(row, name=_tree_name(row.kind, row.name, death)) for row in death.tree),
    )


def is_of_container(oom: OOM) -> bool:
    """Whether a container reached its limit, also one that no kubelet started."""
    is_beside = oom.scope in {CgroupLevel.SYSTEM, CgroupLevel.CGROUP} and is_runtime_container(oom.cgroup)
    return oom.scope is CgroupLevel.CONTAINER or is_beside


def _what_ran_out(oom: OOM) -> str:
    """Return what was full, as far as the report proves it."""
    shortage = oom.shortage
    kind = None if shortage is None else shortage.kind
    if oom.call is Call.SYSRQ:
        return "Someone triggered the OOM killer by hand (SysRq f)"
    if oom.call is Call.PAGE_FAULT and kind in {None, ShortageKind.PAGE_FAULT}:
        return "A page fault got no memory"
    if shortage is not None and kind is ShortageKind.FRAGMENTATION:
        return f"The machine had no free block of {_bytes(shortage.block_bytes or 0)}"
    if shortage is not None and kind is ShortageKind.ZONES:
        return f"The machine's {listed(shortage.zones)} {verb(shortage.zones, 'zone', 'zones')} ran out of memory"
    return _CONSTRAINED.get(oom.constraint) or _RAN_OUT[CgroupLevel.CONTAINER if is_of_container(oom) else oom.scope]


def _spared(death: Death, oom: OOM) -> str:
    """Return what happened where no process is said to be killed."""
    if oom.chosen is not None:
        return f"{process(oom.chosen.name, oom.chosen.pid)} was chosen; the log ends before the kill"
    if death.reason is Reason.PANIC:
        return "the kernel panicked"
    is_cut = death.reason is Reason.NO_VICTIM
    return "the kill itself is not in the log" if is_cut else "the kernel found no killable process"


def _next(death: Death, oom: OOM) -> str:
    runner_up, margin = oom.runner_up, oom.margin_pages
    if runner_up is None or margin is None or death.reason is Reason.ORIGIN:
        return ""
    pages = f"{abs(margin):,} pages ({mebibytes(abs(margin) * oom.page_bytes)}) {'behind' if margin > 0 else 'ahead'}"
    died = "; it died as well" if runner_up.pid in {victim.pid for victim in death.victims} else ""
    return f"{process(runner_up.name, runner_up.pid)}, {pages if margin else 'with the same badness'}{died}"


def _rule(death: Death, oom: OOM) -> str:
    if not death.ranking or oom.total_pages is None:
        return ""
    # What an old kernel does differently matters where it shows.
    step = oom.total_pages // 1000 * oom.page_bytes
    is_least = any(row.badness == 1 for row in death.ranking)
    is_root = any(row.badness != 1 and row.added != (row.oom_score_adj or 0) * step for row in death.ranking)
    shows = {OldRule.AT_LEAST_ONE: is_least, OldRule.ROOT_OF_USE: is_root, OldRule.ROOT_OF_TOTAL: is_root}
    old = [_OLD_RULES[rule] for rule in oom.old_rules if shows.get(rule, True)]
    differs = f"; kernel {oom.kernel}: {', '.join(old)}" if old else ""
    total = f"{oom.total_pages:,} pages of {oom.page_bytes // 1024} KiB"
    return f"badness = pages used + oom_score_adj × total / 1000; total = {total}{differs}"


def _task(row: RankedRow, oom: OOM, chosen: RankedRow | None, *, has_swap: bool) -> RankedRow:
    badness = "–" if row.badness is None else f"{row.badness:,}"
    swap = [_bytes(row.swap_bytes or 0)] * has_swap
    behind = ""
    is_other = chosen is not None and chosen is not row and row.mark != "killed"
    if is_other and chosen is not None and chosen.badness is not None and row.badness is not None:
        pages = chosen.badness - row.badness
        behind = f"{_bytes(abs(pages) * oom.page_bytes)}{' ahead' if pages < 0 else ''}" if pages else "same score"
    cells = (str(row.pid), badness, mebibytes(row.used or 0), *swap, str(row.oom_score_adj))
    return replace(row, cells=cells, behind=behind)


def _tree_name(kind: str, name: str, death: Death) -> str:
    match kind:
        case "machine":
            return f"node {death.where}" if death.where else "the machine"
        case "unknown":
            return "the machine or a cgroup"
        case "pod":
            return f"pod {death.pod if death.pod and name == death.pod_uid else name}"
        case "container":
            is_known = bool(death.container) and name == death.container_id
            return f"container {death.container if is_known else name[:_ID_CHARACTERS]}"
        case "cgroup":
            return f"cgroup {_short_path(name)}" if name else "a cgroup"
        case _:
            return name


def _kill_facts(death: Death, oom: OOM) -> Iterator[Fact]:
    chosen, shortage = oom.chosen, oom.shortage
    if chosen is not None and death.victims and chosen.pid not in {victim.pid for victim in death.victims}:
        # A thread may have been chosen, and the table has processes alone.
        is_listed = any(row.pid == chosen.pid for row in death.ranking)
        thread = "it is a thread of the killed process, or its parent"
        instead = "the kernel killed one of its children instead" if is_listed else thread
        yield Fact("chosen", f"{process(chosen.name, chosen.pid)}; {instead}")
    if oom.group:
        yield Fact("group", f"memory.oom.group: everything in {_short_path(oom.group)} died together")
    yield from _pod_fact(death)
    sizes = [(victim, victim.rss_bytes) for victim in death.victims if victim.rss_bytes is not None]
    if sizes and not death.ranking:  # of a report without a table all that is known of them
        used = [f"{process(victim.name, victim.pid)} {_bytes(size)}" for victim, size in sizes[:_MOST_NAMED]]
        yield Fact("used", f"{listed(used)} in memory")
    where = "" if oom.cgroup == "/" else _short_path(oom.cgroup)
    if shortage is not None:
        is_machine = shortage.counter == "free"
        yield Fact("memory" if is_machine else "full", _shortage_words(oom, shortage, where))
    elif where:
        yield Fact("full", where)
    if oom.inside is not None:
        yield from _inside_facts(oom.inside)
    if shortage is not None and shortage.swap_limit_bytes is not None and shortage.kind not in OF_NO_USE:
        in_use, limit = shortage.swap_usage_bytes, shortage.swap_limit_bytes
        swap = _bytes(limit) if in_use is None else f"{_bytes(in_use)} of {_bytes(limit)} used"
        yield Fact("swap", swap if limit else "none")
    if oom.trigger is not None and oom.trigger.name:
        order = oom.order or 0
        pages = f", {2**order} pages at once" if 0 < order < 64 else ""
        yield Fact("trigger", f"{process(oom.trigger.name, oom.trigger.pid)}{pages}")


def _shortage_words(oom: OOM, found: Shortage, where: str) -> str:
    """Return what ran out, and how far."""
    used, limit, missing = _bytes(found.usage_bytes), _bytes(found.limit_bytes), found.lacking_bytes or 0
    lacking = f", {_bytes(missing)} short" if missing >= _MIB else ""
    if found.counter == "free":
        among = " where the process may allocate" if oom.constraint in _CONSTRAINED else ""
        if missing and found.usage_bytes > found.limit_bytes:
            # Every zone lacks something: what is free is kept, by more than the watermarks.
            return f"{used} free{among}, all of it in the kernel's reserves{lacking}"
        return f"{used} free{among}; the kernel keeps {limit}{lacking}"
    met = f", peak at the limit, reached {counted(found.failures, 'time')} so far" if found.failures else ""
    return f"{where}: {found.counter} {used} of {limit}{lacking}{met}".removeprefix(": ")


def _inside_facts(inside: Inside) -> Iterator[Fact]:
    """Yield what processes below the limit did themselves, and which of them live on."""
    if inside.survivors:
        live_on = "1 other process lives" if inside.survivors == 1 else f"{inside.survivors:,} other processes live"
        yield Fact("group", f"memory.oom.group is not set: {live_on} on")
    if inside.own_scores:
        given = inside.container_oom_score_adj
        instead = "" if given is None else f", not {given} like its container"
        odd = [
            f"{process(each.name, each.pid)} has oom_score_adj {each.oom_score_adj}{instead}"
            for each in inside.own_scores
        ]
        more = [f"{inside.own_scores_left_out:,} more"] if inside.own_scores_left_out else []
        yield Fact("own score", f"{listed([*odd, *more])}: set by the process itself")


# ---- what was behind a kill ------------------------------------------------------------------------------------------

_PARTS = {
    Cause.TMPFS: "tmpfs and shared memory hold {held}",
    Cause.KERNEL_MEMORY: "the kernel's own memory (slab, page tables, stacks) holds {held}",
    Cause.PAGE_CACHE: "page cache that could not be dropped holds {held}",
    Cause.HUGE_PAGES: "huge pages hold {held}",
    Cause.UNLISTED: "processes that are not in the table, such as ones that were ending, hold {held}",
    Cause.UNACCOUNTED: "{held} is not accounted for in the report: drivers or a balloon",
}
_PART_NAMES = (
    ("anon_bytes", "anon"),
    ("file_bytes", "page cache"),
    ("shmem_bytes", "tmpfs and shared memory"),
    ("kernel_bytes", "kernel"),
)
_LEAST_PART, _OTHER_PART = 100, 20  # shares of the limit: less is not worth a word


def _cause_words(cause: DeathCause, oom: OOM) -> str:
    """Return a cause with its figures; empty where it is no more than what ran out."""
    held = "" if cause.held_bytes is None else _bytes(cause.held_bytes)
    against = "" if cause.against_bytes is None else _bytes(cause.against_bytes) if cause.against_bytes else "nothing"
    who = process(cause.name, cause.pid)
    users = f"{who} uses {held}"
    if cause.processes > 1:
        users = f"{cause.processes:,} {process(cause.name, None)} processes use {held} together"
    request = f" and requests {against}" if against else ""
    if not against and cause.request_thousandths is not None:
        request = f" and requests {cause.request_thousandths / 10:g} % of the node"
    match cause.cause:
        case Cause.OWN_LIMIT:
            return _own_limit_words(oom, held, against)
        case Cause.OWN_USE:
            most = f"{request}, further above its request than any other" if request else ", more than any other"
            return f"the victim's own usage: {users}{most}"
        case Cause.NEIGHBOUR:
            return f"a neighbour: {users}{request}"
        case Cause.SYSTEM_DAEMONS:
            known = f"{against} is reserved for them" if against else "their reservation is not known"
            return f"processes outside pods use {held}, and {known}"
        case Cause.NOT_COUNTED:
            seen = f"the kubelet saw {held} free, above its threshold of {against}"
            return f"{seen}: it counts inactive page cache as free"
        case Cause.THRESHOLD:
            growth = cause.growth_bytes_per_second
            faster = "" if growth is None else f" at more than {_bytes(growth)}/s"
            return f"memory ran out{faster}, before the kubelet's next check after its threshold of {against}"
        case Cause.SWAPOFF:
            return f"{who} was turning off swap, and what was swapped out did not fit into memory"
        case Cause.KSM_OFF:
            return f"{who} was turning off KSM, and the pages that had been merged did not fit into memory"
        case Cause.ELSEWHERE:
            return "" if oom.shortage is None else _elsewhere_words(oom.shortage)
        case _:
            of = f" of {against}" if cause.cause is not Cause.UNACCOUNTED else ""
            unused = ""
            if cause.cause is Cause.HUGE_PAGES:
                unused = f", {_bytes(cause.unused_bytes)} of it unused" if cause.unused_bytes else ""
                unused += "; only programs that ask for huge pages can use them"
            elif cause.unused_bytes:
                unused = f", {_bytes(cause.unused_bytes)} of it not yet written to disk"
            volumes = f"; the pod's in-memory volumes: {listed(cause.volumes)}" if cause.volumes else ""
            return f"{_PARTS[cause.cause].format(held=held)}{of}{unused}{volumes}"


def _own_limit_words(oom: OOM, held: str, limit: str) -> str:
    """Return what filled a limit, and which processes are the largest."""
    parts = [] if oom.shortage is None else list(_filling(oom.shortage))
    by = f": {' + '.join(parts)}" if parts else "" if held == limit else f": {held} in use"
    of = f" of {limit}" if limit else ""
    whose = "the container" if is_of_container(oom) else _WHOSE.get(oom.scope, "the cgroup")
    words = f"{whose} reached its own limit{of}{by}"
    inside = oom.inside
    if inside is None or not inside.largest:
        return words if of or by else ""  # the first line says so already
    largest = [
        f"{process(each.name, each.pid)} {_bytes(each.rss_bytes or 0)}"
        + (f" (and {_bytes(each.swap_bytes)} in swap)" if each.swap_bytes else "")
        for each in inside.largest
    ]
    among = f" of {inside.processes:,}" if inside.processes > len(largest) else ""
    return f"{words}; largest {verb(largest, 'process', 'processes')}{among}: {listed(largest)}"


def _filling(shortage: Shortage) -> Iterator[str]:
    """Yield what the memory below a limit was, the largest part first."""
    parts = [(getattr(shortage.parts, name) or 0, words) for name, words in _PART_NAMES]
    if shortage.counter == "memory+swap":
        parts.append((shortage.swap_usage_bytes or 0, "swap"))
    known = sum(size for size, _ in parts)
    for size, words in sorted(parts, key=lambda part: -part[0]):
        if size * _LEAST_PART >= shortage.limit_bytes > 0:
            yield f"{words} {_bytes(size)}"
    if known and (shortage.usage_bytes - known) * _OTHER_PART >= shortage.limit_bytes > 0:
        yield f"other {_bytes(shortage.usage_bytes - known)}"


def _elsewhere_words(shortage: Shortage) -> str:
    """Return why memory that was free was of no use."""
    used, free = _bytes(shortage.usage_bytes), _bytes(shortage.free_elsewhere_bytes)
    match shortage.kind:
        case ShortageKind.FRAGMENTATION:
            block = _bytes(shortage.block_bytes or 0)
            return f"{used} was free, but no contiguous {block} that the request could use"
        case ShortageKind.PAGE_FAULT:
            return "a page fault failed; the report does not say what was short"
        case ShortageKind.SYSRQ:
            return "no request for memory had failed"
        case ShortageKind.NODES:
            return f"{free} was free on NUMA nodes the process may not use"
        case ShortageKind.FREED if shortage.counter != "free":
            again = f"only {used} of {_bytes(shortage.limit_bytes)} was in use again"
            return f"{again} when the report was written: a process had just ended"
        case ShortageKind.FREED:
            return f"{used} was free again when the report was written: a process had just ended"
        case _:
            return f"{free} was free in zones that cannot serve the request"


# ---- what would have saved the victim of a kill ----------------------------------------------------------------------


def _saving_words(saving: DeathSaving, death: Death, oom: OOM) -> str:
    """Return a change that would have saved the victim, and who would have died in its place."""
    more, total, advised = (
        "" if each is None else _bytes(each) for each in (saving.more, saving.amount, saving.advised)
    )
    known = advised or total
    match saving.change:
        case SavedBy.REQUEST:
            words = f"a request of {known}" if known else "a higher request"
            words += f" (oom_score_adj {saving.oom_score_adj} or less)"
            words += f", which makes it {saving.qos_class}" if saving.qos_class is not None else ""
        case SavedBy.CLASS:
            words = f"class Guaranteed: limits equal to requests, {known} or more, with CPU throttled at its limit"
        case SavedBy.PRIORITY:
            words = "priority class system-node-critical"
        case SavedBy.USAGE:
            words = f"using at least {more} less"
        case SavedBy.THRESHOLD:
            words = f"an eviction threshold of {known} ({more} higher)"
        case SavedBy.HUGE_PAGES:
            words = f"setting aside {advised or 'nothing'} for huge pages: the rest was not in use"
        case _:
            words = _larger_words(saving.change, advised, death, oom) if advised else ""
    return f"{words}; {saving.instead} would have died instead" if saving.instead else words


def _larger_words(change: SavedBy, advised: str, death: Death, oom: OOM) -> str:
    """Return a limit or a node that is large enough, with a margin."""
    is_cache = bool(death.causes) and death.causes[0].cause is Cause.PAGE_CACHE
    swapped = oom.shortage.swap_usage_bytes if oom.shortage is not None else None
    in_swap = " and in swap" if swapped and change is SavedBy.NODE_SIZE else ""
    above = f"({HEADROOM_PERCENT} % above what was in memory{in_swap})"
    unless = "as long as page cache does not fill that, too" if is_cache else "unless something leaks"
    if change is SavedBy.NODE_SIZE:
        if oom.scope is CgroupLevel.KUBEPODS:
            return f"{advised} of memory for pods {above}, by a larger node or smaller reservations, {unless}"
        return f"{advised} of memory in the machine {above}, {unless}"
    whose = f"a {oom.shortage.counter if oom.shortage is not None else 'memory'} limit"
    if oom.scope not in _WHOSE:
        return f"{whose} of {advised} {above}, {unless}"
    if oom.scope is CgroupLevel.POD:
        whose = f"{whose} of the pod (its containers' limits together)"
    return f"{whose} of {advised} {above}, {unless}. No request, QoS class or priority would have helped"


# ---- evictions -------------------------------------------------------------------------------------------------------

_MOST_RIVALS = 5
_LEAST_BYTES = 1 << 20
_IN_BYTES = {MEMORY, EPHEMERAL_STORAGE}
_COLUMNS = ("POD", "CLASS", "PRIORITY", "USED", "REQUEST", "FIGURE")
_HAPPENED = {
    EvictionCause.NODE_PRESSURE: ("The node was low on {resource}: {pod} was evicted.", "node low on {resource}"),
    EvictionCause.LOCAL_STORAGE_LIMIT: (
        "{pod} exceeded its own local storage limit and was evicted.",
        "its own storage limit",
    ),
    EvictionCause.NOT_ADMITTED: ("{pod} was not admitted: the node had {conditions}.", "node under pressure"),
    EvictionCause.NO_ROOM: (
        "{pod} was not admitted: its requests did not fit into what the node had left.",
        "no room on the node",
    ),
    EvictionCause.CRITICAL_POD: ("{pod} was evicted to admit a critical pod.", "a critical pod"),
    EvictionCause.NODE_SHUTDOWN: ("{pod} was terminated: the node was shutting down.", "node shutdown"),
    EvictionCause.NOT_ADMITTED_AT_SHUTDOWN: ("{pod} was not admitted: the node was shutting down.", "node shutdown"),
    EvictionCause.EVICTION_API: (
        "{pod} was evicted on request (Eviction API, e.g. kubectl drain).",
        "eviction on request",
    ),
    EvictionCause.PREEMPTED_BY_SCHEDULER: (
        "{pod} was preempted by the scheduler for a pod of higher priority.",
        "preemption",
    ),
    EvictionCause.TAINT: ("{pod} was deleted: it does not tolerate a taint of its node.", "a taint"),
    EvictionCause.POD_GC: ("{pod} was deleted: its node is gone.", "node gone"),
    EvictionCause.NODE_LOST: ("{pod} was deleted: its node stopped reporting.", "node not reporting"),
    EvictionCause.OTHER: ("{pod} was evicted, but not by the kubelet's rules.", "something else"),
    EvictionCause.UNKNOWN: ("{pod} was evicted; the text does not say why.", "unknown"),
}
_LIMITS = {
    LocalStorageLimit.EMPTY_DIR: "emptyDir volume",
    LocalStorageLimit.POD: "ephemeral storage of the pod",
    LocalStorageLimit.CONTAINER: "ephemeral storage of container",
}
_FROM = {UsageSource.MEASURED: "measured", UsageSource.ASSUMED: "assumed"}
_SOURCES = {
    TraceSource.EVENT: "the Event",
    TraceSource.STATUS: "the pod's status",
    TraceSource.KUBELET_LOG: "the kubelet's log",
    TraceSource.JOURNAL: "a podqos journal",
    TraceSource.MESSAGE: "the message alone",
}
_CHANGED = {
    SavedBy.USAGE: "use {more} less",
    SavedBy.REQUEST: "request {amount}{of} ({more} more)",
    SavedBy.LIMIT: "a limit of {amount}{of}",
    SavedBy.CLASS: "make it Guaranteed: limits equal to requests, {amount} of memory in total; CPU is throttled at "
    "its limit",
    SavedBy.PRIORITY: "priority {number}",
    SavedBy.THRESHOLD: "an eviction threshold of {amount} ({more} lower)",
    SavedBy.NODE_SIZE: "a node with {advised} more memory",
}


def _eviction(death: Death) -> Death:
    found = death.eviction
    assert found is not None
    pod, resource = death.pod or "a pod", found.resource or "something"
    what, cause = _HAPPENED[found.cause]
    what = what.format(pod=pod, resource=resource, conditions=listed(found.conditions) or "pressure")
    if not death.pod and "does not say" not in what:
        what = f"{what.removesuffix('.')}; the text does not say which."
    if found.is_by_guard:
        what = f"{what.removesuffix('.')} by podqos guard."
    rivals = listed([*found.rivals[:_MOST_RIVALS], *[f"{len(found.rivals) - 5} more"] * (len(found.rivals) > 5)])
    by, its = (GUARD, "the kubelet's") if found.is_by_guard else ("the kubelet", "its")
    named = {True: f"{by} evicted the pod {its} rule names", False: f"{by} evicted another pod than {its} rule names"}
    why = NOT_RANKED
    if death.reason is not Reason.NOT_RANKED:
        said = named.get(death.follows_rule, _UNVERIFIED) if death.follows_rule is not None else _UNVERIFIED
        why = f"{said}: {_WHY[death.reason].format(rivals=rivals or 'other pods')}"
    following = ""
    if found.runner_up is not None:
        used = _amount(found.runner_up.used or 0, found)
        following = f"{found.runner_up.name} ({used} used, {_FROM.get(found.runner_up.usage_from, 'reported')})"  # type: ignore[arg-type]
    elif found.rivals and death.reason in {Reason.FIRST, Reason.FIRST_IN_LOG}:
        following = found.rivals[0]
    return replace(
        death,
        who=pod,
        what=what if death.pod else f"{what[:1].upper()}{what[1:]}",
        why=why,
        cause=cause.format(resource=resource),
        next=following,
        saved_by=tuple(replace(saving, words=_eviction_saving(saving, found)) for saving in death.saved_by),
        evidence=(*_eviction_facts(death, found), *death.evidence),
        columns=_COLUMNS,
        ranking=tuple(_pod_row(row, found) for row in death.ranking),
    )


def _amount(number: int, found: Eviction) -> str:
    return amount(number, found.resource) if number else "0"


def _pod_row(row: RankedRow, found: Eviction) -> RankedRow:
    used = f"{'≥ ' if row.is_at_least else ''}{_amount(row.used or 0, found)}"
    figure = "–" if row.usage_from is None else _FROM.get(row.usage_from, "–")
    request = _amount(row.request or 0, found)
    return replace(row, cells=(str(row.qos_class or "–"), f"{row.priority or 0:,}", used, request, figure))


def _eviction_facts(death: Death, found: Eviction) -> Iterator[Fact]:
    if found.available is not None and found.threshold is not None:
        left, threshold = (_amount(number, found) for number in (found.available, found.threshold))
        if found.resource in _IN_BYTES and {left[-2:], threshold[-2:]} == {"Mi", "Gi"}:
            left, threshold = (f"{number / _MIB:.0f}Mi" for number in (found.available, found.threshold))
        others = [signal for signal in found.possible_signals if signal != found.signal]
        other = f" (or {listed(others)}: the message does not say)" if others else ""
        yield Fact("short", f"{found.signal or found.resource} {left}, threshold {threshold}{other}")
    if found.limit_kind is not None:
        limit = "" if found.limit_bytes is None else f": limit {_bytes(found.limit_bytes)}"
        yield Fact("limit", f"{_LIMITS[found.limit_kind]} {found.limit_name}".rstrip() + limit)
    if found.containers:
        yield Fact("used", "; ".join(_quoted(container, found) for container in found.containers))
    if death.qos_class is not None:
        yield Fact("pod", f"{death.qos_class}, priority {death.priority or 0}")
    if found.message and not found.containers and found.threshold is None:
        yield Fact("message", found.message)


def _quoted(each: QuotedUsage, found: Eviction) -> str:
    used, request = ("?" if number is None else _amount(number, found) for number in (each.used, each.request))
    return f"container {each.name}: {used}, request {request}"


def _eviction_saving(saving: DeathSaving, found: Eviction) -> str:
    """Return a change with which the pod would not have been evicted; empty where nobody would set that: a few KiB."""
    is_bytes = found.resource in _IN_BYTES and saving.change in {SavedBy.USAGE, SavedBy.THRESHOLD}
    if (saving.change is SavedBy.NODE_SIZE and saving.advised is None) or (
        is_bytes and saving.more is not None and saving.more < _LEAST_BYTES
    ):
        return ""
    more, changed = ("?" if each is None else _amount(each, found) for each in (saving.more, saving.amount))
    of = f" for {saving.container}" if saving.container else ""
    advised = "" if saving.advised is None else _amount(saving.advised, found)
    words = _CHANGED[saving.change].format(more=more, amount=changed, of=of, number=saving.amount, advised=advised)
    assumed = ", if its usage was as assumed" if saving.is_assumed else ""
    return f"{words} ({saving.instead} is evicted instead{assumed})" if saving.instead else words


# ---- kills by programs -----------------------------------------------------------------------------------------------

PROGRAMS = {
    Killer.SYSTEMD_OOMD: "systemd-oomd",
    Killer.EARLYOOM: "earlyoom",
    Killer.TALOS: "Talos' OOM handler",
}
_SWAP_RULE = ("the cgroup that uses the most swap", "SwapUsedLimit= in oomd.conf")
_RULES = {
    (Killer.SYSTEMD_OOMD, KillBasis.MEMORY_PRESSURE): (
        "of the cgroups below the one under pressure, the one with the most reclaim activity (pgscan)",
        "ManagedOOMMemoryPressureLimit= of the unit, or DefaultMemoryPressureLimit= in oomd.conf",
    ),
    (Killer.SYSTEMD_OOMD, KillBasis.MEMORY_AND_SWAP): _SWAP_RULE,
    (Killer.SYSTEMD_OOMD, KillBasis.SWAP): _SWAP_RULE,
    (Killer.SYSTEMD_OOMD, KillBasis.RULE): ("", "the rule in oomd's configuration"),
    (Killer.EARLYOOM, KillBasis.LOW_MEMORY): (
        "the process with the highest oom_score, unless its options prefer or avoid names",
        "earlyoom's options -m and -s",
    ),
    (Killer.TALOS, KillBasis.MEMORY_PRESSURE): (
        "the highest-ranked cgroup of pods, BestEffort before Burstable (OOMConfig)",
        "triggerExpression of the OOMConfig document",
    ),
}
"""Whom each chooses, and what sets when."""
_BASES = {
    KillBasis.MEMORY_PRESSURE: "memory pressure",
    KillBasis.MEMORY_AND_SWAP: "memory and swap used up",
    KillBasis.SWAP: "swap used up",
    KillBasis.LOW_MEMORY: "low memory",
    KillBasis.RULE: "a rule of its own",
    KillBasis.UNKNOWN: "",
}


def _program_kill(death: Death) -> Death:
    kill = death.program
    assert kill is not None
    name = PROGRAMS[kill.killer]
    rule, setting = _RULES.get((kill.killer, kill.basis), ("", ""))
    because = _because(kill)
    of = f" of {death.pod}" if death.pod else ""
    died = f"{name} {'killed' if kill.signal == SIGKILL else f'sent {kill.signal} to'} {_killed(kill)}{of}"
    facts = [Fact("setting", setting)] * bool(setting) + [*_pod_fact(death)]
    if kill.cgroup and (kill.victim or len(_short_path(kill.cgroup)) < len(kill.cgroup)):
        facts.append(Fact("cgroup", kill.cgroup))
    facts += [Fact("logged", kill.reason)] * bool(kill.reason)
    return replace(
        death,
        who=_who(death, process(kill.victim, None) if kill.victim else _short_path(kill.cgroup) or "–"),
        what=f"Not the kernel: {died}{f', because {because}' if because else ''}.",
        why=f"decided by {name}, not by the kernel's badness{rule and f': {rule}'}",
        cause=_BASES[kill.basis],
        evidence=(*facts, *death.evidence),
    )


def _killed(kill: UserspaceKill) -> str:
    """Return who was killed."""
    if kill.victim:
        is_unit = kill.killer is Killer.SYSTEMD_OOMD
        who = _short_path(kill.victim) if is_unit else process(kill.victim, None)
    elif kill.cgroup:
        who = f"everything in {_short_path(kill.cgroup)}"
    else:
        who = f"a cgroup below {_short_path(kill.pressure_of)}" if kill.pressure_of else "a cgroup"
    details = [] if kill.pid is None else [f"pid {kill.pid}"]
    details += [] if kill.rss_bytes is None else [f"{mebibytes(kill.rss_bytes)} used"]
    if kill.processes is not None:
        details.append(f"{kill.processes:,} {'process' if kill.processes == 1 else 'processes'}")
    return f"{who}{_bracketed(details)}"


def _because(kill: UserspaceKill) -> str:
    """Return what the killer went by, with its figures."""
    percent = kill.pressure_percent
    match kill.basis:
        case KillBasis.MEMORY_PRESSURE:
            of = f" in {_short_path(kill.pressure_of)}" if kill.pressure_of else ""
            lasting = f" for more than {kill.pressure_duration}" if kill.pressure_duration else ""
            limit = "its threshold" if kill.pressure_limit_percent is None else f"{kill.pressure_limit_percent:g} %"
            was = "was above" if percent is None else f"was {percent:g} %, above"
            return f"memory pressure{of} {was} {limit}{lasting}"
        case KillBasis.MEMORY_AND_SWAP | KillBasis.SWAP:
            pairs = (
                (kill.memory_used_bytes, kill.memory_total_bytes, "memory"),
                (kill.swap_used_bytes, kill.swap_total_bytes, "swap"),
            )
            parts = [f"{mebibytes(used)} of {mebibytes(total)} {what}" for used, total, what in pairs if used and total]
            return f"{' and '.join(parts)} were used, more than {kill.swap_limit_percent:g} %"
        case KillBasis.LOW_MEMORY:
            available = "too little" if kill.memory_available_bytes is None else mebibytes(kill.memory_available_bytes)
            total = "" if not kill.memory_total_bytes else f" of {mebibytes(kill.memory_total_bytes)}"
            words = f"{available}{total} memory was available"
            if kill.memory_limit_percent is not None:
                words += f", {kill.memory_limit_percent:g} % or less"
            if kill.swap_free_bytes is not None and kill.swap_total_bytes:
                words += f", and {mebibytes(kill.swap_free_bytes)} of {mebibytes(kill.swap_total_bytes)} swap was free"
            return words
        case KillBasis.RULE:
            pressure = "" if percent is None else f" (memory pressure {percent:g} %)"
            return f"its rule {kill.rule!r} applied{pressure}"
        case _:
            return "" if percent is None else f"memory pressure was {percent:g} %"


# ---- containers, by their statuses -----------------------------------------------------------------------------------

_ENDED = {
    EndCause.KERNEL_OF_CHILD: "another process in it was OOM-killed, {so}",
    EndCause.PROBE: "failed its probe and was stopped by the kubelet{late}",
    EndCause.GRACE_PERIOD: "was stopped with SIGTERM but did not exit within its grace period",
    EndCause.NODE_LOST: "the kubelet lost track of it: the node restarted, or something else removed it",
    EndCause.SIGKILL: "killed with SIGKILL, sender unknown; {shown}",
    EndCause.SIGTERM: "stopped with SIGTERM, as for a rollout, a deletion or a failed probe; not an OOM kill",
    EndCause.CRASH: "crashed with {signal}; not an OOM kill",
    EndCause.EXIT: "exited by itself; not an OOM kill",
    EndCause.UNKNOWN: "keeps ending and is restarted; how it ended is not in the input",
}
_SHORT = {
    EndCause.PROBE: "failed probe",
    EndCause.GRACE_PERIOD: "grace period over",
    EndCause.NODE_LOST: "node restarted",
    EndCause.SIGKILL: "SIGKILL",
}
_SIGNALS = {
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    7: "SIGBUS",
    8: "SIGFPE",
    11: "SIGSEGV",
    31: "SIGSYS",
}
_EXIT_BY_SIGKILL = 137


def _ended(death: Death, end: ContainerEnd) -> Death:
    """Return how a container was killed, of which nothing but its status tells."""
    what = _oom_killed(end) if end.cause is EndCause.KERNEL else f"{end_words(end, with_status=True)}."
    is_oom = death.manner is Manner.OOM_KILL
    container = end.container or end.container_id[:_ID_CHARACTERS]
    return replace(
        death,
        who=_who(death, f"container {container}" if container else "a container"),
        what=what if end.pod and not what.startswith("a container") else f"{what[:1].upper()}{what[1:]}",
        why=f"{_UNVERIFIED}: {_WHY[Reason.NO_REPORT]}" if is_oom else "",
        cause="no report" if is_oom else _SHORT.get(end.cause, ""),
    )


def _container(end: ContainerEnd) -> str:
    """Return a container, with its pod where it has one."""
    name = end.container or end.container_id[:_ID_CHARACTERS]
    if not name:
        return f"a container of {end.pod}" if end.pod else "a container"
    return f"{end.pod}, container {name}" if end.pod else f"container {name}"


def _status(end: ContainerEnd) -> str:
    """Return what a status says about the end of a container."""
    reason = f"{end.reason or 'exit'} {end.exit_code}" if end.exit_code is not None else end.reason
    return ", ".join(filter(None, (reason, counted(end.restarts, "restart") if end.restarts else "")))


def end_words(end: ContainerEnd, *, with_status: bool = False) -> str:
    """Return how a container ended, as a line."""
    so = f"and the container then exited with code {end.exit_code}"
    if end.exit_code is None:
        so = "and the container is still running"
    words = _ENDED[end.cause].format(
        so=so,
        signal=_SIGNALS.get((end.exit_code or 0) - SIGNAL_BASE, "a signal"),
        late=", but did not exit within its grace period" if end.exit_code == _EXIT_BY_SIGKILL else "",
        shown="its status does not say OOMKilled" if end.reason else "nothing here shows whether it was OOM-killed",
    )
    status = _status(end) if with_status else ", ".join(filter(None, (_status(end), end.at)))
    return f"{_container(end)}: {words}{_bracketed([status])}"


def _oom_killed(end: ContainerEnd) -> str:
    """Return what a status alone says about an OOM kill, and where the rest is."""
    times = f" ({counted(end.restarts, 'restart')})" if end.restarts else ""
    own = f"{end.pod} ({end.container})" if end.pod and end.container else end.pod or _container(end)
    machine = "node" if end.pod else "machine"
    log = f"the kernel log of {end.node}" if end.node else f"the {machine}'s kernel log"
    killed = f"{own} was OOM-killed{times}"
    if end.is_limit_unknown or (end.is_from_runtime and end.memory_limit_bytes is None):
        return f"{killed}: {log} says what was full."
    if end.memory_limit_bytes is None:
        return f"{killed}. It has no memory limit: {log} says what was full."
    limit = mebibytes(end.memory_limit_bytes)
    if end.stated_limit_bytes is not None:
        limit += f" (in force by its status; its spec states {mebibytes(end.stated_limit_bytes)})"
    return f"{killed}, at its memory limit of {limit} or because the {machine} was full: {log} says which."


# ---- what nodes went through, and notices of kills -------------------------------------------------------------------

_SIGNS = {
    SignKind.SYSTEM_OOM: "{system}{victim}",
    SignKind.OOM_KILLING: "the kernel OOM-killed {process}{inside}",
    SignKind.UNIT_OOM_KILLED: "the kernel OOM-killed a process of {unit}",
    SignKind.CONTAINER_OOM_KILLED: "the kernel OOM-killed a process in {container}",
    SignKind.OOMD_KILLED_NOTHING: "systemd-oomd considered killing a cgroup; no kill is logged",
    SignKind.EARLYOOM_TRIGGERED: "earlyoom made the kernel's OOM killer act (SysRq f), because of its option -k",
    SignKind.INIT_OOM_KILLED: "the kernel OOM-killed the runtime's own process while it started a container: the "
    "memory limit is too low to start it",
    SignKind.THRESHOLD_MET: "an eviction threshold was crossed{of}",
    SignKind.PRESSURE_BEGAN: "{condition} began",
    SignKind.PRESSURE_ENDED: "{condition} ended",
    SignKind.RECLAIMED: "cleanup freed enough {resource}: no eviction",
    SignKind.NOTHING_TO_EVICT: "the node was low on {resource}, and no pod could be evicted",
    SignKind.CLEAN_UP_TIMED_OUT: "{pod} was evicted but not gone in time",
    SignKind.REBOOTED: "the node restarted",
    SignKind.NOT_READY: "{whose} became NotReady",
}


def sign_words(each: NodeSign, *, with_place: bool = True) -> str:
    """Return what a node went through, when and where."""
    system = "the machine ran out of memory"
    if not each.is_machines:
        system += ", or a cgroup did (kubelets before 1.21 report both as SystemOOM)"
    words = _SIGNS[each.kind].format(
        system=system,
        victim=f": {each.process} (pid {each.pid}) was killed" if each.pid is not None else "",
        process="a process" if each.pid is None else f"{each.process} (pid {each.pid})",
        resource=each.resource or "something",
        of=f": {each.resource}" if each.resource else "",
        condition=each.condition,
        pod=each.pod or "a pod",
        whose=f"the node of {each.pod}" if each.pod else "the node",
        unit=each.unit or "a unit",
        inside=f" in {each.unit}" if each.unit else "",
        container=f"container {each.container_id[:_ID_CHARACTERS]}" if each.container_id else each.pod or "a container",
    )
    if not with_place:
        return words
    where = " ".join(filter(None, (moment(each.at), each.node)))
    times = f" ({each.times} times)" if each.times > 1 else ""
    return f"{where}: {words}{times}" if where else f"{words}{times}"


def noticed(sign: NodeSign) -> Death:
    """Return a kill of the kernel's that something noticed, and of which there is no report."""
    words = sign_words(sign, with_place=False)
    on = f" on {sign.node}" if sign.node and sign.kind is not SignKind.INIT_OOM_KILLED else ""
    times = f" ({sign.times:,} times)" if sign.times > 1 else ""
    container = sign.container_id[:_ID_CHARACTERS]
    who = (
        process(sign.process, None)
        if sign.process
        else sign.pod or (f"container {container}" if container else sign.unit)
    )
    return Death(
        Manner.OOM_KILL,
        "kernel",
        what=f"{words[:1].upper()}{words[1:]}{on}{times}. The kernel's report is not in the log.",
        who=who or "–",
        when=sign.at,
        where=sign.node,
        why=f"{_UNVERIFIED}: {_WHY[Reason.NO_REPORT]}",
        reason=Reason.NO_REPORT,
        cause="no report",
        victims=() if sign.pid is None else (Process(sign.process, sign.pid),),
        pod=sign.pod,
        container_id=sign.container_id,
        times=sign.times,
    )


# ---- programs' own errors, and what was read -------------------------------------------------------------------------

_HEAP = "-Xmx or -XX:MaxRAMPercentage, within the container's limit"
_OUT_OF = {
    FailureKind.JAVA_HEAP: ("the JVM", "its heap is full", _HEAP),
    FailureKind.JAVA_GC_OVERHEAD: (
        "the JVM",
        "its heap is nearly full, and garbage collection takes almost all of its time",
        _HEAP,
    ),
    FailureKind.JAVA_METASPACE: ("the JVM", "its classes do not fit", "-XX:MaxMetaspaceSize; the heap is not involved"),
    FailureKind.JAVA_DIRECT_MEMORY: (
        "the JVM",
        "its direct buffers do not fit",
        "-XX:MaxDirectMemorySize (default: as much as the heap), outside the heap",
    ),
    FailureKind.JAVA_ARRAY_SIZE: ("the JVM", "one array is longer than an array can be", "none; change the program"),
    FailureKind.JAVA_THREADS: (
        "the JVM",
        "it cannot create a thread",
        "podPidsLimit, pids.max and ulimit -u, or native memory; a larger heap makes it worse",
    ),
    FailureKind.JAVA_NATIVE: (
        "the JVM",
        "the system refused it memory",
        "a smaller heap (-Xmx), or a node with more memory",
    ),
    FailureKind.JAVA_OTHER: ("the JVM", "it ran out of its own memory", ""),
    FailureKind.NODE_HEAP: (
        "Node.js",
        "its heap is full",
        "--max-old-space-size (NODE_OPTIONS), within the container's limit",
    ),
    FailureKind.GO: (
        "the Go runtime",
        "the system refused it memory",
        "ulimit -v or vm.overcommit_memory=2 (at its memory limit, a container is OOM-killed instead)",
    ),
    FailureKind.PYTHON: (
        "Python",
        "the system refused it memory",
        "ulimit -v or vm.overcommit_memory (at its memory limit, a container is OOM-killed instead)",
    ),
}


def failure_headline(failures: Sequence[ProgramFailure]) -> str:
    """Return what programs' own errors amount to where nothing else is known."""
    first = failures[0]
    who, what, _ = _OUT_OF[first.kind]
    times = f" ({first.times:,} times)" if first.times > 1 else ""
    more = f" And {counted(len(failures) - 1, 'other failure')}." if len(failures) > 1 else ""
    return f"Not the kernel: {who}, because {what}{times}.{more} No OOM kill in the log."


def failure_words(failure: ProgramFailure) -> str:
    """Return a program's failure."""
    who, what, setting = _OUT_OF[failure.kind]
    details = [
        "" if failure.limit_bytes is None else f"limit {mebibytes(failure.limit_bytes)}",
        "" if failure.wanted_bytes is None else f"{mebibytes(failure.wanted_bytes)} wanted",
        f"{failure.times:,} times" if failure.times > 1 else "",
        "the program exited" if failure.is_fatal else "",
    ]
    where = " ".join(filter(None, (moment(failure.at), failure.host)))
    setting = f". Setting: {setting}" if setting else ""
    return f"{f'{where}: ' if where else ''}{who}: {what}{_bracketed(details)}{setting}. Logged: {failure.message}"


def read_words(read: WhatWasRead) -> str:
    """Return how much was read, as a sentence; empty where nothing was given to read."""
    if not read.is_given:
        return ""
    if read.is_nothing:
        return "Read 0 lines."
    # A report without times and host may have few lines that look like the kernel's.
    is_marked = read.kernel_messages >= 10 * read.oom_reports and (read.kernel_messages or not read.journal_entries)
    entries = "entry" if read.journal_entries == 1 else "entries"
    least = "at least " * bool(read.is_sampled and read.kernel_messages)
    parts = [f"{least}{counted(read.kernel_messages, 'kernel message')}"] * bool(is_marked)
    for number, noun in (
        (read.oom_reports, "OOM report"),
        (read.kubelet_messages, "kubelet message"),
        (read.pods, "pod"),
        (read.workloads, "workload"),
        (read.nodes, "node"),
        (read.events, "event"),
        (read.containers, "container"),
    ):
        parts += [counted(number, noun)] * bool(number)
    parts += [f"{counted(read.program_messages, 'message')} of other programs"] * bool(read.program_messages)
    parts += [f"{read.journal_entries:,} {entries} of a podqos journal"] * bool(read.journal_entries)
    origin = [f"the live cluster {read.cluster}"] * bool(read.cluster) + [counted(read.lines, "line")] * bool(
        read.lines
    )
    words = f"Read {' and '.join(origin)}: {listed(parts)}." if origin else f"Read {listed(parts)}."
    if read.unread_bytes:
        words += f" {mebibytes(read.unread_bytes)} were only searched, because too many lines looked like a report."
    if read.is_report_limit:
        words += " There are more OOM reports: only the first were examined."
    if read.is_broken:
        words += " Lines are broken at changing columns: paste the log unwrapped."
    return words
