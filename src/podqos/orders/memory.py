"""A node's memory as kernel and kubelet count it: processes, cgroups, and how much is left for either.

Statistics are per container, the kernel kills processes. A container's memory is assumed to be spread evenly over the
number of processes in the snapshot; without one it is a single process, which is the worst case. Mapped files count for
the kernel but are in no statistics; they are left out. So are the sandboxes: at −998 they die last, and use almost no
memory. The limits of cgroups are read back from the files of the cgroup plan, so that model and machine get the same.

The kubelet subtracts working sets, which include active page cache. A kubelet that enforces the allocatable of pods
watches two signals: ``memory.available`` of the machine, and ``allocatableMemory.available`` of the cgroup of all pods.
Reservations make the second the smaller one on most nodes. The kernel reclaims that cache before it kills, but keeps a
reserve, and has two limits: the machine, and the cgroup of all pods where that has one. So a node can be under pressure
for one of the two and fine for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.signals import Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.cgroup import ROOT, parent_path
from podqos.kernel.charge import BoundRoom, machine_room, rooms, with_reclaim
from podqos.kernel.growth import grow
from podqos.kernel.memcg import Kind, MemcgSettings, Memory
from podqos.kernel.memory import machine
from podqos.kernel.oom import Process
from podqos.model.pod import QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage, PodUsage, Snapshot
from podqos.orders.exhaustion import WatchedThreshold
from podqos.qos.cgroup import Cgroup, Level, node_cgroups, pod_cgroups
from podqos.qos.cgroup_paths import UNKNOWN_UID, cgroup_uid, container_location, node_path, pod_path
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import OOMScore, running_scores

FIRST_PID = 1000
"""Of the model: small numbers belong to the machine."""


class OOMDomain(Struct, frozen=True, gc=False):
    """The cgroup, or machine, that is out of memory."""

    total_bytes: int
    """What ``oom_score_adj`` is in thousandths of."""
    path: str = ROOT
    """The cgroup whose limit was hit; the root when the machine has nothing left."""


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


def memory_tree(snapshot: Snapshot, settings: CgroupSettings, profile: Profile = LATEST) -> Memory:
    """Return the machine's memory at the moment of the snapshot."""
    node = snapshot.node
    version: Literal[1, 2] = 1 if settings.cgroup_version is CgroupVersion.V1 else 2
    memory = Memory(machine(node.memory_bytes, swap_bytes=node.swap_bytes, cgroup_version=version))
    memory.put(ROOT, Kind.ANON, node.system_bytes)
    memory.put(ROOT, Kind.KERNEL, node.hugepages_bytes)
    _add(memory, node_cgroups((entry.pod for entry in snapshot.pods), settings, profile))
    memory.put(node_path(settings), Kind.ANON, max(0, node.pods_other_bytes))
    for entry in snapshot.pods:
        qos_class = qos_class_of(entry.pod, profile)
        ids = container_ids(entry, qos_class, settings)
        cgroups = pod_cgroups(entry.pod, qos_class, settings, profile, ids)
        paths = {cgroup.container: cgroup.path for cgroup in cgroups if cgroup.level is Level.CONTAINER}
        _add(memory, (cgroup for cgroup in cgroups if cgroup.level is Level.POD or cgroup.container in ids))
        for usage in entry.containers:
            path = paths[usage.name]
            assert path is not None
            for kind, amount in (
                (Kind.ANON, usage.anon_bytes),
                (Kind.ACTIVE_FILE, usage.active_file_bytes),
                (Kind.INACTIVE_FILE, usage.inactive_file_bytes),
                (Kind.KERNEL, usage.page_table_bytes + usage.tmpfs_bytes),
                (Kind.SWAP, usage.swap_bytes),
            ):
                memory.put(path, kind, amount)
    return memory


def _add(memory: Memory, cgroups: Iterable[Cgroup]) -> None:
    for cgroup in cgroups:
        if cgroup.path is not None and cgroup.path not in memory:
            _add_parents(memory, cgroup.path)
            memory.add(cgroup.path, memcg_settings(cgroup))


def _add_parents(memory: Memory, path: str) -> None:
    parent = parent_path(path)
    if parent not in memory:
        _add_parents(memory, parent)
        memory.add(parent)


def memcg_settings(cgroup: Cgroup) -> MemcgSettings:
    """Return what the files of a planned cgroup tell the kernel about memory."""
    written = {file.name: int(file.text) for file in cgroup.files if file.text and file.name.startswith("memory.")}
    limit = written.get("memory.max", written.get("memory.limit_in_bytes"))
    return MemcgSettings(
        # The kernel refuses a limit below zero, which is what qosReserved leaves where more is requested than there is.
        max_bytes=limit if limit is not None and limit >= 0 else None,
        high_bytes=written.get("memory.high"),
        min_bytes=written.get("memory.min", 0),
        low_bytes=written.get("memory.low", 0),
        swap_max_bytes=written.get("memory.swap.max"),
        memsw_max_bytes=written.get("memory.memsw.limit_in_bytes"),
        oom_group=written.get("memory.oom.group") == 1,
    )


