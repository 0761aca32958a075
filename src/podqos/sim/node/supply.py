"""A limited resource of a simulated node besides memory and CPU, and what happens when it is used up.

No container is killed for it. A container that wants more is refused, and keeps what it has until something is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podqos.sim.engine.allocation import Allocation
from podqos.sim.engine.gauge import FRACTION_BITS, Gauge, GaugeMark, Planner

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
        self.gauge.rouse(time_us)
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
