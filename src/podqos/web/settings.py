"""The webhook's address, paths and limits. Manifests are generated from them.

Defaults that command help needs are here, too, because the installation modules are slow to import.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.version import __version__

IMAGE = f"registry.example.com/podqos:{__version__}"
"""There is no public image: `make image` builds one."""
NAMESPACE = "podqos"
GUARD_NAMESPACE = "podqos-guard"
"""A namespace of its own, because its pods may use the host."""
PORT = 8443
LISTEN = f"127.0.0.1:{PORT}"
VALIDATE_PATH = "/validate"
MUTATE_PATH = "/mutate"
HEALTH_PATH = "/healthz"
READY_PATH = "/readyz"
METRICS_PATH = "/metrics"
CERTIFICATE_FILE, KEY_FILE = "tls.crt", "tls.key"
"""File names as in a Secret of type kubernetes.io/tls."""
AUTHORITY_FILE = "ca.crt"


class Limits(Struct, frozen=True):
    """The limits of a server. The defaults are the webhook's: all of them together fit its memory limit of 256Mi."""

    body_bytes: int = 3 << 20
    """The same limit as an API server's own."""
    head_bytes: int = 64 << 10
    """Request line and headers."""
    buffered_bytes: int = 48 << 20
    """All request bodies together, until their requests are answered."""
    unsent_bytes: int = 16 << 20
    """All answers together that clients have not read; beyond this, the slowest readers are disconnected."""
    connections: int = 2048
    """Beyond this, the least useful connection is closed: refused, incomplete, idle or slow ones."""
    handshakes: int = 256
    """TLS handshakes at once; beyond this, the oldest is closed."""
    handshake_seconds: float = 10.0
    receive_seconds: float = 10.0
    """From the first to the last byte of a request, and for a client to read its answer."""
    idle_seconds: float = 150.0
    """Between two requests; an API server closes its own connections after 90 seconds."""
    linger_seconds: float = 3.0
    """For a client to read the last answer on its connection."""
    sweep_seconds: float = 1.0
    """Interval of the sweep for expired connections."""
    answer_seconds: float = 10.0
    """For an answer if the request has no timeout; an API server waits 10 seconds by default."""
    large_body_bytes: int = 64 << 10
    """Larger requests are handled in a thread, concurrently with others."""
    large_at_once: int = 8
    """Maximum number of large requests in the queue; beyond that, the API server has to retry."""


LIMITS = Limits()
