"""Lines that need no closer look, taken apart many at a time: behind a known prefix, or a report's own without one.

Most lines of a log are carried like the one before. One search takes all of them apart; what it does not match, or what
may be more than a message, is left to ``text_lines``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from podqos.kernel.carriers.prefixes import Carried, Prefix, in_seconds

_TEXT = r"(?P<text>(?:(?![\[ \t\n])|(?=\[ {0,12}[0-9]{1,10}\] {1,16}[0-9]| ))[^\n]*+)"
"""What begins with a bracket may be the rest of a prefix, unless it is a row of the task table."""
_INVOKED = "invoked oom-killer"
_REST = r"(?P<rest>[^\n]*+)\n"
_BARE = re.compile(
    r"(?:(\[ {0,12}+[0-9]{1,10}+\](?: {1,16}+[0-9]{1,15}+){4} {1,16}+-?[0-9][^\n]*+|[a-z_]{3,40}+ [0-9]{1,17}+(?=\n))"
    r"| {0,4}+((?:\? )?[A-Za-z_][\w.]{2,80}+\+0x[0-9a-f]{1,8}+/0x[0-9a-f]{1,8}+(?: \[\w{1,60}+\])?(?=\n)))?+"
    + _REST,
    re.ASCII,
)
"""Rows, figures and frames."""


class PlainLines:
    """Lines behind a prefix."""

    def __init__(self, prefix: Prefix) -> None:
        self.prefix = prefix
        # A backslash is no blank.
        source = prefix.pattern.pattern.replace(r"\s", r"[^\S\n]")
        self._pattern = re.compile(rf"(?:{source}{_TEXT})?+{_REST}")
        self._is_sure = "\\\\" not in source
        places = self._pattern.groupindex
        self._text, self._at, self._host = (places.get(name, 0) - 1 for name in ("text", "at", "host"))

    def read(self, lines: Sequence[str]) -> list[Carried | None]:
        """Return lines without their prefix, where that is all that is to be done."""
        if not self._is_sure:
            return [None] * len(lines)
        found = self._pattern.findall("\n".join([*lines, ""]))
        text, at, host = self._text, self._at, self._host
        if host < 0:
            return [
                Carried(groups[text], in_seconds(groups[at].strip()) if at >= 0 else "", "", is_marked=True)
                if groups[text] and _INVOKED not in groups[text]
                else None
                for groups in found
            ]
        return [
            Carried(groups[text], in_seconds(groups[at].strip()) if at >= 0 else "", groups[host], is_marked=True)
            if groups[text] and _INVOKED not in groups[text]
            else None
            for groups in found
        ]


def read_bare(lines: Sequence[str]) -> list[Carried | None]:
    """Return rows, figures and frames of a log without a prefix."""
    return [
        Carried(own or frame, "", "", is_marked=False) if own or frame else None
        for own, frame, _ in _BARE.findall("\n".join([*lines, ""]))
    ]
