"""Addresses and paths of webhook and exporter, which the manifests in ``deploy/`` have, too.

Defaults that command help needs are here, too, because the installation modules are slow to import.
"""

from __future__ import annotations

from podqos.version import __version__

IMAGE = f"registry.example.com/podqos:{__version__}"
"""There is no public image: `make image` builds one."""
NAMESPACE = "podqos"
GUARD_NAMESPACE = "podqos-guard"
"""A namespace of its own, because its pods may use the host."""
UI_HOST = "127.0.0.1"
UI_LISTEN = f"{UI_HOST}:8677"
PORT = 8443
EXPORTER_PORT = 9753
LISTEN = f"127.0.0.1:{PORT}"
VALIDATE_PATH = "/validate"
MUTATE_PATH = "/mutate"
HEALTH_PATH = "/healthz"
READY_PATH = "/readyz"
METRICS_PATH = "/metrics"
CERTIFICATE_FILE, KEY_FILE = "tls.crt", "tls.key"
"""File names as in a Secret of type kubernetes.io/tls."""
AUTHORITY_FILE = "ca.crt"
