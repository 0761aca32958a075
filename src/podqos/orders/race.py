"""Whether kernel or kubelet acts first when memory runs out, in closed form, for amounts that are known.

That is what a log of an OOM states, and what a guard's reaction needs. About a node with its pods, or a kubelet's
settings, ``growing`` is asked; for the same amounts both say the same.

Available memory falls at a steady rate. The kernel kills when it reaches zero. The kubelet looks at regular intervals
with a random, uniformly distributed phase. It acts first if one of its passes falls into the *window*: after the
threshold is crossed (and its statistics show it, and a soft threshold has been met for its grace period), and before
the kernel acts.

So the kubelet acts first with the probability window ÷ interval; a window of a whole interval makes it certain, an
empty one impossible. Times are integer microseconds, rates bytes per second; results are exact.

An evicted pod keeps growing until it is gone. ``reaction_us`` is how long that takes; it narrows the window.
"""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct

from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.model.time_units import SECOND_US


class Race(Struct, frozen=True, gc=False):
    """The input of the race. Amounts are those at the start of the growth."""

    available_bytes: int
    """As the kubelet counts: ``memory.available``."""
    until_oom_bytes: int
    """As the kernel counts: what can still be allocated, with everything reclaimable reclaimed."""
    threshold_bytes: int
    growth_bytes_per_second: int
    interval_us: int = MONITORING_INTERVAL_SECONDS * SECOND_US
    grace_period_us: int = 0
    """Of a soft threshold: it acts at the first pass this long after the first pass that saw it met."""
    statistics_age_us: int = 0
    """How old the figures of a pass are."""
    reaction_us: int = 0
    """From the decision until memory is freed."""


class RaceResult(Struct, frozen=True, gc=False):
    """When things happen, from the start of the growth, and which acts first."""

    threshold_us: Fraction
    """When the threshold is crossed."""
    oom_us: Fraction
    """When the kernel kills."""
    window_us: Fraction
    """How long the kubelet has for a pass in time; negative where there is none."""
    kubelet_first: Fraction
    """Probability over the phase of the kubelet's loop."""


def run_race(race: Race) -> RaceResult:
    """Compute a race."""
    assert race.growth_bytes_per_second > 0
    threshold_us = max(Fraction(0), _microseconds(race, race.available_bytes - race.threshold_bytes))
    oom_us = max(Fraction(0), _microseconds(race, race.until_oom_bytes))
    window_us = oom_us - threshold_us - _delay_us(race)
    share = min(Fraction(1), max(Fraction(0), window_us / race.interval_us))
    return RaceResult(threshold_us, oom_us, window_us, share)


def winning_threshold_bytes(race: Race, probability: Fraction = Fraction(1)) -> int:
    """Return the smallest threshold with which the kubelet acts first with this probability.

    It can be more than is available: then the kubelet has to act before the growth begins.
    """
    needed_us = race.interval_us * probability + _delay_us(race)
    needed_bytes = needed_us * race.growth_bytes_per_second / SECOND_US
    lead_bytes = race.until_oom_bytes - race.available_bytes
    return max(0, -((lead_bytes - needed_bytes) // 1))


def winning_growth_bytes_per_second(race: Race, probability: Fraction = Fraction(1)) -> int | None:
    """Return the fastest growth at which the kubelet acts first with this probability; None if all are too fast."""
    window_bytes = race.until_oom_bytes - max(0, race.available_bytes - race.threshold_bytes)
    needed_us = race.interval_us * probability + _delay_us(race)
    if window_bytes <= 0 or needed_us <= 0:
        return None
    return int(window_bytes * SECOND_US / needed_us)


def _microseconds(race: Race, amount_bytes: int) -> Fraction:
    return Fraction(amount_bytes * SECOND_US, race.growth_bytes_per_second)


def _delay_us(race: Race) -> int:
    """Return the time between crossing the threshold and freeing memory, besides the wait for a pass."""
    looks = -(-race.grace_period_us // race.interval_us)
    return race.statistics_age_us + looks * race.interval_us + race.reaction_us
