"""Visitors and their uploads: isolated from each other, bounded, and deleted after a while.

A visitor is a random token in a cookie. Uploads are kept in memory, under ids that mean nothing elsewhere.
"""

from __future__ import annotations

import asyncio
import pickle
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property

from podqos.answers.page.page import Page
from podqos.answers.page.session import SourceInfo, source_info
from podqos.answers.page.source import PageSource
from podqos.errors import InputError
from podqos.web.ui.jobs import Job
from podqos.web.ui.pages import page_about
from podqos.web.ui.settings import UI_LIMITS, UiLimits

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
        self.is_begun = False
        """Whether its nodes have been computed: from then on, a view only costs what it needs itself."""
        self.lock = asyncio.Lock()
        self.lock_apart = asyncio.Lock()
        self.used_at = 0.0

    @cached_property
    def page_apart(self) -> Page:
        """An independent copy, for long computations in another thread."""
        return page_about(pickle.loads(pickle.dumps(self.source)))  # noqa: S301 - our own

    def begin(self) -> None:
        """Compute all nodes; errors are reported by the view that needs them."""
        with suppress(InputError):
            self.page.cluster()
        self.is_begun = True

    def info(self, *, is_live: bool = False) -> SourceInfo:
        """Return its description for the page."""
        return source_info(self.id, self.source, self.files, self.generation, is_live=is_live)


class Visitor:
    """What one visitor has stored here."""

    def __init__(self, now: float, *, is_let_in: bool) -> None:
        self.is_let_in = is_let_in
        """Whether the token was presented, if one is required."""
        self.seen_at = now
        self.sources: dict[str, SessionSource] = {}
        self.jobs: dict[str, Job] = {}
        self.streams = 0
        self.bell = Bell()
        """Rings when one of the jobs makes progress."""

    @property
    def size_bytes(self) -> int:
        """Bytes uploaded."""
        return sum(source.source.size_bytes for source in self.sources.values())

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
        """Return a new visitor and their cookie; raise ``NoRoom`` if there are too many."""
        self.forget_old()
        if len(self._known) >= self._limits.visitors:
            empty = [key for key, visitor in self._known.items() if visitor.is_empty]
            if not empty:
                raise NoRoom("too many visitors store data here", fix="try again later")
            del self._known[min(empty, key=lambda key: self._known[key].seen_at)]
        key = secrets.token_urlsafe(24)
        visitor = self._known[key] = Visitor(self._clock(), is_let_in=is_let_in)
        return key, visitor

    def keep(self, visitor: Visitor, shown: SessionSource) -> None:
        """Store a visitor's source; raise ``NoRoom`` if it is too large."""
        limits = self._limits
        before = visitor.sources.get(shown.id)
        if shown.source.size_bytes > limits.visitor_bytes:
            raise TooLarge(f"more than {limits.visitor_bytes >> 20} MiB in all", fix="open a smaller part")
        size = shown.source.size_bytes - (0 if before is None else before.source.size_bytes)
        if sum(visitor.size_bytes for visitor in self._known.values()) + size > limits.total_bytes:
            raise NoRoom("the storage for visitors is full", fix="try again later")
        shown.used_at = self._clock()
        visitor.sources[shown.id] = shown
        while len(visitor.sources) > limits.sources or visitor.size_bytes > limits.visitor_bytes:
            others = [source for source in visitor.sources.values() if source is not shown]
            del visitor.sources[min(others, key=lambda other: other.used_at).id]

    def used(self, shown: SessionSource) -> SessionSource:
        """Mark a source as used."""
        shown.used_at = self._clock()
        return shown

    def forget_old(self) -> None:
        """Delete visitors that have been inactive for too long, with everything of theirs."""
        until = self._clock() - self._limits.expires_seconds
        for key, visitor in list(self._known.items()):
            if visitor.seen_at < until and not visitor.streams:
                del self._known[key]
                for job in visitor.jobs.values():
                    job.cancel()

    def all(self) -> list[Visitor]:
        """Return all visitors."""
        return list(self._known.values())


def file_name(given: str) -> str:
    """Return the name of an uploaded file: its path without unsafe parts. It is never opened."""
    parts = given.replace("\\", "/").split("/")
    kept = ("".join(each for each in part if each.isprintable()).strip() for part in parts)
    name = "/".join(part for part in kept if part not in {"", ".", ".."})
    return name[-_NAME_CHARACTERS:] or "pasted"
