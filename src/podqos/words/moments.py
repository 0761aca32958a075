"""Moments as people write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_SINCE_1970 = re.compile(r"(\d{10})(\.\d{1,9})?")


def moment(at: str) -> str:
    """Return when something happened: a date where a log counts seconds since 1970."""
    found = _SINCE_1970.fullmatch(at)
    if found is None:
        return at
    return f"{datetime.fromtimestamp(int(found[1]), UTC):%Y-%m-%dT%H:%M:%S}{found[2] or ''}Z"
