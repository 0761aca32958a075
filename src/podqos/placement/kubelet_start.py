"""Whether a kubelet starts on a node: the one check that every reader of a configuration makes once it knows the node.

Source: Kubernetes v1.36 pkg/kubelet/cm/node_container_manager_linux.go (validateNodeAllocatable),
cmd/kubelet/app/server.go (swap), pkg/kubelet/apis/config/validation/validation.go (MemoryQoS).
"""

from __future__ import annotations

from podqos.errors import InvalidConfiguration
from podqos.eviction.kubelet_file import check_settings
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import ResourceList
from podqos.naming import hint, naming
from podqos.placement.allocatable import Allocatable, node_allocatable

# The default of older versions, which may stay in their files.
_FORMER_THROTTLING_FACTOR = 0.9


def check_starts(
    config: KubeletConfiguration, capacity: ResourceList, *, swap_bytes: int = 0, profile: Profile = LATEST
) -> None:
    """Raise ``InvalidConfiguration`` where the kubelet does not start with these settings on such a node."""
    needs_memory_qos = config.memory_throttling_factor not in (None, _FORMER_THROTTLING_FACTOR)
    if profile.memory_qos == "beta" and needs_memory_qos and not config.has_memory_qos(profile):
        what = "is set, but featureGates turns MemoryQoS off: the kubelet does not start"
        raise InvalidConfiguration(what, where="memoryThrottlingFactor", fix="remove it, or turn MemoryQoS on")
    check_settings(config, profile)
    if swap_bytes and config.fail_swap_on:
        what = "is true, but the node has swap: the kubelet does not start"
        raise InvalidConfiguration(what, where="failSwapOn", fix="write failSwapOn: false")
    divided(capacity, config)


def divided(capacity: ResourceList, config: KubeletConfiguration) -> Allocatable:
    """Divide a node as this kubelet does; it must not reserve more than there is."""
    allocatable = node_allocatable(capacity, config)
    for resource in allocatable.over_reserved:
        withheld, there = allocatable.reservation[resource], capacity[resource]
        what = too_much_withheld(resource, str(withheld), str(there))
        fix = "reserve less" + hint(", or describe the node as it is, for example " + naming("node_memory"))
        raise InvalidConfiguration(what, fix=fix)
    return allocatable


def too_much_withheld(resource: str, withheld: str, there: str) -> str:
    """Return the error of a kubelet that withholds more from pods than its node has."""
    return f"{withheld} of {resource} is withheld from pods, but the node has only {there}: the kubelet does not start"
