"""Visitors and what they opened: apart from each other, bounded, and forgotten after a while.

A visitor is a random token in a cookie. Uploads are kept in memory, under ids that mean nothing elsewhere.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from podqos.errors import InputError
from podqos.page.page import Page
from podqos.page.session import PageSource, SourceInfo, source_info
from podqos.serve.jobs import Job
from podqos.serve.work import ReadSource, page_about

UPLOAD_BYTES = 32 << 20
"""Of one request."""
PASTE_BYTES = 8 << 20
"""Of a text whose autopsy is asked for; it is not kept."""
FILES = 500
"""Of one source."""
SOURCES = 12
"""Of one visitor; a new one replaces the least recently used."""
VISITOR_BYTES = 64 << 20
"""Everything that one visitor uploaded, unpacked."""
_ALL_BYTES = 256 << 20
"""Of all visitors."""
EXPIRES_SECONDS = 1800.0
"""Uploads are deleted this long after the visitor's last request."""
_ABANDONED_SECONDS = 30.0
"""A run is cancelled if its visitor has no page open and asks nothing for this long; a reload takes less."""
_ANSWERS = 16
"""What is kept of one source: a view that is asked for twice is computed once."""
_NAME_CHARACTERS = 200


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


class _Computing:
    """An answer that somebody waits for; it ends when nobody does any more."""

    def __init__(self, work: Coroutine[Any, Any, bytes]) -> None:
        self.task = asyncio.ensure_future(work)
        self._waiting = 0

    async def answer(self) -> bytes:
        """Wait for it."""
        self._waiting += 1
        try:
            return await asyncio.shield(self.task)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.task.cancel()

    @property
    def is_of_use(self) -> bool:
        """Whether it is under way, or came to an answer."""
        return not self.task.done() or not (self.task.cancelled() or self.task.exception())


class Answers:
    """The last answers about one state of a source."""

    def __init__(self) -> None:
        self._known: dict[Hashable, _Computing] = {}

    def of(self, question: Hashable, work: Callable[[], Coroutine[Any, Any, bytes]]) -> Awaitable[bytes]:
        """Return the answer to a question, computed once."""
        known = self._known.pop(question, None)
        if known is None or not known.is_of_use:
            known = _Computing(work())
        self._known[question] = known
        if len(self._known) > _ANSWERS:
            del self._known[next(iter(self._known))]
        return known.answer()


class StartSource:
    """What the command was started with, in one state. ``before`` is the page of an earlier one."""

    def __init__(self, key: str, source: PageSource, generation: int = 1, before: Page | None = None) -> None:
        self.id = key
        self.source = source
        self.generation = generation
        self.page = page_about(source, before)
        self.answers = Answers()
        self.lock = asyncio.Lock()
        """One view at a time: they share what they have computed."""

    def info(self, *, is_live: bool = False) -> SourceInfo:
        """Return its description for the page."""
        return source_info(self.id, self.source, {}, self.generation, is_live=is_live)


class Upload:
    """A visitor's source: its files, and what the page has to know of it."""

    def __init__(self, read: ReadSource, files: Mapping[str, bytes], key: str, generation: int = 1) -> None:
        self.id = key
        self.generation = generation
        self.files = files
        self.size_bytes = read.size_bytes
        self.answers = Answers()
        self.used_at = 0.0
        self._info = replace(read.info, id=key, generation=generation)

    def info(self) -> SourceInfo:
        """Return its description for the page."""
        return self._info


class Visitor:
    """What one visitor has stored here."""

    def __init__(self) -> None:
        self.seen_at = time.monotonic()
        self.sources: dict[str, Upload] = {}
        self.jobs: dict[str, Job] = {}
        self.streams = 0
        self.is_dismissed = False
        """Whether the server ends, and with it what it tells."""
        self.bell = Bell()
        """Rings when one of the jobs makes progress."""

    @property
    def size_bytes(self) -> int:
        """Bytes uploaded, and of results of runs."""
        results = sum(len(job.result or b"") for job in self.jobs.values())
        return results + sum(source.size_bytes for source in self.sources.values())

    def is_away(self, seconds: float) -> bool:
        """Whether no page is open and nothing was asked for so long."""
        return not self.streams and self.seen_at < time.monotonic() - seconds


class Visitors:
    """All visitors by cookie."""

    def __init__(self) -> None:
        self._known: dict[str, Visitor] = {}

    def known(self, key: str | None) -> Visitor | None:
        """Return the visitor of a cookie, and mark them as active."""
        visitor = None if key is None else self._known.get(key)
        if visitor is not None:
            visitor.seen_at = time.monotonic()
        return visitor

    def welcome(self) -> tuple[str, Visitor]:
        """Return a new visitor and their cookie."""
        self.forget_old()
        key = secrets.token_urlsafe(24)
        visitor = self._known[key] = Visitor()
        return key, visitor

    def keep(self, visitor: Visitor, shown: Upload) -> None:
        """Store a visitor's source; raise ``NoRoom`` if it is too large."""
        if shown.size_bytes > VISITOR_BYTES:
            raise TooLarge(f"more than {VISITOR_BYTES >> 20} MiB in all", fix="open a smaller part")
        self.forget_old()
        if sum(known.size_bytes for known in self._known.values()) + shown.size_bytes > _ALL_BYTES:
            raise NoRoom("the storage for visitors is full", fix="try again later")
        self.used(shown)
        visitor.sources[shown.id] = shown
        while len(visitor.sources) > SOURCES or visitor.size_bytes > VISITOR_BYTES:
            others = [source for source in visitor.sources.values() if source is not shown]
            if not others:
                return
            del visitor.sources[min(others, key=lambda source: source.used_at).id]

    def used(self, shown: Upload) -> Upload:
        """Mark a source as used."""
        shown.used_at = time.monotonic()
        return shown

    def forget_old(self) -> None:
        """Delete visitors that were away for too long with everything of theirs, and end runs that nobody awaits."""
        for key, visitor in list(self._known.items()):
            if visitor.is_away(EXPIRES_SECONDS):
                del self._known[key]
            if visitor.is_away(_ABANDONED_SECONDS):
                for job in visitor.jobs.values():
                    job.cancel()

    def end_all(self) -> None:
        """Cancel every run, and end every stream."""
        for visitor in self._known.values():
            visitor.is_dismissed = True
            visitor.bell.ring()
            for job in visitor.jobs.values():
                job.cancel()


def file_name(given: str) -> str:
    """Return the name of an uploaded file: its path without unsafe parts. It is never opened."""
    parts = given.replace("\\", "/").split("/")
    kept = ("".join(each for each in part if each.isprintable()).strip() for part in parts)
    name = "/".join(part for part in kept if part not in {"", ".", ".."})
    return name[-_NAME_CHARACTERS:] or "pasted"
