"""The node that ``--kubelet-config`` and its neighbours describe, as the settings that cgroups are planned by."""

from __future__ import annotations

import os
from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InvalidConfiguration
from podqos.eviction.kubelet_file import check_thresholds, read_kubelet
from podqos.library.inputs.files import read_bytes
from podqos.library.inputs.kubelet_notes import ignored_problems
from podqos.library.inputs.kubelet_settings import divided
from podqos.manifest.problems import Problem
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.placement.node_cgroups import cgroup_settings
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion

if TYPE_CHECKING:
    from podqos.library.inputs.objects import Objects


class Kubelet(Struct, frozen=True):
    """A kubelet's configuration, and the file it is from, if any."""

    config: KubeletConfiguration = KubeletConfiguration()
    path: str | None = None
    problems: tuple[Problem, ...] = ()
    """What of the file changes no answer."""

    @property
    def is_stated(self) -> bool:
        """Whether anything is known of it but the defaults."""
        return self.path is not None or self.config != KubeletConfiguration()


# The default of older versions, which may stay in their files.
_FORMER_THROTTLING_FACTOR = 0.9

DEFAULT_KUBELET = Kubelet()
"""One whose configuration is not stated."""


def load_kubelet(path: str | os.PathLike[str]) -> Kubelet:
    """Return the kubelet that a file describes: a KubeletConfiguration, its /configz, or one of OpenShift's files.

    Raises InputError where the file cannot be read, or the kubelet would not start with it.
    """
    name = os.fspath(path)
    settings = read_kubelet(name, read_bytes(name))
    return Kubelet(settings.configuration, name, tuple(ignored_problems(settings, name)))


def kubelet_among(objects: Objects) -> Kubelet | None:
    """Return the kubelet whose settings stand among the files; None where there are several, or none."""
    if len(objects.kubelets) != 1:
        return None
    settings, path = objects.kubelets[0].settings, objects.kubelets[0].found.source.path
    try:
        check_thresholds(settings)
    except InvalidConfiguration as error:
        raise _located(path, error) from error
    return Kubelet(settings.configuration, path)


def cgroups_of(
    kubelet: Kubelet,
    *,
    memory_bytes: int,
    cores: int | Fraction | None = None,
    swap_bytes: int = 0,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    profile: Profile = LATEST,
) -> CgroupSettings:
    """Return the settings of a node with this kubelet, which must be one that starts there.

    ``cores`` are None where they are not known.
    """
    capacity = {MEMORY: Quantity.of_units(memory_bytes, "BinarySI")}
    if cores is not None:
        capacity[CPU] = Quantity.of_milli(int(cores * 1000))
    try:
        _check_starts(kubelet.config, capacity, swap_bytes, profile)
    except InvalidConfiguration as error:
        raise _located(kubelet.path, error) from error
    return cgroup_settings(
        kubelet.config, capacity, swap_bytes=swap_bytes, cgroup_version=cgroup_version, profile=profile
    )


def judged_cgroups(
    kubelet: Kubelet,
    *,
    memory_bytes: int,
    swap_bytes: int = 0,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    profile: Profile = LATEST,
) -> CgroupSettings:
    """Return the settings for those who ask who dies; where nothing is stated pods have no limit but the machine."""
    if not kubelet.is_stated:
        return CgroupSettings(node_memory_bytes=memory_bytes, node_swap_bytes=swap_bytes, cgroup_version=cgroup_version)
    settings = cgroups_of(
        # That there is swap was measured: the kubelet did start.
        replace(kubelet, config=replace(kubelet.config, fail_swap_on=False)),
        memory_bytes=memory_bytes,
        swap_bytes=swap_bytes,
        cgroup_version=cgroup_version,
        profile=profile,
    )
    # Only limits count here, and every container has to be somewhere (see ``cgroup_paths``).
    return settings if settings.cgroups_per_qos else replace(settings, cgroup_driver=CgroupDriver.CGROUPFS)


def _check_starts(config: KubeletConfiguration, capacity: ResourceList, swap_bytes: int, profile: Profile) -> None:
    """Refuse a configuration with which the kubelet does not start on such a node."""
    needs_memory_qos = config.memory_throttling_factor not in (None, _FORMER_THROTTLING_FACTOR)
    if profile.memory_qos == "beta" and needs_memory_qos and not config.has_memory_qos(profile):
        what = "it is set, and featureGates turns MemoryQoS off: the kubelet does not start"
        raise InvalidConfiguration(what, where="memoryThrottlingFactor", fix="remove it, or turn MemoryQoS on")
    if not config.cgroups_per_qos and config.enforce_node_allocatable:
        what = "without cgroupsPerQOS there is nothing to enforce it on: the kubelet does not start"
        raise InvalidConfiguration(what, where="enforceNodeAllocatable", fix="write enforceNodeAllocatable: []")
    if config.cpu_manager_policy == "static" and not any(
        amounts.get(CPU) for amounts in (config.reserved_for_kube, config.reserved_for_system)
    ):
        what = "static needs CPUs that are reserved for the system: the kubelet does not start"
        raise InvalidConfiguration(what, where="cpuManagerPolicy", fix='add reservedSystemCPUs: "0"')
    if swap_bytes and config.fail_swap_on:
        what = "it is true, and the node has swap: the kubelet does not start"
        raise InvalidConfiguration(what, where="failSwapOn", fix="write failSwapOn: false")
    divided(capacity, config)


def _located(path: str | None, error: InvalidConfiguration) -> InvalidConfiguration:
    where = error.where.removeprefix(": ")
    if path is not None and not where.startswith(path):
        where = f"{path}: {where}" if where else path
    return InvalidConfiguration(error.what, where=where, fix=error.fix)
