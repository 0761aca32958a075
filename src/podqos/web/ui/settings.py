"""The address of the page and the limits of its server."""

from __future__ import annotations

from msgspec import Struct

from podqos.web.settings import Limits

HOST, PORT = "127.0.0.1", 8677
LISTEN = f"{HOST}:{PORT}"
UPLOAD_PATH = "/api/sources"
PASTE_PATH = "/api/autopsy"

HTTP_LIMITS = Limits(
    body_bytes=256 << 10,
    head_bytes=16 << 10,
    buffered_bytes=128 << 20,
    connections=512,
    receive_seconds=30.0,
    idle_seconds=120.0,
)


class UiLimits(Struct, frozen=True):
    """Limits on what visitors store, and for how long."""

    upload_bytes: int = 32 << 20
    """Of one request."""
    paste_bytes: int = 8 << 20
    """Of a text whose autopsy is asked for; it is not kept."""
    files: int = 500
    """Of one source."""
    sources: int = 12
    """Of one visitor; a new one replaces the least recently used."""
    visitor_bytes: int = 64 << 20
    """Everything that one visitor uploaded, unpacked."""
    total_bytes: int = 256 << 20
    """Of all visitors."""
    visitors: int = 200
    """Beyond this, the least recently active visitor without data is forgotten."""
    expires_seconds: float = 1800.0
    """Uploads are deleted this long after the visitor's last request."""
    jobs: int = 4
    """Of one visitor, queued or running; finished ones count as sources."""
    kept_jobs: int = 8
    all_jobs: int = 32
    streams: int = 8
    """Of one visitor at a time."""
    all_streams: int = 200


UI_LIMITS = UiLimits()
