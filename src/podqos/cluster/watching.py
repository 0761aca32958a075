"""Edge: a watch that never ends: begins with what exists, resumes where it broke off, begins again where it must.

What exists comes as a watch list (``sendInitialEvents``), which costs the server less than a list. A server that does
not know it is read in pages first. A resource version that is too old, in a 410 or in an ERROR event inside a 200,
means that everything begins again.

Sources: Kubernetes v1.36 client-go/tools/cache/reflector.go; KEP-3157.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Generic

from msgspec.structs import replace

from podqos.cluster.asking import Client
from podqos.cluster.events import Bookmark, Event, EventType, lines, read_event
from podqos.cluster.pages import ListPage
from podqos.cluster.patience import is_temporary, pause_seconds
from podqos.cluster.refusals import GONE, ServerStatus, question, refusal
from podqos.cluster.resources import Model, Resource
from podqos.errors import BadAnswer, ClusterError, Refused, Unreachable

Trouble = Callable[[ClusterError | None], None]
"""Called with the reason a watch is interrupted and retried, and with None when it resumes."""

_WATCH_SECONDS = (240, 480)
"""The server is asked to end a watch after a time between these, so that clients do not all reconnect at once."""
_GRACE_SECONDS = 30.0
"""A watch that the server does not end in time is considered dead."""
_SHORT_SECONDS = 1.0
_MOST_BAD_ANSWERS = 5
_NOT_KNOWN = frozenset({400, 422})
"""The status of a server that does not accept a parameter."""


class Watch(Generic[Model]):
    """One watch of one resource; ``pages`` lists it, for servers without watch lists."""

    def __init__(
        self,
        client: Client,
        resource: Resource[Model],
        namespace: str,
        selection: list[tuple[str, str]],
        pages: Callable[[], Iterator[ListPage[Model]]],
        *,
        on_trouble: Trouble | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._path = resource.path(namespace)
        self._selection = selection
        self._pages = pages
        self._asked = question("watch", resource, namespace)
        self._on_trouble = on_trouble
        self._version = ""
        """Where to resume; empty for a full restart."""
        self._knows_watch_lists = True
        self._failures = 0
        self._is_interrupted = False

    def events(self) -> Iterator[Event[Model]]:
        """Yield events until the client is closed or the server rejects the watch for good."""
        while not self._client.is_closed():
            try:
                if not self._version:
                    yield from self._from_watch_list() if self._knows_watch_lists else self._from_pages()
                yield from self._resumed()
            except Refused as error:
                if error.status == GONE:
                    self._version = ""
                elif not is_temporary(error.status):
                    raise
                # What is gone begins again, as after every longer pause: no trouble.
                self._wait(None if error.status == GONE else error)
            except (Unreachable, BadAnswer) as error:
                if self._client.is_closed():
                    return
                is_hopeless = isinstance(error, BadAnswer) and self._failures >= _MOST_BAD_ANSWERS
                if is_hopeless or not self._client.has_answered:
                    raise
                self._wait(error)

    def _wait(self, error: ClusterError | None) -> None:
        if error is not None:
            self._tell(error)
        self._client.pause(pause_seconds(self._failures, None, random.random()))  # noqa: S311 - no secret
        self._failures += 1

    def _tell(self, error: ClusterError | None) -> None:
        self._is_interrupted = error is not None
        if self._on_trouble is not None:
            self._on_trouble(error)

    def _from_watch_list(self) -> Iterator[Event[Model]]:
        """Yield existing objects, then changes; for a server without watch lists, list them first."""
        query = [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")]
        try:
            yield from self._watch(query, is_initial=True)
        except Refused as error:
            if error.status not in _NOT_KNOWN:
                raise
        except (Unreachable, BadAnswer):
            if self._client.is_closed() or not self._client.has_answered:
                raise
        if not self._version:
            # An older server, or one that never says that this was all: a list is understood everywhere.
            self._knows_watch_lists = False
            yield from self._from_pages()

    def _from_pages(self) -> Iterator[Event[Model]]:
        version = ""
        for page in self._pages():
            if page.is_first:
                yield Event(EventType.RESET)
            for item in page.items:
                yield Event(EventType.ADDED, item)
            version = page.metadata.resource_version
        if not version:
            raise BadAnswer(f"its list of {self._resource.plural} has no resourceVersion", where=self._client.where)
        self._version = version
        yield Event(EventType.SYNCED)

    def _resumed(self) -> Iterator[Event[Model]]:
        while self._version and not self._client.is_closed():
            begun, version = time.monotonic(), self._version
            yield from self._watch([("resourceVersion", version)])
            if self._version == version and time.monotonic() - begun < _SHORT_SECONDS:
                raise Unreachable("it ended the watch immediately", where=self._client.where)

    def _watch(self, query: list[tuple[str, str]], *, is_initial: bool = False) -> Iterator[Event[Model]]:
        """Yield the events of one watch, until the server ends it."""
        client = self._client
        seconds = random.randint(*_WATCH_SECONDS)  # noqa: S311 - no secret
        common = [("watch", "true"), ("allowWatchBookmarks", "true"), ("timeoutSeconds", str(seconds))]
        patience = replace(client.patience, total_seconds=seconds + _GRACE_SECONDS)
        with client.stream(
            self._path, common + self._selection + query, asked=self._asked, patience=patience
        ) as stream:
            if self._is_interrupted:
                self._tell(None)
            if is_initial:
                yield Event(EventType.RESET)
            else:
                stream.may_be_quiet()
            for line in lines(stream.pieces, client.where):
                said = read_event(self._resource, line, client.where)
                if said is None:
                    continue
                if isinstance(said, ServerStatus):
                    raise refusal(self._asked, said, client.where)
                if isinstance(said, Bookmark):
                    if is_initial and said.ends_initial_events:
                        is_initial = False
                        self._version = said.resource_version
                        stream.may_be_quiet()
                        yield Event(EventType.SYNCED)
                    version = said.resource_version
                else:
                    event, version = said
                    yield event
                self._failures = 0
                if not is_initial and version:
                    self._version = version
