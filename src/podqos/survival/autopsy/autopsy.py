"""Why a process was killed: the kernel's decision made again from its own report, and compared with what it did.

The badness of every task comes from the table, the total from the report. The rule is the one of ``kernel.oom``; this
module only says what it is applied to, and what the log leaves open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial

from msgspec import Struct

from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import default_eviction_hard
from podqos.kernel.oom import OldRule, old_rules
from podqos.kernel.oom_report import Constraint, OOMReport
from podqos.kernel.task_table import Task
from podqos.model.assumption import Assumption
from podqos.model.listing import Listing
from podqos.model.pod import QOSClass
from podqos.model.profile import Profile
from podqos.naming import stated_with
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.survival.autopsy.candidates import Candidates
from podqos.survival.autopsy.causes import AutopsyCause, causes_of
from podqos.survival.autopsy.eviction_autopsy import PodEviction
from podqos.survival.autopsy.eviction_traces import NodeSign
from podqos.survival.autopsy.facts import (
    NOTHING_KNOWN,
    KilledNode,
    NodeFacts,
    chosen_name,
    constrained,
    killed_node,
    origin_of,
)
from podqos.survival.autopsy.inside import InsideLimit, inside_of
from podqos.survival.autopsy.memory_tree import MemoryBar, memory_tree
from podqos.survival.autopsy.next_step import NextStep
from podqos.survival.autopsy.program_failures import ProgramFailure
from podqos.survival.autopsy.savings import RepeatedKill, Saving, is_shared, own_of, savings_of
from podqos.survival.autopsy.shortage import Shortage, shortage_of
from podqos.survival.autopsy.terminations import ContainerTermination
from podqos.survival.autopsy.userspace_kill import UserspaceKill
from podqos.survival.autopsy.what_was_read import WhatWasRead

MOST_SHOWN = 10
_USUAL_PAGE_KB = 4
_MOST_REMEMBERED = 4096
_MOST_SWAP_PAGES = 1 << 40


class Reason(StrEnum):
    """Why a kill follows from the rule or not, or why that cannot be told."""

    HIGHEST = "Highest"
    """The process that was chosen has the highest badness."""
    HIGHEST_WITH_SWAP = "HighestWithSwap"
    """It has if the machine has enough swap, which a cgroup's report does not say."""
    HIGHEST_BY_PRIVILEGE = "HighestByPrivilege"
    """It has if it was not privileged, which the table does not say: old kernels favour CAP_SYS_ADMIN."""
    NONE_KILLABLE = "NoneKillable"
    """Every task is exempt, and none was killed."""
    ORIGIN = "Origin"
    """It turns swap or KSM off, which fills memory: the kernel kills such a process before all others."""
    ASKED = "Asked"
    """The process that asked for memory dies: vm.oom_kill_allocating_task is set."""
    OTHER_IS_HIGHER = "OtherIsHigher"
    """Another task has a higher badness."""
    DID_NOT_ASK = "DidNotAsk"
    """vm.oom_kill_allocating_task is set, and another process died than the one that asked."""
    IS_EXEMPT = "IsExempt"
    """It has an oom_score_adj of -1000 and is never chosen."""
    NO_TABLE = "NoTable"
    """The report has no task table (rate limited, vm.oom_dump_tasks=0, or cut)."""
    TABLE_IS_CUT = "TableIsCut"
    """Rows of the table are missing."""
    NOT_IN_TABLE = "NotInTable"
    """The process that was chosen is not in the table: its row is missing, or it is a thread."""
    TABLE_LACKS_COLUMNS = "TableLacksColumns"
    """The table of this old kernel has neither swap nor page tables, and what it has does not decide."""
    TOTAL_UNKNOWN = "TotalUnknown"
    """The limit or the size of the machine is missing, and the scores differ."""
    NO_VICTIM = "NoVictim"
    """The report ends before the kill."""
    OLD_RULE = "OldRule"
    """A kernel before 2.6.36 compares processes by another badness, whose figures its report does not have."""
    PANIC = "Panic"
    """vm.panic_on_oom is set: the kernel panics, and kills nothing."""


