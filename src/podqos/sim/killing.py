"""The OOM killer at work on a simulated node: who dies when a cgroup or the machine is out of memory, and why.

The choice is the kernel model's (``kernel.oom``); here its numbers become a journal entry. The model is asked about the
containers with the worst processes only: a quick look at all of them tells which those are.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import nlargest

from podqos.agent.reasons import OOMKill, WouldEvict
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.memcg import oom_total_pages
from podqos.kernel.oom import OOM_SCORE_ADJ_MIN, Process, Selection, kill, select
from podqos.sim.gauge import FRACTION_BITS
from podqos.sim.memory_groups import MemoryGroup, NodeMemory
from podqos.sim.pods import SimContainer

_FINALISTS = 4
"""How many containers the kernel model chooses from; of equals there may be more."""


class Killed:
    """One kill: which container it hits, whether that has ended, and the reasons."""

    __slots__ = ("because", "container", "has_ended")

    def __init__(self, container: SimContainer, because: OOMKill, *, has_ended: bool) -> None:
        self.container = container
        self.because = because
        self.has_ended = has_ended


def next_kill(memory: NodeMemory, group: MemoryGroup, time_us: int, would_evict: WouldEvict | None) -> Killed | None:
    """Say whom the kernel kills to make room in ``group``; None where there is nobody it could kill."""
    total_pages = oom_total_pages(memory.machine, group.settings)
    members = memory.members(group)
    cuts = _cuts(members, group, time_us)
    finalists = _finalists(members, total_pages, time_us, cuts)
    processes = {container: tuple(container.processes(time_us, cuts.get(container.path, 0))) for container in finalists}
    selection = select((each for own in processes.values() for each in own), total_pages, group.path)
    if selection is None:
        return None
    pid = selection.victim.process.pid
    victim = next(container for container, own in processes.items() if any(each.pid == pid for each in own))
    groups = {victim.path} if victim.groups[0].settings.oom_group else ()
    done = kill(selection, processes[victim], groups, cgroup_version=memory.machine.cgroup_version)
    has_ended = done.group is not None or pid == victim.first_pid
    others = {container: own for container, own in processes.items() if container is not victim}
    freed = victim.usage_bytes(time_us) if has_ended else selection.victim.process.rss_pages * PAGE_BYTES
    because = OOMKill(
        level=group.level,
        domain=group.path,
        limit_bytes=group.limit_bytes or 0,
        total_pages=total_pages,
        oom_score_adj=victim.plan.oom_score_adj,
        used_pages=selection.victim.used_pages,
        points=selection.victim.points,
        killed_processes=len(processes[victim]) if has_ended else 1,
        as_group=done.group is not None,
        freed_bytes=freed,
        would_evict=would_evict,
        **_runner_up(selection, others),
    )
    return Killed(victim, because, has_ended=has_ended)


def _runner_up(selection: Selection, others: dict[SimContainer, tuple[Process, ...]]) -> dict[str, object]:
    """Return who would have died if not this container."""
    second = select((each for own in others.values() for each in own), selection.total_pages, selection.domain)
    if second is None:
        return {}
    pid, points = second.victim.process.pid, second.victim.points
    container = next(container for container, own in others.items() if any(each.pid == pid for each in own))
    return {
        "runner_up_pod": container.pod.key,
        "runner_up_container": container.name,
        "runner_up_points": points,
        "margin_bytes": (selection.victim.points - points) * PAGE_BYTES,
    }


def _finalists(
    members: Collection[SimContainer], total_pages: int, time_us: int, cuts: dict[str, int]
) -> list[SimContainer]:
    """Return the containers with the worst processes, by the least pages that their largest process can have."""
    thousandth = total_pages // 1000
    worst: list[tuple[int, SimContainer]] = []
    for container in members:
        adj = container.plan.oom_score_adj
        if adj == OOM_SCORE_ADJ_MIN:
            continue
        anon = container.anon
        if anon is None:
            pages = 0
        else:
            size_bytes = (anon.base + anon.slope * (time_us - anon.since_us)) >> FRACTION_BITS
            if cuts:
                size_bytes = max(0, size_bytes - cuts.get(container.path, 0))
            count = container.process_count(time_us)
            pages = -(-(size_bytes // PAGE_BYTES) // count)
            if anon.debt:
                pages += container.swap_bytes() // PAGE_BYTES // count
        worst.append((pages + adj * thousandth, container))
    if len(worst) <= _FINALISTS:
        return [container for _, container in worst]
    least = nlargest(_FINALISTS, (points for points, _ in worst))[-1]
    return [container for points, container in worst if points >= least]


def _cuts(members: Collection[SimContainer], group: MemoryGroup, time_us: int) -> dict[str, int]:
    """Return what those did not get whose demand steps up now: of a step beyond the limit only the first part fits."""
    lacking = group.excess_bytes(time_us)
    assert group.gauge is not None
    if lacking <= (group.gauge.slope >> FRACTION_BITS) + 1:
        return {}
    steps = {
        container.path: step
        for container in members
        if container.anon is not None and (step := container.anon.step(time_us))
    }
    total = sum(steps.values())
    return {path: min(step, lacking * step // total) for path, step in steps.items()}
