"""Until when a node is quiet: nothing is full, nobody is slowed, no threshold is passed, nobody ends.

Ten thousand nodes on which nothing happens should cost nothing. For a node whose pods are all known beforehand, sums
over their curves prove that it has no event to run before a time; equal nodes share one proof. A quiet node is not set
up at all; only its journal is written, which is the same as if it had been.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.agent.admission import requests_of
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import derive_containerfs
from podqos.kernel.cpu import DEFAULT_PERIOD_USEC
from podqos.model.resources import EPHEMERAL_STORAGE
from podqos.placement.demand import counted
from podqos.qos.cgroup import Cgroup, Level, pod_cgroups, tier_cgroups
from podqos.qos.cgroup_tiers import TierRequests
from podqos.qos.classes import classify
from podqos.qos.oom import pod_qos_class
from podqos.sim.curve import constant
from podqos.sim.demand import ContainerDemand, SystemDemand
from podqos.sim.load import Load
from podqos.sim.node_settings import NodeSettings
from podqos.sim.scenario import Options, ScenarioWorkload

Composition = tuple[tuple[int, int, int], ...]
"""Workload (by its place in the scenario), which of its demands, how many such pods."""

USAGE, WORKING_SET, PAGE_CACHE, PIDS, CPU = "usage", "working set", "page cache", "pids", "cpu"
NODEFS, NODEFS_INODES, ROOTFS, ROOTFS_INODES = "nodefs", "nodefs inodes", "rootfs", "rootfs inodes"
_RESOURCES = (USAGE, WORKING_SET, PAGE_CACHE, PIDS, CPU, NODEFS, NODEFS_INODES, ROOTFS, ROOTFS_INODES)

_ProvenPod = tuple[dict[str, Load], int]
"""What a pod adds to its node, and until when it keeps within its own limits."""


class Proofs:
    """The proofs of one scenario."""

    def __init__(self, workloads: tuple[ScenarioWorkload, ...], options: Options, until_us: int) -> None:
        self._workloads = workloads
        self._options = options
        self._until_us = until_us
        self._known: dict[tuple[int, Composition], int] = {}
        self._pods: dict[tuple[int, int, int], _ProvenPod] = {}

    def quiet_until_us(self, settings: NodeSettings, composition: Composition) -> int:
        """Return a time before which a node with these pods has nothing to do; beyond the end if it never has."""
        key = id(settings), composition
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._prove(settings, composition)
        return known

    def _prove(self, settings: NodeSettings, composition: Composition) -> int:
        if not self._all_admitted(settings, composition):
            return 0
        quiet_us = self._until_us + 1
        pods = _loads()
        for workload, demand, count in composition:
            loads, own_us = self._pod(settings, workload, demand)
            quiet_us = min(quiet_us, own_us)
            for resource, load in loads.items():
                pods[resource].add_all(load, count)
        return min(quiet_us, self._first_above(_node_checks(settings, pods)))

    def _all_admitted(self, settings: NodeSettings, composition: Composition) -> bool:
        config = settings.agent
        requested: dict[str, int] = {}
        for workload, _, count in composition:
            for name, amount in requests_of(self._workloads[workload].pod, config).items():
                requested[name] = requested.get(name, 0) + amount * count
        allocatable = counted(config.allocatable)
        fits = all(amount <= allocatable.get(name, 0) for name, amount in requested.items() if amount)
        return fits and sum(count for *_, count in composition) <= config.max_pods

    def _pod(self, settings: NodeSettings, workload: int, demand: int) -> _ProvenPod:
        """Return what one pod adds to the node, and until when it keeps within its own limits."""
        key = id(settings), workload, demand
        known = self._pods.get(key)
        if known is None:
            known = self._pods[key] = self._prove_pod(settings, self._workloads[workload], demand)
        return known

    def _prove_pod(self, settings: NodeSettings, workload: ScenarioWorkload, demand: int) -> _ProvenPod:
        pod, loads = workload.pod, _loads()
        if _is_hard_to_tell(workload, demand):
            return loads, 0
        started_us = workload.arrives_us + self._options.start_delay_us(workload.arrives_us)
        limited: list[tuple[dict[str, Load], Cgroup]] = []
        qos_class = pod_qos_class(pod, classify(pod, settings.agent.profile).qos_class)
        for cgroup in pod_cgroups(pod, qos_class, settings.agent.cgroups, settings.agent.profile):
            if cgroup.level is Level.POD:
                limited.append((loads, cgroup))
            elif cgroup.level is Level.CONTAINER:
                own = _loads()
                _add(own, workload.demand_of(demand, cgroup.container), started_us)
                limited.append((own, cgroup))
                for resource, load in own.items():
                    loads[resource].add_all(load)
        checks = ((own[resource], limit) for own, cgroup in limited for resource, limit in _file_limits(cgroup))
        return loads, self._first_above(checks)

    def _first_above(self, checks: Iterable[tuple[Load, int]]) -> int:
        first_us = self._until_us + 1
        for load, limit in checks:
            found_us = load.first_above(limit, self._until_us)
            if found_us is not None:
                first_us = min(first_us, found_us)
        return first_us


def _loads() -> dict[str, Load]:
    return {resource: Load() for resource in _RESOURCES}


def _add(loads: dict[str, Load], demand: ContainerDemand, started_us: int) -> None:
    for resource, curves in (
        (USAGE, (demand.anon_bytes, demand.active_file_bytes, demand.inactive_file_bytes)),
        (WORKING_SET, (demand.anon_bytes, demand.active_file_bytes)),
        (PAGE_CACHE, (demand.active_file_bytes, demand.inactive_file_bytes)),
        (PIDS, (demand.pids_wanted,)),
        (CPU, (demand.cpu_milli,)),
        (NODEFS, (demand.logs_bytes,)),
        (NODEFS_INODES, (demand.logs_inodes,)),
        (ROOTFS, (demand.rootfs_bytes,)),
        (ROOTFS_INODES, (demand.rootfs_inodes,)),
    ):
        for curve in curves:
            loads[resource].add(curve, started_us)


def _is_hard_to_tell(workload: ScenarioWorkload, demand: int) -> bool:
    """Whether a pod has something about it that no sum tells: it ends, it begins in steps, it has limits of its own."""
    spec = workload.pod.spec
    ends = any(each.exits_after_us is not None for each in workload.demands[demand].values())
    volumes = any(each.volumes for each in workload.demands[demand].values())
    limits = any(EPHEMERAL_STORAGE in container.resources.limits for container in spec.containers)
    return bool(ends or volumes or limits or spec.init_containers or spec.resources or workload.deleted_us is not None)


def _file_limits(cgroup: Cgroup) -> Iterator[tuple[str, int]]:
    """Yield what the files of a cgroup limit."""
    for name in ("memory.max", "memory.limit_in_bytes", "memory.high"):
        text = cgroup.text(name)
        if text is not None:
            yield USAGE, int(text)
    text = cgroup.text("pids.max")
    if text is not None:
        yield PIDS, int(text)
    quota, _, period = (cgroup.text("cpu.max") or "max").partition(" ")
    if cgroup.text("cpu.cfs_quota_us") is not None:
        quota, period = cgroup.text("cpu.cfs_quota_us") or "", cgroup.text("cpu.cfs_period_us") or ""
    if quota.isdecimal():
        yield CPU, int(quota) * 1000 // int(period or DEFAULT_PERIOD_USEC)


def _node_checks(settings: NodeSettings, pods: dict[str, Load]) -> Iterator[tuple[Load, int]]:
    """Yield all that is limited on a node, with its limit or with what a threshold leaves of it."""
    spec, config = settings.spec, settings.agent
    node = _loads()
    for resource in _RESOURCES:
        node[resource].add_all(pods[resource])
    _add_system(node, spec.system)
    (kubepods, *_) = tier_cgroups(TierRequests(), config.cgroups) or (None,)
    pods_limit = None
    if kubepods is not None:
        for resource, limit in _file_limits(kubepods):
            if resource != CPU:
                yield pods[resource], limit
            if resource == USAGE:
                pods_limit = limit
    marks = settings.machine.watermarks
    kept = marks.low_bytes if node[PAGE_CACHE] else marks.min_bytes
    yield node[USAGE], spec.memory_bytes - kept
    yield node[CPU], spec.cpu_milli
    yield node[PIDS], spec.max_pids
    disks = _disks(settings, node)
    for load, capacity in disks.values():
        yield load, capacity
    sums = {
        Signal.MEMORY: (node[WORKING_SET], spec.memory_bytes),
        Signal.PID: (node[PIDS], spec.max_pids),
        **disks,
    }
    if pods_limit is not None:
        sums[Signal.ALLOCATABLE_MEMORY] = pods[WORKING_SET], pods_limit
    derived = derive_containerfs(config.eviction.thresholds, config.eviction.layout)
    for threshold in (*derived.in_place, *derived.added):
        if threshold.signal in sums:
            load, capacity = sums[threshold.signal]
            yield load, capacity - threshold.amount(capacity).value


def _add_system(node: dict[str, Load], system: SystemDemand) -> None:
    for resource, curves in (
        (USAGE, (system.anon_bytes, system.active_file_bytes, system.inactive_file_bytes)),
        (WORKING_SET, (system.anon_bytes, system.active_file_bytes)),
        (PAGE_CACHE, (system.active_file_bytes, system.inactive_file_bytes)),
        (PIDS, (system.pids,)),
        (CPU, (system.cpu_milli,)),
        (NODEFS, (system.nodefs_bytes,)),
        (NODEFS_INODES, (system.nodefs_inodes,)),
    ):
        for curve in curves:
            node[resource].add(curve, 0)


def _disks(settings: NodeSettings, node: dict[str, Load]) -> dict[Signal, tuple[Load, int]]:
    """Return what is used of each filesystem, and what there is."""
    spec = settings.spec
    images = Load()
    images.add(spec.system.imagefs_bytes, 0)
    images.add(constant(spec.unused_image_bytes), 0)
    rootfs = Load()
    rootfs.add_all(node[ROOTFS])
    rootfs.add(constant(spec.dead_container_bytes), 0)
    filesystems = {
        "nodefs": (spec.nodefs, [node[NODEFS]], [node[NODEFS_INODES]]),
        "imagefs": (spec.imagefs, [], []),
        "containerfs": (spec.containerfs, [], []),
    }
    image_home = "imagefs" if spec.imagefs is not None else "nodefs"
    rootfs_home = "containerfs" if spec.containerfs is not None else image_home
    filesystems[image_home][1].append(images)
    filesystems[rootfs_home][1].append(rootfs)
    filesystems[rootfs_home][2].append(node[ROOTFS_INODES])
    found: dict[Signal, tuple[Load, int]] = {}
    for home, signals in (
        ("nodefs", (Signal.NODEFS, Signal.NODEFS_INODES)),
        (image_home, (Signal.IMAGEFS, Signal.IMAGEFS_INODES)),
        (rootfs_home, (Signal.CONTAINERFS, Signal.CONTAINERFS_INODES)),
    ):
        filesystem, space, inodes = filesystems[home]
        assert filesystem is not None
        for signal, loads, capacity in zip(
            signals, (space, inodes), (filesystem.capacity_bytes, filesystem.inodes), strict=True
        ):
            total = Load()
            for load in loads:
                total.add_all(load)
            found[signal] = total, capacity
    return found
