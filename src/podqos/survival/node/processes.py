"""The processes behind a snapshot, as the kernel's OOM killer sees them.

Statistics are per container, the kernel kills processes. A container's memory is assumed to be spread evenly over the
number of processes in the snapshot; without one it is a single process, which is the worst case. Mapped files count for
the kernel but are in no statistics; they are left out. So are the sandboxes: at −998 they die last, and use almost no
memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import Process
from podqos.model.pod import QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.snapshot import ContainerUsage, PodUsage, Snapshot
from podqos.qos.cgroup_paths import UNKNOWN_UID, cgroup_uid, container_location, pod_path
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import OOMScore, running_scores

FIRST_PID = 1000
"""Of the model: small numbers belong to the machine."""


class ContainerProcesses(Struct, frozen=True, gc=False):
    """A container with its processes, largest first; none where it has not started."""

    pod: PodUsage
    qos_class: QOSClass
    usage: ContainerUsage
    score: OOMScore
    processes: tuple[Process, ...]


def container_processes(
    snapshot: Snapshot, settings: CgroupSettings, profile: Profile = LATEST
) -> tuple[ContainerProcesses, ...]:
    """Return every container of every pod, in the order of the snapshot.

    Process ids are given out in the order in which containers start: a pod's sidecars before its other containers.
    """
    found = []
    next_pid = FIRST_PID
    for entry in snapshot.pods:
        qos_class = qos_class_of(entry.pod, profile)
        scores = {
            score.container: score
            for score in running_scores(entry.pod, qos_class, settings.node_memory_bytes, profile)
        }
        if entry.pod.status.qos_class is not None:  # else it is tried with other resources, as a new pod
            scores |= {usage.name: _kept(scores[usage.name], usage) for usage in entry.containers}
        paths = container_paths(entry, qos_class, settings)
        started: dict[str, tuple[Process, ...]] = {}
        sidecars = {container.name for container in entry.pod.spec.init_containers}
        for usage in sorted(entry.containers, key=lambda usage: usage.name not in sidecars):
            processes = tuple(_processes(usage, scores[usage.name].value, paths[usage.name], next_pid))
            next_pid += len(processes)
            started[usage.name] = processes
        found += [
            ContainerProcesses(entry, qos_class, usage, scores[usage.name], started[usage.name])
            for usage in entry.containers
        ]
    return tuple(found)


def _kept(score: OOMScore, usage: ContainerUsage) -> OOMScore:
    """Return the score that processes have, where that is known."""
    value = usage.oom_score_adj
    return score if value is None or value == score.value else replace(score, value=value, after_restart=score.value)


def container_ids(entry: PodUsage, qos_class: QOSClass, settings: CgroupSettings) -> dict[str, str]:
    """Return what stands for the unknown id of each container that runs, in the path of its cgroup: its name.

    Without cgroups of pods (``cgroupsPerQOS: false``) the containers of all pods lie beside each other, so that the uid
    of the pod goes before the name.
    """
    parent = pod_path(cgroup_uid(entry.pod), qos_class, settings)
    before = "" if parent is not None else f"{entry.pod.metadata.uid or UNKNOWN_UID}-"
    return {usage.name: f"{before}{usage.name}" for usage in entry.containers}


def container_paths(entry: PodUsage, qos_class: QOSClass, settings: CgroupSettings) -> dict[str, str]:
    """Return the cgroup of each container that runs."""
    parent = pod_path(cgroup_uid(entry.pod), qos_class, settings)
    ids = container_ids(entry, qos_class, settings)
    places = {name: container_location(parent, made_up, settings).path for name, made_up in ids.items()}
    return {name: path for name, path in places.items() if path is not None}


def _processes(usage: ContainerUsage, oom_score_adj: int, path: str, first_pid: int) -> Iterator[Process]:
    count = usage.processes
    amounts = (usage.anon_bytes, usage.swap_bytes, usage.page_table_bytes)
    shares = [_evenly(amount // PAGE_BYTES, count) for amount in amounts]
    for index in range(count):
        rss, swap, page_tables = (share[index] for share in shares)
        yield Process(first_pid + index, path, rss, swap, page_tables, oom_score_adj, usage.name)


def _evenly(pages: int, count: int) -> list[int]:
    whole, rest = divmod(pages, count) if count else (0, 0)
    return [whole + (index < rest) for index in range(count)]
