"""The memory of a simulated node laid out at one moment, as the kernel model wants it to decide on reclaim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from podqos.kernel.cgroup import ROOT
from podqos.kernel.memcg import Kind, Memory
from podqos.kernel.memory import Machine
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.gauge import FRACTION_BITS
from podqos.sim.node.memory_group import MemoryGroup
from podqos.sim.node.pods import SimContainer, SimPod


def laid_out(
    machine: Machine,
    system: Mapping[Kind, Allocation],
    running: Iterable[SimContainer],
    keeping: Iterable[SimPod],
    time_us: int,
) -> Memory:
    """Return all cgroups with what they hold; ``system`` is what is held outside of pods."""
    memory = Memory(machine)
    for kind, want in system.items():
        memory.put(ROOT, kind, want.at(time_us))
        if kind is Kind.ANON and want.debt:
            memory.put(ROOT, Kind.SWAP, want.debt >> FRACTION_BITS)
    for pod in keeping:
        _add(memory, tuple(pod.group.chain()))
        memory.put(pod.group.path, Kind.KERNEL, pod.kept_bytes(time_us))
    for container in running:
        _add(memory, container.groups)
        path = container.path
        for kind, want in _by_kind(container):
            memory.put(path, kind, want.at(time_us))
        swapped = container.swap_bytes()
        if swapped:
            memory.put(path, Kind.SWAP, swapped)
    return memory


def _add(memory: Memory, groups: Sequence[MemoryGroup]) -> None:
    """Make cgroups that are not there yet; the machine is the last."""
    for group in reversed(groups[:-1]):
        if group.path not in memory:
            memory.add(group.path, group.settings)


def _by_kind(container: SimContainer) -> Iterator[tuple[Kind, Allocation]]:
    if container.anon is not None:
        yield Kind.ANON, container.anon
    if container.active_file is not None:
        yield Kind.ACTIVE_FILE, container.active_file
    if container.inactive_file is not None:
        yield Kind.INACTIVE_FILE, container.inactive_file
    for volume in container.tmpfs.values():
        # Kubelets mount it without swap: nothing takes it back, like memory of the kernel's own.
        yield Kind.KERNEL, volume
