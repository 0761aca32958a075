"""Data that changes while a page shows it: a live cluster, a running node or guard; files: ``files_feed``.

A feed is polled in a thread. It raises an error if it cannot get the current state.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.guard_status import FILE, GuardStatus
from podqos.agent.journal import Entry, decode
from podqos.errors import HostError, InputError
from podqos.eviction.signals import Signal, decode_summary
from podqos.host.storage.journal_file import journal_files
from podqos.model.time_units import SECOND_US
from podqos.naming import naming
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Header, NodeKubelet, NodeSummary
from podqos.orders.usage import node_of
from podqos.page.session import Follows, LogFile, PageSource, SourceKind, guard_panel
from podqos.reading.guard_journal import JOURNAL, KNOWN_PODS, read_status

if TYPE_CHECKING:
    from podqos.reading.mirror import Mirror

_PAUSE_SECONDS = 0.05
_LAST_BYTES = 1 << 17
"""How much of a journal's end is read for the latest entries."""


class Feed(Protocol):
    """A source that changes."""

    pause_seconds: float
    """Polling interval."""

    def look(self) -> PageSource | None:
        """Return the current source, None if it is unchanged."""


class ClusterFeed:
    """A watched live cluster; usage is polled."""

    pause_seconds = 0.1

    def __init__(self, mirror: Mirror, usage_seconds: float, known_by: tuple[str, ...] = ()) -> None:
        self._mirror = mirror
        self._known_by = known_by
        self._usage_seconds = usage_seconds
        self._known = -1
        self._taken_at = 0.0
        self._last: ClusterSnapshot | None = None

    def look(self) -> PageSource | None:
        """Return the cluster if it has changed or its usage is outdated."""
        mirror = self._mirror
        while not mirror.is_complete and mirror.fatal is None:
            time.sleep(_PAUSE_SECONDS)
        if mirror.fatal is not None:
            raise mirror.fatal
        now = time.monotonic()
        if mirror.changes == self._known and now < self._taken_at + self._usage_seconds:
            return None
        self._known, self._taken_at = mirror.changes, now
        self._last = mirror.snapshot(self._last)
        return replace(of_cluster(self._last), known_by=self._known_by, follows=Follows.CLUSTER)


class NodeFeed:
    """A running node, through its own API; ``get`` returns the answer for a path."""

    pause_seconds = 1.0

    def __init__(self, get: Callable[[str], bytes], name: str) -> None:
        self._get = get
        self._name = name
        self._known = (b"", b"")

    def look(self) -> PageSource | None:
        """Return the node with its pods and their current usage."""
        pods, summary, configz = (self._get(path) for path in ("/pods", "/stats/summary", "/configz"))
        if (pods, summary) == self._known:
            return None
        self._known = pods, summary
        cluster = ClusterSnapshot(_lines(pods, summary, configz), self._name)
        return replace(of_cluster(cluster), follows=Follows.NODE)


class GuardFeed:
    """A running guard, from its files on this machine: known pods, status and journal."""

    pause_seconds = 1.0

    def __init__(self, state: str, run: str) -> None:
        self._state, self._run = Path(state), Path(run)
        self._known: object = None

    def look(self) -> PageSource | None:
        """Return the guard's node; raise ``HostError`` if its status is stale."""
        status, now_us = self._status(), time.time_ns() // 1000
        if status.is_stale(now_us):
            silent = (now_us - status.updated_us) // SECOND_US
            what = f"the guard of {status.node} has stopped or is stuck: no status for {silent} s"
            raise HostError(f"{what}, and the page shows its last known state")
        pods, journal = self._pods(), journal_files(self._state / JOURNAL)
        known = pods, replace(status, updated_us=0, cpu_seconds=0, rss_bytes=0), _sizes(journal)
        if known == self._known:
            return None
        self._known = known
        items = msgspec.json.decode(pods, type=_KnownPods).pods
        memory = next((signal.capacity for signal in status.signals if signal.signal == Signal.MEMORY), 0)
        cluster = ClusterSnapshot(_node_lines(status.node, items, memory), f"guard of {status.node}")
        logs = tuple(LogFile(str(path)) for path in journal if path.exists())
        panel = guard_panel(status, _last_entries(journal))
        return replace(of_cluster(cluster), logs=logs, guard=panel, follows=Follows.GUARD)

    def _status(self) -> GuardStatus:
        file = self._run / FILE
        try:
            status = read_status(self._run)
        except OSError as error:
            raise HostError(f"{file}: {error.strerror or error}") from error
        if status is None:
            what = f"no guard status at {file}: start one with `podqos guard run`, or give its directory"
            raise HostError(what + " with " + naming("guard_run"))
        return status

    def _pods(self) -> bytes:
        """Return the pods that the guard knows; it saves them some seconds after its start."""
        try:
            return (self._state / KNOWN_PODS).read_bytes()
        except FileNotFoundError:
            return b"{}"
        except OSError as error:
            raise HostError(f"{self._state / KNOWN_PODS}: {error.strerror or error}") from error


def _sizes(files: Sequence[Path]) -> tuple[int, ...]:
    return tuple(file.stat().st_size if file.exists() else 0 for file in files)


def _last_entries(files: Sequence[Path]) -> Iterator[Entry]:
    """Yield the latest entries of a journal, skipping unreadable ones."""
    for file in files[-2:]:
        with suppress(OSError), file.open("rb") as lines:
            start = max(0, lines.seek(0, os.SEEK_END) - _LAST_BYTES)
            lines.seek(start)
            for line in lines.read().splitlines()[start > 0 :]:
                with suppress(InputError):
                    yield from decode(line)


class _KnownPods(Struct, frozen=True):
    pods: list[dict[str, Any]] = []


def of_cluster(cluster: ClusterSnapshot) -> PageSource:
    """Return a cluster as the source of a page."""
    objects = cluster.objects
    return PageSource(SourceKind.SNAPSHOT, cluster.source, problems=tuple(objects.problems), cluster=cluster)


class _Pods(Struct, frozen=True):
    items: list[dict[str, Any]] = []


def _lines(pods: bytes, summary: bytes, configz: bytes) -> list[bytes]:
    """Return a node's answers as a snapshot of a one-node cluster."""
    measured = decode_summary(summary)
    name, machine = measured.node.node_name, node_of(measured)
    items = msgspec.json.decode(pods, type=_Pods).items
    for item in items:
        item.setdefault("spec", {})["nodeName"] = name
    told = [
        msgspec.json.encode(NodeSummary(name, msgspec.Raw(summary))),
        msgspec.json.encode(NodeKubelet(name, msgspec.Raw(configz))),
    ]
    return _node_lines(name, items, 0 if machine is None else machine.memory_bytes, told)


def _node_lines(name: str, pods: list[dict[str, Any]], memory_bytes: int, told: Sequence[bytes] = ()) -> list[bytes]:
    """Return the snapshot of a one-node cluster."""
    taken_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    node: dict[str, Any] = {"metadata": {"name": name}}
    if memory_bytes:
        node["status"] = {"capacity": {"memory": str(memory_bytes)}}
    lines = [
        msgspec.json.encode(Header(taken_at=taken_at, node=name)),
        msgspec.json.encode({"kind": "NodeList", "apiVersion": "v1", "items": [node]}),
        msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "items": pods}),
        *told,
    ]
    return [*lines, msgspec.json.encode(End(len(lines)))]
