"""Plain values: the content of a document without its notation, YAML or JSON.

Kubernetes turns every manifest into JSON before it looks at it; these are the values JSON has. The one thing a
Python number would lose is how a fraction was written, and quantities are read from the text, so ``Number`` keeps it.
Nothing here knows about Kubernetes objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

Plain: TypeAlias = "bool | int | float | str | list[Plain] | dict[str, Plain] | None"

FieldPath: TypeAlias = tuple[str | int, ...]
"""Where a value is: keys and list indexes from the top of a document or object."""

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_SIMPLE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Number(float):
    """A number with a fraction or an exponent, which remembers its text."""

    __slots__ = ("text",)

    text: str

    @classmethod
    def read(cls, text: str) -> Number:
        """Return the number that a JSON text writes."""
        number = cls(text)
        number.text = text
        return number


def format_path(path: Iterable[str | int]) -> str:
    """Write a path the way Kubernetes does: ``spec.containers[0].resources.limits[nvidia.com/gpu]``."""
    written = ""
    for step in path:
        if isinstance(step, int):
            written += f"[{step}]"
        elif _SIMPLE_KEY.fullmatch(step):
            written += f".{step}" if written else step
        else:
            written += f"[{step}]"
    return written


def parse_path(text: str) -> FieldPath:
    """Read what ``format_path`` writes; a number in brackets is a list index."""
    path: list[str | int] = []
    for bracketed, name in _STEP.findall(text):
        path.append(int(bracketed) if bracketed.isdecimal() else bracketed or name)
    return tuple(path)
