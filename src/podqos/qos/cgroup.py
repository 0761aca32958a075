"""The cgroup plan: every directory of a pod with the files in it, and the directories above all pods.

This module only puts paths, values and files together; each is decided in its own module (``cgroup_paths``,
``cgroup_values``, ``cgroup_tiers``, ``cgroup_files``).

Without QoS cgroups (``cgroupsPerQOS: false``) the kubelet makes no cgroups at all: pods have none of their own, and
the runtime puts each container where it likes. What the kubelet asks for containers stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.qos.cgroup_files import CgroupFile, files
from podqos.qos.cgroup_paths import (
    UNKNOWN_ID,
    cgroup_uid,
    container_location,
    node_path,
    pod_path,
    qos_path,
)
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.cgroup_tiers import TierRequests, node_values, tier_requests, tier_values
from podqos.qos.cgroup_values import CgroupValues, Rule, Value, ValueReason, container_values, pod_values
from podqos.qos.cpu import MIN_SHARES


class Level(StrEnum):
    """How deep a cgroup lies."""

    NODE = "node"
    QOS = "qos"
    POD = "pod"
    SANDBOX = "sandbox"
    CONTAINER = "container"


class Cgroup(Struct, frozen=True, gc=False):
    """One directory and what is written into it."""

    level: Level
    path: str | None
    """Below the cgroup mount; None where the runtime would refuse the container (see ``cgroup_paths``)."""
    files: tuple[CgroupFile, ...]
    container: str = ""
    """The container's name, at that level."""
    oci_path: str = ""
    """What the OCI runtime is given for a container or sandbox."""

    def text(self, name: str) -> str | None:
        """Return what is written into a file, None if nothing."""
        return next((file.text for file in self.files if file.name == name), None)


def pod_cgroups(
    pod: Pod,
    qos_class: QOSClass,
    settings: CgroupSettings,
    profile: Profile = LATEST,
    ids: Mapping[str, str] | None = None,
) -> tuple[Cgroup, ...]:
    """Return the cgroups of one pod: its own, its sandbox's, and one per container in the order of the lists.

    ``ids`` maps container names to container ids, and the empty name to the sandbox's; where one is not known a
    placeholder stands in the path.
    """
    contents = cgroup_contents(pod, qos_class, settings, profile)
    return located(contents, cgroup_uid(pod), qos_class, settings, ids)


class CgroupContent(Struct, frozen=True, gc=False):
    """What is written into a pod's cgroup or into one below it; the same for all pods with one spec."""

    level: Level
    container: str
    files: tuple[CgroupFile, ...]


def cgroup_contents(
    pod: Pod, qos_class: QOSClass, settings: CgroupSettings, profile: Profile = LATEST
) -> tuple[CgroupContent, ...]:
    """Return the cgroups of a pod without their places."""
    spec = pod.spec
    contents = []
    if settings.cgroups_per_qos:
        values = pod_values(pod, qos_class, settings, profile)
        contents.append(CgroupContent(Level.POD, "", files(values, settings.cgroup_version)))
    sandbox = CgroupValues(cpu_shares=Value(MIN_SHARES, ValueReason(Rule.SANDBOX)))
    contents.append(CgroupContent(Level.SANDBOX, "", _runtime_files(sandbox, settings)))
    for container in (*spec.containers, *spec.init_containers, *spec.ephemeral_containers):
        values = container_values(pod, container, qos_class, settings, profile)
        contents.append(CgroupContent(Level.CONTAINER, container.name, _runtime_files(values, settings)))
    return tuple(contents)


def located(
    contents: Iterable[CgroupContent],
    uid: str,
    qos_class: QOSClass,
    settings: CgroupSettings,
    ids: Mapping[str, str] | None = None,
) -> tuple[Cgroup, ...]:
    """Return the cgroups of the pod with a uid (``cgroup_uid``)."""
    parent = pod_path(uid, qos_class, settings)
    cgroups = []
    for content in contents:
        if content.level is Level.POD:
            cgroups.append(Cgroup(Level.POD, parent, content.files))
        else:
            name = content.container
            place = container_location(parent, UNKNOWN_ID if ids is None else ids.get(name, UNKNOWN_ID), settings)
            cgroups.append(Cgroup(content.level, place.path, content.files, name, place.oci_path))
    return tuple(cgroups)


def node_cgroups(pods: Iterable[Pod], settings: CgroupSettings, profile: Profile = LATEST) -> tuple[Cgroup, ...]:
    """Return the cgroups above the pods of a node: ``kubepods`` and the two classes that have one."""
    return tier_cgroups(tier_requests(pods, profile), settings, profile) if settings.cgroups_per_qos else ()


def tier_cgroups(requests: TierRequests, settings: CgroupSettings, profile: Profile = LATEST) -> tuple[Cgroup, ...]:
    """Return the same for pods whose requests have been added up already."""
    if not settings.cgroups_per_qos:
        return ()
    tiers = tier_values(requests, settings, profile)
    version = settings.cgroup_version
    return (
        Cgroup(Level.NODE, node_path(settings), files(node_values(requests, settings, profile), version)),
        *(
            Cgroup(Level.QOS, qos_path(qos_class, settings), files(tiers[qos_class], version))
            for qos_class in (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT)
        ),
    )


def _runtime_files(values: CgroupValues, settings: CgroupSettings) -> tuple[CgroupFile, ...]:
    return files(values, settings.cgroup_version, settings.weight_conversion)
