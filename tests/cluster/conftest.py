"""What the tests of the cluster reader share."""

from __future__ import annotations

import pytest

from cluster.certificates import Authority
from podqos.cluster import asking, watching
from podqos.cluster.patience import Patience, pause_seconds


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    """Take away what the environment says about proxies and clusters."""
    for name in ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def pauses(monkeypatch):
    """Return how long would have been waited before asking again; the tests do not wait."""
    waited: list[float] = []

    def note(attempt, retry_after, _draw):
        waited.append(pause_seconds(attempt, retry_after, 0))
        return 0.0

    monkeypatch.setattr(asking, "pause_seconds", note)
    monkeypatch.setattr(watching, "pause_seconds", note)
    return waited


@pytest.fixture
def patient():
    """Return deadlines that even a busy machine keeps, for small answers."""
    return Patience(connect_seconds=20.0, stall_seconds=15.0, total_seconds=30.0, attempts=4, most_bytes=4 << 20)
