"""The file in a guard's run directory that says how it is, replaced every few seconds."""

from __future__ import annotations

from pathlib import Path

import msgspec

from podqos.agent.guard_status import GuardStatus

FILE = "status.json"


def read_status(run: Path) -> GuardStatus | None:
    """Return what a guard last said; None where none has run."""
    try:
        return msgspec.json.decode((run / FILE).read_bytes(), type=GuardStatus)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
