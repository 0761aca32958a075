"""Files that are replaced while they are used: a mounted ConfigMap or Secret, or a file that is written anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from podqos.errors import HostError, InputError
from podqos.reading.changes import signature


class Reloaded:
    """Something made of files, now and whenever they change; what is not in order leaves in use what was."""

    def __init__(self, what: str, paths: Iterable[str], load: Callable[[], object]) -> None:
        self.what = what
        self._paths = tuple(paths)
        self._load = load
        self.error = ""
        """Why the newest state is not in use; empty where it is."""
        self._seen = signature(self._paths)
        load()

    def look(self) -> bool | None:
        """Load what is new. Returns whether it was in order, None where nothing is new."""
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
