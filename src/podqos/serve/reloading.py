"""What changes while in use, files or the watched cluster, and what the webhook is then made of again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.finding import FailOn
from podqos.advice.reviewing import Reviewer
from podqos.errors import HostError, InputError
from podqos.reading.changes import signature
from podqos.serve.webhook_rules import Rules, Watched, read_rules, reviewer_of


class Reloaded:
    """Something loaded from files, and reloaded when they change; an invalid version leaves the previous one in use."""

    def __init__(self, what: str, paths: Iterable[str], load: Callable[[], object]) -> None:
        self.what = what
        self._paths = tuple(paths)
        self._load = load
        self.error = ""
        """Why the latest version is not in use; empty if it is."""
        self._seen = signature(self._paths)
        load()

    def look(self) -> bool | None:
        """Reload changed files. Returns whether they were valid, None if nothing has changed."""
        now = signature(self._paths)
        if now == self._seen:
            return None
        self._seen = now
        try:
            self._load()
        except (InputError, HostError) as error:
            self.error = str(error)
            return False
        self.error = ""
        return True


class ReviewerMaker:
    """Makes the reviewer from rule files and, if it is watched, the cluster."""

    def __init__(self, paths: Sequence[str], watched: Watched | None, options: CheckOptions, warn_on: FailOn) -> None:
        self._paths = tuple(paths)
        self._watched = watched
        self._options = options
        self._warn_on = warn_on
        self.rules: Rules = read_rules(self._paths)
        self.use: Callable[[Reviewer], None] = lambda _: None
        """Called with each new reviewer."""

    def read(self) -> None:
        """Reload the files; raises InputError and changes nothing if they are not valid."""
        self.rules = read_rules(self._paths)
        self.use(self.reviewer())

    def reviewer(self) -> Reviewer:
        """Return a reviewer for the current rules."""
        live = None if self._watched is None else self._watched.cluster()
        return reviewer_of(self.rules, live, self._options, self._warn_on)


class LiveSource:
    """The watched cluster as a source."""

    what = "cluster"
    error = ""

    def __init__(self, watched: Watched, deciding: ReviewerMaker, is_ready: Callable[[], None]) -> None:
        self._watched = watched
        self._deciding = deciding
        self._is_ready = is_ready
        self._seen = -1

    def look(self) -> bool | None:
        """Use new changes."""
        changes, is_first = self._watched.changes, self._seen < 0
        if changes == self._seen or not self._watched.is_complete:
            return None
        self._seen = changes
        self._deciding.use(self._deciding.reviewer())
        self._is_ready()
        return True if is_first else None  # not logged: a cluster changes all the time
