"""How much memory a node has left, as kubelet and kernel count it.

The kubelet subtracts working sets, which include active page cache. The kernel reclaims that cache before it kills, but
keeps a reserve, and has two limits: the machine, and the cgroup of all pods where that has one. So a node can be under
pressure for one of the two and fine for the other.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT
from podqos.kernel.charge import Room, machine_room, rooms, with_reclaim
from podqos.kernel.memcg import Memory
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import Snapshot
from podqos.qos.cgroup_paths import node_path
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.memory_tree import memory_tree
from podqos.survival.orders import OOMDomain


class Outlook(Struct, frozen=True, gc=False):
    """What is left of a node's memory."""

    available_bytes: int
    """``memory.available``, the kubelet's figure."""
    machine: Room
    """What the kernel can still allocate before a global OOM."""
    pods: Room | None
    """The same for all pods together; None where their cgroup has no limit."""
    domain: OOMDomain
    """Where memory runs out first if pods keep growing."""

    @property
    def first_oom(self) -> Room:
        """What is left there."""
        return self.machine if self.pods is None or self.domain.path == ROOT else self.pods


def outlook(snapshot: Snapshot, settings: CgroupSettings, profile: Profile = LATEST) -> Outlook:
    """Return what is left."""
    node = snapshot.node
    memory = memory_tree(snapshot, settings, profile)
    working_set_bytes = sum(usage.working_set_bytes for entry in snapshot.pods for usage in entry.containers)
    machine, pods = with_reclaim(memory, machine_room(memory)), _pods_room(memory, node_path(settings))
    # At a tie the cgroup comes first: it is charged before the machine is asked for a page.
    first = machine if pods is None or machine.until_oom_bytes < pods.until_oom_bytes else pods
    return Outlook(
        available_bytes=node.available_bytes(working_set_bytes, profile),
        machine=machine,
        pods=pods,
        domain=OOMDomain(memory.oom_total_pages(first.path) * PAGE_BYTES, first.path),
    )


def _pods_room(memory: Memory, path: str) -> Room | None:
    if path == ROOT or path not in memory or memory[path].settings.max_bytes is None:
        return None
    return next(with_reclaim(memory, room) for room in rooms(memory, path) if room.path == path)
