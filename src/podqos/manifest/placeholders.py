"""Placeholders that a program or a person has to fill in before a manifest can be applied: one hint, by how they look.

YAML reads most of them as ordinary strings, so that a field is of the wrong type, or has a name that nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from podqos.manifest.plain import Plain

TEMPLATE = "this looks like a template: render it first"
_HINTS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"\{\{-?.*"), TEMPLATE),
    (re.compile(r"\$\{[A-Za-z_]\w*(?::?[-=?+]|:|/|#|%|\^|,).*"), "fill in the variable first: flux envsubst < FILE"),
    (re.compile(r"\$\{.*|\$[A-Za-z_]\w*"), "fill in the variable first: envsubst < FILE"),
    (re.compile(r"\$\(.*"), "fill in the variable first, as kustomize, Tekton or OpenShift do"),
    (
        re.compile(r"<[A-Za-z][\w .:-]*>|__\w+?__|%%?\w+%%?|@@?\w+@@?|\[\[.*|\(\$\w+\)|<%.*"),
        "this looks like a placeholder: replace it by a value",
    ),
)
_ANYWHERE = re.compile(r"\{\{.*|\$[{(].*|\$[A-Za-z_]\w*|<[A-Za-z][\w .:-]*>|__\w+?__|%%\w+%%|@@?\w+@@?|\[\[.*|<%.*")
_VARIABLE = re.compile(r"\{\{.*|\$\{.*")
_AS_VALUE = re.compile(r"""\s*(?:- +)?(?:[\w./-]+: +)?["']?(%%?\w+%%?|@@?\w+@@?|<%.*)["']?\s*""")


def placeholder_hint(value: Plain) -> str:
    """Return what to do about a value, or the name of a field, with a placeholder; empty if there is none."""
    if not isinstance(value, str):
        return ""
    found = _ANYWHERE.search(value)
    text = value.strip() if found is None else found[0]
    return next((hint for pattern, hint in _HINTS if pattern.fullmatch(text)), "")


def quoted_hint(message: str) -> str:
    """Return the same for a message that quotes a value; only of variables, because messages have other signs, too."""
    found = _VARIABLE.search(message)
    return "" if found is None else placeholder_hint(found[0])


def line_hint(line: str) -> str:
    """Return the same for a line that is not YAML because of its placeholder."""
    found = _AS_VALUE.fullmatch(line)
    return "" if found is None else placeholder_hint(found[1])
