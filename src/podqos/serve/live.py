"""Pushed to pages: changes of the source that the command was started with, and the progress of runs.

Changes are coalesced: a slow client gets the latest state and skips those in between. Each state is computed and
encoded once, for any number of clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from podqos.errors import PodqosError
from podqos.manifest.encoding import json_line
from podqos.page.cluster import ClusterView
from podqos.page.session import Age, Hello, PageSource, SourceKind
from podqos.serve.feeds import Feed
from podqos.serve.sessions import Bell, StartSource, Visitor
from podqos.serve.sharing import START
from podqos.serve.shown_paths import without_directories
from podqos.version import __version__

T = TypeVar("T")

_AGE_SECONDS = 5.0
_SHARE = 0.75
"""Maximum share of time spent on polling."""
_SOONEST_SECONDS = 0.1
_WITHOUT_PODS = {SourceKind.LOG, SourceKind.RUN}
_NO_AGE = Age("", 0.0, "")


class Live:
    """A source that may change."""

    def __init__(
        self, source: PageSource, feed: Feed | None, pool: Executor, say: Callable[[str], None], instance: str
    ) -> None:
        self.shown = StartSource(START, source)
        self.is_live = feed is not None
        self.bell = Bell()
        """Signals a new state."""
        self._feed = feed
        self._pool = pool
        self._say = say
        self._instance = instance
        self._taken_at = datetime.now(UTC)
        self._known_at = asyncio.get_running_loop().time()
        self._trouble = ""
        self._views: dict[int, ClusterView] = {}
        """The latest state, by its generation."""
        self._lock = asyncio.Lock()
        self._encoded: bytes | None = None
        """The cluster view of the latest state."""

    async def prepare(self) -> None:
        """Compute the first view in advance."""
        if self.shown.source.kind not in _WITHOUT_PODS:
            with suppress(PodqosError):  # reported to whoever asks
                await self._see(self.shown)

    async def follow(self) -> None:
        """Poll for changes forever."""
        feed, loop = self._feed, asyncio.get_running_loop()
        while feed is not None:
            began = loop.time()
            try:
                source = await loop.run_in_executor(self._pool, feed.look)
                if source is not None:
                    await self._show(source)
                self._known_at, trouble = began, ""
            except PodqosError as error:
                trouble = str(error)
            except Exception as error:  # noqa: BLE001 - a bug of ours must not end what follows
                trouble = f"podqos failed: {type(error).__name__}: {error}"
            shown = without_directories(trouble)
            if shown != self._trouble:
                self._trouble = shown
                self.bell.ring()
                if trouble:
                    self._say(f"out of date: {trouble}")
            took = loop.time() - began
            await asyncio.sleep(max(feed.pause_seconds, _SOONEST_SECONDS, took / _SHARE) - took)

    async def _show(self, source: PageSource) -> None:
        shown = StartSource(START, source, self.shown.generation + 1, self.shown.page)
        if source.kind not in _WITHOUT_PODS:
            await self._see(shown)
        async with self._lock:
            self.shown, self._taken_at, self._encoded = shown, datetime.now(UTC), None
        self.bell.ring()

    async def _see(self, shown: StartSource) -> ClusterView:
        """Return the cluster view of a state, computed once."""
        if shown.generation not in self._views:
            async with shown.lock:
                self._views = {shown.generation: await self._in_pool(shown.page.cluster)}
        return self._views[shown.generation]

    async def _in_pool(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def whole(self) -> tuple[str, bytes]:
        """Return the latest cluster view, encoded, with its key."""
        async with self._lock:
            return self.etag(self.shown.generation), await self._view()

    async def _view(self) -> bytes:
        if self._encoded is None:
            view = await self._see(self.shown)
            self._encoded = await self._in_pool(lambda: json_line(view).rstrip())
        return self._encoded

    def etag(self, generation: int) -> str:
        """Return a key that identifies this state across servers."""
        return f"{self._instance}-{generation}"

    def age(self) -> Age:
        """Return the age of the shown state."""
        now = asyncio.get_running_loop().time()
        age_seconds = round(now - self._known_at, 1) if self.is_live else 0.0
        return Age(_rfc_3339(self._taken_at), age_seconds, self._trouble, _rfc_3339(datetime.now(UTC)))

    async def news(self, last: str) -> tuple[str, bytes]:
        """Return the key of the latest state, and the event that takes a page there from its last one, if any."""
        async with self._lock:
            generation = self.shown.generation
            etag = self.etag(generation)
            if etag == last:
                return etag, b""
            if self.shown.source.kind in _WITHOUT_PODS:
                told = {**msgspec.to_builtins(self.age()), "generation": generation}
                return etag, _event("source", told, etag)
            try:
                data = await self._view()
            except PodqosError as error:  # only the first state: later ones are not announced before they are computed
                self._trouble = str(error)
                return etag, b""
            age = msgspec.json.encode(self.age())[:-1]
        head = b'id: %s\nevent: cluster\ndata: %s,"generation":%d,' % (etag.encode(), age, generation)
        return etag, b'%s"cluster":%s}\n\n' % (head, data)


async def told(
    live: Live | None, visitor: Visitor, instance: str, last: str, *, is_once: bool = False
) -> AsyncGenerator[bytes, None]:
    """Yield server-sent events for a page: the latest state, the visitor's runs, and periodically the state's age.

    ``last`` is the state that the page has. ``is_once``: the current state only.
    """
    loop, woken = asyncio.get_running_loop(), asyncio.Event()
    with ExitStack() as listening:
        listening.enter_context(visitor.bell.heard_by(woken))
        if live is not None:
            listening.enter_context(live.bell.heard_by(woken))
        yield _event("hello", Hello(instance, __version__))
        jobs: object = None
        while True:
            woken.clear()
            began = loop.time()
            known = [(job.id, job.state, job.progress, job.place) for job in visitor.jobs.values()]
            if known != jobs:
                jobs = known
                yield _event("jobs", [job.info() for job in visitor.jobs.values()])
            news = b""
            if live is not None:
                last, news = await live.news(last)
            yield news or _event("age", _NO_AGE if live is None else live.age())
            if is_once or visitor.is_dismissed:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), _AGE_SECONDS)
            await asyncio.sleep(began + _SOONEST_SECONDS / 2 - loop.time())


def _rfc_3339(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _event(kind: str, value: object, key: str = "") -> bytes:
    named = f"id: {key}\n" if key else ""
    return f"{named}event: {kind}\ndata: ".encode() + msgspec.json.encode(value) + b"\n\n"
