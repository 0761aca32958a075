"""The OOM killer: which process it kills, by which numbers, and which die with it.

Badness is per process: the pages it holds in memory, swap and page tables, and for each point of ``oom_score_adj`` a
thousandth of the total: RAM and swap of the machine, or the limit of the cgroup that ran out. The highest badness dies,
whatever its size and whichever process asked for the last page; only −1000 is exempt.

Sources: Linux mm/oom_kill.c (oom_badness, oom_evaluate_task, oom_kill_process), mm/memcontrol.c
(mem_cgroup_get_oom_group, mem_cgroup_get_max), fs/proc/base.c (proc_oom_score). Of equals the kernel takes the one it
scans last: the youngest of the machine, or the last in the order of the cgroups; the model goes by process id, and by
path within a cgroup's OOM.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from podqos.kernel.cgroup import ROOT, is_within, parent_path

OOM_SCORE_ADJ_MIN = -1000
INIT_PID = 1
"""The machine's own init is never chosen and survives group kills."""
_BONUS_THOUSANDTHS = 30
_PAGES_SINCE = (3, 5)
_BONUS_OF_USE_SINCE = (3, 14)  # older kernels got it as a fix, from some patch release on
_NO_BONUS_SINCE = (4, 17)
_SIGNED_SINCE = (5, 9)


class Process(Struct, frozen=True, gc=False):
    """What the kernel looks at, as in ``/proc/PID`` and in the task table of its log."""

    pid: int
    cgroup: str
    rss_pages: int
    """Resident pages: anonymous, file and shared."""
    swap_pages: int = 0
    page_table_pages: int = 0
    oom_score_adj: int = 0
    name: str = ""

    @property
    def is_exempt(self) -> bool:
        """Whether it is never chosen, and never killed with others."""
        return self.oom_score_adj == OOM_SCORE_ADJ_MIN or self.pid == INIT_PID


def exempt_in(pids: Sequence[int], scores: Iterable[int]) -> set[int]:
    """Return which of many processes are exempt, by their places."""
    exempt = {place for place, score in enumerate(scores) if score == OOM_SCORE_ADJ_MIN}
    return exempt | {pids.index(INIT_PID)} if INIT_PID in pids else exempt


class OldRule(StrEnum):
    """What kernels of the past add to the rule of today."""

    AT_LEAST_ONE = "atLeastOne"
    """Badness is never less than 1 (before 5.9)."""
    ROOT_OF_USE = "rootOfUse"
    """A process with CAP_SYS_ADMIN gets 3 % off what it uses (3.14 to 4.16)."""
    ROOT_OF_TOTAL = "rootOfTotal"
    """It gets 3 % of the total off (before 3.14)."""
    PER_MILLE = "perMille"
    """Badness is counted in whole thousandths of the total, from 1 to 1000 (before 3.5)."""


class OOMCandidate(Struct, frozen=True, gc=False):
    """A process with the two parts of its badness, in pages."""

    process: Process
    used_pages: int
    adjustment_pages: int

    @property
    def points(self) -> int:
        """Badness."""
        return self.used_pages + self.adjustment_pages


class OOMSelection(Struct, frozen=True, gc=False):
    """The victim that the OOM killer chooses, and by what margin."""

    domain: str
    """The cgroup that ran out; the root for a global OOM."""
    total_pages: int
    victim: OOMCandidate
    runner_up: OOMCandidate | None = None
    """Who would have died in the victim's place."""

    @property
    def margin_pages(self) -> int | None:
        """How much the runner-up lacked."""
        return None if self.runner_up is None else self.victim.points - self.runner_up.points


class Kill(Struct, frozen=True, gc=False):
    """All processes that an OOM kills."""

    selection: OOMSelection
    killed: tuple[Process, ...]
    """The victim first, then by process id."""
    group: str | None = None
    """The cgroup with ``memory.oom.group`` that died as one."""
    spared: tuple[Process, ...] = ()
    """Members of that group that are exempt."""


def badness(process: Process, total_pages: int) -> int | None:
    """Return the badness of a process in pages, or None for one that is exempt."""
    return None if process.is_exempt else candidate(process, total_pages).points