class AutopsyTask(Struct, frozen=True, rename="camel", gc=False):
    """A task of the table, with its badness in pages: used + adjustment."""

    pid: int
    name: str
    uid: int
    oom_score_adj: int
    badness: int | None
    """None for one that is exempt, or where the total is not known."""
    used_pages: int
    """In memory, in swap and as page tables."""
    adjustment_pages: int | None
    """By oom_score_adj; of old kernels also what they take off for root, add or round (``OOMAutopsy.oldRules``)."""
    swap_bytes: int | None = None
    """The part of what is used that is in swap; None where the table does not say."""


class AutopsyVictim(Struct, frozen=True, rename="camel", gc=False):
    """A process that was killed."""

    pid: int | None
    """None where a journal names the container alone."""
    name: str
    oom_score_adj: int | None = None
    badness: int | None = None
    rss_bytes: int | None = None
    is_reaped: bool = False
    """Whether the OOM reaper freed its memory."""


class Call(StrEnum):
    """What called the OOM killer."""

    ALLOCATION = "allocation"
    """A request for memory that could not be served."""
    PAGE_FAULT = "pageFault"
    """A page fault that failed (gfp_mask=0): whose memory was short is not said."""
    SYSRQ = "sysrq"
    """Someone, by hand (sysrq f): nothing ran out."""


class Trigger(Struct, frozen=True, rename="camel", gc=False):
    """The process that asked for memory; it need not be the one that dies."""

    pid: int | None
    name: str
    order: int | None = None
    """It asked for 2^order pages at once."""
    call: Call = Call.ALLOCATION


class OOMAutopsy(Struct, frozen=True, rename="camel"):
    """One OOM: what ran out, who died, and whether that follows from the rule."""

    at: str
    """As the log has it: a date, or seconds since the machine started."""
    host: str
    scope: CgroupLevel
    """Which level ran out."""
    constraint: Constraint
    cgroup: str
    """The cgroup that ran out; / is the machine. Empty where nothing says which."""
    trigger: Trigger
    victims: tuple[AutopsyVictim, ...]
    chosen_pid: int | None
    """The process that the kernel chose. A victim with another pid is its child, or died with its group."""
    victim_cgroup: str
    """Empty where the report does not say."""
    victim_level: CgroupLevel | None
    follows_rule: bool | None
    reason: Reason
    total_pages: int | None
    """What a thousandth of is a point of oom_score_adj: the limit and swap, or RAM and swap."""
    page_bytes: int
    swap_pages_needed: int | None = None
    """With HighestWithSwap: how much."""
    shortage: Shortage | None = None
    causes: tuple[AutopsyCause, ...] = ()
    """What was behind it, the main cause first; none where the report lacks the figures."""
    saved_by: tuple[Saving, ...] = ()
    """What would have saved the victim, the smallest change first; each was tried."""
    inside: InsideLimit | None = None
    """The processes of the one pod, container or service whose limit was reached."""
    old_rules: tuple[OldRule, ...] = ()
    """In what this kernel's rule differs from today's."""
    tasks: int = 0
    """How many the table has."""
    ranking: tuple[AutopsyTask, ...] = ()
    """The first of them, highest badness first, without those that earlier OOMs in the log killed."""
    runner_up: AutopsyTask | None = None
    """The one that would have died in place of the chosen one."""
    margin_pages: int | None = None
    """How much the runner-up lacked."""
    group: str = ""
    """The cgroup that died as one (memory.oom.group)."""
    kernel: str = ""
    pod_uid: str = ""
    container_id: str = ""
    qos_class: QOSClass | None = None
    pod: str = ""
    """namespace/name, where manifests or a snapshot know the uid."""
    container: str = ""
    tree: tuple[MemoryBar, ...] = ()
    """Who held the memory: what ran out, the victim's pod and container, processes. Parents first, largest first."""
    chosen_name: str = ""
    """Of the chosen process; empty where the report does not say."""

    @property
    def limit_bytes(self) -> int | None:
        """The container's memory limit, if that was reached."""
        is_own = self.scope is CgroupLevel.CONTAINER and self.shortage is not None and self.shortage.counter == "memory"
        return self.shortage.limit_bytes if is_own and self.shortage is not None else None


AutopsyItem = OOMAutopsy | PodEviction | ContainerTermination | NodeSign | UserspaceKill | ProgramFailure
"""What an autopsy lists, one kind after the other."""


