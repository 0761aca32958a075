"""From demand to usage: a container starts, loses a process, ends.

Every curve that is not zero for all time becomes an ``Allocation`` that feeds the sums it is part of: memory its
cgroups and the machine, disk its filesystem, process ids the limits on them.

What a container writes into a volume in memory is charged to it. When it ends its cgroup goes and the charge falls to
the pod's, where it stays until nothing is left of the pod (Linux mm/memcontrol.c: pages stay charged to an offline
cgroup, and so to those above it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podqos.kernel.memcg import Kind
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import ZERO, Clock, Curve, above, below, constant
from podqos.sim.engine.event_queue import EventPriority
from podqos.sim.engine.gauge import Gauge
from podqos.sim.node.disks import BYTES, INODES, Supply, Taker
from podqos.sim.node.pods import MemoryGroup, SimContainer, SimPod
from podqos.sim.node.resources import NodeResources
from podqos.sim.scenario.scenario import SystemDemand


def begin(world: NodeResources, container: SimContainer, now_us: int) -> None:
    """Start a container, for the first time or again."""
    demand = container.demand
    container.is_running = True
    container.started_us = now_us
    container.lost_processes = 0
    most = max(1, *(value for _, value in demand.processes.knots))
    container.fixed_processes = most if demand.processes.is_constant else None
    container.first_pid = world.next_pid
    world.next_pid += most
    world.memory.running[container.path] = container
    _begin_memory(world, container, now_us)
    taker: Taker = container.pod.key, container.name
    _drop_disk(world, container, now_us)
    for what, unit, curve, supply in _disk_curves(world, container):
        limits = container.pod.local_limits.get((container.name, what), ()) if unit == BYTES else ()
        want = container.disk[what, unit] = Allocation(curve, (supply.gauge, *limits), world.owner.plan, now_us)
        supply.add(want, taker)
    supplies = container.pod.pids
    container.pids = Allocation(demand.pids_wanted, [supply.gauge for supply in supplies], world.owner.plan, now_us)
    for supply in supplies:
        supply.add(container.pids, taker)
    if not _is_nothing(demand.cpu_milli) or demand.service is not None:
        world.cpu.start(container, now_us, lambda _: exited(world, container, demand.exit_code))
    _plan_exit(world, container, now_us)


def finish(world: NodeResources, container: SimContainer, now_us: int) -> None:
    """End a container: its memory is free at once, what it wrote stays, also in volumes in memory."""
    container.is_running = False
    container.service = None
    world.prober.ended(container)
    del world.memory.running[container.path]
    _keep(world, container, now_us)
    for want in container.memory:
        want.end(now_us)
    if _can_be_taken_back(world, container):
        world.memory.reclaimable -= 1
    container.anon = container.active_file = container.inactive_file = None
    if container.pids is not None:
        container.pids.end(now_us)
        for supply in container.pod.pids:
            supply.drop(container.pids)
            supply.eased(now_us)
        container.pids = None
    for want in container.disk.values():
        want.hold(now_us)
    world.cpu.end(container, now_us)
    world.memory.eased(now_us)


def exited(world: NodeResources, container: SimContainer, exit_code: int, *, oom_killed: bool = False) -> None:
    """End a container that was not asked to stop."""
    finish(world, container, world.owner.now_us)
    world.owner.ended(container, exit_code, oom_killed=oom_killed)


def lose_process(container: SimContainer, now_us: int) -> None:
    """Remove one process of a container, with its share of the private memory."""
    parts = container.process_count(now_us) + container.lost_processes
    container.lost_processes += 1
    if container.fixed_processes is not None:
        container.fixed_processes -= 1
    if container.anon is not None:
        container.anon.shrink(now_us, parts - container.lost_processes, parts)


def grow(world: NodeResources, container: SimContainer, curve: Curve, now_us: int) -> None:
    """Make a running container's private memory follow another curve; after a restart it follows its demand again."""
    if container.anon is None:
        container.anon = Allocation(curve, _counted(world, container), world.owner.plan, now_us)
    else:
        container.anon.turn_to(curve, now_us)


def grow_system(world: NodeResources, curve: Curve, now_us: int) -> None:
    """Make the private memory of what runs besides pods follow another curve."""
    memory = world.memory
    held = memory.system.get(Kind.ANON)
    if held is not None:
        held.turn_to(curve, now_us)
        return
    memory.system[Kind.ANON] = Allocation(curve, (memory.usage, world.working_set), world.owner.plan, now_us)
    memory.reclaimable += memory.machine.swap_bytes > 0


