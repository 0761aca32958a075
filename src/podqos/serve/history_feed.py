"""Usage over time for a source that has none itself: queried when the page starts, and again in the background.

A feed is polled often and must answer at once; a range query may take a minute. So it is asked for in a thread of its
own, and until it is answered, the page shows what was known before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec.structs import replace

from podqos.advice.sizing.samples import ContainerSamples
from podqos.errors import PodqosError
from podqos.page.session import PageSource
from podqos.serve.feeds import Feed

_AGAIN_SECONDS = 300.0

Query = Callable[[], tuple[ContainerSamples, ...]]


class HistoryFeed:
    """A feed whose sources have usage over time."""

    def __init__(self, feed: Feed, source: PageSource, query: Query, say: Callable[[str], None]) -> None:
        self.pause_seconds = feed.pause_seconds
        self._feed = feed
        self._query = query
        self._say = say
        self._own = source.samples
        """What its files tell."""
        self._last = source
        self._queried = query()
        self._shown = self._queried
        self._asked_at = time.monotonic()
        self._thread: threading.Thread | None = None
        self._trouble = ""

    @property
    def first(self) -> PageSource:
        """What the page starts with."""
        return self._with_history(self._last)

    def look(self) -> PageSource | None:
        """Return the source if it has changed, or its usage over time has."""
        source = self._feed.look()
        if source is not None:
            self._last, self._own = source, source.samples
        self._ask_again()
        if source is None and self._shown is self._queried:
            return None
        self._shown = self._queried
        return self._with_history(self._last)

    def _with_history(self, source: PageSource) -> PageSource:
        return replace(source, samples=(*self._own, *self._queried))

    def _ask_again(self) -> None:
        is_asking = self._thread is not None and self._thread.is_alive()
        if is_asking or time.monotonic() < self._asked_at + _AGAIN_SECONDS:
            return
        self._asked_at = time.monotonic()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self._queried = self._query()
            self._trouble = ""
        except PodqosError as error:
            if str(error) != self._trouble:  # once, and again after it worked
                self._trouble = str(error)
                self._say(f"usage over time is not updated: {error}")
