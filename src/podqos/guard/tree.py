"""The kubelet's cgroups: where they are, which pods they belong to, and which process is the sandbox.

Supports both drivers and both cgroup versions: the kind of a directory follows from its name alone
(``qos.cgroup_paths``). The guard owns none of them, so nothing is created or removed here, and all other code rejects
paths outside ``kubepods`` (``Cgroups.own``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import HostError
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.cgroupfs import Cgroups, subfolders
from podqos.host.linux.procfs import Procfs
from podqos.qos.cgroup_paths import CgroupLevel, node_path, place_of
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings

_SANDBOX_NAME = "pause"
_MOST_PLACES = 4096
_place = lru_cache(_MOST_PLACES)(place_of)  # the same hundred paths are looked up repeatedly


class ContainerCgroup(Struct, frozen=True):
    """The cgroup of one container."""

    id: str
    path: str


class PodCgroup(Struct, frozen=True):
    """The cgroup of one pod, with those of its containers and its sandbox."""

    uid: str
    """As in the path: for a static pod, the hash of its manifest."""
    path: str
    containers: tuple[ContainerCgroup, ...]


def find_kubepods(settings: CgroupSettings, procfs: Procfs) -> Cgroups:
    """Return the cgroups of a kubelet; its driver may differ from its configuration."""
    paths = sorted({node_path(replace(settings, cgroup_driver=driver)) for driver in CgroupDriver})
    for path in paths:
        cgroups = open_cgroups(path, procfs)
        if cgroups.exists(path):
            return cgroups
    raise HostError(f"no cgroup {' or '.join(paths)}: does a kubelet with this cgroupRoot run here?")


def pods(cgroups: Cgroups) -> Iterator[PodCgroup]:
    """Yield every pod that has a cgroup, with its containers."""
    for uid, path in pod_paths(cgroups):
        yield pod_at(cgroups, uid, path)


def pod_paths(cgroups: Cgroups) -> Iterator[tuple[str, str]]:
    """Yield the uid and the cgroup of every pod that has one."""
    for parent in (cgroups.own, *_classes(cgroups)):
        for path in _below(cgroups, parent):
            place = _place(path)
            if place.level is CgroupLevel.POD:
                yield place.pod_uid, path


def pod_at(cgroups: Cgroups, uid: str, path: str) -> PodCgroup:
    """Return the cgroup of a pod with those of its current containers."""
    return PodCgroup(uid, path, tuple(_containers(cgroups, path)))


def containers_to_kill(cgroups: Cgroups, pod: PodCgroup, known_ids: Iterable[str]) -> Iterator[ContainerCgroup]:
    """Yield the containers of a pod without its sandbox.

    ``known_ids`` are the containers that the API server knows. An unknown one is the sandbox, or a container that has
    only just started: the sandbox came first, and runs ``pause``. In doubt, it is spared: without its sandbox, a pod
    loses its address and a kubelet its reason.
    """
    known = set(known_ids)
    unknown = [container for container in pod.containers if container.id not in known]
    oldest = min(unknown, key=lambda cgroup: _number(cgroups, cgroup.path), default=None)
    for container in pod.containers:
        if container.id in known or (
            container is not oldest and _SANDBOX_NAME not in cgroups.process_names(container.path)
        ):
            yield container


def _number(cgroups: Cgroups, path: str) -> int:
    """Return the number of a cgroup: the kernel counts upwards."""
    try:
        return cgroups.folder(path).stat().st_ino
    except OSError:
        return 0


def _classes(cgroups: Cgroups) -> Iterator[str]:
    return (path for path in _below(cgroups, cgroups.own) if _place(path).level is CgroupLevel.CLASS)


def _containers(cgroups: Cgroups, pod: str) -> Iterator[ContainerCgroup]:
    for path in _below(cgroups, pod):
        place = _place(path)
        if place.level is CgroupLevel.CONTAINER:
            yield ContainerCgroup(place.container_id, path)


def _below(cgroups: Cgroups, path: str) -> Iterator[str]:
    """Yield the cgroups below in the memory hierarchy, which is the relevant one."""
    return (f"{path}/{name}" for name in subfolders(cgroups.folder(path)))
