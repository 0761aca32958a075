"""The kubelet's statistics, in the shape of its ``/stats/summary`` endpoint, as frozen values.

Only the figures that some decision reads are declared; the rest (network, page faults) is skipped while decoding. Every
figure can be missing: a container that has just started has none. An empty list may be ``null``.

Source: Kubernetes v1.36 staging/src/k8s.io/kubelet/pkg/apis/stats/v1alpha1/types.go.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field

SYSTEM_CONTAINER_PODS = "pods"
"""The system container that holds all pods: its memory is what node allocatable is about."""


class PodReference(Struct, frozen=True, gc=False):
    """The pod that the statistics belong to."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class MemoryStats(Struct, frozen=True, gc=False, rename="camel"):
    """Memory of the node, a pod or a container. The working set is usage without inactive file pages."""

    time: datetime | None = None
    available_bytes: int | None = None
    usage_bytes: int | None = None
    working_set_bytes: int | None = None
    rss_bytes: int | None = None
    """Anonymous memory alone."""


class SwapStats(Struct, frozen=True, gc=False, rename="camel"):
    """Swap of the node or a container."""

    swap_available_bytes: int | None = None
    swap_usage_bytes: int | None = None


class CPUStats(Struct, frozen=True, gc=False, rename="camel"):
    """CPU of a container."""

    usage_nano_cores: int | None = None


class FsStats(Struct, frozen=True, gc=False, rename="camel"):
    """A filesystem, or its usage."""

    time: datetime | None = None
    available_bytes: int | None = None
    capacity_bytes: int | None = None
    used_bytes: int | None = None
    inodes_free: int | None = None
    inodes: int | None = None
    inodes_used: int | None = None


class VolumeStats(Struct, frozen=True, gc=False, rename="camel"):
    """The usage of a pod's volume."""

    name: str = ""
    used_bytes: int | None = None
    inodes_used: int | None = None


class ProcessStats(Struct, frozen=True, gc=False):
    """Processes of a pod."""

    process_count: int | None = None


class ContainerStats(Struct, frozen=True, gc=False):
    """A container, or one of the node's system containers."""

    name: str = ""
    memory: MemoryStats | None = None
    rootfs: FsStats | None = None
    logs: FsStats | None = None
    swap: SwapStats | None = None
    cpu: CPUStats | None = None


class PodStats(Struct, frozen=True, gc=False):
    """A pod and its containers. The field names are the endpoint's own mixture."""

    pod_ref: PodReference = field(default=PodReference(), name="podRef")
    containers: tuple[ContainerStats, ...] | None = None
    memory: MemoryStats | None = None
    volumes: tuple[VolumeStats, ...] = field(default=(), name="volume")
    ephemeral_storage: FsStats | None = field(default=None, name="ephemeral-storage")
    process_stats: ProcessStats | None = None


class RuntimeStats(Struct, frozen=True, gc=False, rename="camel"):
    """The container runtime's filesystems."""

    image_fs: FsStats | None = None
    container_fs: FsStats | None = None


class RlimitStats(Struct, frozen=True, gc=False):
    """Process ids of the node."""

    time: datetime | None = None
    maxpid: int | None = None
    curproc: int | None = None


class NodeStats(Struct, frozen=True, gc=False, rename="camel"):
    """The node itself."""

    node_name: str = ""
    system_containers: tuple[ContainerStats, ...] = ()
    memory: MemoryStats | None = None
    fs: FsStats | None = None
    runtime: RuntimeStats | None = None
    rlimit: RlimitStats | None = None
    swap: SwapStats | None = None


class Summary(Struct, frozen=True, gc=False):
    """The whole response."""

    node: NodeStats = NodeStats()
    pods: tuple[PodStats, ...] | None = None
