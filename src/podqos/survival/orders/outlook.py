"""How much memory a node has left, as kubelet and kernel count it.

The kubelet subtracts working sets, which include active page cache. The kernel reclaims that cache before it kills, but
keeps a reserve, and has two limits: the machine, and the cgroup of all pods where that has one. So a node can be under
pressure for one of the two and fine for the other.

What the kernel has left is what the forecast says of a container without a limit of its own. That takes one sum, except
where memory is protected (MemoryQoS): then growth itself moves protection between cgroups, and is followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.signals import Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT
from podqos.kernel.charge import BoundRoom, machine_room, rooms, with_reclaim
from podqos.kernel.growth import grow
from podqos.kernel.memcg import MemcgSettings, Memory
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import Snapshot
from podqos.qos.cgroup_paths import node_path
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.node.memory_tree import memory_tree
from podqos.survival.orders.exhaustion import WatchedThreshold
from podqos.survival.orders.headroom import Headroom, headroom, memory_signals, pods_limit_bytes
from podqos.survival.orders.orders import OOMDomain


class Outlook(Struct, frozen=True, gc=False):
    """What is left of a node's memory."""

    available: Mapping[Signal, int]
    """What the kubelet sees: ``memory.available``, and ``allocatableMemory.available`` where pods have a limit."""
    headroom: Headroom | None
    """What is left until it evicts; None where its thresholds are not given, or it has none."""
    machine: BoundRoom
    """What the kernel can still allocate before a global OOM."""
    pods: BoundRoom | None
    """The same for all pods together; None where their cgroup has no limit."""
    first_oom: BoundRoom
    """What is left where memory runs out first if pods keep growing."""
    domain: OOMDomain
    """Where that is."""
    pods_limit_bytes: int | None = None
    """What all pods may use together; None where that is not enforced."""

    @property
    def available_bytes(self) -> int:
        """``memory.available``, the kubelet's figure."""
        return self.available[Signal.MEMORY]


def outlook(
    snapshot: Snapshot,
    settings: CgroupSettings,
    profile: Profile = LATEST,
    thresholds: Iterable[WatchedThreshold] = (),
) -> Outlook:
    """Return what is left."""
    memory = memory_tree(snapshot, settings, profile)
    available = memory_signals(snapshot, pods_limit_bytes(settings), profile)
    path = node_path(settings)
    machine, pods = with_reclaim(memory, machine_room(memory)), _pods_room(memory, path)
    # At a tie the cgroup comes first: it is charged before the machine is asked for a page.
    first = machine if pods is None or machine.until_oom_bytes < pods.until_oom_bytes else pods
    if first.until_oom_bytes > 0 and _is_protected(memory):
        first = _grown(memory, path)
    return Outlook(
        available=available,
        headroom=headroom(available, thresholds),
        machine=machine,
        pods=pods,
        first_oom=first,
        domain=OOMDomain(memory.oom_total_pages(first.path) * PAGE_BYTES, first.path),
        pods_limit_bytes=pods_limit_bytes(settings),
    )


def _is_protected(memory: Memory) -> bool:
    """Whether any cgroup keeps memory from reclaim."""
    return any(memcg.settings.min_bytes or memcg.settings.low_bytes for memcg in memory)


def _grown(memory: Memory, path: str) -> BoundRoom:
    """Let a container without limits, protection or swap grow, as one of a new BestEffort pod; return what runs out."""
    new = f"{path.removesuffix('/')}/podqos-new"
    memory.add(new, MemcgSettings(swap_max_bytes=0))
    course = grow(memory, new)
    return replace(course.room, free_bytes=course.until_oom_bytes, reclaimable_bytes=0)


def _pods_room(memory: Memory, path: str) -> BoundRoom | None:
    if path == ROOT or path not in memory or memory[path].settings.max_bytes is None:
        return None
    return next(with_reclaim(memory, room) for room in rooms(memory, path) if room.path == path)
