"""A live cluster kept up to date by watching it, of which a snapshot can be had at any moment.

A thread for each resource follows what happens. Usage cannot be watched: the kubelets are asked when a snapshot is
wanted and the figures are older than they may be.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from podqos.cluster.cluster import Cluster
from podqos.cluster.pages import prepare
from podqos.cluster.resources import NODES, PODS, Resource
from podqos.cluster.watching import Kind
from podqos.errors import ClusterError, NotFound, Refused
from podqos.manifest.pruning import encoded_list, pruned_type
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Header
from podqos.reading.cluster_part import EVERYTHING, Part
from podqos.reading.live_cluster import ABOUT_PODS, WORKLOADS, check_node, measured, unread

_OF_NODE = {"nodes": "metadata.name", "pods": "spec.nodeName"}
"""The fields by which what belongs to one node is chosen."""

Say = Callable[[str], None]
"""Told in a line what goes wrong and is tried again, once for all that is concerned."""


class Mirror:
    """Objects of a cluster as they are now; ``part`` may leave out kinds, and what belongs to other nodes."""

    def __init__(
        self,
        cluster: Cluster,
        part: Part = EVERYTHING,
        *,
        usage_seconds: float = 60.0,
        say: Say = lambda _: None,
    ) -> None:
        self._cluster = cluster
        self._part = part
        self._usage_seconds = usage_seconds
        self._say = say
        self._lock = threading.Lock()
        others = (*(ABOUT_PODS if part.policies else ()), *(WORKLOADS if part.workloads else ()))
        self._kinds = [Kind(resource) for resource in (NODES, PODS, *others)]
        self._version = ""
        self._usage: list[bytes] = []
        self._usage_at: float | None = None
        self._encoded: dict[tuple[str, str], tuple[list[Any], bytes]] = {}
        """By kind and node: objects, and the line they make; what has not changed is not encoded again."""
        self.fatal: ClusterError | None = None
        """Why nothing can be mirrored: what cannot do without may not be watched."""

    def start(self) -> None:
        """Begin to watch; what exists comes soon (``is_complete``)."""
        self._version = self._cluster.version().git_version
        watched = {kind: replace(kind.resource, model=pruned_type(kind.resource.kind)) for kind in self._kinds}
        for resource in watched.values():
            prepare(resource)
        for each in watched.items():
            threading.Thread(target=self._follow, args=each, name=each[1].plural, daemon=True).start()

    @property
    def is_complete(self) -> bool:
        """Whether everything that exists has come."""
        return all(kind.is_complete for kind in self._kinds)

    @property
    def changes(self) -> int:
        """How many changes have come so far."""
        return sum(kind.changes for kind in self._kinds)

    @property
    def troubles(self) -> list[str]:
        """Why something is not up to date, each reason once."""
        return list(dict.fromkeys(kind.trouble for kind in self._kinds if kind.trouble))

    @property
    def interrupted(self) -> int:
        """How many watches are interrupted."""
        return sum(bool(kind.trouble) for kind in self._kinds)

    def snapshot(self, before: ClusterSnapshot | None = None) -> ClusterSnapshot:
        """Return the cluster as it is now; usage is at most as old as it may be.

        What has not changed since ``before``, an earlier one, is not read again.
        """
        with self._lock:
            nodes = [each.metadata.name for each in self._kinds[0].objects.values()]
        check_node(self._cluster, self._part, nodes)
        now = time.monotonic()
        if self._usage_at is None or now - self._usage_at >= self._usage_seconds:
            self._usage = list(measured(self._cluster, nodes, self._part, None))
            self._usage_at = now
        return ClusterSnapshot(self._lines(), self._cluster.name, before)

    def _lines(self) -> Iterator[bytes]:
        taken_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        lines = [msgspec.json.encode(Header(taken_at=taken_at, server_version=self._version, node=self._part.node))]
        with self._lock:
            encoded: dict[tuple[str, str], tuple[list[Any], bytes]] = {}
            for kind in self._kinds:
                resource = kind.resource
                for node, items in self._groups(kind):
                    key = resource.kind, node
                    known = self._encoded.get(key)
                    if known is None or known[0] != items:
                        known = items, encoded_list(resource.api_version, f"{resource.kind}List", items)
                    encoded[key] = known
                    lines.append(known[1])
                if kind.refusal:
                    lines.append(msgspec.json.encode(unread(resource, kind.refusal, "list and watch")))
            self._encoded = encoded
        lines += self._usage
        return iter((*lines, msgspec.json.encode(End(len(lines)))))

    def _groups(self, kind: Kind) -> Iterator[tuple[str, list[Any]]]:
        """Yield the objects of a kind, pods by node: a change of one leaves the lists of other nodes as they are."""
        if kind.resource is not PODS:
            yield "", list(kind.objects.values())
            return
        groups: dict[str, list[Any]] = {"": [], **{each.metadata.name: [] for each in self._kinds[0].objects.values()}}
        for pod in kind.objects.values():
            groups.setdefault((pod.spec and pod.spec.node_name) or "", []).append(pod)
        yield from groups.items()

    def _follow(self, kind: Kind, resource: Resource[Any]) -> None:
        fields = _OF_NODE.get(kind.resource.plural, "") if self._part.node else ""
        only = f"{fields}={self._part.node}" if fields else ""
        try:
            for event in self._cluster.watch(resource, field_selector=only, on_trouble=partial(self._note, kind)):
                with self._lock:
                    kind.take(event.type, event.object)
        except NotFound:
            kind.is_complete = True  # a cluster without this API has none
        except Refused as error:
            kind.refusal, kind.is_complete = error, True
            if kind.resource in (NODES, PODS):
                self.fatal = error
            self._say(str(error))
        except ClusterError as error:
            self.fatal = error
            self._say(str(error))

    def _note(self, kind: Kind, error: ClusterError | None) -> None:
        said = "" if error is None else str(error)
        with self._lock:
            is_new = said not in self.troubles
            kind.trouble = said
        if said and is_new:
            self._say(said)
