"""What the webhook decides by, put together anew whenever files or the cluster change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.finding import FailOn
from podqos.advice.reviewing import Reviewer
from podqos.web.webhook_rules import Rules, Watched, read_rules, reviewer_of


class RuleSource(Protocol):
    """Something that changes and is looked at now and then."""

    what: str
    error: str
    """Why the newest state is not in use; empty where it is."""

    def look(self) -> bool | None:
        """Use what is new. Returns whether it was in order, None where nothing is new."""


class ReviewerMaker:
    """Makes the reviewer from the rules of files and, where it is watched, the cluster."""

    def __init__(self, paths: Sequence[str], watched: Watched | None, options: CheckOptions, warn_on: FailOn) -> None:
        self._paths = tuple(paths)
        self._watched = watched
        self._options = options
        self._warn_on = warn_on
        self.rules: Rules = read_rules(self._paths)
        self.use: Callable[[Reviewer], None] = lambda _: None
        """Told of each new reviewer."""

    def read(self) -> None:
        """Read the files again; raises InputError and changes nothing where they are not in order."""
        self.rules = read_rules(self._paths)
        self.use(self.reviewer())

    def reviewer(self) -> Reviewer:
        """Return who decides by what is known now."""
        live = None if self._watched is None else self._watched.cluster()
        return reviewer_of(self.rules, live, self._options, self._warn_on)


class LiveSource:
    """The cluster as a source: what was watched since the last look."""

    what = "cluster"
    error = ""

    def __init__(self, watched: Watched, deciding: ReviewerMaker, is_ready: Callable[[], None]) -> None:
        self._watched = watched
        self._deciding = deciding
        self._is_ready = is_ready
        self._seen = -1

    def look(self) -> bool | None:
        """Use what has come."""
        changes, is_first = self._watched.changes, self._seen < 0
        if changes == self._seen or not self._watched.is_complete:
            return None
        self._seen = changes
        self._deciding.use(self._deciding.reviewer())
        self._is_ready()
        return True if is_first else None  # a cluster changes all the time
