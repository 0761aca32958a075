"""One cgroup of a simulated machine, as memory knows it; the machine itself is the topmost."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.agent.reasons import OOMLevel
from podqos.kernel.memcg import MemcgSettings
from podqos.sim.engine.gauge import Gauge, GaugeMark


class MemoryGroup:
    """One cgroup, or the machine."""

    __slots__ = ("gauge", "high_mark", "level", "limit_bytes", "mark", "parent", "path", "settings", "wanted_bytes")

    def __init__(self, path: str, level: OOMLevel, parent: MemoryGroup | None) -> None:
        self.path = path
        self.level = level
        self.parent = parent
        self.settings = MemcgSettings()
        self.limit_bytes: int | None = None
        self.wanted_bytes: int | None = None
        """The limit that the kernel refused because more was in use."""
        self.gauge: Gauge | None = None
        """All that is charged to it; none where there is no limit to watch."""
        self.mark: GaugeMark | None = None
        self.high_mark: GaugeMark | None = None
        """At ``memory.high``, if a container has one."""

    def chain(self) -> Iterator[MemoryGroup]:
        """Yield the cgroup and those above it."""
        group: MemoryGroup | None = self
        while group is not None:
            yield group
            group = group.parent

    def excess_bytes(self, time_us: int) -> int:
        """Return by how much it is over its limit; below zero is what it has left."""
        assert self.gauge is not None
        assert self.limit_bytes is not None
        return self.gauge.at(time_us) - self.limit_bytes
