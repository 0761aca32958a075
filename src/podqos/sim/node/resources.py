"""What a simulated machine has and what runs on it: memory, disks, process ids and CPU, each with what is used of it.

This is the state that the parts of a node share. How demands become usage is in ``running``, how that looks to the
kubelet in ``statistics``; what the agent asks for is carried out in ``world``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podqos.agent.journal import Kind
from podqos.agent.reasons import CPUThrottled, LimitReached, OOMLevel
from podqos.eviction.signals import Signal, SignalObservation
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.gauge import Gauge
from podqos.sim.node.cpu import NodeCpu
from podqos.sim.node.disks import BYTES, INODES, PIDS, Disks, Supply, Taker
from podqos.sim.node.memory import NodeMemory, OutOfMemory
from podqos.sim.node.pods import MemoryGroup, SimContainer, SimPod
from podqos.sim.node.probes import NodeProber, ProbeAnswers
from podqos.sim.node.settings import SimNodeSettings

if TYPE_CHECKING:
    from podqos.sim.node.owner import WorldOwner

Gauges = dict[Signal, tuple[Gauge, int]]
"""By signal: what is in use, and how much there is."""


def left_of(gauges: Gauges, now_us: int) -> dict[Signal, SignalObservation]:
    """Return what is left."""
    return {signal: SignalObservation(most - gauge.at(now_us), most) for signal, (gauge, most) in gauges.items()}


class NodeResources:
    """The resources of one simulated node."""

    def __init__(self, name: str, settings: SimNodeSettings, owner: WorldOwner, out_of_memory: OutOfMemory) -> None:
        spec = settings.spec
        self.name = name
        self.settings = settings
        self.owner = owner
        self.pods: dict[str, SimPod] = {}
        """By uid: those whose sandbox is there, and those of which something is left."""
        self.memory = NodeMemory(settings.machine, owner.plan, out_of_memory)
        self.disks = Disks(spec, owner.plan, self.refused)
        self.pids = Supply(PIDS, spec.max_pids, owner.plan, self.refused)
        self.cpu = NodeCpu(spec.cpu_milli, spec.cgroup_version, owner.plan, self._now_us, self._throttled)
        self.prober = NodeProber(owner, ProbeAnswers(self.cpu))
        self.working_set = Gauge()
        """What the kubelet counts, of the whole machine."""
        self.pods_working_set = Gauge()
        self.next_pid = 1000
        self.pid_limits: dict[str, Supply] = {}
        """By path of the cgroup that sets them."""

    def _now_us(self) -> int:
        return self.owner.now_us

    @property
    def kubepods(self) -> MemoryGroup | None:
        """The cgroup of all pods."""
        groups = (group for group in self.memory.groups.values() if group.level is OOMLevel.KUBEPODS)
        return next(groups, None)

    @property
    def pods_limit_bytes(self) -> int | None:
        """The limit of the cgroup of all pods."""
        group = self.kubepods
        return None if group is None else group.limit_bytes

    def memory_signals(self) -> dict[Signal, SignalObservation]:
        """Return what of memory is available now, to the byte."""
        return left_of(self.memory_gauges(), self.owner.now_us)

    def signals(self) -> Gauges:
        """Return everything that an eviction threshold can be about."""
        found = self.memory_gauges() | {Signal.PID: (self.pids.gauge, self.pids.limit)}
        for name, filesystem in self.disks.filesystems.items():
            for unit, what in ((BYTES, "available"), (INODES, "inodesFree")):
                found[Signal(f"{name}.{what}")] = filesystem[unit].gauge, filesystem[unit].limit
        return found

    def memory_gauges(self) -> Gauges:
        """Return what a threshold of memory is about."""
        found = {Signal.MEMORY: (self.working_set, self.memory.machine.total_bytes)}
        limit_bytes = self.pods_limit_bytes
        if limit_bytes is not None:
            found[Signal.ALLOCATABLE_MEMORY] = self.pods_working_set, limit_bytes
        return found

    def refused(self, supply: Supply, want: Allocation, taker: Taker | None, now_us: int) -> None:
        """Write down that a container, or the system, does not get what it wants."""
        because = LimitReached(supply.resource, want.wanted(now_us), supply.limit)
        self.owner.note(Kind.REFUSED, because, *(taker or (None, None)))

    def _throttled(self, container: SimContainer, because: CPUThrottled, _: int) -> None:
        self.owner.note(Kind.THROTTLED, because, container.pod.key, container.name)
        self.prober.disturbed(container)