def remove_traces(world: NodeResources, pod: SimPod, now_us: int) -> None:
    """Remove what a pod wrote."""
    for container in pod.containers.values():
        _drop_disk(world, container, now_us)
    for want in pod.kept.values():
        want.end(now_us)
    pod.kept = {}
    world.memory.keeping.pop(pod.uid, None)
    world.memory.eased(now_us)


def begin_system(world: NodeResources, system: SystemDemand, now_us: int) -> None:
    """Start everything outside of pods."""
    plan, memory = world.owner.plan, world.memory
    for kind, curve in (
        (Kind.ANON, system.anon_bytes),
        (Kind.ACTIVE_FILE, system.active_file_bytes),
        (Kind.INACTIVE_FILE, system.inactive_file_bytes),
    ):
        if not _is_nothing(curve):
            counted = () if kind is Kind.INACTIVE_FILE else (world.working_set,)
            memory.system[kind] = Allocation(curve, (memory.usage, *counted), plan, now_us)
            memory.reclaimable += kind is not Kind.ANON or memory.machine.swap_bytes > 0
    huge_bytes = sum(world.settings.spec.hugepages.values())
    if huge_bytes:
        is_seen = world.settings.agent.profile.hugepage_aware_eviction
        memory.seen_huge_bytes = huge_bytes if is_seen else 0
        gauges = (memory.usage, world.working_set) if is_seen else (memory.usage,)
        memory.system[Kind.KERNEL] = Allocation(constant(huge_bytes), gauges, plan, now_us)
    for curve, supply in (
        (system.nodefs_bytes, world.disks.nodefs[BYTES]),
        (system.nodefs_inodes, world.disks.nodefs[INODES]),
        (system.imagefs_bytes, world.disks.imagefs[BYTES]),
        (system.pids, world.pids),
    ):
        if not _is_nothing(curve):
            supply.add(Allocation(curve, (supply.gauge,), plan, now_us), None)
    if not _is_nothing(system.cpu_milli):
        world.cpu.begin_system(system.cpu_milli, now_us)
    memory.eased(now_us)


def _begin_memory(world: NodeResources, container: SimContainer, now_us: int) -> None:
    demand, plan = container.demand, world.owner.plan
    charged = tuple(_limited(container))
    counted = (*charged, *_working_sets(world, container.pod))

    def held(curve: Curve, gauges: Iterable[Gauge]) -> Allocation | None:
        return None if _is_nothing(curve) else Allocation(curve, gauges, plan, now_us)

    container.anon = held(demand.anon_bytes, counted)
    container.active_file = held(demand.active_file_bytes, counted)
    container.inactive_file = held(demand.inactive_file_bytes, charged)
    for name, volume in demand.volumes.items():
        if name in container.pod.tmpfs and not _is_nothing(volume.used_bytes):
            _write(world, container, name, volume.used_bytes, now_us)
    if _can_be_taken_back(world, container):
        world.memory.reclaimable += 1
        world.memory.eased(now_us)


def _write(world: NodeResources, container: SimContainer, name: str, curve: Curve, now_us: int) -> None:
    """Write into a volume in memory, besides what an earlier run of the container left there.

    A curve on the container's clock says what this run adds. One on the scenario's says what the volume holds at a
    time: what is there is not written again, and deleted where the curve falls.
    """
    pod = container.pod
    kept = pod.kept.get((container.name, name))
    if kept is not None and curve.clock is Clock.SCENARIO:
        left = kept.at(now_us)
        kept.turn_to(below(curve, left), now_us)
        curve = above(curve, left)
    gauges = (*_counted(world, container), *_volume_sums(container, name))
    own = container.tmpfs[name] = Allocation(curve, gauges, world.owner.plan, now_us)
    pod.tmpfs[name].add(own, (pod.key, container.name))


def _keep(world: NodeResources, container: SimContainer, now_us: int) -> None:
    """Charge what a container that ends wrote into volumes in memory to its pod."""
    pod = container.pod
    charged = tuple(group.gauge for group in pod.group.chain() if group.gauge is not None)
    for name, own in container.tmpfs.items():
        supply, key = pod.tmpfs[name], (container.name, name)
        before = pod.kept.pop(key, None)
        left = own.at(now_us) + (0 if before is None else before.at(now_us))
        for want in (own, before):
            if want is not None:
                want.end(now_us)
                supply.drop(want)
        if left:
            gauges = (*charged, *_working_sets(world, pod), *_volume_sums(container, name))
            kept = pod.kept[key] = Allocation(constant(left), gauges, world.owner.plan, now_us)
            supply.add(kept, (pod.key, container.name))
            world.memory.keeping[pod.uid] = pod
        supply.eased(now_us)
    container.tmpfs = {}


