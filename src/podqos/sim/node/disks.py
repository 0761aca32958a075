"""The filesystems of a simulated node: what is in use, and what a clean-up frees."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from podqos.eviction.signals import CleanUp
from podqos.model.stats import FsStats
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, Planner
from podqos.sim.node.supply import BYTES, INODES, Refused, Supply
from podqos.sim.scenario.scenario import Filesystem, MachineSpec


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
        self.filesystems = {"nodefs": self.nodefs, "imagefs": self.imagefs, "containerfs": self.containerfs}
        """By name; without a filesystem of its own it is the one that holds it."""
        self._left = {CleanUp.CONTAINERS: spec.dead_container_bytes, CleanUp.IMAGES: spec.unused_image_bytes}
        for what, size_bytes in self._left.items():
            self._of(what).gauge.change(0, size_bytes << FRACTION_BITS, 0)

    def gauges(self) -> Iterator[Gauge]:
        """Yield what is in use of each."""
        for filesystem in self.filesystems.values():
            yield from (supply.gauge for supply in filesystem.values())

    def clean_up(self, what: CleanUp, time_us: int) -> int:
        """Delete what is unused, once; return how many bytes that freed."""
        size_bytes, self._left[what] = self._left[what], 0
        supply = self._of(what)
        supply.gauge.change(time_us, -(size_bytes << FRACTION_BITS), 0)
        supply.eased(time_us)
        return size_bytes

    def stats(self, which: dict[str, Supply], time_us: int, time: datetime) -> FsStats:
        """Return the figures of one filesystem as the kubelet reports them."""
        space, inodes = which[BYTES], which[INODES]
        used, taken = space.used(time_us), inodes.used(time_us)
        return FsStats(
            time,
            available_bytes=space.limit - used,
            capacity_bytes=space.limit,
            used_bytes=used,
            inodes_free=inodes.limit - taken,
            inodes=inodes.limit,
            inodes_used=taken,
        )

    def _of(self, what: CleanUp) -> Supply:
        return (self.containerfs if what is CleanUp.CONTAINERS else self.imagefs)[BYTES]
