"""Where the page is served and what its server puts up with."""

from __future__ import annotations

from msgspec import Struct

from podqos.web.settings import Limits

HOST, PORT = "127.0.0.1", 8677
LISTEN = f"{HOST}:{PORT}"
UPLOAD_PATH = "/api/sources"

HTTP_LIMITS = Limits(
    body_bytes=256 << 10,
    head_bytes=16 << 10,
    buffered_bytes=128 << 20,
    connections=512,
    receive_seconds=30.0,
    idle_seconds=120.0,
)


class UiLimits(Struct, frozen=True):
    """What visitors may leave here, and for how long."""

    upload_bytes: int = 32 << 20
    """Of one request."""
    files: int = 500
    """Of one source."""
    sources: int = 12
    """Of one visitor; another one takes the place of the one that was not used for longest."""
    visitor_bytes: int = 64 << 20
    """Of all that one visitor uploaded, unpacked."""
    total_bytes: int = 256 << 20
    """Of all visitors."""
    visitors: int = 200
    """With more, the one is forgotten who was not here for longest, unless all have left something."""
    expires_seconds: float = 1800.0
    """What a visitor left is gone so long after the last request."""
    jobs: int = 4
    """Of one visitor, waiting or running; those that are done count as sources do."""
    kept_jobs: int = 8
    all_jobs: int = 32
    streams: int = 8
    """Of one visitor at a time."""
    all_streams: int = 200


UI_LIMITS = UiLimits()
