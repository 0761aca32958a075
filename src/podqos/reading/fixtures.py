"""Files that tests keep among manifests and that nobody applies.

kuttl and chainsaw compare the objects of a cluster with those of assertion files: parts of objects, in a syntax of
their own. Directories of test input hold manifests, and some that are broken on purpose. Only names decide. A file, or
a directory of such files, that is named itself is read like any other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from podqos.manifest.problems import Problem, Severity
from podqos.wording import counted

# 00-assert.yaml, assert-ready.yaml, install-assert.yaml, assertions.yaml; 01-error.yaml, 02-errors.yaml
_ASSERTION = re.compile(r"(?:.*[-_.])?assert(?:s|ions?)?[-_.].*|[0-9]+[a-z]?-errors?[-.].*")
_TESTS = frozenset(f"{tool}-test.{suffix}" for tool in ("chainsaw", "kuttl") for suffix in ("yaml", "yml"))
_DIRECTORIES = frozenset({
    *("testdata", "test-data", "test_data", "fixtures", "__fixtures__", "golden"),
    *("invalid", "bad", "broken", "negative"),
})  # fmt: skip


def is_assertion(name: str) -> bool:
    """Whether a file in a directory is compared with a cluster instead of applied to it."""
    return _ASSERTION.fullmatch(name) is not None


def holds_fixtures(folder: str, names: Collection[str]) -> bool:
    """Whether a directory, here as a path below the one that was given, holds the input of tests."""
    return (
        not _DIRECTORIES.isdisjoint(folder.split("/")) or not _TESTS.isdisjoint(names) or any(map(is_assertion, names))
    )


def skipped_assertions(given: str, paths: Sequence[str]) -> list[Problem]:
    """Return the warning about assertions in a directory."""
    if not paths:
        return []
    first = f"{paths[0]}, …" if len(paths) > 1 else paths[0]
    what = f"skipped {counted(len(paths), 'test assertion')} ({first}): parts of objects, not manifests"
    return [Problem(given, 0, 0, Severity.WARNING, "", what, "name a file to read it")]