def candidate(process: Process, total_pages: int) -> OOMCandidate:
    """Return a process with the parts of its badness."""
    used = process.rss_pages + process.swap_pages + process.page_table_pages
    return OOMCandidate(process, used, process.oom_score_adj * (total_pages // 1000))


def badness_in(
    release: tuple[int, int] | None,
    total_pages: int,
    used_pages: Sequence[int],
    scores: Sequence[int],
    privileged: Iterable[bool],
) -> list[int]:
    """Return the badness of many processes as a kernel of that release has it; None: as of today.

    Before 4.17 a process with CAP_SYS_ADMIN was 3 % better off: of what it used, before 3.14 of the total. Before 5.9
    the least badness was 1. Before 3.5 it was counted in whole thousandths of the total, 1000 at most.
    """
    step = total_pages // 1000
    if release is None or release >= _NO_BONUS_SINCE:
        points = [used + score * step for used, score in zip(used_pages, scores, strict=True)]
    elif release >= _BONUS_OF_USE_SINCE:
        columns = zip(used_pages, scores, privileged, strict=True)
        points = [used + score * step - used * _BONUS_THOUSANDTHS // 1000 * is_it for used, score, is_it in columns]
    else:
        if release < _PAGES_SINCE and step:
            used_pages = [used * 1000 // total_pages * step for used in used_pages]
        columns = zip(used_pages, scores, privileged, strict=True)
        points = [used + (score - _BONUS_THOUSANDTHS * is_it) * step for used, score, is_it in columns]
    if release is None or release >= _SIGNED_SINCE:
        return points
    if release < _PAGES_SINCE and step:
        return [min(1000 * step, max(step, each)) for each in points]
    return points if min(points, default=1) > 0 else [max(1, each) for each in points]


def old_rules(release: tuple[int, int] | None) -> tuple[OldRule, ...]:
    """Return in what the rule of a kernel's release differs from today's."""
    if release is None or release >= _SIGNED_SINCE:
        return ()
    if release >= _NO_BONUS_SINCE:
        return (OldRule.AT_LEAST_ONE,)
    if release >= _BONUS_OF_USE_SINCE:
        return (OldRule.ROOT_OF_USE, OldRule.AT_LEAST_ONE)
    if release >= _PAGES_SINCE:
        return (OldRule.ROOT_OF_TOTAL, OldRule.AT_LEAST_ONE)
    return (OldRule.ROOT_OF_TOTAL, OldRule.PER_MILLE)


def select(processes: Iterable[Process], total_pages: int, domain: str = ROOT) -> OOMSelection | None:
    """Choose the victim of an OOM in ``domain``, in one pass.

    None where nothing can be killed: a whole machine then panics, a cgroup's allocation fails.
    """
    best: OOMCandidate | None = None
    second: OOMCandidate | None = None
    best_key = second_key = None
    for process in _eligible(processes, domain):
        current = candidate(process, total_pages)
        key = _order(current, domain)
        if best_key is None or key > best_key:
            second, second_key = best, best_key
            best, best_key = current, key
        elif second_key is None or key > second_key:
            second, second_key = current, key
    return None if best is None else OOMSelection(domain, total_pages, best, second)


def rank(processes: Iterable[Process], total_pages: int, domain: str = ROOT) -> tuple[OOMCandidate, ...]:
    """Return all candidates, first to die first: the kill order if nothing else changes."""
    candidates = [candidate(process, total_pages) for process in _eligible(processes, domain)]
    candidates.sort(key=lambda each: _order(each, domain), reverse=True)
    return tuple(candidates)


def kill(
    selection: OOMSelection,
    processes: Sequence[Process],
    oom_groups: Collection[str] = (),
    *,
    cgroup_version: int = 2,
) -> Kill:
    """Return which processes die with the victim.

    ``oom_groups`` are the cgroups with ``memory.oom.group`` set; cgroup v1 has no such thing and kills one process.
    """
    victim = selection.victim.process
    group = oom_group(victim.cgroup, selection.domain, oom_groups) if cgroup_version == 2 else None
    if group is None:
        return Kill(selection, (victim,))
    members = [process for process in processes if is_within(process.cgroup, group) and process.pid != victim.pid]
    members.sort(key=lambda process: process.pid)
    killed = (victim, *(process for process in members if not process.is_exempt))
    return Kill(selection, killed, group, tuple(process for process in members if process.is_exempt))


def oom_group(cgroup: str, domain: str, oom_groups: Collection[str]) -> str | None:
    """Return the highest cgroup with ``memory.oom.group`` from the victim's up to the one that ran out."""
    found = None
    while cgroup != ROOT:
        if cgroup in oom_groups:
            found = cgroup
        if cgroup == domain:
            break
        cgroup = parent_path(cgroup)
    return found


def shown_oom_score(points: int | None, total_pages: int) -> int:
    """Return what ``/proc/PID/oom_score`` shows for a badness (Linux 5.9 and later).

    ``total_pages`` is the machine's RAM and swap, also for a process in a limited cgroup.
    """
    if points is None:
        return 0
    return (1000 + _truncated(points * 1000, total_pages)) * 2 // 3


def _eligible(processes: Iterable[Process], domain: str) -> Iterable[Process]:
    return (process for process in processes if not process.is_exempt and is_within(process.cgroup, domain))


def _order(each: OOMCandidate, domain: str) -> tuple[int, str, int]:
    """Compare by badness; of equals the one scanned last is greater."""
    path = "" if domain == ROOT else each.process.cgroup
    return each.points, path, each.process.pid


def _truncated(numerator: int, denominator: int) -> int:
    """Divide as C does: towards zero."""
    quotient = abs(numerator) // denominator
    return quotient if numerator >= 0 else -quotient
