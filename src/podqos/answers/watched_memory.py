"""The memory of a node as its kubelet watches it: thresholds, signals and headroom, the same for every command."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.node_state import NodeState
from podqos.eviction.signals import Signal
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet
from podqos.objects.kubelet_settings import memory_allocatable
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.survival.orders.exhaustion import Exhaustion, exhaustion
from podqos.survival.orders.headroom import Headroom, headroom, memory_signals, pods_limit_bytes


class WatchedMemory(Struct, frozen=True):
    """What a kubelet watches, and what is left by it."""

    settings: CgroupSettings
    exhaustion: Exhaustion
    available: Mapping[Signal, int]
    """By each signal of memory."""

    @property
    def limit_bytes(self) -> int | None:
        """What all pods may use together; None where that is not enforced."""
        return pods_limit_bytes(self.settings)

    @property
    def headroom(self) -> Headroom | None:
        """What is left until the kubelet evicts; None where it has no threshold of memory."""
        return headroom(self.available, self.exhaustion.thresholds)

    @property
    def headroom_bytes(self) -> int:
        """The same as an amount: without a threshold all that is available."""
        found = self.headroom
        return self.available[Signal.MEMORY] if found is None else found.headroom_bytes

    @property
    def threshold_bytes(self) -> int:
        """The highest hard threshold of ``memory.available``; 0 where there is none."""
        watched = self.exhaustion.thresholds
        return max(
            (threshold.amount or 0 for threshold in watched if threshold.is_hard and threshold.signal is Signal.MEMORY),
            default=0,
        )


def watched_memory(
    state: NodeState,
    profile: Profile,
    *,
    kubelet: Kubelet | None = None,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    pods_memory_bytes: int | None = None,
) -> WatchedMemory:
    """Return what the kubelet of a node watches; another than the node's own may be tried.

    What it leaves to pods counts only where its configuration is known, or ``pods_memory_bytes`` says so.
    """
    kubelet = kubelet or state.kubelet or DEFAULT_KUBELET
    settings = state.cgroups(kubelet, cgroup_version, profile)
    if pods_memory_bytes is not None:
        allocatable = {**settings.node_allocatable, MEMORY: Quantity.of_units(pods_memory_bytes, "BinarySI")}
        settings = replace(settings, node_allocatable=allocatable, enforce_node_allocatable=True)
    capacities = {Signal.MEMORY: state.snapshot.node.memory_bytes}
    divided = None if not kubelet.is_stated else memory_allocatable(kubelet.config, capacities)
    return WatchedMemory(
        settings,
        exhaustion(kubelet.config, capacities, allocatable=divided, profile=profile),
        memory_signals(state.snapshot, pods_limit_bytes(settings), profile),
    )
