"""Files that are shown while they are edited.

A file that can no longer be read, or whose pods the API server would reject, keeps its last good content, and the page
says what is wrong with it; all other files are up to date. A file that is being written is awaited.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from podqos.errors import InputError, InvalidArgument
from podqos.manifest.problems import Problem, Severity
from podqos.naming import naming
from podqos.page.session import Changed, Follows, PageSource, SourceKind
from podqos.reading.changes import Signature, signature
from podqos.reading.scenario_files import scenario_path
from podqos.serve.sources import read_held_scenario, read_paths
from podqos.serve.work import page_about

_SETTLE_SECONDS = 0.1
"""A file whose size or time has not changed for this long is not being written."""
_SETTLE_TIMES = 10
_SMALL_BYTES = 1 << 20
"""Other files than manifests are kept up to this size."""
_MOST_BROKEN = 20
_PLACE = re.compile(r"(?P<file>.+):(?P<line>\d+):(?P<column>\d+)")


class _Content(Struct, frozen=True):
    """A file as it is shown."""

    data: bytes
    changed: float
    """When, in seconds since 1970."""


class FilesFeed:
    """Files and directories on this machine; a scenario is reloaded when its manifests change, too."""

    pause_seconds = 0.5
    removal_seconds = 2.0
    """A file of a directory that has been gone for this long was removed; before, it may be about to be replaced."""

    def __init__(self, paths: Sequence[str], node_memory_bytes: int | None = None) -> None:
        self._paths = tuple(paths)
        self._node_memory_bytes = node_memory_bytes
        self._gone_at: dict[str, float] = {}
        self._times: dict[str, float] = {}
        """When what is shown of each file was changed."""
        self._good: dict[str, _Content] | None = None
        """The last content without errors of each file; None: not known yet, what is shown was not looked through."""
        self._is_shipped = len(paths) == 1 and scenario_path(paths[0]) != paths[0]
        """Whether it is a scenario that comes with podqos: when that was installed says nothing."""
        self._seen = signature(paths)
        self._last = self._with_change(self._read({}), {})
        self.first = self._last
        self._watch()

    def look(self) -> PageSource | None:
        """Reload what has changed."""
        now = signature(self._watched)
        if now == self._seen and not self._is_removal_due():
            return None
        self._seen = self._settled(now)
        if self._good is None:
            self._good = self._good_of(self._last, _errors(self._last), {})
        source = self._shown()
        if source == self._last:
            return None
        self._last = source
        self._watch()
        return source

    def _is_removal_due(self) -> bool:
        now = time.monotonic()
        return any(now - since >= self.removal_seconds for since in self._gone_at.values())

    def _settled(self, now: Signature) -> Signature:
        """Wait until nothing is being written."""
        for _ in range(_SETTLE_TIMES):
            time.sleep(_SETTLE_SECONDS)
            after = signature(self._watched)
            if after == now:
                break
            now = after
        return now

    def _watch(self) -> None:
        watched = tuple(dict.fromkeys((*self._paths, *self._last.looked_at)))
        if watched != getattr(self, "_watched", ()):
            self._watched = watched
            self._seen = signature(watched)

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _read(self, instead: Mapping[str, bytes]) -> PageSource:
        """Return the source; some files have other content."""
        memory_bytes = self._node_memory_bytes
        if instead and self._last.kind is SourceKind.SCENARIO:
            source = read_held_scenario(scenario_path(self._paths[0]), self._last.looked_at, instead)
        else:
            source = read_paths(self._paths, instead)
        if memory_bytes is not None and source.kind is not SourceKind.MANIFESTS:
            what = f"a {source.kind} defines its own nodes"
            raise InvalidArgument(what, where=naming("node_memory"), fix="use it with manifests")
        return replace(source, node_memory_bytes=memory_bytes, follows=Follows.FILES)

    def _shown(self) -> PageSource:
        """Return the files as they are, those that are broken as they were when they were good."""
        assert self._good is not None
        broken = list(self._gone())
        instead = {path: self._good[path].data for path in (*self._gone_at, *(problem.source for problem in broken))}
        while True:
            source, found = self._tried(instead)
            fresh = [problem for problem in found if problem.source in self._good and problem.source not in instead]
            if not fresh:
                break
            broken += fresh
            instead |= {problem.source: self._good[problem.source].data for problem in fresh}
        if source is None:  # nothing that could be left as it was makes it whole
            return replace(self._last, broken=(*broken, *found)[:_MOST_BROKEN])
        source = replace(source, broken=tuple(broken)[:_MOST_BROKEN])
        source = self._with_change(source, {path: self._good[path].changed for path in instead})
        self._good |= self._good_of(source, found, instead)
        for path in [path for path in self._good if not os.path.exists(path) and path not in instead]:
            del self._good[path]
        return source

    def _tried(self, instead: Mapping[str, bytes]) -> tuple[PageSource | None, list[Problem]]:
        """Return the source with other content of some files, and what is wrong with those that were good."""
        try:
            source = self._of_same_kind(self._read(instead))
            return source, [*self._emptied(source), *_errors(source)]
        except InputError as error:
            place = _PLACE.fullmatch(str(error.where))
            file, line, column = (str(error.where), 0, 0) if place is None else (place[1], int(place[2]), int(place[3]))
            return None, [Problem(file or self._paths[0], line, column, Severity.ERROR, "", error.what, error.fix)]

    def _of_same_kind(self, source: PageSource) -> PageSource:
        """Return the source; raise ``InputError`` if it is something else now, such as half of a snapshot."""
        if source.kind is not self._last.kind:
            what = f"it was recognised as {_A_KIND[self._last.kind]}, and now as {_A_KIND[source.kind]}"
            raise InputError(what, where=self._paths[0], fix="restart podqos ui if that is intended")
        return source

    def _emptied(self, source: PageSource) -> list[Problem]:
        """Return the files that had content and have none: whoever writes one begins with that."""
        assert self._good is not None
        return [
            Problem(path, 0, 0, Severity.ERROR, "", "the file is empty")
            for path, data in _contents(source, self._paths).items()
            if not data.strip() and path in self._good and self._good[path].data.strip()
        ]

    def _gone(self) -> list[Problem]:
        """Return the files that were named and are gone; those of a directory are awaited for a while."""
        assert self._good is not None
        gone, now = [path for path in self._good if not os.path.exists(path)], time.monotonic()
        self._gone_at = {
            path: since
            for path in gone
            if path not in self._paths
            and self._last.kind is not SourceKind.SCENARIO
            and now - (since := self._gone_at.get(path, now)) < self.removal_seconds
        }
        is_named = self._last.kind is SourceKind.SCENARIO
        return [
            Problem(path, 0, 0, Severity.ERROR, "", "no such file") for path in gone if is_named or path in self._paths
        ]

    # ---- what is known of files --------------------------------------------------------------------------------------

    def _good_of(
        self, source: PageSource, errors: Sequence[Problem], instead: Mapping[str, bytes]
    ) -> dict[str, _Content]:
        """Return the files of a source that are without errors; those with other content stay as they were."""
        wrong = {problem.source for problem in errors}
        known = self._good or {}
        return {
            path: known[path] if path in instead else _Content(data, self._times.get(path, 0.0))
            for path, data in _contents(source, self._paths).items()
            if path in instead or path not in wrong
        }

    def _with_change(self, source: PageSource, kept: Mapping[str, float]) -> PageSource:
        """Return the source with the time of the last change of what is shown; ``kept`` has that of other content."""
        files = [path for path in _files(source, self._paths) if path in kept or os.path.isfile(path)]
        self._times = {path: kept.get(path) or _changed(path) for path in files}
        if not files or self._is_shipped:
            return source
        newest = max(files, key=self._times.__getitem__)
        at = datetime.fromtimestamp(self._times[newest], UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        return replace(source, changed=Changed(os.path.basename(newest), at, len(files)))


_A_KIND = {
    SourceKind.MANIFESTS: "manifests",
    SourceKind.SNAPSHOT: "a snapshot",
    SourceKind.SCENARIO: "a scenario",
    SourceKind.LOG: "a log",
    SourceKind.RUN: "a run",
}


def _errors(source: PageSource) -> list[Problem]:
    """Return what is wrong with files, and with the pods in them, which the API server would reject."""
    problems = page_about(source).problems if source.kind is SourceKind.MANIFESTS else source.problems
    return [problem for problem in problems if problem.severity is Severity.ERROR]


def _files(source: PageSource, paths: Sequence[str]) -> list[str]:
    """Return the files of a source."""
    if source.kind is SourceKind.SCENARIO:
        return [path for path in source.given if path in source.looked_at or os.path.isfile(path)]
    named = (path for path in paths if not os.path.isdir(path))
    return list(dict.fromkeys((*(file.path for file in source.files), *named)))


def _contents(source: PageSource, paths: Sequence[str]) -> dict[str, bytes]:
    """Return the content of the files that can be shown as they were."""
    if source.kind is SourceKind.SCENARIO:
        return dict(source.given)
    held = {file.path: file.data for file in source.files if file.data is not None}
    if source.kind is not SourceKind.MANIFESTS:
        return held
    logs = {log.name for log in source.logs}
    for path in paths:
        with suppress(OSError):
            if path not in held and path not in logs and _is_small_file(path):
                with open(path, "rb") as file:
                    held[path] = file.read()
    return held


def _is_small_file(path: str) -> bool:
    return os.path.isfile(path) and os.path.getsize(path) <= _SMALL_BYTES


def _changed(path: str) -> float:
    """Return when a file was changed last; 0 if it is gone."""
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
