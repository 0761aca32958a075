"""Where a pod's cgroups are: names and directories below the cgroup mount.

QoS class → pod → container. The kubelet names the first two, the container runtime the third. With the systemd driver
every level is a unit whose name repeats its ancestors (``a-b.slice`` lies in ``a.slice``), so a dash inside a name
has to become an underscore; with cgroupfs names are directories as they are.

Sources: Kubernetes v1.36 pkg/kubelet/cm/{cgroup_manager_linux,pod_container_manager_linux,helpers_linux}.go,
pkg/kubelet/config/common.go (static pods); containerd internal/cri/server/podsandbox/helpers_linux.go and
pkg/oci/spec.go; cri-o internal/config/cgmgr; moby daemon/oci_linux.go.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache, reduce

from msgspec import Struct

from podqos.model.pod import Pod, QOSClass
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, Runtime

# What stands where a manifest cannot say: both are given out when the pod runs.
UNKNOWN_UID = "<uid>"
UNKNOWN_ID = "<id>"

_KUBEPODS = "kubepods"
_CONFIG_HASH = "kubernetes.io/config.hash"

# The first part of a container's name: in a systemd scope, and as a plain directory.
_SCOPE_PREFIX = {Runtime.CONTAINERD: "cri-containerd", Runtime.CRIO: "crio", Runtime.DOCKER: "docker"}
_CGROUPFS_PREFIX = {Runtime.CONTAINERD: "", Runtime.CRIO: "crio-", Runtime.DOCKER: ""}

# Where a runtime puts a container when the kubelet names no parent. containerd falls back to a path that the
# systemd driver of runc and crun refuses ("expected cgroupsPath to be of format slice:prefix:name").
_OWN_PARENT = {
    (Runtime.CONTAINERD, CgroupDriver.CGROUPFS): "/k8s.io",
    (Runtime.CRIO, CgroupDriver.CGROUPFS): "/crio",
    (Runtime.CRIO, CgroupDriver.SYSTEMD): "/system.slice",
    (Runtime.DOCKER, CgroupDriver.CGROUPFS): "/docker",
    (Runtime.DOCKER, CgroupDriver.SYSTEMD): "/system.slice",
}

_CLASS_NAMES = {qos_class.lower(): qos_class for qos_class in (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT)}
_SLICE = re.compile(
    rf"(?:[^/]{{1,200}}-)??{_KUBEPODS}(?:-(?P<class>{'|'.join(_CLASS_NAMES)}))?(?:-pod(?P<uid>[0-9A-Za-z_]{{1,64}}))?\.slice"
)
# The names of _SCOPE_PREFIX and _CGROUPFS_PREFIX, and cri-o's monitor beside a container.
_CONTAINER = re.compile(r"(?:(?:cri-containerd|crio-conmon|crio|docker|libpod)-)?(?P<id>[0-9a-f]{12,64})(?:\.scope)?")


# Without a kubelet: docker, podman, containerd's and cri-o's own, LXC, and tasks of Amazon ECS.
_RUNTIME_CONTAINER = re.compile(
    r"/(?:[a-z-]{1,20}-)?[0-9a-f]{64}(?:\.scope)?(?:/|$)|^/ecs/[^/]{1,128}/[^/]|^/lxc(?:\.payload)?[./][^/]"
)


class ContainerLocation(Struct, frozen=True, gc=False):
    """Where a container's cgroup is."""

    path: str | None
    """The directory; None where the runtime would refuse to start the container."""
    oci_path: str
    """What the OCI runtime is given as ``cgroupsPath``: with systemd ``slice:prefix:id``, which is no directory."""


def node_path(settings: CgroupSettings) -> str:
    """Return the cgroup that holds all pods: ``kubepods``, or the root itself without QoS cgroups."""
    return _path(_node_parts(settings), settings.cgroup_driver)


def qos_path(qos_class: QOSClass, settings: CgroupSettings) -> str:
    """Return the cgroup of a class; Guaranteed pods lie beside the other two classes, directly below ``kubepods``."""
    return _path(_qos_parts(qos_class, settings), settings.cgroup_driver)


def pod_path(uid: str, qos_class: QOSClass, settings: CgroupSettings) -> str | None:
    """Return the cgroup of a pod; None without QoS cgroups, because the kubelet makes no cgroups for pods then."""
    if not settings.cgroups_per_qos:
        return None
    return _path((*_qos_parts(qos_class, settings), f"pod{uid}"), settings.cgroup_driver)


def container_location(parent: str | None, container_id: str, settings: CgroupSettings) -> ContainerLocation:
    """Return where the runtime puts a container below its pod's cgroup, or on its own where there is none."""
    runtime, driver = settings.runtime, settings.cgroup_driver
    if parent is None:
        parent = _OWN_PARENT.get((runtime, driver))
    if parent is None:
        return ContainerLocation(None, f"/k8s.io/{container_id}")
    if driver is CgroupDriver.CGROUPFS:
        path = f"{parent}/{_CGROUPFS_PREFIX[runtime]}{container_id}"
        return ContainerLocation(path, path)
    prefix = _SCOPE_PREFIX[runtime]
    slice_name = parent.rpartition("/")[2]
    return ContainerLocation(f"{parent}/{prefix}-{container_id}.scope", f"{slice_name}:{prefix}:{container_id}")


