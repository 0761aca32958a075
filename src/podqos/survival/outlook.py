"""How much memory a node has left, as kubelet and kernel count it.

The kubelet subtracts working sets, which include active page cache. The kernel reclaims that cache before it kills, but
keeps a reserve, and has two limits: the machine, and the cgroup of all pods where that has one. So a node can be under
pressure for one of the two and fine for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from podqos.eviction.signals import Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT
from podqos.kernel.charge import Room, machine_room, rooms, with_reclaim
from podqos.kernel.memcg import Memory
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import Snapshot
from podqos.qos.cgroup_paths import node_path
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.exhaustion import WatchedThreshold
from podqos.survival.headroom import Headroom, headroom, memory_signals, pods_limit_bytes
from podqos.survival.memory_tree import memory_tree
from podqos.survival.orders import OOMDomain


class Outlook(Struct, frozen=True, gc=False):
    """What is left of a node's memory."""

    available: Mapping[Signal, int]
    """What the kubelet sees: ``memory.available``, and ``allocatableMemory.available`` where pods have a limit."""
    headroom: Headroom | None
    """What is left until it evicts; None where its thresholds are not given, or it has none."""
    machine: Room
    """What the kernel can still allocate before a global OOM."""
    pods: Room | None
    """The same for all pods together; None where their cgroup has no limit."""
    domain: OOMDomain
    """Where memory runs out first if pods keep growing."""

    @property
    def available_bytes(self) -> int:
        """``memory.available``, the kubelet's figure."""
        return self.available[Signal.MEMORY]

    @property
    def first_oom(self) -> Room:
        """What is left there."""
        return self.machine if self.pods is None or self.domain.path == ROOT else self.pods


def outlook(
    snapshot: Snapshot,
    settings: CgroupSettings,
    profile: Profile = LATEST,
    thresholds: Iterable[WatchedThreshold] = (),
) -> Outlook:
    """Return what is left."""
    memory = memory_tree(snapshot, settings, profile)
    available = memory_signals(snapshot, pods_limit_bytes(settings), profile)
    machine, pods = with_reclaim(memory, machine_room(memory)), _pods_room(memory, node_path(settings))
    # At a tie the cgroup comes first: it is charged before the machine is asked for a page.
    first = machine if pods is None or machine.until_oom_bytes < pods.until_oom_bytes else pods
    return Outlook(
        available=available,
        headroom=headroom(available, thresholds),
        machine=machine,
        pods=pods,
        domain=OOMDomain(memory.oom_total_pages(first.path) * PAGE_BYTES, first.path),
    )


def _pods_room(memory: Memory, path: str) -> Room | None:
    if path == ROOT or path not in memory or memory[path].settings.max_bytes is None:
        return None
    return next(with_reclaim(memory, room) for room in rooms(memory, path) if room.path == path)
