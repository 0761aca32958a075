"""Intended evictions, saved before they are carried out: a restarted guard continues from there.

The directory is on a tmpfs (``/run``): nothing is written to disk while memory is short, and a reboot, after which no
pod is frozen any more, clears it. Times are the machine's monotonic clock, which survives a process.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.errors import HostError
from podqos.guard.eviction import Eviction
from podqos.host.storage.writing import replace_file
from podqos.naming import naming

_SUFFIX = ".json"


class Intent(Struct, frozen=True, omit_defaults=True):
    """An eviction, with everything needed to continue it."""

    eviction: Eviction
    begun_at: float
    cgroup: str = ""
    """The pod's cgroup; empty if nothing of it is touched."""
    known_ids: tuple[str, ...] = ()
    """Its containers, as the server knew them."""
    spared_ids: tuple[str, ...] | None = None
    """What existed when killing began and is not a container: the sandbox."""


class Intents:
    """The directory of intents, one file per pod."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._encoder = msgspec.json.Encoder()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            what = f"{folder} cannot be created: {error.strerror} (choose another with "
            raise HostError(what + naming("run_dir") + ")") from error

    def keep(self, intent: Intent) -> None:
        """Save an intent, replacing the pod's previous one."""
        replace_file(self._file(intent.eviction.victim.uid), self._encoder.encode(intent))

    def forget(self, uid: str) -> None:
        """Remove a pod's intent."""
        self._file(uid).unlink(missing_ok=True)

    def left(self) -> Iterator[Intent]:
        """Yield the intents of an earlier guard; unreadable ones were never started and are removed."""
        for file in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                yield msgspec.json.decode(file.read_bytes(), type=Intent)
            except (OSError, msgspec.DecodeError):
                file.unlink(missing_ok=True)

    def _file(self, uid: str) -> Path:
        return self._folder / f"{uid}{_SUFFIX}"
