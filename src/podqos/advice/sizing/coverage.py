"""How much history samples have: its length, their number, its gaps, and whether that is enough to go by.

Pods come and go, so a gap is a time in which no replica was measured. What is too little is stated here once:
``LEAST_SAMPLES``, ``LEAST_SECONDS`` and ``MOST_MISSING_PERCENT``. Whoever sizes decides what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import pairwise
from statistics import median_low

from msgspec import Struct

from podqos.manifest.times import date_text
from podqos.model.time_units import DAY_US, SECOND_US

LEAST_SAMPLES = 100
"""With fewer, the 99th percentile is the largest value."""
LEAST_SECONDS = DAY_US // SECOND_US
"""Shorter histories lack the busy hour of a day."""
MOST_MISSING_PERCENT = 20
"""Of the history; beyond it a daily peak may well be in a gap."""
GAP_STEPS = 4
"""From so many times the usual distance on, two samples have a gap between them."""


class Shortfall(StrEnum):
    """Why a history is too little to go by."""

    FEW_SAMPLES = "FewSamples"
    """Fewer than ``LEAST_SAMPLES``."""
    SHORT_HISTORY = "ShortHistory"
    """Shorter than ``LEAST_SECONDS``."""
    GAPS = "Gaps"
    """More than ``MOST_MISSING_PERCENT`` of the history is missing."""
    RECOMMENDATION = "Recommendation"
    """Nothing was measured: the figures are what a VerticalPodAutoscaler recommends."""
    UNKNOWN_LENGTH = "UnknownLength"
    """The samples have no times, so nobody knows how long they were collected."""


class Coverage(Struct, frozen=True, rename="camel"):
    """What stretch of time the samples of a container cover, all replicas together."""

    samples: int = 0
    replicas: int = 0
    """How many pods were measured, at any time."""
    first: str = ""
    """The date of the first sample; empty where the samples have no dates."""
    last: str = ""
    seconds: int | None = None
    """From the first sample to the last; null where the samples have no times."""
    step_seconds: int | None = None
    """The usual distance of a pod's samples."""
    gaps: int = 0
    longest_gap_seconds: int = 0
    missing_seconds: int = 0
    """The length of all gaps."""
    shortfalls: tuple[Shortfall, ...] = ()

    @property
    def is_provisional(self) -> bool:
        """Whether this is too little to make anything smaller by; samples without times count by their number."""
        return any(shortfall is not Shortfall.UNKNOWN_LENGTH for shortfall in self.shortfalls)


NO_COVERAGE = Coverage()
"""Of a container without samples."""
RECOMMENDED = Coverage(shortfalls=(Shortfall.RECOMMENDATION,))
"""Of a container for which there is a recommendation and nothing else."""


def coverage_of(replicas: Iterable[Sequence[int]], samples: int, *, are_dates: bool = True) -> Coverage:
    """Return what a container's samples cover; ``replicas`` has the times of each pod's samples, in microseconds.

    ``samples`` is how many there are, with or without times.
    """
    timed = [sorted(times_us) for times_us in replicas]
    known = sum(map(len, timed))
    if not samples:
        return NO_COVERAGE
    if known < samples:
        few = (Shortfall.FEW_SAMPLES,) if samples < LEAST_SAMPLES else ()
        return Coverage(samples, len(timed), shortfalls=(*few, Shortfall.UNKNOWN_LENGTH))
    steps_us = [usual_step_us(times_us) for times_us in timed if len(times_us) > 1]
    step_us = max(steps_us, default=0)
    together = timed[0] if len(timed) == 1 else sorted({time_us for times_us in timed for time_us in times_us})
    missing_us = gaps_us(together, step_us)
    length_us = together[-1] - together[0]
    shortfalls = {
        Shortfall.FEW_SAMPLES: samples < LEAST_SAMPLES,
        Shortfall.SHORT_HISTORY: length_us + step_us < LEAST_SECONDS * SECOND_US,
        Shortfall.GAPS: sum(missing_us) * 100 > length_us * MOST_MISSING_PERCENT,
    }
    return Coverage(
        samples=samples,
        replicas=len(timed),
        first=date_text(together[0]) if are_dates else "",
        last=date_text(together[-1]) if are_dates else "",
        seconds=length_us // SECOND_US,
        step_seconds=step_us // SECOND_US or None,
        gaps=len(missing_us),
        longest_gap_seconds=max(missing_us, default=0) // SECOND_US,
        missing_seconds=sum(missing_us) // SECOND_US,
        shortfalls=tuple(shortfall for shortfall, applies in shortfalls.items() if applies),
    )


def usual_step_us(times_us: Sequence[int]) -> int:
    """Return the usual distance of samples in order of time; a second where there is one sample."""
    return median_low([after - before for before, after in pairwise(times_us)] or [SECOND_US])


def gaps_us(times_us: Sequence[int], step_us: int) -> list[int]:
    """Return the lengths of the gaps between samples in order of time."""
    most_us = GAP_STEPS * step_us
    return [after - before for before, after in pairwise(times_us) if after - before > most_us]
