"""Edge: the objects of some resources as they are now, followed by a thread for each.

A watch bridges what is temporary by itself (``watching``). Here is what it tells: the objects, whether they are
complete, why they may not be up to date; and what becomes of a watch that has ended. What the objects are needed for
belongs to whoever follows.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from podqos.cluster.cluster import Cluster
from podqos.cluster.events import Event, EventType
from podqos.cluster.pages import prepare
from podqos.cluster.patience import pause_seconds
from podqos.cluster.resources import NODES, PODS, Resource
from podqos.errors import ClusterError, NotFound, PodqosError, Refused

_OF_NODE = {NODES.plural: "metadata.name", PODS.plural: "spec.nodeName"}
"""The field selectors for the objects of one node."""

Say = Callable[[str], None]
"""Receives one line about a failure that is retried, once for all affected resources."""


class FollowedKind:
    """The objects of one resource, as reported by a watch."""

    def __init__(self, resource: Resource[Any], read: Callable[[Any], Any] = lambda item: item) -> None:
        """``read`` converts an object to what is kept; None if it cannot."""
        self.resource = resource
        self.read = read
        self.objects: dict[str, Any] = {}
        """The objects by uid."""
        self._again: dict[str, Any] | None = None
        """During a restart, the objects received so far; until they are complete, the old ones remain valid."""
        self.is_complete = False
        self.changes = 0
        self.refusal: Refused | None = None
        self.trouble = ""
        """The reason its watch is interrupted."""
        self.current_at = time.monotonic()
        """When its watch last brought something, or was interrupted."""

    def take(self, event: EventType, item: Any) -> None:  # noqa: ANN401 - of a type made at run time
        """Apply an event."""
        self.changes += 1
        self.current_at = time.monotonic()
        objects = self.objects if self._again is None else self._again
        match event:
            case EventType.RESET:
                self._again = {}
            case EventType.SYNCED:
                self.objects, self._again, self.is_complete = objects, None, True
            case EventType.DELETED:
                objects.pop(item.metadata.uid, None)
            case _:
                objects[item.metadata.uid] = item


class Follower:
    """Keeps kinds of objects up to date; ``lock`` is held while they change."""

    def __init__(
        self,
        kinds: Sequence[FollowedKind],
        *,
        node: str = "",
        on_change: Callable[[FollowedKind], None] = lambda _: None,
        on_trouble: Callable[[], None] = lambda: None,
        say: Say = lambda _: None,
        on_end: Callable[[FollowedKind, PodqosError], None] | None = None,
    ) -> None:
        """If ``node`` is given, only it and its pods are followed.

        ``on_change`` is called after each event, with the lock held; ``on_trouble`` when a watch is interrupted or goes
        on. ``on_end`` gets why a watch has ended for good; without it every watch begins again, because what a server
        rejects now it may grant later.
        """
        self.kinds = kinds
        self.lock = threading.Lock()
        self._node = node
        self._on_change, self._on_trouble, self._say, self._on_end = on_change, on_trouble, say, on_end
        self._is_closed = False

    def start(self, cluster: Cluster, *, stack_bytes: int = 0) -> None:
        """Start watching; existing objects arrive soon (``is_complete``). 0 is a thread's usual stack."""
        for kind in self.kinds:
            prepare(kind.resource)
        before = threading.stack_size(stack_bytes)
        for kind in self.kinds:
            name = kind.resource.plural
            threading.Thread(target=self._follow, args=(cluster, kind), name=name, daemon=True).start()
        threading.stack_size(before)

    def close(self) -> None:
        """Restart no watch. Running ones end when the cluster is closed."""
        self._is_closed = True

    @property
    def is_complete(self) -> bool:
        """Whether all existing objects have arrived."""
        return all(kind.is_complete for kind in self.kinds)

    @property
    def changes(self) -> int:
        """How many changes have arrived so far."""
        return sum(kind.changes for kind in self.kinds)

    @property
    def troubles(self) -> list[str]:
        """Why something is not up to date, each reason once."""
        return list(dict.fromkeys(kind.trouble for kind in self.kinds if kind.trouble))

    def _follow(self, cluster: Cluster, kind: FollowedKind) -> None:
        field = _OF_NODE.get(kind.resource.plural, "") if self._node else ""
        only = f"{field}={self._node}" if field else ""
        failures = 0
        while not self._is_closed and not cluster.client.is_closed():
            try:
                for event in cluster.watch(kind.resource, field_selector=only, on_trouble=partial(self._note, kind)):
                    failures = 0
                    self._take(kind, event)
            except Exception as error:  # noqa: BLE001 - a thread that just ends would leave everybody blind
                why = error if isinstance(error, PodqosError) else ClusterError(f"{type(error).__name__}: {error}")
                if self._on_end is not None:
                    self._end(kind, why, self._on_end)
                    return
                self._note(kind, why)
            cluster.client.pause(pause_seconds(failures, None, random.random()))  # noqa: S311 - no secret
            failures += 1

    def _take(self, kind: FollowedKind, event: Event[Any]) -> None:
        item = None if event.object is None else kind.read(event.object)
        with self.lock:
            if item is not None or event.object is None:
                kind.take(event.type, item)
            self._on_change(kind)
        self._note(kind, None)

    def _end(self, kind: FollowedKind, why: PodqosError, on_end: Callable[[FollowedKind, PodqosError], None]) -> None:
        if isinstance(why, NotFound):
            kind.is_complete = True  # a cluster without this API has none
        else:
            on_end(kind, why)

    def _note(self, kind: FollowedKind, error: PodqosError | None) -> None:
        reason = "" if error is None else str(error)
        if kind.trouble == reason:
            return
        with self.lock:
            is_new = reason not in self.troubles
            if not kind.trouble:
                kind.current_at = time.monotonic()
            kind.trouble = reason
        self._on_trouble()
        if reason and is_new:
            self._say(reason)
