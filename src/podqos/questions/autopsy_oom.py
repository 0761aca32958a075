"""Why a process was killed: the kernel's decision made again from its own report, and compared with what it did.

The badness of every task comes from the table, the total from the report. The rule is the one of ``kernel.oom``; this
module only says what it is applied to, and what the log leaves open.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from podqos.agent.journal import Entry
from podqos.agent.reasons import OOMKill, OOMLevel
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import old_rules
from podqos.logs.report import Constraint, OOMReport, Task
from podqos.model.time_units import SECOND_US
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.questions.autopsy_death import FIRST, NEXT, OOM, Call, Death, Manner, Process, RankedRow, Reason
from podqos.questions.autopsy_memory import (
    NOTHING_KNOWN,
    Candidates,
    KilledNode,
    NodeFacts,
    killed_node,
    shortage_of,
    tree_of,
)
from podqos.questions.autopsy_saved import (
    RepeatedKill,
    causes_of,
    chosen_name,
    inside_of,
    is_shared,
    origin_of,
    own_of,
    savings_of,
)

MOST_SHOWN = 10
KERNEL = "kernel"
_USUAL_PAGE_KB = 4
_MOST_REMEMBERED = 4096
_MOST_SWAP_PAGES = 1 << 40


class Examiner:
    """Examines the reports of a log in their order: whoever was killed before is no candidate again."""

    def __init__(self, most_shown: int = MOST_SHOWN, facts: NodeFacts = NOTHING_KNOWN) -> None:
        self._most_shown = most_shown
        self.facts = facts
        self._dead: dict[tuple[str, int, str], None] = {}

    def examine(self, report: OOMReport) -> Death:
        """Make the decision again."""
        page_bytes = (report.page_kb or _USUAL_PAGE_KB) * 1024
        node = killed_node(report, page_bytes, self.facts)
        total = _total_pages(node)
        candidates = Candidates(report, self._alive(report), page_bytes, total or 0)
        verdict = _verdict(node, candidates, total)
        chosen = candidates.chosen
        rival = next(iter(candidates.others), None) if total is not None and report.chosen is not None else None
        has_margin = rival is not None and chosen is not None
        margin = candidates.points[chosen] - candidates.points[rival] if has_margin else None  # type: ignore[index]
        place = node.ran_out
        dead_place = node.victim if report.task_cgroup else place
        shortage = shortage_of(node)
        own = own_of(node, candidates)
        decision = None
        if verdict.reason is Reason.HIGHEST and total is not None and chosen is not None and is_shared(node):
            lacking = (shortage and shortage.lacking_bytes) or page_bytes
            decision = RepeatedKill(candidates, chosen, own, max(1, lacking // page_bytes))
        standing = ""
        if margin is not None and verdict.reason is not Reason.ORIGIN:
            standing = NEXT if margin >= 0 else FIRST if verdict.follows is False else ""
        name = chosen_name(report)
        is_fault = node.is_machine and report.gfp_mask == 0
        return Death(
            Manner.OOM_KILL,
            KERNEL,
            when=report.at,
            where=report.host,
            follows_rule=verdict.follows,
            reason=verdict.reason,
            causes=tuple(causes_of(node, shortage, candidates, own)),
            saved_by=savings_of(node, shortage, decision),
            ranking=tuple(
                _row(node, candidates, place, is_known=total is not None, standing=standing if place == rival else "")
                for place in candidates.ranking[: self._most_shown]
            ),
            candidates=len(report.tasks),
            tree=tree_of(node, shortage, candidates, self._most_shown),
            victims=_victims(report, candidates, total),
            pod_uid=dead_place.pod_uid,
            container_id=dead_place.container_id,
            qos_class=dead_place.qos_class,
            oom=OOM(
                place.level,
                Constraint.NONE if node.is_by_hand else report.constraint or Constraint.UNKNOWN,
                cgroup="/" if node.is_by_hand else "" if report.constraint is None else report.oom_cgroup or "",
                victim_cgroup=report.task_cgroup or "",
                trigger=Process(report.trigger, report.trigger_pid) if report.trigger else None,
                order=report.order,
                call=Call.SYSRQ if node.is_by_hand else Call.PAGE_FAULT if is_fault else Call.ALLOCATION,
                chosen=None if report.chosen is None else Process(name, report.chosen),
                total_pages=total,
                page_bytes=page_bytes,
                swap_pages_needed=verdict.swap_pages,
                runner_up=None if rival is None else _process(candidates, rival),
                margin_pages=margin,
                shortage=shortage,
                inside=inside_of(node, candidates),
                old_rules=old_rules(report.release),
                group=report.group or "",
                kernel="" if report.release is None else "{}.{}".format(*report.release),
            ),
        )

    def _alive(self, report: OOMReport) -> Sequence[Task]:
        """Return the tasks that earlier OOMs have not killed, and remember what this one kills."""
        # Ids are used again: what the kernel chose was alive.
        host, chosen = report.host, report.chosen
        tasks = [
            task
            for task in report.tasks.values()
            if task.pid == chosen or (host, task.pid, task.name) not in self._dead
        ]
        for victim in report.victims.values():
            self._dead[host, victim.pid, victim.name] = None
        while len(self._dead) > _MOST_REMEMBERED:
            del self._dead[next(iter(self._dead))]
        return tasks


class _Verdict(Struct, frozen=True):
    follows: bool | None
    reason: Reason
    swap_pages: int | None = None


def _verdict(node: KilledNode, candidates: Candidates, total: int | None) -> _Verdict:
    """Compare the process that was chosen with the one that the rule chooses."""
    report = node.report
    if report.panic and not report.is_hopeless:
        return _Verdict(True, Reason.PANIC)
    if report.chosen is None:
        return _hopeless(report, candidates) if report.is_hopeless else _Verdict(None, Reason.NO_VICTIM)
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
    highest = points[candidates.others[0] if candidates.others else chosen]
    if points[chosen] >= highest:
        return _Verdict(None, Reason.TABLE_IS_CUT) if report.is_cut else _Verdict(True, Reason.HIGHEST)
    if candidates.unprivileged_points(chosen) >= highest:
        return _Verdict(True, Reason.HIGHEST_BY_PRIVILEGE)
    swap = _swap_needed(candidates, chosen, _swap_allowed(node))
    if swap is not None:
        return _Verdict(True, Reason.HIGHEST_WITH_SWAP, swap)
    return _Verdict(False, Reason.OTHER_IS_HIGHER)


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


def _swap_allowed(node: KilledNode) -> int:
    """Return how many pages of swap a cgroup may use at most."""
    counters, page_kb = node.report.counters, node.page_bytes // 1024
    memory, both, swap = (counters.get(name) for name in ("memory", "memory+swap", "swap"))
    if memory is None or memory.limit_kb is None:
        return 0
    if swap is not None:
        return _MOST_SWAP_PAGES if swap.limit_kb is None else swap.limit_kb // page_kb
    if both is not None:
        return _MOST_SWAP_PAGES if both.limit_kb is None else max(0, both.limit_kb - memory.limit_kb) // page_kb
    return 0


def _total_pages(node: KilledNode) -> int | None:
    """Return what the kernel measures scores by; for a cgroup without swap (``_swap_needed``)."""
    report, page_kb = node.report, node.page_bytes // 1024
    swap = (report.swap_kb or 0) // page_kb
    if report.constraint is None and not node.is_by_hand:
        return None
    if not node.is_machine:
        memory = report.counters.get("memory")
        return None if memory is None or memory.limit_kb is None else memory.limit_kb // page_kb
    if node.is_constrained:
        allowed = [zone.present_kb or 0 for zone in report.zones if zone.node in (report.nodes or ())]
        return sum(allowed) // page_kb + swap if allowed else None
    if report.ram_pages is None or report.ram_pages <= report.reserved_pages:
        return None
    return report.ram_pages - report.reserved_pages + swap


def _victims(report: OOMReport, candidates: Candidates, total: int | None) -> tuple[Process, ...]:
    found = []
    for pid, victim in report.victims.items():
        task, place = report.tasks.get(pid), candidates.place(pid)
        is_known = total is not None and place is not None and place not in candidates.exempt
        found.append(
            Process(
                victim.name,
                pid,
                victim.oom_score_adj if task is None else task.oom_score_adj,
                candidates.points[place] if is_known and place is not None else None,
                None if victim.rss_kb is None else victim.rss_kb * 1024,
            )
        )
    return tuple(found)


def _row(node: KilledNode, candidates: Candidates, place: int, *, is_known: bool, standing: str) -> RankedRow:
    task, size = candidates.tasks[place], node.page_bytes
    is_ranked = is_known and place not in candidates.exempt
    points, used = candidates.points[place], candidates.used_pages[place]
    is_dead = task.pid in node.report.victims
    return RankedRow(
        task.name,
        mark="killed" if is_dead else "chosen" if place == candidates.chosen else "",
        used=used * size,
        added=(points - used) * size if is_ranked else 0,
        standing="" if is_dead else standing,
        pid=task.pid,
        oom_score_adj=task.oom_score_adj,
        badness=points if is_ranked else None,
        swap_bytes=None if task.swap_pages is None else task.swap_pages * size,
    )


def _process(candidates: Candidates, place: int) -> Process:
    task = candidates.tasks[place]
    return Process(task.name, task.pid, task.oom_score_adj, candidates.points[place])


# ---- a journal of podqos ---------------------------------------------------------------------------------------------

_LEVELS = {
    OOMLevel.CONTAINER: CgroupLevel.CONTAINER,
    OOMLevel.POD: CgroupLevel.POD,
    OOMLevel.CLASS: CgroupLevel.CLASS,
    OOMLevel.KUBEPODS: CgroupLevel.KUBEPODS,
    OOMLevel.NODE: CgroupLevel.MACHINE,
}


def journal_time(entry: Entry) -> str:
    """Return when something of a journal happened: seconds, since 1970 or since a simulation began."""
    return f"{entry.time_us // SECOND_US}.{entry.time_us % SECOND_US:06d}"


def journal_kill(entry: Entry, because: OOMKill) -> Death:
    """Return a kill as far as the journal has it; it has no pids."""
    is_machine = because.level is OOMLevel.NODE
    follows = None if because.runner_up_points is None else because.points >= because.runner_up_points
    name, used = entry.container or entry.pod or "", because.used_pages * PAGE_BYTES
    return Death(
        Manner.OOM_KILL,
        KERNEL,
        when=journal_time(entry),
        where=entry.node,
        follows_rule=follows,
        reason=Reason.NO_TABLE if follows is None else Reason.HIGHEST if follows else Reason.OTHER_IS_HIGHER,
        victims=(Process(name, None, because.oom_score_adj, because.points, used),),
        pod=entry.pod or "",
        container=entry.container or "",
        oom=OOM(
            _LEVELS[because.level],
            Constraint.NONE if is_machine else Constraint.MEMCG,
            cgroup=because.domain,
            total_pages=because.total_pages,
            page_bytes=PAGE_BYTES,
            margin_pages=None if because.margin_bytes is None else because.margin_bytes // PAGE_BYTES,
            group=f"{entry.pod} {entry.container}" if because.as_group else "",
        ),
    )
