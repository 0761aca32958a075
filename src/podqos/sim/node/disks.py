"""The filesystems of a simulated node, and its process ids: what is used of them, and what happens when they are full.

Nobody is killed for want of either. Whoever wants more is refused, and stays at what it has until something is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podqos.eviction.signals import CleanUp
from podqos.model.stats import FsStats
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, Mark, Planner
from podqos.sim.scenario.scenario import Filesystem, MachineSpec

if TYPE_CHECKING:
    from podqos.sim.node.pods import SimContainer

Refused = Callable[["Supply", Allocation, "SimContainer | None", int], None]
"""Told of somebody who does not get what it wants, for the first time."""

BYTES, INODES, PIDS = "bytes", "inodes", "pids"


class Supply:
    """Something of which there is only so much: bytes or inodes of a filesystem, process ids of a pod or node."""

    __slots__ = ("_refused", "_takers", "_was_full", "gauge", "limit", "mark", "resource")

    def __init__(self, resource: str, limit: int, planner: Planner, refused: Refused) -> None:
        self.resource = resource
        self.limit = limit
        self.gauge = Gauge()
        self._takers: dict[Allocation, SimContainer | None] = {}
        self._refused = refused
        self._was_full = False
        """Whether anybody may have been refused who could go on."""
        self.mark = Mark(self.gauge, planner, self._full)
        self.mark.level = (limit + 1) << FRACTION_BITS
        self.mark.is_armed = True

    def add(self, want: Allocation, container: SimContainer | None) -> None:
        """Let a container, or the system, take of it."""
        self._takers[want] = container

    def drop(self, want: Allocation) -> None:
        """Forget somebody who takes no more of it."""
        del self._takers[want]

    @property
    def takers(self) -> Mapping[Allocation, SimContainer | None]:
        """Who takes of it; None stands for the system."""
        return self._takers

    def used(self, time_us: int) -> int:
        """Return how much is in use."""
        return min(self.limit, self.gauge.at(time_us))

    def eased(self, time_us: int) -> None:
        """Let those go on who were refused, after something was freed: in turn, as long as there is enough."""
        if not self._was_full:
            return
        for want in self._takers:
            if want.is_capped and self.gauge.at(time_us) - want.at(time_us) + want.wanted(time_us) <= self.limit:
                want.was_refused = False
                want.follow(time_us)
        self._was_full = any(want.is_capped for want in self._takers)

    def _full(self, time_us: int) -> None:
        """Stop everybody who takes more."""
        self._was_full = True
        for want, container in self._takers.items():
            excess = self.gauge.at(time_us) - self.limit
            if want.slope > 0 or (excess > 0 and want.step(time_us)):
                if not want.was_refused:
                    want.was_refused = True
                    self._refused(self, want, container, time_us)
                want.cap(time_us, max(0, excess))
        if self.gauge.at(time_us) <= self.limit:
            self.mark.arm(time_us)


class Disks:
    """The filesystems of one node."""

    def __init__(self, spec: MachineSpec, planner: Planner, refused: Refused) -> None:
        def supplies(name: str, filesystem: Filesystem) -> dict[str, Supply]:
            return {
                BYTES: Supply(f"{name}.{BYTES}", filesystem.capacity_bytes, planner, refused),
                INODES: Supply(f"{name}.{INODES}", filesystem.inodes, planner, refused),
            }

        self._spec = spec
        self.nodefs = supplies("nodefs", spec.nodefs)
        self.imagefs = self.nodefs if spec.imagefs is None else supplies("imagefs", spec.imagefs)
        self.containerfs = self.imagefs if spec.containerfs is None else supplies("containerfs", spec.containerfs)
        self._left = {CleanUp.CONTAINERS: spec.dead_container_bytes, CleanUp.IMAGES: spec.unused_image_bytes}
        for what, size_bytes in self._left.items():
            self._of(what).gauge.change(0, size_bytes << FRACTION_BITS, 0)

    def clean_up(self, what: CleanUp, time_us: int) -> int:
        """Throw away what nobody needs, once; return how many bytes that was."""
        size_bytes, self._left[what] = self._left[what], 0
        supply = self._of(what)
        supply.gauge.change(time_us, -(size_bytes << FRACTION_BITS), 0)
        supply.eased(time_us)
        return size_bytes

    def stats(self, which: dict[str, Supply], time_us: int) -> FsStats:
        """Return the figures of one filesystem as the kubelet reports them."""
        space, inodes = which[BYTES], which[INODES]
        used, taken = space.used(time_us), inodes.used(time_us)
        return FsStats(
            available_bytes=space.limit - used,
            capacity_bytes=space.limit,
            used_bytes=used,
            inodes_free=inodes.limit - taken,
            inodes=inodes.limit,
            inodes_used=taken,
        )

    def _of(self, what: CleanUp) -> Supply:
        return (self.containerfs if what is CleanUp.CONTAINERS else self.imagefs)[BYTES]