def forget_unwritten(world: NodeResources, group: MemoryGroup, now_us: int) -> None:
    """Take what containers just left in memory, and what did not fit into a cgroup, out of it: it was never written."""
    for pod in world.memory.keeping.values():
        for want in pod.kept.values() if group in pod.group.chain() else ():
            excess = min(group.excess_bytes(now_us), want.step(now_us), want.at(now_us))
            if excess > 0:
                want.turn_to(constant(want.at(now_us) - excess), now_us)


def count_from_now_on(world: NodeResources, group: MemoryGroup, now_us: int) -> None:
    """Count what is in memory for a cgroup that had no limit before."""
    assert group.gauge is not None
    for container in world.memory.running.values():
        if any(gauge is group.gauge for gauge in _limited(container)):
            for want in container.memory:
                want.join(group.gauge, now_us)
    for pod in world.memory.keeping.values():
        for want in pod.kept.values() if group in pod.group.chain() else ():
            want.join(group.gauge, now_us)


def _volume_sums(container: SimContainer, name: str) -> tuple[Gauge, ...]:
    """Return the sums that what is in a volume in memory counts for, besides memory."""
    pod = container.pod
    return pod.tmpfs[name].gauge, *pod.local_limits.get((container.name, f"volume/{name}"), ())


def _working_sets(world: NodeResources, pod: SimPod) -> tuple[Gauge, ...]:
    return pod.working_set, world.pods_working_set, world.working_set


def _counted(world: NodeResources, container: SimContainer) -> tuple[Gauge, ...]:
    """Return the sums that memory counts for which is part of the working set."""
    return *_limited(container), *_working_sets(world, container.pod)


def _limited(container: SimContainer) -> Iterator[Gauge]:
    """Yield the sums that a container's memory counts for: of the machine, and of every cgroup with a limit.

    The cgroup of a pod of one container fills no sooner than that container's.
    """
    own = container.groups[0]
    alone = container.pod.counts_once
    for group in container.groups:
        if group.gauge is None:
            continue
        is_same = alone and group is container.pod.group and own.limit_bytes == group.limit_bytes
        if not is_same:
            yield group.gauge


def _can_be_taken_back(world: NodeResources, container: SimContainer) -> bool:
    """Whether a container holds page cache, or may be swapped out."""
    may_swap = world.memory.machine.swap_bytes > 0 and container.groups[0].settings.swap_max_bytes != 0
    return container.active_file is not None or container.inactive_file is not None or may_swap


def _disk_curves(world: NodeResources, container: SimContainer) -> Iterator[tuple[str, str, Curve, Supply]]:
    demand, disks = container.demand, world.disks
    found = [
        ("rootfs", disks.containerfs, demand.rootfs_bytes, demand.rootfs_inodes),
        ("logs", disks.nodefs, demand.logs_bytes, demand.logs_inodes),
    ]
    for name, volume in demand.volumes.items():
        if name not in container.pod.tmpfs:
            found.append((f"volume/{name}", disks.nodefs, volume.used_bytes, volume.inodes))
    for what, filesystem, size, inodes in found:
        for unit, curve in ((BYTES, size), (INODES, inodes)):
            if not _is_nothing(curve):
                yield what, unit, curve, filesystem[unit]


def _drop_disk(world: NodeResources, container: SimContainer, now_us: int) -> None:
    disks = world.disks
    for (what, unit), want in container.disk.items():
        supply = (disks.containerfs if what == "rootfs" else disks.nodefs)[unit]
        want.end(now_us)
        supply.drop(want)
        supply.eased(now_us)
    container.disk = {}


def _plan_exit(world: NodeResources, container: SimContainer, now_us: int) -> None:
    """End a container when its demand says so; an init container without exit time or work when its demand settles."""
    after_us = container.demand.exits_after_us
    if not container.demand.ends and _is_init(container):
        after_us = container.demand.settles_us(now_us)
    if after_us is None:
        return

    def leave(time_us: int) -> None:
        if container.is_running and container.started_us == time_us - after_us:
            exited(world, container, container.demand.exit_code)

    world.owner.plan(now_us + after_us, EventPriority.LIFE, leave)


def _is_init(container: SimContainer) -> bool:
    return any(init.name == container.name and not init.is_sidecar for init in container.pod.pod.spec.init_containers)


def _is_nothing(curve: Curve) -> bool:
    return curve is ZERO or (curve.is_constant and curve.knots[0][1] == 0)
