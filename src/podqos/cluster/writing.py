"""Edge: the only requests of podqos that change a cluster. The guard alone sends them, and only when told to enforce.

Each is sent once: whoever asks decides what an answer means and when to ask again. A connection that is open already is
used where there is one (``warm`` keeps it so), because a handshake takes longer than the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from podqos.cluster.asking import Client, Query
from podqos.cluster.patience import Patience
from podqos.cluster.refusals import status_of
from podqos.cluster.transport import SentRequest
from podqos.errors import NotFound

_JSON, _STRATEGIC_MERGE = "application/json", "application/strategic-merge-patch+json"
PROMPT = Patience(connect_seconds=2.0, stall_seconds=5.0, total_seconds=10.0, attempts=1, most_bytes=4 << 20)


class WriteAnswer(msgspec.Struct, frozen=True):
    """The result of a request."""

    status: int
    message: str
    """The server's reason for rejecting it; empty if it succeeded."""


class Writer:
    """Sends requests over the connections of a client. Several threads may use it at once."""

    def __init__(self, client: Client, patience: Patience = PROMPT) -> None:
        self._client = client
        self._patience = patience

    def waiting(self, seconds: float) -> Writer:
        """Return a writer that waits this long for a response."""
        return Writer(self._client, replace(self._patience, stall_seconds=seconds, total_seconds=2 * seconds))

    def warm(self) -> None:
        """Open a connection, or check that the open one works; raises if the server cannot be reached."""
        self._client.get("/version", patience=self._patience)

    def look(self, namespace: str, name: str) -> bytes | None:
        """Return a pod as the server has it now, or None."""
        try:
            return self._client.get(f"{_pods(namespace)}/{quote(name, safe='')}", patience=self._patience).data
        except NotFound:
            return None

    def patch_status(
        self, namespace: str, name: str, patch: Mapping[str, object], *, is_rehearsal: bool = False
    ) -> WriteAnswer:
        """Patch the status of a pod, and some of its metadata; a dry run changes nothing."""
        query = [("fieldManager", "podqos-guard"), *([("dryRun", "All")] if is_rehearsal else [])]
        path = f"{_pods(namespace)}/{quote(name, safe='')}/status"
        return self._send(SentRequest("PATCH", msgspec.json.encode(patch)), path, query, _STRATEGIC_MERGE)

    def evict(self, namespace: str, name: str, eviction: Mapping[str, object]) -> WriteAnswer:
        """Ask the server to evict a pod by its own rules: disruption budgets are honoured."""
        path = f"{_pods(namespace)}/{quote(name, safe='')}/eviction"
        return self._send(SentRequest("POST", msgspec.json.encode(eviction)), path, (), _JSON)

    def post_event(self, namespace: str, event: Mapping[str, object]) -> WriteAnswer:
        """Record an Event."""
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/events"
        return self._send(SentRequest("POST", msgspec.json.encode(event)), path, (), _JSON)

    def _send(self, sent: SentRequest, path: str, query: Query, content_type: str) -> WriteAnswer:
        answer = self._client.send(sent, path, query, content_type, self._patience)
        message = "" if answer.is_success else status_of(answer.status, answer.data).message
        return WriteAnswer(answer.status, message)


def _pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
