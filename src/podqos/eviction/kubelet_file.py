"""A kubelet's settings from a text; settings with which the kubelet would not start are rejected.

What is wrong with the settings alone, such as a soft threshold without a grace period, is reported here with its
position in the file; ``placement.kubelet_start`` checks whether they fit a node.

Source: Kubernetes v1.36 pkg/kubelet/apis/config/validation/validation.go (ValidateKubeletConfiguration),
pkg/kubelet/cm/container_manager_linux.go and pkg/kubelet/cm/cpumanager/policy_static.go (NewStaticPolicy).
"""

from __future__ import annotations

from podqos.errors import InvalidConfiguration
from podqos.eviction.thresholds import parse_thresholds
from podqos.manifest.kubelet import KubeletSettings, kubelet_settings_in
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import CPU


def read_kubelet(source: str, data: bytes) -> KubeletSettings:
    """Return the one kubelet's settings in a text; ``source`` is the name to report it under."""
    settings = kubelet_settings_in(source, data)
    try:
        check_alone(settings)
    except InvalidConfiguration as error:
        raise InvalidConfiguration(error.what, where=f"{source}: {error.where}", fix=error.fix) from None
    return settings


def check_alone(settings: KubeletSettings) -> None:
    """Refuse settings with which the kubelet starts on no node; the error names their place in the document."""
    try:
        check_settings(settings.configuration)
    except InvalidConfiguration as error:
        where, fix = settings.notation.place(error.where), settings.notation.words(error.fix)
        raise InvalidConfiguration(error.what, where=where, fix=fix) from None


def check_settings(config: KubeletConfiguration, profile: Profile = LATEST) -> None:
    """Raise ``InvalidConfiguration`` for the first setting with which the kubelet does not start."""
    try:
        parse_thresholds(config, profile)
    except InvalidConfiguration as error:
        what = f"{error.what}: the kubelet does not start"
        raise InvalidConfiguration(what, where=error.where, fix=error.fix) from None
    if not config.cgroups_per_qos and config.enforce_node_allocatable:
        what = "without cgroupsPerQOS there are no cgroups to enforce it on: the kubelet does not start"
        raise InvalidConfiguration(what, where="enforceNodeAllocatable", fix="write enforceNodeAllocatable: []")
    reserved = (config.reserved_for_kube, config.reserved_for_system)
    if config.cpu_manager_policy == "static" and not any(amounts.get(CPU) for amounts in reserved):
        what = "static needs CPUs reserved for the system: the kubelet does not start"
        raise InvalidConfiguration(what, where="cpuManagerPolicy", fix='add reservedSystemCPUs: "0"')
