"""Manifests that lost their indentation, as when copied from a page: one error instead of what follows from it.

The sign is a key of ``metadata`` that stands beside it instead of below. Such a text is sometimes broken YAML and
sometimes an object full of unknown fields and of keys that are set twice.
"""

from __future__ import annotations

import re

from podqos.manifest.plain import Plain
from podqos.manifest.problems import Position, SyntaxProblem, position_at

# Others, such as namespace and labels, stand there by right in a Kustomization.
_BELOW_METADATA = ("name", "generateName")
_BESIDE_METADATA = re.compile(
    rf"(?m)^( *)metadata:[ \t]*(?:#.*)?\r?\n(?:\1[a-z]\w*:.*\n){{0,4}}?\1({'|'.join(_BELOW_METADATA)}):"
)


def key_beside_metadata(value: Plain) -> str:
    """Return the key of ``metadata`` that stands beside it in an object; empty: none does."""
    if not isinstance(value, dict) or "kind" not in value or value.get("metadata", "") is not None:
        return ""
    return next((key for key in _BELOW_METADATA if key in value), "")


def lost_indentation(position: Position, key: str) -> SyntaxProblem:
    """Return the error about the key that stands beside ``metadata``."""
    what = f'the indentation was lost: "{key}" stands beside "metadata", not below it'
    return SyntaxProblem(position, what, "indent it by two spaces, and so on for everything below metadata and spec")


def lost_indentation_in(text: str, first_line: int) -> SyntaxProblem | None:
    """Return the same of a text that is not YAML, and begins on ``first_line``; None: that is not why."""
    found = _BESIDE_METADATA.search(text)
    return None if found is None else lost_indentation(position_at(text, found.start(2), (first_line, 1)), found[2])
