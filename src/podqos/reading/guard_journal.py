"""A guard's journal, status and known pods on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.agent.guard_status import FILE, GuardStatus
from podqos.agent.journal import Entry, decode
from podqos.errors import HostError
from podqos.host.storage.journal_file import journal_files
from podqos.naming import naming

JOURNAL, KNOWN_PODS = "journal.jsonl", "pods.json"


def read_status(run: Path) -> GuardStatus | None:
    """Return the last status of a guard in its run directory; None if none has run."""
    try:
        return msgspec.json.decode((run / FILE).read_bytes(), type=GuardStatus)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def files_of(path: Path) -> list[Path]:
    """Return the files of a journal, oldest first; ``path`` is the guard's state directory, or one of the files."""
    files = journal_files(path / JOURNAL) if path.is_dir() else [path]
    if not files[-1].exists():
        raise HostError(
            f"no journal at {files[-1]}: a guard writes one to its state directory; give that directory with "
            + naming("state")
        )
    return files


def entries_of(path: Path) -> Iterator[Entry]:
    """Yield the entries of a guard's journal; raises InputError for invalid lines."""
    for file in files_of(path):
        try:
            with file.open("rb") as lines:
                yield from decode(lines, str(file))
        except OSError as error:
            raise HostError(f"{file}: {error.strerror or error}") from error


class _Known(Struct, frozen=True):
    names: dict[str, str] = {}


def known_names(state: Path) -> dict[str, str]:
    """Return the pods that a guard knew, by uid; none if it left no readable file."""
    try:
        return msgspec.json.decode((state / KNOWN_PODS).read_bytes(), type=_Known).names
    except (OSError, msgspec.DecodeError):
        return {}
