"""What the command was started with, kept up to date, and sent to every page that is open.

Changes are put together: a page that is slow, or was away, gets the newest state and none in between. Each state is
made and encoded once, however many look at it.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from podqos.errors import PodqosError
from podqos.library.page.feeds import Feed
from podqos.library.page.sharing import START
from podqos.library.page.source import PageSource, SourceKind
from podqos.report.page.job import Age
from podqos.report.text.encoding import json_line
from podqos.web.ui.sessions import Shown

_AGE_SECONDS = 5.0
_SHARE = 0.5
"""Of the time, so much at most goes into looking."""
_SOONEST_SECONDS = 0.1
_WITHOUT_PODS = {SourceKind.LOG, SourceKind.RUN}


class Live:
    """A source that may change."""

    def __init__(self, source: PageSource, feed: Feed | None, pool: Executor, say: Callable[[str], None]) -> None:
        self.shown = Shown(START, source, {})
        self.is_live = feed is not None
        self._feed = feed
        self._pool = pool
        self._say = say
        self._instance = secrets.token_hex(4)
        self._taken_at = datetime.now(UTC)
        self._known_at = asyncio.get_running_loop().time()
        self._trouble = ""
        self._changed = asyncio.Event()
        self._encoded: tuple[int, bytes] | None = None

    async def prepare(self) -> None:
        """Make the first view before it is asked for."""
        if self.shown.source.kind not in _WITHOUT_PODS:
            with suppress(PodqosError):  # told to whoever asks
                await self.view()

    async def follow(self) -> None:
        """Look for what is new, for ever."""
        feed, loop = self._feed, asyncio.get_running_loop()
        while feed is not None:
            began = loop.time()
            try:
                source = await loop.run_in_executor(self._pool, feed.look)
                if source is not None:
                    shown = Shown(START, source, {}, self.shown.generation + 1)
                    await self._view(shown)
                    self.shown, self._taken_at = shown, datetime.now(UTC)
                    self._tell()
                self._known_at, trouble = loop.time(), ""
            except PodqosError as error:
                trouble = str(error)
            except Exception as error:  # noqa: BLE001 - a bug of ours must not end what follows
                trouble = f"podqos failed: {type(error).__name__}: {error}"
            if trouble != self._trouble:
                self._trouble = trouble
                self._tell()
                if trouble:
                    self._say(f"not up to date: {trouble}")
            took = loop.time() - began
            await asyncio.sleep(max(feed.pause_seconds, _SOONEST_SECONDS, took / _SHARE) - took)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _view(self, shown: Shown) -> bytes:
        """Return the cluster view of a state, encoded; made once."""
        async with shown.lock:
            known = self._encoded
            if known is None or known[0] != shown.generation:
                pool = asyncio.get_running_loop().run_in_executor
                data = await pool(self._pool, lambda: json_line(shown.page.cluster()).rstrip())
                known = self._encoded = shown.generation, data
            return known[1]

    async def view(self) -> tuple[int, bytes]:
        """Return the newest cluster view, and which it is."""
        shown = self.shown
        return shown.generation, await self._view(shown)

    def etag(self, generation: int) -> str:
        """Return what tells this state from others, of this server and another."""
        return f"{self._instance}-{generation}"

    def age(self) -> Age:
        """Return how old what is shown is."""
        now = asyncio.get_running_loop().time()
        taken = self._taken_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return Age(taken, round(now - self._known_at, 1) if self.is_live else 0.0, self._trouble)

    async def events(self, last: str) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events: the newest state whenever there is one, and how old it is now and then."""
        sent = last
        while True:
            changed = self._changed
            if self.shown.source.kind not in _WITHOUT_PODS and self.etag(self.shown.generation) != sent:
                generation, data = await self.view()
                sent = self.etag(generation)
                head = msgspec.json.encode({"generation": generation, "takenAt": self.age().taken_at})
                yield b'id: %s\nevent: cluster\ndata: %s,"cluster":%s}\n\n' % (sent.encode(), head[:-1], data)
            yield b"event: age\ndata: %s\n\n" % msgspec.json.encode(self.age())
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), _AGE_SECONDS)
