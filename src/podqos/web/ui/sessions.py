"""Visitors and their uploads: isolated from each other, bounded, and deleted after a while.

A visitor is a random token in a cookie. Uploads are kept in memory, under ids that mean nothing elsewhere.
"""

from __future__ import annotations

import asyncio
import pickle
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from msgspec.structs import replace

from podqos.answers.page.page import Page
from podqos.answers.page.session import SourceInfo, source_info
from podqos.answers.page.source import PageSource
from podqos.errors import InputError
from podqos.web.ui.jobs import Job
from podqos.web.ui.pages import page_about
from podqos.web.ui.settings import UI_LIMITS, UiLimits
from podqos.web.ui.tasks import Given, ReadSource

_NAME_CHARACTERS = 200
_AWAY_SECONDS = 120.0
"""After this time without an open page, a visitor's data is deleted first if others need the storage."""
_NEW_SECONDS = 10.0
"""Who was last seen sooner after arriving gives way first; beyond this, nobody counts as known for longer."""
_SMALL_SHARE = 16
"""Who wants at most this part of the storage may displace others that have less."""
_FILE_BYTES = 256
"""What a file costs besides its name and content."""


class NoRoom(InputError):
    """A visitor, or all visitors together, have used up their storage."""

    status = 429


class TooLarge(NoRoom):
    """More than a single visitor may ever store."""

    status = 413


class Bell:
    """Wakes its listeners."""

    def __init__(self) -> None:
        self._listening: set[asyncio.Event] = set()

    @contextmanager
    def heard_by(self, event: asyncio.Event) -> Iterator[None]:
        """Set an event on every ring."""
        self._listening.add(event)
        try:
            yield
        finally:
            self._listening.discard(event)

    def ring(self) -> None:
        """Wake all listeners."""
        for each in self._listening:
            each.set()


class SessionSource:
    """A source with its page; one question at a time. ``before`` is the page of an earlier state."""

    def __init__(
        self,
        key: str,
        source: PageSource,
        files: Mapping[str, bytes],
        generation: int = 1,
        before: Page | None = None,
    ) -> None:
        self.id = key
        self.source = source
        self.files = files
        self.generation = generation
        self.page = page_about(source, before)
        self.lock = asyncio.Lock()
        self.lock_apart = asyncio.Lock()
        self.used_at = 0.0

    @cached_property
    def page_apart(self) -> Page:
        """An independent copy, for long computations in another thread."""
        return page_about(pickle.loads(pickle.dumps(self.source)))  # noqa: S301 - our own

    def info(self, *, is_live: bool = False) -> SourceInfo:
        """Return its description for the page."""
        return source_info(self.id, self.source, self.files, self.generation, is_live=is_live)


class Upload:
    """A visitor's source: its files, and what the page has to know of it. Workers read it, and answer questions."""

    def __init__(self, read: ReadSource, given: Given, key: str, generation: int = 1) -> None:
        self.id = key
        self.generation = generation
        self.given = given
        """How a worker gets it."""
        self.size_bytes = read.size_bytes + sum(len(name) + _FILE_BYTES for name in given.files)
        self._info = replace(read.info, id=key, generation=generation)
        self.used_at = 0.0

    @property
    def files(self) -> Mapping[str, bytes]:
        """What was uploaded."""
        return self.given.files

    def info(self) -> SourceInfo:
        """Return its description for the page."""
        return self._info


def source_key(key: str, generation: int) -> str:
    """Return what identifies one state of a source."""
    return f"{key}-{generation}"


class Visitor:
    """What one visitor has stored here."""

    def __init__(self, now: float, *, is_let_in: bool) -> None:
        self.is_let_in = is_let_in
        """Whether the token was presented, if one is required."""
        self.came_at = self.seen_at = now
        self.sources: dict[str, Upload] = {}
        self.jobs: dict[str, Job] = {}
        self.streams = 0
        self.asking = 0
        """Requests that are being answered: what they store is not there yet."""
        self.bell = Bell()
        """Rings when one of the jobs makes progress."""

    def asks(self, answering: asyncio.Future[Any]) -> None:
        """Count a request until it is answered."""
        self.asking += 1
        answering.add_done_callback(self._got_answer)

    def _got_answer(self, _: asyncio.Future[Any]) -> None:
        self.asking -= 1

    @property
    def size_bytes(self) -> int:
        """Bytes uploaded."""
        return sum(source.size_bytes for source in self.sources.values())

    @property
    def result_bytes(self) -> int:
        """Bytes of the results of finished runs."""
        return sum(len(job.result or b"") for job in self.jobs.values())

    def drop_oldest(self, but: Upload | None = None) -> int:
        """Delete the source that was not used for longest, other than one, and return how many bytes that frees."""
        oldest = min((source for source in self.sources.values() if source is not but), key=lambda old: old.used_at)
        del self.sources[oldest.id]
        return oldest.size_bytes

    @property
    def is_empty(self) -> bool:
        """Whether nothing is lost by forgetting this visitor."""
        return not self.sources and not self.jobs and not self.streams


