"""What the files of a directory are for, by the names of directories and files: to be applied, tested or read.

kuttl and chainsaw compare the objects of a cluster with those of assertion files: parts of objects, in a syntax of
their own. Directories of test input hold manifests, and some that are broken on purpose. Only directories below the one
that was named count: ``examples/`` that a user names is what the user runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import StrEnum
from itertools import pairwise


class Purpose(StrEnum):
    """What manifests are written for if not to be applied from here."""

    TEST = "test"
    """Some of it may be broken on purpose."""
    EXAMPLE = "example"
    VENDORED = "vendored"
    """Another project's, kept with its code."""
    ARCHIVED = "archived"


# 00-assert.yaml, assert-ready.yaml, install-assert.yaml, assertions.yaml; 01-error.yaml, 02-errors.yaml
_ASSERTION = re.compile(r"(?:.*[-_.])?assert(?:s|ions?)?[-_.].*|[0-9]+[a-z]?-errors?[-.].*")
_TEST_TOOLS = ("chainsaw", "kuttl", "kyverno")
_TEST_FILES = frozenset(f"{tool}-test.{suffix}" for tool in _TEST_TOOLS for suffix in ("yaml", "yml"))
_VENDORED = frozenset({"vendor", "third_party", "third-party", "thirdparty", "node_modules"})
_TESTS = re.compile(
    r"_*(?:.*[-_])?(?:tests|testcases|e2e|conformance)(?:[-_].*)?"
    r"|_*(?:.*[-_])?(?:test[-_]?data\d*|test[-_]e2e|fixtures?|golden|expected[-_]?failures)_*"
    r"|_*(?:invalid|bad|broken|negative|malformed|fakes?|mocks?)_*"
)
_ARCHIVED = re.compile(r"_*archived?_*|attic")
_EXAMPLES = re.compile(r"(?:.*[-_])?(?:examples?|samples?|tutorials?|quickstarts?)|docs?")
# Below an overlay they may be a cluster's name, at the top of a repository they are not.
_AT_THE_TOP = {"test": Purpose.TEST, "testing": Purpose.TEST, "demo": Purpose.EXAMPLE, "demos": Purpose.EXAMPLE}


def is_assertion(name: str) -> bool:
    """Whether a file in a directory is compared with a cluster instead of applied to it."""
    return _ASSERTION.fullmatch(name) is not None


def purpose(folder: str, names: Collection[str] = ()) -> Purpose | None:
    """Return what the files of a directory are for; None: they may well be applied as they are.

    ``folder`` is its path below the directory that was named, ``names`` are those of its files.
    """
    steps = folder.lower().split("/")
    if not _VENDORED.isdisjoint(steps):
        return Purpose.VENDORED
    if any(map(_TESTS.fullmatch, steps)) or ("src", "test") in pairwise(steps):
        return Purpose.TEST
    if not _TEST_FILES.isdisjoint(names) or any(map(is_assertion, names)):
        return Purpose.TEST
    if any(map(_ARCHIVED.fullmatch, steps)):
        return Purpose.ARCHIVED
    if any(map(_EXAMPLES.fullmatch, steps)):
        return Purpose.EXAMPLE
    return _AT_THE_TOP.get(steps[0])
