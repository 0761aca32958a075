"""What keeps a guard from evicting: mode, switches, a rejection, an unfinished eviction, a rate limit, a cool-down.

Decisions are still made and recorded, with the reason why they are not carried out. Evictions of earlier guards count:
a guard that restarts repeatedly is held to the same rate.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from podqos.agent.guard_status import RateLimit
from podqos.agent.journal import By, Kind, decode
from podqos.errors import InputError
from podqos.guard.settings import STOP_FILE, GuardSettings
from podqos.host.storage.journal_file import journal_files

_EVICTED = Kind.EVICTED.encode()


class HeldBack(StrEnum):
    """Why a decision is not carried out."""

    SHADOW = "shadow"
    STOP_FILE = "stop file"
    NODE_ANNOTATION = "node annotation"
    REFUSED = "refused by the API server"
    UNFINISHED = "unfinished eviction"
    """An earlier guard's victim still holds memory: no other pod must be evicted for that."""
    RATE_LIMIT = "rate limit"
    COOL_DOWN = "cool-down"


class Brakes:
    """Decides whether evictions are carried out. Times are the journal's."""

    def __init__(
        self, settings: GuardSettings, is_switched_off: Callable[[], bool], evicted_us: Iterable[int] = ()
    ) -> None:
        """``evicted_us``: times of earlier evictions."""
        self._settings, self._is_switched_off = settings, is_switched_off
        self._evicted_us = deque(sorted(evicted_us))
        self.refused_until_us = 0
        """Until when the server is assumed to reject evictions."""
        self.is_unfinished: Callable[[], bool] = lambda: False
        """Whether an earlier guard's victim is still dying."""

    @property
    def has_stop_file(self) -> bool:
        """Whether the file that switches the guard off exists."""
        return (self._settings.run / STOP_FILE).exists()

    def evicted(self, now_us: int) -> None:
        """Count an eviction."""
        self._evicted_us.append(now_us)

    def held_back(self, now_us: int) -> HeldBack | None:
        """Return why nothing is evicted now; None if it would be."""
        settings = self._settings
        if not settings.enforce:
            return HeldBack.SHADOW
        if self.has_stop_file:
            return HeldBack.STOP_FILE
        if self._is_switched_off():
            return HeldBack.NODE_ANNOTATION
        if now_us < self.refused_until_us:
            return HeldBack.REFUSED
        if self.is_unfinished():
            return HeldBack.UNFINISHED
        while self._evicted_us and self._evicted_us[0] <= now_us - settings.most_within_us:
            self._evicted_us.popleft()
        if len(self._evicted_us) >= settings.most:
            return HeldBack.RATE_LIMIT
        if self._evicted_us and now_us - self._evicted_us[-1] < settings.cool_down_us:
            return HeldBack.COOL_DOWN
        return None

    def free_again_us(self, now_us: int) -> int | None:
        """Return when a rate limit or a cool-down ends; None if neither is active."""
        match self.held_back(now_us):
            case HeldBack.COOL_DOWN:
                return self._evicted_us[-1] + self._settings.cool_down_us
            case HeldBack.RATE_LIMIT:
                return self._evicted_us[-self._settings.most] + self._settings.most_within_us
            case _:
                return None

    def limit(self, now_us: int) -> RateLimit:
        """Return the allowed number of evictions, and how many there were."""
        settings = self._settings
        recent = sum(each > now_us - settings.most_within_us for each in self._evicted_us)
        cool_us = self._evicted_us[-1] + settings.cool_down_us if self._evicted_us else 0
        return RateLimit(settings.most, settings.most_within_us, recent, cool_us if cool_us > now_us else None)


def earlier_evictions(journal: Path, since_us: int) -> Iterator[int]:
    """Yield the times of evictions in the journal, in whichever of its files they are."""
    for file in journal_files(journal):
        try:
            if file.stat().st_mtime_ns < since_us * 1000:
                continue
            with file.open("rb") as stream:
                lines = [line for line in stream if _EVICTED in line]
        except OSError:
            continue
        for line in lines:
            with contextlib.suppress(InputError):
                for entry in decode(line):
                    if entry.kind is Kind.EVICTED and entry.by is By.GUARD and entry.time_us > since_us:
                        yield entry.time_us
