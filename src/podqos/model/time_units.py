"""Units of time: how many of the smaller one make the larger one. Times are whole microseconds, as in ``time_us``."""

from __future__ import annotations

MICROSECOND_NS = 1_000
SECOND_NS = 1_000_000_000
SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
DAY_US = 24 * 60 * MINUTE_US
