"""The OOM killer of a simulated node: which container it kills when a cgroup or the machine is out of memory, and why.

The kernel model (``kernel.oom``) decides; this module turns its numbers into a journal entry. Only the two containers
with the worst processes are passed to the model; a fast scan finds them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.reasons import OOMKill, WouldEvict
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT
from podqos.kernel.memcg import oom_total_pages
from podqos.kernel.oom import OOM_SCORE_ADJ_MIN, OOMSelection, Process, kill, select
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.gauge import FRACTION_BITS
from podqos.sim.node.memory_group import MemoryGroup
from podqos.sim.node.node_memory import NodeMemory
from podqos.sim.node.pods import SimContainer

_LEAST_POINTS = -(1 << 62)


class Killed(Struct, frozen=True):
    """One kill: which container it hits, whether that has ended, and the reasons."""

    container: SimContainer
    because: OOMKill
    has_ended: bool


def next_kill(memory: NodeMemory, group: MemoryGroup, time_us: int, would_evict: WouldEvict | None) -> Killed | None:
    """Return what the kernel kills to make room in ``group``; None where nothing can be killed."""
    total_pages = oom_total_pages(memory.machine, group.settings)
    members = memory.members(group)
    lacking = cuts(members, group, time_us)
    finalists = _finalists(members, group.path, total_pages, time_us, lacking)
    processes = {
        container: tuple(container.processes(time_us, lacking.get(container.path, 0))) for container in finalists
    }
    selection = select((process for own in processes.values() for process in own), total_pages, group.path)
    if selection is None:
        return None
    pid = selection.victim.process.pid
    victim = next(container for container, own in processes.items() if any(process.pid == pid for process in own))
    groups = {victim.path} if victim.groups[0].settings.oom_group else ()
    done = kill(selection, processes[victim], groups, cgroup_version=memory.machine.cgroup_version)
    has_ended = done.group is not None or pid == victim.first_pid
    others = {container: own for container, own in processes.items() if container is not victim}
    denied = lacking.get(victim.path, 0)
    freed = (
        victim.usage_bytes(time_us) - victim.tmpfs_bytes(time_us) - denied
        if has_ended
        else selection.victim.process.rss_pages * PAGE_BYTES
    )
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
        kept_bytes=_left_in_files(victim, members, group, time_us) if has_ended else 0,
        would_evict=would_evict,
        denied_bytes=denied,
        container_lives=not has_ended,
    )
    return Killed(victim, _with_runner_up(because, selection, others), has_ended=has_ended)


def _with_runner_up(
    because: OOMKill, selection: OOMSelection, others: dict[SimContainer, tuple[Process, ...]]
) -> OOMKill:
    """Return the reasons, with the container that would have been killed otherwise."""
    second = select((process for own in others.values() for process in own), selection.total_pages, selection.domain)
    if second is None:
        return because
    pid, points = second.victim.process.pid, second.victim.points
    container = next(container for container, own in others.items() if any(process.pid == pid for process in own))
    return replace(
        because,
        runner_up_pod=container.pod.key,
        runner_up_container=container.name,
        runner_up_points=points,
        margin_bytes=(selection.victim.points - points) * PAGE_BYTES,
    )


def _finalists(
    members: Collection[SimContainer], domain: str, total_pages: int, time_us: int, cuts: dict[str, int]
) -> list[SimContainer]:
    """Return the two containers with the worst processes; of a container's processes the last is the worst."""
    thousandth = total_pages // 1000
    in_order = domain != ROOT
    best_key = second_key = (_LEAST_POINTS, "", 0)
    best: SimContainer | None = None
    second: SimContainer | None = None
    for container in members:
        adj = container.plan.oom_score_adj
        if adj == OOM_SCORE_ADJ_MIN:
            continue
        anon = container.anon
        count = container.fixed_processes or container.process_count(time_us)
        pages = 0
        if anon is not None:
            size_bytes = (anon.base + anon.slope * (time_us - anon.since_us)) >> FRACTION_BITS
            if cuts:
                size_bytes = max(0, size_bytes - cuts.get(container.path, 0))
            pages = -(-(size_bytes // PAGE_BYTES) // count)
            if anon.debt:
                pages += container.swap_bytes() // PAGE_BYTES // count
        key = pages + adj * thousandth, container.path if in_order else "", container.first_pid + count
        if key > best_key:
            second, second_key, best, best_key = best, best_key, container, key
        elif key > second_key:
            second, second_key = container, key
    return [container for container in (best, second) if container is not None]


def cuts(members: Collection[SimContainer], group: MemoryGroup, time_us: int) -> dict[str, int]:
    """Return what containers whose demand steps up now do not get: only the first part of a step fits."""
    lacking = group.excess_bytes(time_us)
    assert group.gauge is not None
    if lacking <= (group.gauge.slope >> FRACTION_BITS) + 1:
        return {}
    total = _steps(members, time_us)
    return {
        container.path: min(step, lacking * step // total)
        for container in members
        if container.anon is not None and (step := min(container.anon.step(time_us), container.anon.at(time_us)))
    }


def unwritten(
    container: SimContainer, members: Collection[SimContainer], group: MemoryGroup, time_us: int
) -> Iterator[tuple[Allocation, int]]:
    """Yield what a container that is killed was writing into volumes in memory, and how much of it does not fit."""
    lacking = group.excess_bytes(time_us)
    total = _steps(members, time_us)
    for volume in container.files:
        step = min(volume.step(time_us), volume.at(time_us))
        yield volume, -(-lacking * step // total) if step else lacking


def _left_in_files(container: SimContainer, members: Collection[SimContainer], group: MemoryGroup, time_us: int) -> int:
    """Return what stays in volumes in memory of a container that is killed."""
    files = unwritten(container, members, group, time_us)
    return sum(volume.at(time_us) - (lacking if volume.step(time_us) else 0) for volume, lacking in files)


def _steps(members: Collection[SimContainer], time_us: int) -> int:
    """Return by how much demands for memory that cannot be reclaimed step up now."""
    growing = (allocation for member in members for allocation in (member.anon, *member.files))
    return sum(min(want.step(time_us), want.at(time_us)) for want in growing if want is not None)