class Autopsies(Listing[AutopsyItem], Struct, frozen=True, rename="camel"):
    """What the logs tell: the whole output of ``podqos autopsy -o json``."""

    kills: tuple[OOMAutopsy, ...]
    kills_left_out: int = 0
    """Of a log with very many the first ones, which are counted alone."""
    evictions: tuple[PodEviction, ...] = ()
    """By the kubelet."""
    evictions_left_out: int = 0
    """Of very many the first ones, and of a table the last ones, which are counted alone."""
    terminations: tuple[ContainerTermination, ...] = ()
    """Containers that were killed or stopped, by the status of their pods."""
    terminations_left_out: int = 0
    """Of a table with very many the last ones, which are counted alone."""
    exits: tuple[ContainerTermination, ...] = ()
    """Containers not known to have been killed: they crashed, exited, or are restarted for an unknown reason."""
    exits_left_out: int = 0
    """Likewise."""
    node_events: tuple[NodeSign, ...] = ()
    """Node events, in the order of time where that is known."""
    userspace_kills: tuple[UserspaceKill, ...] = ()
    """By systemd-oomd, earlyoom and the like, not by the kernel."""
    userspace_kills_left_out: int = 0
    """Of very many the last ones, which are counted alone."""
    program_failures: tuple[ProgramFailure, ...] = ()
    """Programs that ran out of their own memory, such as Java's OutOfMemoryError."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Autopsies"
    assumptions: tuple[Assumption, ...] = ()
    read: WhatWasRead = WhatWasRead()
    next_steps: tuple[NextStep, ...] = ()
    """What to run next, where what was read does not explain everything."""

    def _listed(self) -> tuple[AutopsyItem, ...]:
        return (
            *self.kills,
            *self.evictions,
            *self.terminations,
            *self.node_events,
            *self.userspace_kills,
            *self.program_failures,
        )


def assumed_by(kills: Iterable[OOMAutopsy], profile: Profile) -> tuple[Assumption, ...]:
    """Return what the causes take for granted."""
    if not any(cause.is_default for kill in kills for cause in kill.causes):
        return ()
    threshold = default_eviction_hard(profile)[Signal.MEMORY]
    return (Assumption("the kubelet's eviction threshold", threshold, stated_with("kubelet_config")),)


class Examiner:
    """Examines the reports of a log in their order: whoever was killed before is no candidate again."""

    def __init__(self, most_shown: int = MOST_SHOWN, facts: NodeFacts = NOTHING_KNOWN) -> None:
        self._most_shown = most_shown
        self.facts = facts
        self._dead: dict[tuple[str, int, str], None] = {}
        self._dead_pids: set[int] = set()
        """Theirs, and of some that are forgotten."""
        self._peaks: dict[tuple[str, str], int] = {}

    def examine(self, report: OOMReport) -> OOMAutopsy:
        """Make the decision again."""
        page_kb = report.page_kb or _USUAL_PAGE_KB
        report = constrained(report, page_kb)
        total = _total_pages(report, page_kb)
        candidates = Candidates(report, self._alive(report), page_kb * 1024, total or 0)
        verdict = _verdict(report, candidates, total, page_kb)
        chosen = candidates.chosen
        runner_up = None if total is None or report.chosen is None else candidates.rival
        node = killed_node(report, page_kb, self.facts)
        place = node.ran_out
        dead_place = node.victim if report.task_cgroup else place
        shortage = shortage_of(node)
        own = own_of(node, candidates)
        decision = None
        if verdict.reason is Reason.HIGHEST and total is not None and chosen is not None and is_shared(node):
            lacking = (shortage and shortage.lacking_bytes) or node.page_bytes
            decision = RepeatedKill(candidates, chosen, own, max(1, lacking // node.page_bytes))
        show = partial(_task, candidates, node.page_bytes, is_known=total is not None)
        return OOMAutopsy(
            at=report.at,
            host=report.host,
            scope=place.level,
            constraint=report.constraint or Constraint.UNKNOWN,
            cgroup="" if report.constraint is None else report.oom_cgroup or "",
            trigger=Trigger(report.trigger_pid, report.trigger, report.order, _call(node)),
            victims=_victims(report, candidates, total),
            chosen_pid=report.chosen,
            victim_cgroup=report.task_cgroup or "",
            victim_level=dead_place.level if report.task_cgroup else None,
            follows_rule=verdict.follows,
            reason=verdict.reason,
            swap_pages_needed=verdict.swap_pages,
            total_pages=total,
            page_bytes=page_kb * 1024,
            shortage=shortage,
            causes=tuple(causes_of(node, shortage, candidates, own)),
            saved_by=savings_of(node, shortage, decision),
            inside=inside_of(node, candidates),
            old_rules=old_rules(report.release),
            tasks=len(report.tasks),
            ranking=tuple(map(show, candidates.ranking[: self._most_shown])),
            runner_up=None if runner_up is None else show(runner_up),
            margin_pages=None
            if runner_up is None or chosen is None
            else candidates.points[chosen] - candidates.points[runner_up],
            group=report.group or "",
            kernel="" if report.release is None else "{}.{}".format(*report.release),
            pod_uid=dead_place.pod_uid,
            container_id=dead_place.container_id,
            qos_class=dead_place.qos_class,
            tree=memory_tree(node, shortage, candidates, self._most_shown, self._peak_bytes(report)),
            chosen_name=chosen_name(report),
        )

    def _peak_bytes(self, report: OOMReport) -> int | None:
        """Return the most that reports up to this one have seen in use by the cgroup that ran out."""
        memory = report.counters.get("memory")
        if memory is None or not report.oom_cgroup:
            return None
        key = report.host, report.oom_cgroup
        peak = self._peaks[key] = max(self._peaks.pop(key, 0), memory.usage_kb * 1024)
        while len(self._peaks) > _MOST_REMEMBERED:
            del self._peaks[next(iter(self._peaks))]
        return peak

    def _alive(self, report: OOMReport) -> Sequence[Task]:
        """Return the tasks that earlier OOMs have not killed, and remember what this one kills."""
        tasks = [*report.tasks.values()]
        if not self._dead_pids.isdisjoint(report.tasks):
            # Ids are used again: what the kernel chose was alive.
            host, chosen = report.host, report.chosen
            tasks = [task for task in tasks if task.pid == chosen or (host, task.pid, task.name) not in self._dead]
        for victim in report.victims.values():
            self._dead[report.host, victim.pid, victim.name] = None
            self._dead_pids.add(victim.pid)
        while len(self._dead) > _MOST_REMEMBERED:
            del self._dead[next(iter(self._dead))]
        if len(self._dead_pids) > 2 * _MOST_REMEMBERED:
            self._dead_pids = {pid for _, pid, _ in self._dead}
        return tasks


class _Verdict(Struct, frozen=True):
    follows: bool | None
    reason: Reason
    swap_pages: int | None = None


def _verdict(report: OOMReport, candidates: Candidates, total: int | None, page_kb: int) -> _Verdict:
    """Compare the process that was chosen with the one that the rule chooses."""
    if report.panic and not report.is_hopeless:
        return _Verdict(True, Reason.PANIC)
    if report.chosen is None:
        return _hopeless(report, candidates) if report.is_hopeless else _Verdict(None, Reason.NO_VICTIM)
    if report.is_old_rule:
        return _Verdict(None, Reason.OLD_RULE)
    if report.is_allocating_task:
        asked = report.trigger_pid is None or report.chosen == report.trigger_pid
        return _Verdict(asked, Reason.ASKED if asked else Reason.DID_NOT_ASK)
    if origin_of(report) is not None:
        return _Verdict(True, Reason.ORIGIN)
    if report.columns is None or not report.tasks:
        return _Verdict(None, Reason.NO_TABLE)
    chosen, points, scores = candidates.chosen, candidates.points, candidates.scores
    if chosen is None:
        return _Verdict(None, Reason.NOT_IN_TABLE)
    if chosen in candidates.exempt:
        return _Verdict(False, Reason.IS_EXEMPT)
    if total is None and any(scores[other] != scores[chosen] for other in candidates.others):
        return _Verdict(None, Reason.TOTAL_UNKNOWN)
    highest = points[chosen if candidates.rival is None else candidates.rival]
    if points[chosen] >= highest:
        return _Verdict(None, Reason.TABLE_IS_CUT) if report.is_cut else _Verdict(True, Reason.HIGHEST)
    if "swapents" not in (report.columns or ()):
        return _Verdict(None, Reason.TABLE_LACKS_COLUMNS)
    if candidates.unprivileged_points(chosen) >= highest:
        return _Verdict(True, Reason.HIGHEST_BY_PRIVILEGE)
    swap = _swap_needed(candidates, chosen, _swap_allowed(report, page_kb))
    if swap is not None:
        return _Verdict(True, Reason.HIGHEST_WITH_SWAP, swap)
    return _Verdict(False, Reason.OTHER_IS_HIGHER)


def _call(node: KilledNode) -> Call:
    if node.is_by_hand:
        return Call.SYSRQ
    return Call.PAGE_FAULT if node.is_machine and node.report.gfp_mask == 0 else Call.ALLOCATION


def _hopeless(report: OOMReport, candidates: Candidates) -> _Verdict:
    """Say whether there was no process to kill."""
    if not report.tasks:
        return _Verdict(None, Reason.NO_TABLE)
    if candidates.killable:
        # Those that earlier OOMs killed are in the table until they are gone, and are not chosen again.
        return _Verdict(None, Reason.OTHER_IS_HIGHER)
    return _Verdict(None, Reason.TABLE_IS_CUT) if report.is_cut else _Verdict(True, Reason.NONE_KILLABLE)


def _swap_needed(candidates: Candidates, chosen: int, most: int) -> int | None:
    """Return the least swap, of ``most`` that a cgroup may use, that makes the chosen process the highest, or None.

    A cgroup's total is its limit and as much of the machine's swap as it may use, and its report does not say
    how much swap the machine has.
    """
    if not most:
        return None
    total, scores = candidates.total_pages, candidates.scores
    low, high = total // 1000, (total + most) // 1000
    # Badness without what oom_score_adj adds.
    unscored = [points - score * low for points, score in zip(candidates.points, scores, strict=True)]
    for other in candidates.others:
        points = scores[chosen] - scores[other]
        lacking = unscored[other] - unscored[chosen]
        if points > 0:
            low = max(low, -(-lacking // points))
        elif points < 0:
            high = min(high, lacking // points)
        elif lacking > 0:
            return None
    return low * 1000 - total if low <= high else None


def _swap_allowed(report: OOMReport, page_kb: int) -> int:
    """Return how many pages of swap a cgroup may use at most."""
    memory, both, swap = (report.counters.get(name) for name in ("memory", "memory+swap", "swap"))
    if memory is None or memory.limit_kb is None:
        return 0
    if swap is not None:
        return _MOST_SWAP_PAGES if swap.limit_kb is None else swap.limit_kb // page_kb
    if both is not None:
        return _MOST_SWAP_PAGES if both.limit_kb is None else max(0, both.limit_kb - memory.limit_kb) // page_kb
    return 0


def _total_pages(report: OOMReport, page_kb: int) -> int | None:
    """Return what the kernel measures scores by; for a cgroup without swap (``_swap_needed``)."""
    swap = (report.swap_kb or 0) // page_kb
    if report.constraint is None:
        return None
    if report.constraint is Constraint.MEMCG:
        memory = report.counters.get("memory")
        return None if memory is None or memory.limit_kb is None else memory.limit_kb // page_kb
    if report.constraint in {Constraint.CPUSET, Constraint.MEMORY_POLICY}:
        allowed = [zone.present_kb or 0 for zone in report.zones if zone.node in (report.nodes or ())]
        return sum(allowed) // page_kb + swap if allowed else None
    if report.ram_pages is None or report.ram_pages <= report.reserved_pages:
        return None
    return report.ram_pages - report.reserved_pages + swap


def _victims(report: OOMReport, candidates: Candidates, total: int | None) -> tuple[AutopsyVictim, ...]:
    found = []
    for pid, victim in report.victims.items():
        task, place = report.tasks.get(pid), candidates.place(pid)
        adj = victim.oom_score_adj if task is None else task.oom_score_adj
        is_known = total is not None and place is not None and place not in candidates.exempt
        rss = None if victim.rss_kb is None else victim.rss_kb * 1024
        points = None if place is None or not is_known else candidates.points[place]
        found.append(AutopsyVictim(pid, victim.name, adj, points, rss, victim.is_reaped))
    return tuple(found)


def _task(candidates: Candidates, page_bytes: int, place: int, *, is_known: bool) -> AutopsyTask:
    task = candidates.tasks[place]
    is_known = is_known and place not in candidates.exempt
    return AutopsyTask(
        pid=task.pid,
        name=task.name,
        uid=task.uid,
        oom_score_adj=task.oom_score_adj,
        badness=candidates.points[place] if is_known else None,
        used_pages=candidates.used_pages[place],
        adjustment_pages=candidates.points[place] - candidates.used_pages[place] if is_known else None,
        swap_bytes=None if task.swap_pages is None else task.swap_pages * page_bytes,
    )
