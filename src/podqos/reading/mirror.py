"""A live cluster kept up to date by watching it, with a snapshot available at any moment.

A follower (``cluster.following``) holds the objects, ``measuring`` the usage, which cannot be watched: kubelets are
queried when a snapshot is requested and the figures are too old or, for whoever must not wait for a server that hangs,
in the background.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from podqos.cluster.cluster import Cluster
from podqos.cluster.following import FollowedKind, Follower, Say
from podqos.cluster.resources import NODES, PODS
from podqos.errors import PodqosError, Refused
from podqos.manifest.pruning import encoded_list, pruned_type
from podqos.model.data_age import DataAge
from podqos.objects.cluster_snapshot import ClusterSnapshot, End, Header
from podqos.reading.cluster_part import EVERYTHING, Part
from podqos.reading.heartbeat import Heartbeat
from podqos.reading.live_cluster import ABOUT_PODS, WORKLOADS, check_node, unread
from podqos.reading.measuring import Measuring


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
        self._say = say
        others = (*(ABOUT_PODS if part.policies else ()), *(WORKLOADS if part.workloads else ()))
        self._kinds = [
            FollowedKind(replace(resource, model=pruned_type(resource.kind))) for resource in (NODES, PODS, *others)
        ]
        self._nodes, self._pods = self._kinds[:2]
        self._follower = Follower(self._kinds, node=part.node, say=say, on_end=self._ended)
        self._version = ""
        self._heartbeat = Heartbeat(cluster)
        self._measuring = Measuring(cluster, part, self._heartbeat, self._node_names, usage_seconds)
        self._encoded: dict[tuple[str, str], tuple[list[Any], bytes]] = {}
        """By kind and node: objects, and the line they make; what has not changed is not encoded again."""
        self.fatal: PodqosError | None = None
        """Why nothing can be mirrored: what cannot do without may not be watched."""

    def start(self) -> None:
        """Start watching; existing objects arrive soon (``is_complete``)."""
        self._version = self._cluster.version().git_version
        self._follower.start(self._cluster)

    def measure_in_background(self) -> None:
        """Query kubelets and the API server regularly from now on: ``known`` never waits for them."""
        self._heartbeat.start()
        self._measuring.start(lambda: self.is_complete or self.fatal is not None)

    @property
    def is_complete(self) -> bool:
        """Whether all existing objects have arrived."""
        return self._follower.is_complete

    @property
    def is_measured(self) -> bool:
        """Whether usage was read at least once."""
        return self._measuring.measured_at is not None

    @property
    def is_current(self) -> bool:
        """Whether the API server answers, and reports what changes."""
        return not self._heartbeat.trouble and not self.interrupted

    @property
    def usage_error(self) -> PodqosError | None:
        """Why usage could not be read in the background."""
        return self._measuring.error

    def age(self) -> DataAge:
        """Return how old objects and usage are."""
        now, measured_at, answered_at = time.monotonic(), self._measuring.measured_at, self._heartbeat.answered_at
        confirmed_at = max([kind.current_at for kind in self._kinds] + ([] if answered_at is None else [answered_at]))
        # Of interrupted watches the one that has been so for longest counts.
        confirmed_at = min([confirmed_at, *(kind.current_at for kind in self._kinds if kind.trouble)])
        usage_seconds = None if measured_at is None else now - measured_at
        return DataAge(now - confirmed_at, usage_seconds, next(iter(self.troubles), ""))

    def usage_ages(self) -> dict[str, float]:
        """Return for each node how many seconds ago its kubelet was last asked with success."""
        now = time.monotonic()
        return {node: now - measured_at for node, measured_at in self._measuring.of_nodes().items()}

    @property
    def changes(self) -> int:
        """How many changes have arrived so far."""
        return self._follower.changes

    @property
    def troubles(self) -> list[str]:
        """Why something is not up to date, each reason once."""
        return list(dict.fromkeys(filter(None, (self._heartbeat.trouble, *self._follower.troubles))))

    @property
    def interrupted(self) -> int:
        """How many watches are interrupted."""
        return sum(bool(kind.trouble) for kind in self._kinds)

    def snapshot(self, before: ClusterSnapshot | None = None) -> ClusterSnapshot:
        """Return the cluster as it is now; usage is at most as old as allowed.

        Objects that have not changed since ``before``, an earlier snapshot, are not read again.
        """
        if self._part.usage and self._measuring.is_old:
            self._measuring.measure()
        return self.known(before)

    def known(self, before: ClusterSnapshot | None = None) -> ClusterSnapshot:
        """Return the cluster as far as it is known, without asking any server."""
        check_node(self._cluster, self._part, self._node_names())
        return ClusterSnapshot(self._lines(), self._cluster.name, before)

    def _node_names(self) -> list[str]:
        with self._follower.lock:
            return [node.metadata.name for node in self._nodes.objects.values()]

    def _lines(self) -> Iterator[bytes]:
        taken_at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        lines = [msgspec.json.encode(Header(taken_at=taken_at, server_version=self._version, node=self._part.node))]
        with self._follower.lock:
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
        lines += self._measuring.lines
        return iter((*lines, msgspec.json.encode(End(len(lines)))))

    def _groups(self, kind: FollowedKind) -> Iterator[tuple[str, list[Any]]]:
        """Yield the objects of a kind, pods by node: a change of one leaves the lists of other nodes as they are."""
        if kind is not self._pods:
            yield "", list(kind.objects.values())
            return
        groups: dict[str, list[Any]] = {"": [], **{each.metadata.name: [] for each in self._nodes.objects.values()}}
        for pod in kind.objects.values():
            groups.setdefault((pod.spec and pod.spec.node_name) or "", []).append(pod)
        yield from groups.items()

    def _ended(self, kind: FollowedKind, why: PodqosError) -> None:
        if not isinstance(why, Refused) or kind in (self._nodes, self._pods):
            self.fatal = why  # before it is complete: nobody takes what is missing for what does not exist
        if isinstance(why, Refused):
            kind.refusal, kind.is_complete = why, True
        self._say(str(why))
