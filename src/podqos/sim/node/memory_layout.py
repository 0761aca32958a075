"""The memory of a simulated node laid out at one moment, as the kernel model wants it to decide on reclaim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from podqos.kernel.cgroup import ROOT
from podqos.kernel.memcg import Kind, Memory
from podqos.kernel.memory import Machine
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.gauge import FRACTION_BITS
from podqos.sim.node.pods import SimContainer


def laid_out(
    machine: Machine, system: Mapping[Kind, Allocation], running: Iterable[SimContainer], time_us: int
) -> Memory:
    """Return all cgroups with what they hold; ``system`` is what is held outside of pods."""
    memory = Memory(machine)
    for kind, want in system.items():
        memory.put(ROOT, kind, want.at(time_us))
        if kind is Kind.ANON and want.debt:
            memory.put(ROOT, Kind.SWAP, want.debt >> FRACTION_BITS)
    for container in running:
        for group in reversed(container.groups[:-1]):
            if group.path not in memory:
                memory.add(group.path, group.settings)
        path = container.path
        for kind, want in _by_kind(container):
            memory.put(path, kind, want.at(time_us))
        swapped = container.swap_bytes()
        if swapped:
            memory.put(path, Kind.SWAP, swapped)
    return memory


def _by_kind(container: SimContainer) -> Iterator[tuple[Kind, Allocation]]:
    if container.anon is not None:
        yield Kind.ANON, container.anon
    if container.active_file is not None:
        yield Kind.ACTIVE_FILE, container.active_file
    if container.inactive_file is not None:
        yield Kind.INACTIVE_FILE, container.inactive_file
    for volume in container.tmpfs:
        # Without swap nothing takes it back, like memory of the kernel's own.
        yield Kind.KERNEL, volume
