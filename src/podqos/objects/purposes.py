"""What the files of a directory are for, by the names of the directories: to be applied, to be tested, to be read.

Only directories below the one that was named count: ``examples/`` that a user names is what the user runs.
"""

from __future__ import annotations

import re
from enum import StrEnum

_WORDS = re.compile("[a-z0-9]+")
_ENDINGS = ("samples", "examples")


class Purpose(StrEnum):
    """What manifests are written for if not to be applied from here."""

    TEST = "test"
    EXAMPLE = "example"
    VENDORED = "vendored"
    """Another project's, kept with its code."""


_NAMES = {
    Purpose.VENDORED: frozenset({"vendor", "third_party", "thirdparty", "node_modules"}),
    Purpose.TEST: frozenset({"test", "tests", "testing", "testdata", "testcases", "e2e", "fixture", "fixtures"}),
    Purpose.EXAMPLE: frozenset({"example", "sample", "demo", "tutorial", "doc"}),
}


def purpose(folder: str, root: str) -> Purpose | None:
    """Return what the files of a directory below ``root`` are for; None: they may well be applied as they are."""
    if not root:
        return None
    names = folder.removeprefix(root).lower().split("/")
    if not _NAMES[Purpose.VENDORED].isdisjoint(names):
        return Purpose.VENDORED
    words = {word for name in names for word in _WORDS.findall(name)}
    if not _NAMES[Purpose.TEST].isdisjoint(words):
        return Purpose.TEST
    is_example = any(word.removesuffix("s") in _NAMES[Purpose.EXAMPLE] or word.endswith(_ENDINGS) for word in words)
    return Purpose.EXAMPLE if is_example else None
