"""The OOM killer at work on a simulated node: who dies when a cgroup or the machine is out of memory, and why.

The choice is the kernel model's (``kernel.oom``); here its numbers become a journal entry, with whom the kubelet would
have evicted had it looked at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from podqos.agent.reasons import OOMKill, WouldEvict
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.memcg import oom_total_pages
from podqos.kernel.oom import Kill, Process, kill, select
from podqos.sim.memory_groups import MemoryGroup, NodeMemory
from podqos.sim.pods import SimContainer


class Killed:
    """One kill: which container it hit, whether that has ended, and the reasons."""

    __slots__ = ("because", "container", "has_ended")

    def __init__(self, container: SimContainer, because: OOMKill, *, has_ended: bool) -> None:
        self.container = container
        self.because = because
        self.has_ended = has_ended


def next_kill(
    memory: NodeMemory, group: MemoryGroup, time_us: int, would_evict: Callable[[], WouldEvict | None]
) -> Killed | None:
    """Say whom the kernel kills to make room in ``group``; None where there is nobody it could kill."""
    members = list(memory.members(group))
    owners: dict[int, SimContainer] = {}
    processes = list(_processes(members, group, time_us, owners))
    total_pages = oom_total_pages(memory.machine, group.settings)
    selection = select(processes, total_pages, group.path)
    if selection is None:
        return None
    victim = owners[selection.victim.process.pid]
    groups = {victim.path} if victim.groups[0].settings.oom_group else ()
    done = kill(selection, processes, groups, cgroup_version=memory.machine.cgroup_version)
    is_main = selection.victim.process.pid == victim.first_pid
    has_ended = done.group is not None or is_main
    because = _because(done, owners, group, time_us, has_ended=has_ended, would_evict=would_evict())
    return Killed(victim, because, has_ended=has_ended)


def _processes(
    members: list[SimContainer], group: MemoryGroup, time_us: int, owners: dict[int, SimContainer]
) -> Iterator[Process]:
    cuts = _cuts(members, group, time_us)
    for container in members:
        for process in container.processes(time_us, cuts.get(container.path, 0)):
            owners[process.pid] = container
            yield process


def _cuts(members: list[SimContainer], group: MemoryGroup, time_us: int) -> dict[str, int]:
    """Return what those did not get whose demand steps up now: of a jump beyond the limit only the first part fits."""
    lacking = group.excess_bytes(time_us)
    jumps = {
        container.path: jump
        for container in members
        if container.anon is not None and (jump := container.anon.step(time_us))
    }
    total = sum(jumps.values())
    return {path: min(jump, lacking * jump // total) for path, jump in jumps.items()}


def _because(
    done: Kill,
    owners: dict[int, SimContainer],
    group: MemoryGroup,
    time_us: int,
    *,
    has_ended: bool,
    would_evict: WouldEvict | None,
) -> OOMKill:
    selection = done.selection
    victim, runner_up = selection.victim, selection.runner_up
    container = owners[victim.process.pid]
    other = None if runner_up is None else owners[runner_up.process.pid]
    freed = container.usage_bytes(time_us) if has_ended else victim.process.rss_pages * PAGE_BYTES
    margin = selection.margin_pages
    assert group.limit_bytes is not None
    return OOMKill(
        level=group.level,
        domain=group.path,
        limit_bytes=group.limit_bytes,
        total_pages=selection.total_pages,
        oom_score_adj=victim.process.oom_score_adj,
        used_pages=victim.used_pages,
        points=victim.points,
        killed_processes=container.process_count(time_us) if has_ended else 1,
        as_group=done.group is not None,
        freed_bytes=freed,
        runner_up_pod=None if other is None else other.pod.key,
        runner_up_container=None if other is None else other.name,
        runner_up_points=None if runner_up is None else runner_up.points,
        margin_bytes=None if margin is None else margin * PAGE_BYTES,
        would_evict=would_evict,
    )