def cgroup_uid(pod: Pod) -> str:
    """Return the uid in the name of a pod's cgroup, or a visible placeholder.

    For a static pod that is the hash the kubelet made of its manifest, not the uid of the mirror the API server shows.
    """
    if pod.is_static or pod.is_mirror:
        config_hash = pod.metadata.annotations.get(_CONFIG_HASH)
        if config_hash:
            return config_hash
    return pod.metadata.uid or UNKNOWN_UID


class CgroupLevel(StrEnum):
    """What a cgroup of a node holds."""

    MACHINE = "machine"
    KUBEPODS = "kubepods"
    CLASS = "class"
    POD = "pod"
    CONTAINER = "container"
    SYSTEM = "system"
    """Something beside pods: a daemon, a session, a container that no kubelet started."""
    CGROUP = "cgroup"
    """A cgroup, and nothing says which."""
    UNKNOWN = "unknown"
    """Nothing says whether it is the machine or a cgroup."""


class CgroupPlace(Struct, frozen=True, gc=False):
    """What the path of a cgroup says, whichever driver and runtime made it."""

    level: CgroupLevel
    qos_class: QOSClass | None = None
    pod_uid: str = ""
    """As in the path: for a static pod the hash of its manifest (``cgroup_uid``)."""
    container_id: str = ""


@lru_cache(maxsize=256)
def place_of(path: str) -> CgroupPlace:
    """Return what the cgroup at a path holds; what a container makes below its own is the container's."""
    if path in {"", "/"}:
        return CgroupPlace(CgroupLevel.MACHINE)
    parts = [part for part in path.split("/") if part]
    return reduce(_inside, parts[2:], _top(*parts[:2]))


@lru_cache(maxsize=256)
def _top(*parts: str) -> CgroupPlace:
    """Return what the first two cgroups of a path hold, which many share."""
    return reduce(_inside, parts, CgroupPlace(CgroupLevel.SYSTEM))


def _inside(place: CgroupPlace, part: str) -> CgroupPlace:
    """Return what a cgroup holds that is directly in another."""
    name, *scope = part.split(":")  # containerd told to use cgroupfs below a systemd slice: slice:prefix:id
    if name.endswith(".slice") and (found := _SLICE.fullmatch(name)):
        place = _below(found["class"], (found["uid"] or "").replace("_", "-"))
    elif part == _KUBEPODS:
        place = _below(None, "")
    elif place.level is CgroupLevel.KUBEPODS and part in _CLASS_NAMES:
        place = _below(part, "")
    elif place.level in (CgroupLevel.KUBEPODS, CgroupLevel.CLASS) and part.startswith("pod"):
        place = _below(place.qos_class and place.qos_class.lower(), part.removeprefix("pod"))
    elif place.level is CgroupLevel.POD and (found := _CONTAINER.fullmatch(part)):
        return CgroupPlace(CgroupLevel.CONTAINER, place.qos_class, place.pod_uid, found["id"])
    if place.level is CgroupLevel.POD and len(scope) == 2:
        return CgroupPlace(CgroupLevel.CONTAINER, place.qos_class, place.pod_uid, scope[1])
    return place


def is_runtime_container(path: str) -> bool:
    """Whether a cgroup beside pods is that of a container, or is in one: by its id, or by where its runtime puts it."""
    return _RUNTIME_CONTAINER.search(path) is not None


def _below(class_name: str | None, uid: str) -> CgroupPlace:
    """Return a place by the names in its path; Guaranteed pods lie directly below ``kubepods``."""
    if uid:
        return CgroupPlace(CgroupLevel.POD, _CLASS_NAMES.get(class_name or "", QOSClass.GUARANTEED), uid)
    if class_name:
        return CgroupPlace(CgroupLevel.CLASS, _CLASS_NAMES[class_name])
    return CgroupPlace(CgroupLevel.KUBEPODS)


def _node_parts(settings: CgroupSettings) -> tuple[str, ...]:
    root = tuple(part for part in settings.cgroup_root.split("/") if part)
    return (*root, _KUBEPODS) if settings.cgroups_per_qos else root


def _qos_parts(qos_class: QOSClass, settings: CgroupSettings) -> tuple[str, ...]:
    node = _node_parts(settings)
    if qos_class is QOSClass.GUARANTEED or not settings.cgroups_per_qos:
        return node
    return (*node, qos_class.lower())


def _path(parts: tuple[str, ...], driver: CgroupDriver) -> str:
    if driver is CgroupDriver.CGROUPFS:
        return "/" + "/".join(parts)
    escaped = [part.replace("-", "_") for part in parts]
    return "/" + "/".join("-".join(escaped[: depth + 1]) + ".slice" for depth in range(len(escaped)))
