"""What changes while a page shows it: files, a live cluster, a node or a guard that runs.

A feed is asked every so often whether there is something new, in a thread, and raises what keeps it from knowing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import HostError
from podqos.eviction.observation import decode_summary
from podqos.eviction.signals import Signal
from podqos.library.cluster_snapshot import ClusterSnapshot, End, Header, NodeKubelet, NodeSummary
from podqos.library.inputs.changes import signature
from podqos.library.page.source import LogFile, PageSource, SourceKind, read_paths
from podqos.model.time_units import SECOND_US
from podqos.survival.snapshots import node_of

if TYPE_CHECKING:
    from podqos.library.mirror import Mirror

_PAUSE_SECONDS = 0.05
_SILENT_SECONDS = 30.0


class Feed(Protocol):
    """Something that changes."""

    pause_seconds: float
    """Between two looks."""

    def look(self) -> PageSource | None:
        """Return the source as it is now; None where it is as it was."""


class FilesFeed:
    """Files and directories on this machine; a scenario is read again when its manifests change, too."""

    pause_seconds = 0.5

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = tuple(paths)
        self._seen = signature(paths)
        self.first = read_paths(paths)
        self._watched = (*self._paths, *self.first.looked_at)
        self._seen = signature(self._watched)

    def look(self) -> PageSource | None:
        """Read what has changed."""
        now = signature(self._watched)
        if now == self._seen:
            return None
        self._seen = now
        source = read_paths(self._paths)
        self._watched = (*self._paths, *source.looked_at)
        self._seen = signature(self._watched)
        return source


class ClusterFeed:
    """A live cluster that is watched; usage is asked for now and then."""

    pause_seconds = 0.1

    def __init__(self, mirror: Mirror, usage_seconds: float) -> None:
        self._mirror = mirror
        self._usage_seconds = usage_seconds
        self._known = -1
        self._taken_at = 0.0
        self._last: ClusterSnapshot | None = None

    def look(self) -> PageSource | None:
        """Return the cluster where something has happened, or its usage is old."""
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
        return of_cluster(self._last)


class NodeFeed:
    """A running node, by its own API; ``get`` returns what it answers at a path."""

    pause_seconds = 1.0

    def __init__(self, get: Callable[[str], bytes], name: str) -> None:
        self._get = get
        self._name = name
        self._known = (b"", b"")

    def look(self) -> PageSource | None:
        """Return the node with its pods and what they use now."""
        pods, summary, configz = (self._get(path) for path in ("/pods", "/stats/summary", "/configz"))
        if (pods, summary) == self._known:
            return None
        self._known = pods, summary
        return of_cluster(ClusterSnapshot(_lines(pods, summary, configz), self._name))


class GuardFeed:
    """A running guard, by what it keeps on this machine: the pods it knows, how it is, and its journal."""

    pause_seconds = 1.0

    def __init__(self, state: str, run: str) -> None:
        self._state, self._run = Path(state), Path(run)
        self._known: tuple[bytes, int, int] | None = None

    def look(self) -> PageSource | None:
        """Return the guard's node; raise ``HostError`` where it no longer tells how it is."""
        status = self._status()
        silent = time.time() - status.updated_us / SECOND_US
        if silent > _SILENT_SECONDS:
            raise HostError(f"the guard of {status.node} has not told how it is for {silent:.0f} s")
        pods = self._read(self._state / "pods.json")
        journal = sorted(self._state.glob("journal.jsonl*"), reverse=True)  # numbered from the newest on: oldest first
        memory = next((each.capacity for each in status.signals if each.signal == Signal.MEMORY), 0)
        known = pods, memory, sum(each.stat().st_size for each in journal)
        if known == self._known:
            return None
        self._known = known
        items = msgspec.json.decode(pods, type=_KnownPods).pods
        cluster = ClusterSnapshot(_node_lines(status.node, items, memory), f"guard of {status.node}")
        return replace(of_cluster(cluster), logs=tuple(LogFile(str(each)) for each in journal))

    def _status(self) -> _GuardStatus:
        try:
            return msgspec.json.decode(self._read(self._run / "status.json"), type=_GuardStatus)
        except msgspec.DecodeError as error:
            raise HostError(f"{self._run / 'status.json'}: not of a guard: {error}") from error

    def _read(self, path: Path) -> bytes:
        try:
            return path.read_bytes()
        except OSError as error:
            what = f"no guard runs here: {path}: {error.strerror} (start one with `podqos guard run`)"
            raise HostError(what) from error


class _GuardSignal(Struct, frozen=True):
    signal: str
    capacity: int = 0


class _GuardStatus(Struct, frozen=True, rename="camel"):
    node: str
    updated_us: int
    signals: tuple[_GuardSignal, ...] = ()


class _KnownPods(Struct, frozen=True):
    pods: list[dict[str, Any]] = []


def of_cluster(cluster: ClusterSnapshot) -> PageSource:
    """Return a cluster as what a page is about."""
    objects = cluster.objects
    return PageSource(SourceKind.SNAPSHOT, cluster.source, problems=tuple(objects.problems), cluster=cluster)


class _Pods(Struct, frozen=True):
    items: list[dict[str, Any]] = []


def _lines(pods: bytes, summary: bytes, configz: bytes) -> list[bytes]:
    """Return what a node answers as a snapshot of a cluster that has no other."""
    measured = decode_summary(summary)
    name, machine = measured.node.node_name, node_of(measured)
    items = msgspec.json.decode(pods, type=_Pods).items
    for each in items:
        each.setdefault("spec", {})["nodeName"] = name
    told = [
        msgspec.json.encode(NodeSummary(name, msgspec.Raw(summary))),
        msgspec.json.encode(NodeKubelet(name, msgspec.Raw(configz))),
    ]
    return _node_lines(name, items, 0 if machine is None else machine.memory_bytes, told)


def _node_lines(name: str, pods: list[dict[str, Any]], memory_bytes: int, told: Sequence[bytes] = ()) -> list[bytes]:
    """Return the snapshot of a cluster of one node."""
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
