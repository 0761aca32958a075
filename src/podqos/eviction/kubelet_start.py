"""Settings with which a kubelet does not start, on whichever node.

Whether they fit a node of a given size is in ``placement.kubelet_start``.

Source: Kubernetes v1.36 pkg/kubelet/apis/config/validation/validation.go (ValidateKubeletConfiguration),
pkg/kubelet/cm/container_manager_linux.go and pkg/kubelet/cm/cpumanager/policy_static.go (NewStaticPolicy).
"""

from __future__ import annotations

from podqos.errors import InvalidConfiguration
from podqos.eviction.thresholds import parse_thresholds
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import CPU


def check_settings(config: KubeletConfiguration, profile: Profile = LATEST) -> None:
    """Raise ``InvalidConfiguration`` for the first setting with which the kubelet does not start."""
    parse_thresholds(config, profile)
    if not config.cgroups_per_qos and config.enforce_node_allocatable:
        what = "without cgroupsPerQOS there is nothing to enforce it on: the kubelet does not start"
        raise InvalidConfiguration(what, where="enforceNodeAllocatable", fix="write enforceNodeAllocatable: []")
    reserved = (config.reserved_for_kube, config.reserved_for_system)
    if config.cpu_manager_policy == "static" and not any(amounts.get(CPU) for amounts in reserved):
        what = "static needs CPUs that are reserved for the system: the kubelet does not start"
        raise InvalidConfiguration(what, where="cpuManagerPolicy", fix='add reservedSystemCPUs: "0"')
