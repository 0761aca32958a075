"""Limited resources of a simulated node besides memory and CPU: filesystems, process ids, local storage of pods.

No container is killed for a supply that is used up: one that wants more is refused, and keeps what it has until
something is freed. When a pod exceeds a limit of its own, the eviction loop looks: the manager decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from podqos.eviction.signals import CleanUp, Layout
from podqos.model.effective import pod_limits
from podqos.model.pod import Pod
from podqos.model.resources import EPHEMERAL_STORAGE
from podqos.model.stats import FsStats
from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.event_queue import Action
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, GaugeMark, Planner
from podqos.sim.scenario.scenario import Filesystem, MachineSpec

Taker = tuple[str, str]
"""A user of a supply: the key of a pod and the name of a container."""

Refused = Callable[["Supply", Allocation, Taker | None, int], None]
"""Called the first time a container, or the system (None), does not get what it wants."""

BYTES, INODES, PIDS = "bytes", "inodes", "pids"


class Supply:
    """A limited resource: bytes or inodes of a filesystem, process ids of a pod or node."""

    __slots__ = ("_refused", "_takers", "_was_full", "gauge", "limit", "mark", "resource")

    def __init__(self, resource: str, limit: int, planner: Planner, refused: Refused) -> None:
        self.resource = resource
        self.limit = limit
        self.gauge = Gauge()
        self._takers: dict[Allocation, Taker | None] = {}
        self._refused = refused
        self._was_full = False
        """Whether a refused user may be able to continue."""
        self.mark = GaugeMark(self.gauge, planner, self._full)
        self.mark.level = (limit + 1) << FRACTION_BITS
        self.mark.is_armed = True

    def add(self, want: Allocation, taker: Taker | None) -> None:
        """Add a container, or the system, as a user."""
        self._takers[want] = taker

    def drop(self, want: Allocation) -> None:
        """Remove a user."""
        del self._takers[want]

    @property
    def takers(self) -> Mapping[Allocation, Taker | None]:
        """The users; None stands for the system."""
        return self._takers

    def used(self, time_us: int) -> int:
        """Return how much is in use."""
        return min(self.limit, self.gauge.at(time_us))

    def eased(self, time_us: int) -> None:
        """Let refused users continue after something was freed: in turn, as long as there is enough."""
        if not self._was_full:
            return
        for want in self._takers:
            if want.is_capped and self.gauge.at(time_us) - want.at(time_us) + want.wanted(time_us) <= self.limit:
                want.was_refused = False
                want.follow(time_us)
        self._was_full = any(want.is_capped for want in self._takers)

    def _full(self, time_us: int) -> None:
        """Stop all users that take more."""
        self._was_full = True
        for want, taker in self._takers.items():
            excess = self.gauge.at(time_us) - self.limit
            if want.slope > 0 or (excess > 0 and want.step(time_us)):
                if not want.was_refused:
                    want.was_refused = True
                    self._refused(self, want, taker, time_us)
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


def local_limits(
    pod: Pod, layout: Layout, planner: Planner, alarm: Action, now_us: int
) -> dict[tuple[str, str], tuple[Gauge, ...]]:
    """Return, by container and part of its storage, the limited sums. ``alarm`` is called when one is exceeded."""
    found: dict[tuple[str, str], list[Gauge]] = {}
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    has_limit = any(EPHEMERAL_STORAGE in container.resources.limits for container in containers)
    if not has_limit and not pod.spec.volumes:
        return {}

    def limited(limit: int, parts: list[tuple[str, str]]) -> None:
        gauge = Gauge()
        gauge.since_us = now_us
        GaugeMark(gauge, planner, alarm).above(limit, now_us)
        for part in parts:
            found.setdefault(part, []).append(gauge)

    for volume in pod.spec.volumes:
        size = volume.empty_dir.size_limit if volume.empty_dir is not None else None
        if size is not None and size.sign > 0:
            limited(size.value, [(container.name, f"volume/{volume.name}") for container in containers])
    if has_limit:
        local = [f"volume/{volume.name}" for volume in pod.spec.volumes if volume.is_local]
        limit = pod_limits(pod).get(EPHEMERAL_STORAGE)
        if limit is not None:
            parts = ("rootfs", "logs", *local)
            limited(limit.value, [(container.name, part) for container in containers for part in parts])
    with_rootfs = layout in {Layout.SINGLE, Layout.CONTAINERS_APART}
    sidecars = (container for container in pod.spec.init_containers if container.is_sidecar)
    for container in (*pod.spec.containers, *sidecars):
        limit = container.resources.limits.get(EPHEMERAL_STORAGE)
        if limit:
            parts = ("logs", "rootfs") if with_rootfs else ("logs",)
            limited(limit.value, [(container.name, part) for part in parts])
    return {part: tuple(gauges) for part, gauges in found.items()}
