"""The node that ``--kubelet-config`` and related options describe, as settings for planning cgroups."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InvalidConfiguration
from podqos.eviction.thresholds import check_alone
from podqos.manifest.kubelet import Notation
from podqos.manifest.problems import Problem
from podqos.model.assumption import Assumption, of_version
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.naming import naming, stated_with
from podqos.objects.files import STDIN
from podqos.placement.allocatable import cgroup_settings, check_starts
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion

if TYPE_CHECKING:
    from podqos.objects.objects import Objects
    from podqos.objects.other_objects import KubeletObject


class Kubelet(Struct, frozen=True):
    """A kubelet's configuration, and its file, if any."""

    config: KubeletConfiguration = KubeletConfiguration()
    path: str | None = None
    problems: tuple[Problem, ...] = ()
    """Settings of the file that have no effect."""
    notation: Notation = Notation.CONFIGURATION
    """The format of the file."""
    is_implied: bool = False
    """Whether its settings were derived from the Node and the kubelet's statistics (``implied_kubelet``)."""

    @property
    def is_stated(self) -> bool:
        """Whether its configuration is known, not only the defaults."""
        return self.path is not None or self.config != KubeletConfiguration()


def rules_of(kubelet: Kubelet | None, profile: Profile) -> tuple[Assumption, ...]:
    """Return what is assumed about the version whose rules a kubelet follows."""
    return (*of_version(profile), *(() if kubelet is None else later_rules(kubelet.notation, profile)))


def later_rules(notation: Notation, profile: Profile) -> tuple[Assumption, ...]:
    """Return the assumption that the rules of a later version apply to an OpenShift 3 file, if they do."""
    if notation is not Notation.ARGUMENTS or profile.has_kubelet_arguments:
        return ()
    version = profile.version_text
    how = f"{stated_with('kubernetes_version', '1.9')} for OKD 3.9"
    return (Assumption("rules for kubeletArguments (OpenShift 3)", f"those of Kubernetes {version}", how),)


# Files that are named in one message.
_NAMED = 5
DEFAULT_KUBELET = Kubelet()
"""A kubelet whose configuration is not stated."""


def kubelets_among(objects: Objects) -> list[Kubelet]:
    """Return the kubelets whose settings are in the files, equal ones once; all of them must start."""
    kubelets: list[Kubelet] = []
    for kubelet in map(kubelet_of, objects.kubelets):
        if all((kubelet.config, kubelet.notation) != (other.config, other.notation) for other in kubelets):
            kubelets.append(kubelet)
    return kubelets


def chosen_kubelet(objects: Objects, stated: Kubelet | None) -> Kubelet | None:
    """Return the kubelet of all nodes: the one that is stated, or else the one in the files; None if there is none.

    Which of several is meant is for the user to say.
    """
    kubelets = [stated] if stated is not None else kubelets_among(objects)
    if len(kubelets) > 1:
        paths = list(dict.fromkeys(str(kubelet.path) for kubelet in kubelets))
        shown = ", ".join(paths[:_NAMED]) + (f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else "")
        what = f"{len(kubelets)} different kubelet configurations: in {shown}"
        can_choose = len(paths) == len(kubelets) and STDIN not in paths
        chosen = naming("kubelet_config", paths[0] if can_choose else "FILE")
        raise InvalidConfiguration(what, fix="keep one of them, or choose it with " + chosen)
    return kubelets[0] if kubelets else None


def kubelet_of(found: KubeletObject) -> Kubelet:
    """Return the kubelet whose settings were found in a file; raise if it does not start with them."""
    path = found.found.source.path
    try:
        check_alone(found.settings)
    except InvalidConfiguration as error:
        raise _located(path, error) from error
    return Kubelet(found.settings.configuration, path, notation=found.settings.notation)


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

    ``cores`` is None if unknown.
    """
    capacity = {MEMORY: Quantity.of_units(memory_bytes, "BinarySI")}
    if cores is not None:
        capacity[CPU] = Quantity.of_milli(int(cores * 1000))
    check_kubelet(kubelet, capacity, swap_bytes=swap_bytes, profile=profile)
    return cgroup_settings(
        kubelet.config, capacity, swap_bytes=swap_bytes, cgroup_version=cgroup_version, profile=profile
    )


def check_kubelet(kubelet: Kubelet, capacity: ResourceList, *, swap_bytes: int = 0, profile: Profile = LATEST) -> None:
    """Raise ``InvalidConfiguration``, with the file, if a kubelet does not start on such a node."""
    try:
        check_starts(kubelet.config, capacity, swap_bytes=swap_bytes, profile=profile)
    except InvalidConfiguration as error:
        raise _located(kubelet.path, error) from error


def judged_cgroups(
    kubelet: Kubelet,
    *,
    memory_bytes: int,
    swap_bytes: int = 0,
    cgroup_version: CgroupVersion = CgroupVersion.V2,
    profile: Profile = LATEST,
) -> CgroupSettings:
    """Return the settings for questions about kills; unless stated, only the machine limits pods."""
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
    # Only limits count here, and every container must be somewhere (see ``cgroup_paths``).
    return settings if settings.cgroups_per_qos else replace(settings, cgroup_driver=CgroupDriver.CGROUPFS)


def _located(path: str | None, error: InvalidConfiguration) -> InvalidConfiguration:
    def placed(where: str) -> str:
        where = where.removeprefix(": ")
        if path is None or where.startswith(path):
            return where
        return f"{path}: {where}" if where else path

    return error.placed(placed)