class Headroom(Struct, frozen=True, gc=False, rename="camel"):
    """What is left until the kubelet evicts, and the threshold that decides it."""

    headroom_bytes: int
    """Negative where the threshold is met already."""
    signal: Signal
    type: str
    """``hard``, or ``soft``: the kubelet evicts once it has been met for its grace period."""
    threshold_bytes: int
    available_bytes: int
    """What the signal says now."""
    grace_seconds: float = 0


def pods_limit_bytes(settings: CgroupSettings) -> int | None:
    """Return what all pods may use together, the capacity of allocatableMemory.available; None if not enforced."""
    if not settings.enforce_node_allocatable or MEMORY not in settings.node_allocatable:
        return None
    return settings.node_allocatable[MEMORY].value


def memory_signals(snapshot: Snapshot, limit_bytes: int | None, profile: Profile) -> dict[Signal, int]:
    """Return what is available by each signal of memory that the kubelet watches."""
    used_by_pods = snapshot.pods_working_set_bytes
    available = {Signal.MEMORY: snapshot.node.available_bytes(used_by_pods, profile)}
    if limit_bytes is not None:
        available[Signal.ALLOCATABLE_MEMORY] = limit_bytes - used_by_pods
    return available


def headroom(available: Mapping[Signal, int], thresholds: Iterable[WatchedThreshold]) -> Headroom | None:
    """Return the least headroom over all thresholds of memory; None where the kubelet has none, and never evicts."""
    found = [
        Headroom(
            headroom_bytes=available[threshold.signal] - threshold.amount,
            signal=threshold.signal,
            type=threshold.type,
            threshold_bytes=threshold.amount,
            available_bytes=available[threshold.signal],
            grace_seconds=threshold.grace_seconds,
        )
        for threshold in thresholds
        if threshold.signal in available and threshold.amount is not None
    ]
    # At a tie the one that acts sooner, which is also the order of the kubelet's signals.
    return min(found, key=lambda each: (each.headroom_bytes, each.grace_seconds), default=None)


class Outlook(Struct, frozen=True, gc=False):
    """What is left of a node's memory."""

    available: Mapping[Signal, int]
    """What the kubelet sees: ``memory.available``, and ``allocatableMemory.available`` where pods have a limit."""
    headroom: Headroom | None
    """What is left until it evicts; None where its thresholds are not given, or it has none."""
    machine: BoundRoom
    """What the kernel can still allocate before a global OOM."""
    pods: BoundRoom | None
    """The same for all pods together; None where their cgroup has no limit."""
    first_oom: BoundRoom
    """What is left where memory runs out first if pods keep growing."""
    domain: OOMDomain
    """Where that is."""
    pods_limit_bytes: int | None = None
    """What all pods may use together; None where that is not enforced."""

    @property
    def available_bytes(self) -> int:
        """``memory.available``, the kubelet's figure."""
        return self.available[Signal.MEMORY]


def outlook(
    snapshot: Snapshot,
    settings: CgroupSettings,
    profile: Profile = LATEST,
    thresholds: Iterable[WatchedThreshold] = (),
) -> Outlook:
    """Return what is left."""
    memory = memory_tree(snapshot, settings, profile)
    available = memory_signals(snapshot, pods_limit_bytes(settings), profile)
    path = node_path(settings)
    machine, pods = with_reclaim(memory, machine_room(memory)), _pods_room(memory, path)
    # At a tie the cgroup comes first: it is charged before the machine is asked for a page.
    first = machine if pods is None or machine.until_oom_bytes < pods.until_oom_bytes else pods
    if first.until_oom_bytes > 0 and _is_protected(memory):
        first = _grown(memory, path)
    return Outlook(
        available=available,
        headroom=headroom(available, thresholds),
        machine=machine,
        pods=pods,
        first_oom=first,
        domain=OOMDomain(memory.oom_total_pages(first.path) * PAGE_BYTES, first.path),
        pods_limit_bytes=pods_limit_bytes(settings),
    )


def _is_protected(memory: Memory) -> bool:
    """Whether any cgroup keeps memory from reclaim."""
    return any(memcg.settings.min_bytes or memcg.settings.low_bytes for memcg in memory)


def _grown(memory: Memory, path: str) -> BoundRoom:
    """Let a container without limits, protection or swap grow, as one of a new BestEffort pod; return what runs out."""
    new = f"{path.removesuffix('/')}/podqos-new"
    memory.add(new, MemcgSettings(swap_max_bytes=0))
    course = grow(memory, new)
    return replace(course.room, free_bytes=course.until_oom_bytes, reclaimable_bytes=0)


def _pods_room(memory: Memory, path: str) -> BoundRoom | None:
    if path == ROOT or path not in memory or memory[path].settings.max_bytes is None:
        return None
    return next(with_reclaim(memory, room) for room in rooms(memory, path) if room.path == path)
