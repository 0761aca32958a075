"""The offsets of time zones, from the zone database of this machine (or the ``tzdata`` package)."""

from __future__ import annotations

from datetime import UTC, datetime

from podqos.model.cron_schedule import Zone, utc


def zone_named(name: str | None) -> Zone | None:
    """Return the offsets of a time zone: UTC without a name, None if there is no such zone."""
    if not name:
        return utc
    from zoneinfo import ZoneInfo

    try:
        zone = ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None

    def offset(time: int) -> int:
        there = datetime.fromtimestamp(time, UTC).astimezone(zone).utcoffset()
        assert there is not None
        return int(there.total_seconds())

    return offset
