"""Who acts first when memory runs out, the kernel or the kubelet, in closed form.

Memory falls at a steady rate. The kernel kills at the instant the last of it is gone. The kubelet looks every so often;
where it is in its interval when the fall begins is chance, any phase as likely as any other. It acts first if one of
its looks falls into the *window*: after the threshold is crossed (and its statistics show it, and a soft threshold has
been seen met for its grace period), and before the kernel has to.

So the window divided by the interval is the kubelet's probability to act first; a window of a whole interval makes it
certain, one of nothing impossible. Times are integer microseconds, rates bytes per second; results are exact.

Acting first is not yet being in time: an evicted pod goes on growing until it is gone. ``reaction_us`` is what that
takes; it narrows the window.
"""

from __future__ import annotations

from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.model.time_units import SECOND_US


class Race(Struct, frozen=True, gc=False):
    """What decides the race. Amounts are those at the moment the fall begins."""

    available_bytes: int
    """As the kubelet counts: ``memory.available``."""
    until_oom_bytes: int
    """As the kernel counts: what can still be allocated, with everything reclaimed that can be."""
    threshold_bytes: int
    growth_bytes_per_second: int
    interval_us: int = MONITORING_INTERVAL_SECONDS * SECOND_US
    grace_period_us: int = 0
    """Of a soft threshold: it acts at the first look that comes so long after the first that saw it met."""
    statistics_age_us: int = 0
    """How old the figures are that a look goes by."""
    reaction_us: int = 0
    """From the decision to the moment memory is given back."""


class RaceResult(Struct, frozen=True, gc=False):
    """When things happen, counted from the beginning of the fall, and who is first."""

    threshold_us: Fraction
    """When the threshold is crossed."""
    oom_us: Fraction
    """When the kernel has to kill."""
    window_us: Fraction
    """How long the kubelet has for a look that comes in time; below zero it never does."""
    kubelet_first: Fraction
    """Probability over the phase of the kubelet's loop."""


def run_race(race: Race) -> RaceResult:
    """Work a race out."""
    assert race.growth_bytes_per_second > 0
    threshold_us = max(Fraction(0), _microseconds(race, race.available_bytes - race.threshold_bytes))
    oom_us = max(Fraction(0), _microseconds(race, race.until_oom_bytes))
    window_us = oom_us - threshold_us - _delay_us(race)
    share = min(Fraction(1), max(Fraction(0), window_us / race.interval_us))
    return RaceResult(threshold_us, oom_us, window_us, share)


def winning_threshold_bytes(race: Race, probability: Fraction = Fraction(1)) -> int:
    """Return the smallest threshold with which the kubelet acts first with this probability.

    It can be more than is available: then the kubelet has to act before the fall begins.
    """
    needed_us = race.interval_us * probability + _delay_us(race)
    needed_bytes = needed_us * race.growth_bytes_per_second / SECOND_US
    lead_bytes = race.until_oom_bytes - race.available_bytes
    return max(0, -((lead_bytes - needed_bytes) // 1))


def winning_growth_bytes_per_second(race: Race, probability: Fraction = Fraction(1)) -> int | None:
    """Return the fastest growth at which the kubelet acts first with this probability; None if any is too fast."""
    window_bytes = race.until_oom_bytes - max(0, race.available_bytes - race.threshold_bytes)
    needed_us = race.interval_us * probability + _delay_us(race)
    if window_bytes <= 0 or needed_us <= 0:
        return None
    return int(window_bytes * SECOND_US / needed_us)


def winning_grace_period_us(race: Race, probability: Fraction = Fraction(1)) -> int | None:
    """Return the longest grace period with which a soft threshold acts first with this probability.

    It counts in whole intervals, because only looks count. None where even none would be too long.
    """
    window_us = run_race(replace(race, grace_period_us=0)).window_us
    spare_us = window_us - race.interval_us * probability
    return None if spare_us < 0 else int(spare_us // race.interval_us) * race.interval_us


def _microseconds(race: Race, amount_bytes: int) -> Fraction:
    return Fraction(amount_bytes * SECOND_US, race.growth_bytes_per_second)


def _delay_us(race: Race) -> int:
    """Return what passes between crossing the threshold and giving memory back, besides waiting for a look."""
    looks = -(-race.grace_period_us // race.interval_us)
    return race.statistics_age_us + looks * race.interval_us + race.reaction_us
