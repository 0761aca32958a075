"""Pressure stall information: how ``avg10``, ``avg60`` and ``avg300`` follow from stalled time.

Every two seconds the kernel takes the share of that time in which some (``some``) or all tasks (``full``) were stalled,
in whole percent, and adds it to three averages that decay at different rates, in fixed point. The averages therefore
lag: after ten seconds of full stall ``avg10`` shows 63, not 100.

Source: Linux kernel/sched/psi.c (update_averages, calc_avgs), include/linux/sched/loadavg.h and kernel/sched/loadavg.c
(calc_load). The caller combines the stalls of several CPUs into one.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from podqos.kernel.build import HZ

FIXED_BITS = 11
FIXED_1 = 1 << FIXED_BITS
DECAYS = (1677, 1981, 2034)
"""1/exp(2 s/10 s), 1/exp(2 s/60 s), 1/exp(2 s/300 s) in fixed point."""


def sampling_usec(hz: int = HZ) -> int:
    """Return the sampling interval: two seconds and one tick."""
    return (2 * hz + 1) * 1_000_000 // hz


class Pressure(Struct, frozen=True, gc=False):
    """One line of a pressure file (``some`` or ``full``) at one moment, with what the kernel remembers to go on."""

    now_usec: int = 0
    total_usec: int = 0
    averages: tuple[int, int, int] = (0, 0, 0)
    """In percent, fixed point."""
    sampled_usec: int = 0
    """How much of the total has entered the averages."""
    last_update_usec: int = 0
    next_update_usec: int = sampling_usec()
    period_usec: int = sampling_usec()

    @property
    def avg10(self) -> float:
        """The first average as shown: two digits, cut."""
        return shown(self.averages[0])

    @property
    def avg60(self) -> float:
        """The second average as shown."""
        return shown(self.averages[1])

    @property
    def avg300(self) -> float:
        """The third average as shown."""
        return shown(self.averages[2])


def advanced(pressure: Pressure, until_usec: int, stalled_usec: int) -> Pressure:
    """Return the pressure at ``until_usec`` when ``stalled_usec`` of the time until then, evenly spread, are lost.

    The kernel samples at the end of every interval, as it does while there is anything to run.
    """
    start_usec, start_total = pressure.now_usec, pressure.total_usec
    span_usec = until_usec - start_usec
    assert 0 <= stalled_usec <= span_usec, "no more time can be lost than passes"
    while (moment := pressure.next_update_usec) <= until_usec:
        lost = stalled_usec * (moment - start_usec) // span_usec if span_usec else 0
        pressure = observed(pressure, moment, start_total + lost)
    return observed(pressure, until_usec, start_total + stalled_usec)


def observed(pressure: Pressure, now_usec: int, total_usec: int) -> Pressure:
    """Return what the kernel shows when it looks at ``now_usec`` and ``total_usec`` have been lost so far.

    Intervals in which it did not look (nothing ran) count as free of stalls.
    """
    if now_usec < pressure.next_update_usec:
        return replace(pressure, now_usec=now_usec, total_usec=total_usec)
    period = pressure.period_usec
    missed = (now_usec - pressure.next_update_usec) // period
    elapsed = now_usec - (pressure.last_update_usec + missed * period)
    # Time that slipped over the end of an interval is kept for the next one.
    sample = min(total_usec - pressure.sampled_usec, elapsed)
    percent = sample * 100 // elapsed << FIXED_BITS
    ten, sixty, three_hundred = (
        decayed(_after_idle(average, decay, missed), decay, percent)
        for average, decay in zip(pressure.averages, DECAYS, strict=True)
    )
    return Pressure(
        now_usec=now_usec,
        total_usec=total_usec,
        averages=(ten, sixty, three_hundred),
        sampled_usec=pressure.sampled_usec + sample,
        last_update_usec=now_usec,
        next_update_usec=pressure.next_update_usec + (1 + missed) * period,
        period_usec=period,
    )


def decayed(average: int, decay: int, percent: int) -> int:
    """Let a new value into an average, rounding up while it rises."""
    total = average * decay + percent * (FIXED_1 - decay)
    if percent >= average:
        total += FIXED_1 - 1
    return total // FIXED_1


def shown(average: int) -> float:
    """Return a fixed-point average as the pressure files show it."""
    hundredths = (average & (FIXED_1 - 1)) * 100 >> FIXED_BITS
    return ((average >> FIXED_BITS) * 100 + hundredths) / 100


def _after_idle(average: int, decay: int, intervals: int) -> int:
    return decayed(average, _power(decay, intervals), 0) if intervals else average


def _power(decay: int, exponent: int) -> int:
    """Raise to a power in fixed point, rounding at every step as fixed_power_int does."""
    result = FIXED_1
    half = 1 << FIXED_BITS - 1
    while exponent:
        if exponent & 1:
            result = (result * decay + half) >> FIXED_BITS
        exponent >>= 1
        if exponent:
            decay = (decay * decay + half) >> FIXED_BITS
    return result
