"""The requests at one pod: its backlog, and how it answers at the moment."""

from __future__ import annotations

from podqos.model.time_units import SECOND_US
from podqos.sim.services.calls import Answers
from podqos.sim.services.queueing import Capacity, Waiting

_MOST_US = 1 << 50


class PodService:
    """What is known of the requests at one running container."""

    __slots__ = ("able", "answers", "backlog", "load", "since_us")

    def __init__(self, now_us: int) -> None:
        self.since_us = now_us
        """Up to when its backlog is known."""
        self.backlog = 0.0
        """How many requests wait."""
        self.load = 0.0
        """Requests per second since then."""
        self.able = Capacity(0.0, 0.0, 0.0)
        self.answers = Answers(0.0, Waiting())

    @property
    def waiting(self) -> int:
        """How many requests wait in its queue."""
        return round(self.backlog)

    @property
    def is_refusing(self) -> bool:
        """Whether it refuses most requests."""
        return self.answers.refused > 0.5

    @property
    def probe_wait_us(self) -> int:
        """How long the median request waits for its turn."""
        seconds = self.answers.waiting.quantile(0.5)
        return min(_MOST_US, round(min(seconds, 1e9) * SECOND_US))
