"""One node at one moment: its memory, its pods, and what each container uses.

Two parties look at the same moment with different figures. The kubelet counts the working set of a pod, the kernel the
pages of a process; a snapshot holds both. Where a figure is unknown, the field says what that means.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.model.stats import PodStats


class ContainerUsage(Struct, frozen=True, gc=False):
    """The memory and disk usage of one container."""

    name: str
    anon_bytes: int = 0
    """Private memory, which the kernel can only swap out."""
    active_file_bytes: int = 0
    """Active page cache: part of the working set, but reclaimable."""
    inactive_file_bytes: int = 0
    """Inactive page cache: not part of the working set."""
    swap_bytes: int = 0
    page_table_bytes: int = 0
    tmpfs_bytes: int = 0
    """What it wrote into volumes in memory: part of the working set, of no process, and not freed when it ends."""
    processes: int = 1
    """Over how many processes its memory is spread evenly; 0 where it has not started."""
    is_measured: bool = True
    """False if nothing is known about it; its figures are then zero."""
    oom_score_adj: int | None = None
    """What its processes have, which a resize in place leaves as it was; None: what follows from its pod."""

    @property
    def working_set_bytes(self) -> int:
        """The working set, as the kubelet counts it."""
        return self.anon_bytes + self.page_table_bytes + self.active_file_bytes + self.tmpfs_bytes


class PodUsage(Struct, frozen=True, gc=False):
    """A pod and its usage."""

    pod: Pod
    stats: PodStats | None
    """The kubelet's figures; None if it has none for this pod."""
    containers: tuple[ContainerUsage, ...]
    """The running containers, in the order of the pod's lists."""


class NodeUsage(Struct, frozen=True, gc=False):
    """The machine."""

    memory_bytes: int
    swap_bytes: int = 0
    name: str = ""
    system_bytes: int = 0
    """Working set outside all pods."""
    hugepages_bytes: int = 0
    """Set aside as huge pages: in no working set, and no memory for anything else."""
    pods_other_bytes: int = 0
    """Working set of the cgroup of all pods outside the containers of the snapshot: sandboxes, files that ended
    containers left in memory, pods that may not be read. Negative where the containers' figures are the newer ones."""
    pods_limit_bytes: int | None = None
    """The limit of that cgroup as the kubelet's statistics have it; None without any."""

    def available_bytes(self, of_pods_bytes: int, profile: Profile) -> int:
        """Return ``memory.available`` as the kubelet counts it; up to 1.36 huge pages seem to be available."""
        hugepages_bytes = self.hugepages_bytes if profile.hugepage_aware_eviction else 0
        return self.memory_bytes - hugepages_bytes - self.system_bytes - of_pods_bytes


class Snapshot(Struct, frozen=True, gc=False):
    """A node with its pods. Every pod has a uid, and no two the same."""

    node: NodeUsage
    pods: tuple[PodUsage, ...]

    @property
    def pods_working_set_bytes(self) -> int:
        """The working set of all pods together, which the kubelet compares with their limit."""
        of_containers = sum(usage.working_set_bytes for entry in self.pods for usage in entry.containers)
        return of_containers + self.node.pods_other_bytes

    @property
    def stats(self) -> dict[str, PodStats]:
        """The kubelet's figures by uid, as eviction looks them up."""
        return {entry.pod.metadata.uid: entry.stats for entry in self.pods if entry.stats is not None}
