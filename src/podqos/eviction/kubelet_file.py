"""A kubelet's settings from a text; settings with which the kubelet would not start are rejected.

What is wrong with the settings alone, such as a soft threshold without a grace period, is reported here with its
position in the file; ``placement.kubelet_start`` checks whether they fit a node.

Source: Kubernetes v1.36 pkg/kubelet/apis/config/validation/validation.go (ValidateKubeletConfiguration),
pkg/kubelet/cm/container_manager_linux.go and pkg/kubelet/cm/cpumanager/policy_static.go (NewStaticPolicy).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podqos.errors import InvalidConfiguration
from podqos.eviction.thresholds import threshold_errors
from podqos.manifest.kubelet import KubeletSettings, located, settings_in
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import CPU


def read_kubelet(source: str, data: bytes) -> KubeletSettings:
    """Return the one kubelet's settings in a text; ``source`` is the name to report it under."""
    try:
        settings = settings_in(source, data)
        check_alone(settings)
    except InvalidConfiguration as error:
        raise located(with_the_rest(error), source, data) from None
    return settings


def with_the_rest(error: InvalidConfiguration) -> InvalidConfiguration:
    """Return what is wrong with settings that cannot be read, with what is wrong with those of them that can."""
    if not isinstance(error.rest, KubeletSettings):
        return error
    rest = error.rest.configuration
    if any("evictionSoftGracePeriod" in each.where for each in error.all):
        rest = replace(rest, eviction_soft={})  # which of them have none is not known then
    thresholds = KubeletConfiguration(
        eviction_hard=rest.eviction_hard,
        eviction_soft=rest.eviction_soft,
        eviction_soft_grace_period=rest.eviction_soft_grace_period,
        eviction_minimum_reclaim=rest.eviction_minimum_reclaim,
    )
    try:
        check_alone(replace(error.rest, configuration=thresholds))
    except InvalidConfiguration as further:
        return InvalidConfiguration.of((*error.all, *further.all)) or error
    return error


def check_alone(settings: KubeletSettings) -> None:
    """Refuse settings with which the kubelet starts on no node; the error names their place in the document."""
    try:
        check_settings(settings.configuration)
    except InvalidConfiguration as error:
        raise error.placed(settings.notation.place, settings.notation.words) from None


def check_settings(config: KubeletConfiguration, profile: Profile = LATEST) -> None:
    """Raise ``InvalidConfiguration`` for the settings with which the kubelet does not start."""
    error = InvalidConfiguration.of(_wrong(config, profile))
    if error is not None:
        raise error


def _wrong(config: KubeletConfiguration, profile: Profile) -> Iterator[InvalidConfiguration]:
    for error in threshold_errors(config, profile):
        what = f"{error.what}: the kubelet does not start"
        yield InvalidConfiguration(what, where=error.where, fix=error.fix)
    if not config.cgroups_per_qos and config.enforce_node_allocatable:
        what = "without cgroupsPerQOS there are no cgroups to enforce it on: the kubelet does not start"
        yield InvalidConfiguration(what, where="enforceNodeAllocatable", fix="write enforceNodeAllocatable: []")
    reserved = (config.reserved_for_kube, config.reserved_for_system)
    if config.cpu_manager_policy == "static" and not any(amounts.get(CPU) for amounts in reserved):
        what = "static needs CPUs reserved for the system: the kubelet does not start"
        yield InvalidConfiguration(what, where="cpuManagerPolicy", fix='add reservedSystemCPUs: "0"')
