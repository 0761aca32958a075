"""Edge: what kubelets measure, kept while they or the API server do not answer.

Usage cannot be watched. It is read when it is asked for and too old, or in the background, so that nobody waits for a
server that hangs. A node keeps its last figures for a while if its kubelet is silent, and for as long as the API server
is. When each was measured is known.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.cluster.cluster import Cluster
from podqos.cluster.sources import Found
from podqos.errors import PodqosError
from podqos.model.assumption import Assumption
from podqos.reading.cluster_part import Part
from podqos.reading.heartbeat import Heartbeat
from podqos.reading.live_cluster import KubeletAnswer, asked_kubelets, measured_lines, metrics_lines

_KEPT_SECONDS = 300.0
"""A node whose kubelet is silent, but not the API server, keeps its figures for this long."""

_PAUSE_SECONDS = 0.05
_RETRY_SECONDS = 5.0


class _Kept(Struct, frozen=True):
    answer: KubeletAnswer
    measured_at: float


class Measuring:
    """Usage and settings of nodes, as lines of a snapshot."""

    def __init__(
        self, cluster: Cluster, part: Part, heartbeat: Heartbeat, nodes: Callable[[], list[str]], seconds: float
    ) -> None:
        """``nodes`` returns which there are; figures of ``seconds`` ago are too old."""
        self._cluster = cluster
        self._part = part
        self._heartbeat = heartbeat
        self._nodes = nodes
        self._seconds = seconds
        self._kept: dict[str, _Kept] = {}
        self._round = threading.Lock()
        """Held while kubelets are asked."""
        self.lines: Sequence[bytes] = ()
        self.measured_at: float | None = None
        """When kubelets were last asked with success, by ``time.monotonic``; None before."""
        self.error: PodqosError | None = None
        """Why the last attempt failed."""

    def start(self, is_known: Callable[[], bool]) -> None:
        """Measure in the background until the cluster is closed, as soon as the nodes are known."""
        threading.Thread(target=self._run, args=(is_known,), name="usage", daemon=True).start()

    @property
    def is_old(self) -> bool:
        """Whether the figures are too old, or there are none."""
        return self.measured_at is None or time.monotonic() - self.measured_at >= self._seconds

    def of_nodes(self) -> dict[str, float]:
        """Return when each node was measured, by ``time.monotonic``."""
        return {node: kept.measured_at for node, kept in self._kept.items() if kept.answer.summary.value is not None}

    def measure(self) -> bool:
        """Ask the kubelets; return whether that succeeded. What was known stays if the API server does not answer."""
        with self._round:
            began = time.monotonic()
            answers = list(asked_kubelets(self._cluster, self._nodes()))
            if any(answer.is_silent for answer in answers) and not self._heartbeat.beat():
                return False
            kept = {answer.node: self._best(answer, began) for answer in answers}
            lines = list(measured_lines(_dated(one, began) for one in kept.values()))
            if any(one.answer.summary.value is None for one in kept.values()):
                lines += metrics_lines(self._cluster, self._part)
            self._kept, self.lines, self.measured_at = kept, lines, began
            return True

    def _best(self, answer: KubeletAnswer, now: float) -> _Kept:
        """Return what a kubelet answers or, if it does not, what it last did."""
        before = self._kept.get(answer.node)
        if before is None or now - before.measured_at >= _KEPT_SECONDS:
            return _Kept(answer, now)
        known = before.answer
        if answer.settings.is_silent and known.settings.value is not None:
            answer = replace(answer, settings=Found(known.settings.value))
        if answer.summary.is_silent and known.summary.value is not None:
            return _Kept(replace(answer, summary=Found(known.summary.value)), before.measured_at)
        return _Kept(answer, now)

    def _run(self, is_known: Callable[[], bool]) -> None:
        client = self._cluster.client
        while not is_known() and not client.is_closed():
            client.pause(_PAUSE_SECONDS)
        while not client.is_closed():
            if not self.is_old:
                client.pause(min(1.0, self._seconds))
            elif not self._attempt():
                client.pause(min(_RETRY_SECONDS, self._seconds))

    def _attempt(self) -> bool:
        try:
            self.error = None
            return self._heartbeat.beat() and self.measure()
        except PodqosError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - a thread that just ends would leave everybody blind
            self.error = PodqosError(f"{type(error).__name__}: {error}")
        return False


def _dated(kept: _Kept, now: float) -> KubeletAnswer:
    """Return an answer that says how old it is unless it is new."""
    answer, age = kept.answer, now - kept.measured_at
    if age <= 0:
        return answer
    what = Assumption(f"usage of node {answer.node}", f"as of {age:.0f} s ago", "a kubelet that answers")
    return replace(answer, summary=replace(answer.summary, assumptions=(what,)))
