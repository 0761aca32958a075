"""What the guard is about to do to a pod, on file before it does it: a guard that was killed goes on from there.

The directory is on a tmpfs (``/run``): nothing is written to a disk while memory is short, and after a reboot, when no
pod is held any more, nothing is left of it. Times are the machine's monotonic clock, which outlives a process.
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
    """One eviction, with what else it takes to go on with it."""

    eviction: Eviction
    begun_at: float
    cgroup: str = ""
    """The pod's; empty where nothing of it is touched."""
    known_ids: tuple[str, ...] = ()
    """Its containers, as the server knew them."""
    spared_ids: tuple[str, ...] | None = None
    """What was there when killing began and is no container to kill: the sandbox."""


class Intents:
    """The directory of them, one file for each pod."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._encoder = msgspec.json.Encoder()
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            what = f"{folder} cannot be created: {error.strerror} (choose another with "
            raise HostError(what + naming("run_dir") + ")") from error

    def keep(self, intent: Intent) -> None:
        """Write one, in place of what was there for that pod."""
        replace_file(self._file(intent.eviction.victim.uid), self._encoder.encode(intent))

    def forget(self, uid: str) -> None:
        """Remove the one of a pod."""
        self._file(uid).unlink(missing_ok=True)

    def left(self) -> Iterator[Intent]:
        """Yield what an earlier guard left; what cannot be read was never begun, and is removed."""
        for file in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                yield msgspec.json.decode(file.read_bytes(), type=Intent)
            except (OSError, msgspec.DecodeError):
                file.unlink(missing_ok=True)

    def _file(self, uid: str) -> Path:
        return self._folder / f"{uid}{_SUFFIX}"
