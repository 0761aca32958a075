"""Where the webhook listens, what its paths are called, and what it puts up with. Manifests are made from this.

What the help of commands names is here as well: what is installed takes long to import.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.version import __version__

IMAGE = f"registry.example.com/podqos:{__version__}"
"""There is no public image: `make image` builds one."""
NAMESPACE = "podqos"
GUARD_NAMESPACE = "podqos-guard"
"""Its own, because pods there may use the host."""
PORT = 8443
LISTEN = f"127.0.0.1:{PORT}"
VALIDATE_PATH = "/validate"
MUTATE_PATH = "/mutate"
HEALTH_PATH = "/healthz"
READY_PATH = "/readyz"
METRICS_PATH = "/metrics"
CERTIFICATE_FILE, KEY_FILE = "tls.crt", "tls.key"
"""As a Secret of type kubernetes.io/tls has them."""
AUTHORITY_FILE = "ca.crt"


class Limits(Struct, frozen=True):
    """What a server puts up with."""

    body_bytes: int = 3 << 20
    """As much as an API server takes itself."""
    head_bytes: int = 64 << 10
    """Request line and headers."""
    buffered_bytes: int = 128 << 20
    """Of the bodies of all requests that have not come whole."""
    connections: int = 4096
    """With more, the one that has been idle for longest is closed."""
    handshake_seconds: float = 10.0
    receive_seconds: float = 10.0
    """From the first byte of a request to its last, and for a client to take its answer."""
    idle_seconds: float = 150.0
    """Between two requests; an API server closes its own connections after 90 seconds."""
    linger_seconds: float = 3.0
    """For a client to take the last answer of its connection."""
    sweep_seconds: float = 1.0
    """How often connections are looked at that have had their time."""
    answer_seconds: float = 10.0
    """For an answer where the request does not say; 10 seconds is what an API server waits by default."""
    large_body_bytes: int = 64 << 10
    """From here on a request is worked on beside the others, not between them."""
    large_at_once: int = 8
    """So many of them may wait; then the API server is told to ask again."""


LIMITS = Limits()
