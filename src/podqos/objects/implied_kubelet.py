"""What a Node and its kubelet's statistics imply about settings that the kubelet does not report.

A kubelet publishes allocatable memory = capacity - reservations - hard threshold - huge pages, and by default it limits
the cgroup of all pods to capacity - reservations. So ``allocatableMemory.available`` crosses its threshold when pods
use more than allocatable, whatever the threshold is. The statistics state the limit, and so the threshold, too.

Source: Kubernetes v1.36 pkg/kubelet/cm/node_container_manager_linux.go (getNodeAllocatableInternalAbsolute),
pkg/kubelet/nodestatus/setters.go (MachineInfo), pkg/kubelet/stats/helper.go (cadvisorInfoToCPUandMemoryStats).
"""

from __future__ import annotations

from msgspec import Struct

from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import default_eviction_hard
from podqos.kernel.build import PAGE_BYTES
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.objects.kubelet_node import Kubelet

_HARD_BYTES = Quantity.parse(default_eviction_hard()[Signal.MEMORY.value]).value


class KnownMemory(Struct, frozen=True, gc=False):
    """What is known of a node's memory without its kubelet's settings."""

    capacity_bytes: int
    hugepages_bytes: int = 0
    allocatable_bytes: int | None = None
    """As the Node states it; None where there is no such object."""
    pods_limit_bytes: int | None = None
    """The limit of the cgroup of all pods, as the kubelet's statistics have it; None without any."""


def implied_kubelet(known: KnownMemory) -> Kubelet | None:
    """Return a kubelet whose settings lead to what is known; None where those are the defaults."""
    capacity_bytes, limit_bytes = known.capacity_bytes, known.pods_limit_bytes
    if limit_bytes is not None and limit_bytes > capacity_bytes:
        limit_bytes = None
    withheld_bytes = None
    if known.allocatable_bytes is not None:
        withheld_bytes = capacity_bytes - known.hugepages_bytes - known.allocatable_bytes
    if limit_bytes is None:
        return None if withheld_bytes is None else _kubelet(withheld_bytes - _HARD_BYTES, _HARD_BYTES)
    reserved_bytes = capacity_bytes - limit_bytes
    # The kernel rounds a limit down to whole pages.
    hard_bytes = 0 if withheld_bytes is None else -(-(withheld_bytes - reserved_bytes) // PAGE_BYTES) * PAGE_BYTES
    if withheld_bytes is None or hard_bytes <= 0:
        return _kubelet(reserved_bytes, _HARD_BYTES)
    return _kubelet(withheld_bytes - hard_bytes, hard_bytes)


def _kubelet(reserved_bytes: int, hard_bytes: int) -> Kubelet | None:
    config = KubeletConfiguration()
    if reserved_bytes > 0:
        config = KubeletConfiguration(system_reserved={MEMORY: _text(reserved_bytes)})
    if hard_bytes != _HARD_BYTES:
        hard = {Signal.MEMORY.value: _text(hard_bytes)}
        config = KubeletConfiguration(
            system_reserved=config.system_reserved, eviction_hard=hard, merge_default_eviction_settings=True
        )
    return None if config == KubeletConfiguration() else Kubelet(config, is_implied=True)


def _text(size_bytes: int) -> str:
    return str(Quantity.of_units(size_bytes, "BinarySI"))
