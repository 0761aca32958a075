"""Edge: whether an API server answers at this moment, asked in the background.

A watch of a quiet cluster and a watch of a server that hangs look the same for minutes. A small request every few
seconds tells them apart. What to do about it belongs to whoever asks.
"""

from __future__ import annotations

import threading
import time

from podqos.cluster.cluster import Cluster
from podqos.cluster.patience import Patience, is_temporary
from podqos.cluster.refusals import RBACQuestion
from podqos.errors import ClusterError, Refused

_BRIEF = Patience(connect_seconds=5.0, stall_seconds=5.0, total_seconds=10.0, attempts=1)
_EVERY_SECONDS = 10.0
_PATH = "/version"


class Heartbeat:
    """Asks an API server for its version, and remembers when it last answered."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.answered_at: float | None = None
        """By ``time.monotonic``; None before the first answer."""
        self.trouble = ""
        """Why it does not answer; empty while it does."""

    def start(self) -> None:
        """Ask every few seconds until the cluster is closed."""
        threading.Thread(target=self._run, name="heartbeat", daemon=True).start()

    def beat(self) -> bool:
        """Ask once, and return whether it answers. What it refuses for good is an answer, too."""
        try:
            self._cluster.client.get(_PATH, asked=RBACQuestion("get", _PATH), patience=_BRIEF)
        except ClusterError as error:
            if not isinstance(error, Refused) or is_temporary(error.status):
                self.trouble = str(error)
                return False
        self.answered_at, self.trouble = time.monotonic(), ""
        return True

    def _run(self) -> None:
        while not self._cluster.client.is_closed():
            self.beat()
            self._cluster.client.pause(_EVERY_SECONDS)
