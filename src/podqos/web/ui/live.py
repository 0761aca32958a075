"""What pages are told without asking: what the command was started with, as it changes, and how far runs are.

A page that has a state is sent what has changed since; one that was away for long, or comes from another server, the
whole. Changes are put together: whoever is slow gets the newest state and none in between. Each state is made once,
and what is sent of it encoded once, however many look at it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from podqos.answers.page.cluster import ClusterView, change
from podqos.answers.page.job import Age, Hello
from podqos.answers.page.source import PageSource, SourceKind
from podqos.errors import PodqosError
from podqos.manifest.encoding import json_line
from podqos.version import __version__
from podqos.web.ui.feeds import Feed
from podqos.web.ui.sessions import Bell, SessionSource, Visitor
from podqos.web.ui.sharing import START

T = TypeVar("T")

_AGE_SECONDS = 5.0
_SHARE = 0.75
"""Of the time, so much at most goes into looking."""
_SOONEST_SECONDS = 0.1
_KEPT = 8
"""So many states are remembered; a page that has none of them gets the whole."""
_WITHOUT_PODS = {SourceKind.LOG, SourceKind.RUN}
_NO_AGE = Age("", 0.0, "")


class Live:
    """A source that may change."""

    def __init__(
        self, source: PageSource, feed: Feed | None, pool: Executor, say: Callable[[str], None], instance: str
    ) -> None:
        self.shown = SessionSource(START, source, {})
        self.is_live = feed is not None
        self.bell = Bell()
        """Rings when there is something new."""
        self._feed = feed
        self._pool = pool
        self._say = say
        self._instance = instance
        self._taken_at = datetime.now(UTC)
        self._known_at = asyncio.get_running_loop().time()
        self._trouble = ""
        self._views: dict[int, ClusterView] = {}
        """The newest states by generation."""
        self._lock = asyncio.Lock()
        self._told: dict[int | None, bytes] = {}
        """What makes the newest state of an earlier one; of none: the whole."""

    async def prepare(self) -> None:
        """Make the first view before it is asked for."""
        if self.shown.source.kind not in _WITHOUT_PODS:
            with suppress(PodqosError):  # told to whoever asks
                await self._see(self.shown)

    async def follow(self) -> None:
        """Look for what is new, for ever."""
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
            if trouble != self._trouble:
                self._trouble = trouble
                self.bell.ring()
                if trouble:
                    self._say(f"out of date: {trouble}")
            took = loop.time() - began
            await asyncio.sleep(max(feed.pause_seconds, _SOONEST_SECONDS, took / _SHARE) - took)

    async def _show(self, source: PageSource) -> None:
        shown = SessionSource(START, source, {}, self.shown.generation + 1, self.shown.page)
        if source.kind not in _WITHOUT_PODS:
            await self._see(shown)
        async with self._lock:
            self.shown, self._taken_at, self._told = shown, datetime.now(UTC), {}
        self.bell.ring()

    async def _see(self, shown: SessionSource) -> ClusterView:
        """Return the cluster view of a state, made once."""
        if shown.generation not in self._views:
            async with shown.lock:
                self._views[shown.generation] = await self._in_pool(shown.page.cluster)
            for old in [*self._views][:-_KEPT]:
                del self._views[old]
        return self._views[shown.generation]

    async def _in_pool(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    async def whole(self) -> tuple[str, bytes]:
        """Return the newest cluster view, encoded, and which it is."""
        async with self._lock:
            return self.etag(self.shown.generation), await self._since(None)

    async def _since(self, generation: int | None) -> bytes:
        if generation not in self._told:
            before = None if generation is None else self._views[generation]
            view = await self._see(self.shown)
            self._told[generation] = await self._in_pool(
                lambda: json_line(view if before is None else change(before, view)).rstrip()
            )
        return self._told[generation]

    def etag(self, generation: int) -> str:
        """Return what tells this state from others, of this server and another."""
        return f"{self._instance}-{generation}"

    def age(self) -> Age:
        """Return how old what is shown is."""
        now = asyncio.get_running_loop().time()
        taken = self._taken_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return Age(taken, round(now - self._known_at, 1) if self.is_live else 0.0, self._trouble)

    async def news(self, last: str) -> tuple[str, bytes]:
        """Return which state is the newest, and what makes it of the last one that a page has: an event, or nothing."""
        async with self._lock:
            generation = self.shown.generation
            etag = self.etag(generation)
            if etag == last:
                return etag, b""
            if self.shown.source.kind in _WITHOUT_PODS:
                told = {**msgspec.to_builtins(self.age()), "generation": generation}
                return etag, _event("source", told, etag)
            since = next((view for view in self._views if self.etag(view) == last), None)
            try:
                data = await self._since(since)
            except PodqosError as error:  # of the very first state: a later one is not shown before it is made
                self._trouble = str(error)
                return etag, b""
            age = msgspec.json.encode(self.age())[:-1]
        kind = b"cluster" if since is None else b"change"
        known = b"" if since is None else b'"since":%d,' % since
        head = b'id: %s\nevent: %s\ndata: %s,"generation":%d,' % (etag.encode(), kind, age, generation)
        return etag, b'%s%s"%s":%s}\n\n' % (head, known, kind, data)


async def told(
    live: Live | None, visitor: Visitor, instance: str, last: str, *, is_once: bool = False
) -> AsyncGenerator[bytes, None]:
    """Yield server-sent events for a page: the newest state, the visitor's runs, and now and then how old that is.

    ``last`` is the state that the page has. ``is_once``: how things are now, and no more.
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
            known = [(job.id, job.state, job.progress) for job in visitor.jobs.values()]
            if known != jobs:
                jobs = known
                yield _event("jobs", [job.info() for job in visitor.jobs.values()])
            news = b""
            if live is not None:
                last, news = await live.news(last)
            yield news or _event("age", _NO_AGE if live is None else live.age())
            if is_once:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), _AGE_SECONDS)
            await asyncio.sleep(began + _SOONEST_SECONDS / 2 - loop.time())


def _event(kind: str, value: object, key: str = "") -> bytes:
    named = f"id: {key}\n" if key else ""
    return f"{named}event: {kind}\ndata: ".encode() + msgspec.json.encode(value) + b"\n\n"
