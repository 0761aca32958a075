"""Files that change while in use: a mounted ConfigMap or Secret, or a rewritten file."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from podqos.errors import HostError, InputError
from podqos.reading.changes import signature


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
