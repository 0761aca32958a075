"""Proves, without simulating, that nothing happens on a node.

Things happen on a node when a sum crosses a mark: memory of a cgroup or the machine its limit, a filesystem or the
process ids their capacity, the kubelet's figures a threshold, CPU a quota or the capacity. The sums, their parts and
their marks are read off a real ``SimNode``, so that a node is described only once. If the peaks of all parts of a sum
add up to less than its lowest mark, or the peak of the sum stays below it, that sum is idle; if all are, so is the
node.

The bound is conservative: a node that is not proven idle is simulated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.agent.reasons import OOMLevel
from podqos.model.pod import Pod
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.curve import Curve, constant
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge
from podqos.sim.idle.peaks import Peaks
from podqos.sim.idle.probe import Demands, IdleProbe
from podqos.sim.node.pods import SimPod
from podqos.sim.node.settings import SimNodeSettings
from podqos.sim.node.world import NodeWorld
from podqos.sim.node.would_evict import MemoryRequests
from podqos.sim.scenario.demand import IDLE

_PIDS = "pids"


class Load(Struct, frozen=True):
    """What one pod adds to the sums of a node."""

    peaks: Mapping[str, int]
    """In whole units: the sum of the peaks of its curves."""
    curves: Mapping[str, tuple[Curve, ...]]


class Held(Struct, frozen=True):
    """What a sum consists of."""

    fixed: int
    """In 2⁻⁴⁰ units."""
    curves: tuple[Curve, ...]

    def at(self, time_us: int) -> int:
        """Return what it is at a time, in whole units."""
        return (self.fixed >> FRACTION_BITS) + sum(curve.at(time_us) for curve in self.curves)


class IdleBounds:
    """Whether equal nodes stay idle."""

    def __init__(self, settings: SimNodeSettings, requests: MemoryRequests, peaks: Peaks) -> None:
        self._peaks = peaks
        self._probe = IdleProbe(settings, requests)
        self._is_usable = self._probe.settle()
        world = self._probe.node.world
        system = Load({}, {}) if not self._is_usable else self._added(world, _system_allocations(world))
        self._system = system
        self._fixed = {
            name: gauge.fine(0) - sum(curve.at(0) << FRACTION_BITS for curve in system.curves.get(name, ()))
            for name, gauge in _shared(world).items()
        }
        """What is in use by neither pods nor the system, such as images on the disk."""

    def load(self, pod: Pod, demands: Demands) -> Load | None:
        """Return what a pod adds to the node; None where something can happen to it on its own."""
        inits = [container.name for container in pod.spec.init_containers if not container.is_sidecar]
        if not self._is_usable or any(demand.ends for demand in demands.values()):
            return None
        if any(demands.get(name, IDLE) != IDLE for name in inits) or pod.spec.active_deadline_seconds is not None:
            return None
        self._probe.bind(pod, demands)
        probed = self._probe.node.world.pods.get(pod.metadata.uid)
        load = None
        if self._probe.settle() and probed is not None:
            load = self._of_pod(probed)
        self._probe.remove(pod)
        return load if load is None or not inits else self._with_pids(load, len(inits))

    def _with_pids(self, load: Load, count: int) -> Load:
        """Return a load with the process ids of init containers, which existed for a moment."""
        curves = {name: (*own, constant(count)) if name.startswith(_PIDS) else own for name, own in load.curves.items()}
        return self._load(curves)

    def are_kept(self, world: NodeWorld, loads: Sequence[Load]) -> bool:
        """Whether nothing can happen on a node with these pods; ``world`` is such a node, for its limits."""
        levels = {name: _lowest_mark(gauge) for name, gauge in _shared(world).items()}
        if not self._is_usable or not levels.keys() <= self._fixed.keys():
            return False
        peaks: Counter[str] = Counter(self._system.peaks)
        for load in loads:
            peaks.update(load.peaks)
        return all(
            level is None
            or self._fixed[name] + (peaks[name] << FRACTION_BITS) < level
            or self._is_below(name, level, loads)
            for name, level in levels.items()
        )

    def held(self, loads: Sequence[Load]) -> dict[str, Held]:
        """Return what the sums of a node with these pods consist of, by name."""
        return {
            name: Held(fixed, tuple(curve for load in (self._system, *loads) for curve in load.curves.get(name, ())))
            for name, fixed in self._fixed.items()
        }

    def _is_below(self, name: str, level: int, loads: Iterable[Load]) -> bool:
        curves = [curve for load in (self._system, *loads) for curve in load.curves.get(name, ())]
        peak = self._peaks.of_sum(curves)
        return peak is not None and self._fixed[name] + peak < level

    def _of_pod(self, pod: SimPod) -> Load | None:
        """Return what a pod adds, if it stays below its own limits."""
        allocations = list(_pod_allocations(pod))
        world = self._probe.node.world
        shared = {id(gauge) for gauge in _shared(world).values()}
        own: dict[Gauge, list[Curve]] = {}
        for allocation in allocations:
            for gauge in allocation.gauges:
                if id(gauge) not in shared:
                    own.setdefault(gauge, []).append(allocation.curve)
        for gauge, curves in own.items():
            if not self._fits(curves, _lowest_mark(gauge)):
                return None
        return self._added(world, allocations)

    def _fits(self, curves: Sequence[Curve], level: int | None) -> bool:
        if level is None or sum(map(self._peaks.ceiling, curves)) << FRACTION_BITS < level:
            return True
        peak = self._peaks.of_sum(curves)
        return peak is not None and peak < level

    def _added(self, world: NodeWorld, allocations: Iterable[Allocation]) -> Load:
        names = {id(gauge): name for name, gauge in _shared(world).items()}
        curves: dict[str, list[Curve]] = {}
        for allocation in allocations:
            for gauge in allocation.gauges:
                if id(gauge) in names:
                    curves.setdefault(names[id(gauge)], []).append(allocation.curve)
        return self._load({name: tuple(curve) for name, curve in curves.items()})

    def _load(self, curves: Mapping[str, tuple[Curve, ...]]) -> Load:
        return Load({name: sum(map(self._peaks.ceiling, curve)) for name, curve in curves.items()}, curves)


def _shared(world: NodeWorld) -> dict[str, Gauge]:
    """Return the sums that several pods add to, by names that are the same on equal nodes; each once."""
    found: dict[str, Gauge] = {}
    for path, group in world.memory.groups.items():
        if group.gauge is not None and group.level not in {OOMLevel.POD, OOMLevel.CONTAINER}:
            found[f"memory{path}"] = group.gauge
    for path, supply in world.pid_limits.items():
        limited = world.memory.groups.get(path)
        if limited is None or limited.level is not OOMLevel.POD:
            found[f"{_PIDS}{path}"] = supply.gauge
    for name, filesystem in world.disks.filesystems.items():
        found |= {f"{name}.{unit}": supply.gauge for unit, supply in filesystem.items()}
    found |= {"working set": world.working_set, "working set of pods": world.pods_working_set}
    found |= {_PIDS: world.pids.gauge, "cpu": world.cpu.wanted}
    first = {id(gauge): name for name, gauge in reversed(found.items())}
    return {name: gauge for name, gauge in found.items() if first[id(gauge)] == name}


def _lowest_mark(gauge: Gauge) -> int | None:
    """Return the least amount at which anything happens, in fine units."""
    return min((mark.level for mark in gauge.marks if mark.is_rising), default=None)


def _system_allocations(world: NodeWorld) -> Iterator[Allocation]:
    yield from world.memory.system.values()
    if world.cpu.system is not None:
        yield world.cpu.system
    filesystems = {id(filesystem): filesystem for filesystem in world.disks.filesystems.values()}
    supplies = (supply for filesystem in filesystems.values() for supply in filesystem.values())
    for supply in (*supplies, world.pids):
        yield from (allocation for allocation, taker in supply.takers.items() if taker is None)


def _pod_allocations(pod: SimPod) -> Iterator[Allocation]:
    for container in pod.running:
        yield from container.memory
        yield from container.disk.values()
        if container.pids is not None:
            yield container.pids
        if container.cpu is not None:
            yield container.cpu
