"""What changes while a page shows it: files, a live cluster, a node or a guard that runs.

A feed is asked every so often whether there is something new, in a thread, and raises what keeps it from knowing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from podqos.eviction.observation import decode_summary
from podqos.library.cluster_snapshot import ClusterSnapshot, End, Header, NodeKubelet, NodeSummary
from podqos.library.inputs.changes import signature
from podqos.library.page.source import PageSource, SourceKind, read_paths
from podqos.survival.snapshots import node_of

if TYPE_CHECKING:
    from podqos.library.mirror import Mirror

_PAUSE_SECONDS = 0.05


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
        return of_cluster(mirror.snapshot())


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


def of_cluster(cluster: ClusterSnapshot) -> PageSource:
    """Return a cluster as what a page is about."""
    objects = cluster.objects
    return PageSource(SourceKind.SNAPSHOT, cluster.source, problems=tuple(objects.problems), cluster=cluster)


class _Pods(msgspec.Struct):
    items: list[dict[str, Any]] = []


def _lines(pods: bytes, summary: bytes, configz: bytes) -> list[bytes]:
    """Return what a node answers as a snapshot of a cluster that has no other."""
    measured = decode_summary(summary)
    name, machine = measured.node.node_name, node_of(measured)
    taken_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    items = msgspec.json.decode(pods, type=_Pods).items
    for each in items:
        each.setdefault("spec", {})["nodeName"] = name
    node: dict[str, Any] = {"metadata": {"name": name}}
    if machine is not None:
        node["status"] = {"capacity": {"memory": str(machine.memory_bytes)}}
    lines = [
        msgspec.json.encode(Header(taken_at=taken_at, node=name)),
        msgspec.json.encode({"kind": "NodeList", "apiVersion": "v1", "items": [node]}),
        msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "items": items}),
        msgspec.json.encode(NodeSummary(name, msgspec.Raw(summary))),
        msgspec.json.encode(NodeKubelet(name, msgspec.Raw(configz))),
    ]
    return [*lines, msgspec.json.encode(End(len(lines)))]