class Visitors:
    """All visitors by cookie."""

    def __init__(self, clock: Callable[[], float], limits: UiLimits = UI_LIMITS) -> None:
        self._clock = clock
        self._limits = limits
        self._known: dict[str, Visitor] = {}

    def __len__(self) -> int:
        """Return the number of visitors."""
        return len(self._known)

    def known(self, key: str | None) -> Visitor | None:
        """Return the visitor of a cookie, and mark them as active."""
        visitor = None if key is None else self._known.get(key)
        if visitor is not None:
            visitor.seen_at = self._clock()
        return visitor

    def welcome(self, *, is_let_in: bool) -> tuple[str, Visitor]:
        """Return a new visitor and their cookie; if there are too many, forget one without an open page."""
        self.forget_old()
        if len(self._known) >= self._limits.visitors:
            gone = [key for key, visitor in self._known.items() if not visitor.streams]
            if not gone:
                raise NoRoom("too many pages are open", fix="try again in a few minutes")
            self._forget(min(gone, key=lambda key: self._worth(self._known[key])))
        key = secrets.token_urlsafe(24)
        visitor = self._known[key] = Visitor(self._clock(), is_let_in=is_let_in)
        return key, visitor

    def keep(self, visitor: Visitor, shown: Upload) -> None:
        """Store a visitor's source; raise ``NoRoom`` if it is too large."""
        limits = self._limits
        before = visitor.sources.get(shown.id)
        if shown.size_bytes > limits.visitor_bytes:
            raise TooLarge(f"more than {limits.visitor_bytes >> 20} MiB in all", fix="open a smaller part")
        size = shown.size_bytes - (0 if before is None else before.size_bytes)
        stored = sum(known.size_bytes for known in self._known.values())
        while stored + size > limits.total_bytes:
            giving = self._gives_way(visitor, visitor.size_bytes + size)
            if giving is None:
                raise NoRoom("the storage for visitors is full", fix="try again in a few minutes")
            stored -= giving.drop_oldest()
        shown.used_at = self._clock()
        visitor.sources[shown.id] = shown
        while len(visitor.sources) > limits.sources or visitor.size_bytes > limits.visitor_bytes:
            visitor.drop_oldest(shown)

    def _gives_way(self, visitor: Visitor, wanted_bytes: int) -> Visitor | None:
        """Return whose data is deleted: who is away, has most, or for little, has no open page."""
        others = [known for known in self._known.values() if known is not visitor and known.sources]
        if not others:
            return None
        away = [known for known in others if self._is_away(known)]
        largest = max(others, key=lambda known: known.size_bytes)
        if not away and largest.size_bytes > wanted_bytes:
            return largest
        is_small = wanted_bytes <= self._limits.total_bytes // _SMALL_SHARE
        gone = away or [known for known in others if is_small and not known.streams]
        return min(gone, key=self._worth, default=None)

    @staticmethod
    def _worth(visitor: Visitor) -> tuple[bool, bool, float, float]:
        """Return an order: who waits for no answer first, then nothing to lose, newcomers, not seen for longest."""
        known_seconds = min(visitor.seen_at - visitor.came_at, _NEW_SECONDS)
        return visitor.asking > 0, not visitor.is_empty, known_seconds, visitor.seen_at

    def used(self, shown: Upload) -> Upload:
        """Mark a source as used."""
        shown.used_at = self._clock()
        return shown

    def forget_old(self) -> None:
        """Delete visitors that have been inactive for too long, with everything of theirs."""
        until = self._clock() - self._limits.expires_seconds
        for key, visitor in list(self._known.items()):
            if visitor.seen_at < until and not visitor.streams:
                self._forget(key)

    def _forget(self, key: str) -> None:
        for job in self._known.pop(key).jobs.values():
            job.cancel()

    def _is_away(self, visitor: Visitor) -> bool:
        """Whether a visitor has closed all pages a while ago: others may need the place."""
        return not visitor.streams and visitor.seen_at < self._clock() - _AWAY_SECONDS

    def end_abandoned(self) -> None:
        """Cancel the runs of visitors who have closed their last page."""
        until = self._clock() - self._limits.abandoned_seconds
        for visitor in self._known.values():
            if not visitor.streams and visitor.seen_at < until:
                for job in visitor.jobs.values():
                    job.cancel()

    def drop_results(self) -> None:
        """Delete the results of the oldest runs, of the visitor with most of them, if all together are too large."""
        while sum(visitor.result_bytes for visitor in self._known.values()) > self._limits.result_bytes:
            visitor = max(self._known.values(), key=lambda visitor: visitor.result_bytes)
            del visitor.jobs[next(key for key, job in visitor.jobs.items() if job.result)]
            visitor.bell.ring()

    def all(self) -> list[Visitor]:
        """Return all visitors."""
        return list(self._known.values())


def file_name(given: str) -> str:
    """Return the name of an uploaded file: its path without unsafe parts. It is never opened."""
    parts = given.replace("\\", "/").split("/")
    kept = ("".join(each for each in part if each.isprintable()).strip() for part in parts)
    name = "/".join(part for part in kept if part not in {"", ".", ".."})
    return name[-_NAME_CHARACTERS:] or "pasted"
