"""Notes about nodes on which nothing happens, which are not simulated: how they begin, and how far they get."""

from __future__ import annotations

from operator import itemgetter

from podqos.eviction.signals import Signal
from podqos.sim.cluster.fleet import Fleet, IdleNode
from podqos.sim.engine.gauge import FRACTION_BITS
from podqos.sim.idle.idle_bounds import Held
from podqos.sim.idle.peaks import Peaks
from podqos.sim.node.notes import Extent, MemoryReach, NodeNotes, memory_threshold, noted_signals
from podqos.sim.node.recording import threshold_lines
from podqos.sim.node.supply import BYTES, INODES, PIDS

_SUMS = {
    Signal.MEMORY: ("working set",),
    Signal.NODEFS: (f"nodefs.{BYTES}",),
    Signal.NODEFS_INODES: (f"nodefs.{INODES}",),
    Signal.IMAGEFS: (f"imagefs.{BYTES}", f"nodefs.{BYTES}"),
    Signal.IMAGEFS_INODES: (f"imagefs.{INODES}", f"nodefs.{INODES}"),
    Signal.PID: (PIDS,),
}
"""Where a signal is counted: the first of these sums that the node has."""


_MOST_LOOKED_AT = 500


def idle_notes(fleet: Fleet, name: str) -> NodeNotes | None:
    """Return what is noted of an idle node; None if it is not one."""
    node = fleet.idle.get(name)
    if node is None:
        return None
    settings, world = fleet.settings(name), node.initial.world
    held = fleet.initial_states.held(settings, node.parts)
    capacity = {signal: most for signal, (_, most) in world.signals().items()}
    of_signal = {signal: _sum(held, signal) for signal in noted_signals(settings.spec) if signal in capacity}
    system = settings.spec.system.cpu_milli
    wanted = held["cpu"].at(0) - system.at(0)
    return NodeNotes(
        name,
        settings.spec,
        threshold_lines(world),
        times_us=(0,),
        left={signal: (capacity[signal] - own.at(0),) for signal, own in of_signal.items()},
        capacity={signal: capacity[signal] for signal in of_signal},
        extents={
            signal: extent
            for signal, own in of_signal.items()
            if (extent := _extent(own, capacity[signal], fleet.initial_states.peaks)) is not None
        },
        cpu_wanted_milli=(wanted,),
        cpu_granted_milli=(wanted,),
    )


def idle_reaches(fleet: Fleet) -> list[MemoryReach] | None:
    """Return how close the idle nodes came that could be the closest; None where that is too much to work out.

    Equal nodes with equal pods are looked at once, and those whose pods all peak at once first: they bound the others.
    """
    distinct: dict[tuple[object, ...], tuple[int, str, Held]] = {}
    for name, node in fleet.idle.items():
        settings = fleet.settings(name)
        key = id(settings), fleet.initial_states.kinds(node.parts)
        if key not in distinct:
            own = _sum(fleet.initial_states.held(settings, node.parts), Signal.MEMORY)
            threshold_bytes = _threshold(fleet, node)
            most = (own.fixed >> FRACTION_BITS) + sum(map(fleet.initial_states.peaks.ceiling, own.curves))
            distinct[key] = settings.spec.memory_bytes - most - threshold_bytes, name, own
    closest: list[MemoryReach] = []
    for looked, (least, name, own) in enumerate(sorted(distinct.values(), key=itemgetter(0))):
        if closest and least >= min(reach.available.least - reach.threshold_bytes for reach in closest):
            break
        if looked == _MOST_LOOKED_AT:
            return None
        memory_bytes = fleet.settings(name).spec.memory_bytes
        extent = _extent(own, memory_bytes, fleet.initial_states.peaks)
        if extent is None:
            return None
        closest.append(MemoryReach(name, extent, _threshold(fleet, fleet.idle[name]), memory_bytes))
    return closest


def _threshold(fleet: Fleet, node: IdleNode) -> int:
    watermarks = fleet.settings(node.name).machine.watermarks
    return memory_threshold(threshold_lines(node.initial.world), watermarks.min_bytes)


def _sum(held: dict[str, Held], signal: Signal) -> Held:
    return next(held[name] for name in _SUMS[signal] if name in held)


def _extent(own: Held, capacity: int, peaks: Peaks) -> Extent | None:
    extent = peaks.extent(own.curves)
    if extent is None:
        return None
    most, when_us, least = extent
    return Extent(
        capacity - ((own.fixed + most) >> FRACTION_BITS), when_us, capacity - ((own.fixed + least) >> FRACTION_BITS)
    )
