"""What is said about the assertions of tests that are not read."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.amounts import counted
from podqos.manifest.problems import Problem, Severity


def skipped_assertions(given: str, paths: Sequence[str]) -> list[Problem]:
    """Return the warning about assertions in a directory."""
    if not paths:
        return []
    first = f"{paths[0]}, …" if len(paths) > 1 else paths[0]
    what = f"skipped {counted(len(paths), 'test assertion')} ({first}): parts of objects, not manifests"
    return [Problem(given, 0, 0, Severity.WARNING, "", what, "name a file to read it")]
