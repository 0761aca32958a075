"""Lines that need no closer look, taken apart many at a time: behind a known prefix, or a report's own without one.

Most lines of a log are carried like the one before. One search takes all of them apart; what it does not match, or what
may be more than a message, is left to ``text_lines``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from podqos.kernel.carriers.prefixes import Prefix, in_seconds
from podqos.kernel.message import Line, Message

_TEXT = r"(?P<text>(?:(?![\[ \t\n])|(?=\[ {0,12}[0-9]{1,10}\] {1,16}[0-9]| ))[^\n]*+)"
"""What begins with a bracket may be the rest of a prefix, unless it is a row of the task table."""
_INVOKED = "invoked oom-killer"
_REST = r"(?P<rest>[^\n]*+)\n"
_BARE = re.compile(
    r"(?:(\[ {0,12}+[0-9]{1,10}+\](?: {1,16}+[0-9]{1,15}+){4} {1,16}+-?[0-9][^\n]*+|[a-z_]{3,40}+ [0-9]{1,17}+(?=\n))"
    r"| {0,4}+((?:\? )?[A-Za-z_][\w.]{2,80}+\+0x[0-9a-f]{1,8}+/0x[0-9a-f]{1,8}+(?: \[\w{1,60}+\])?(?=\n)))?" + _REST,
    re.ASCII,
)
"""Rows, figures and frames."""


class PlainLines:
    """Lines behind a prefix."""

    def __init__(self, prefix: Prefix, suffix: re.Pattern[str] | None) -> None:
        self._suffix = suffix
        # A backslash is no blank.
        source = prefix.pattern.pattern.replace(r"\s", r"[^\S\n]")
        self._pattern = re.compile(rf"(?:{source}{_TEXT})?{_REST}")
        self._is_sure = "\\\\" not in source and prefix.has_time
        self._is_counted = r"(?P<at>\d{1,20}+)" in source
        """Whether times may be microseconds, or the like."""
        places = self._pattern.groupindex
        self._text, self._at, self._host = (places.get(name, 0) - 1 for name in ("text", "at", "host"))

    def read(self, lines: Sequence[Line]) -> list[Message | None]:
        """Return messages without their prefix; None for a line that needs a closer look."""
        if not self._is_sure:
            return [None] * len(lines)
        found = self._pattern.findall("\n".join([*[line.text for line in lines], ""]))
        text, at, host = self._text, self._at, self._host
        messages = [
            Message(
                groups[text].rstrip(),
                line.at or groups[at].strip(),
                line.host or (groups[host] if host >= 0 else ""),
                True,
                line.fields,
            )
            if groups[text] and _INVOKED not in groups[text]
            else None
            for line, groups in zip(lines, found, strict=True)
        ]
        if self._suffix is not None:
            messages = [message and replace(message, text=without(self._suffix, message.text)) for message in messages]
        if not self._is_counted:
            return messages
        return [message and replace(message, at=in_seconds(message.at)) for message in messages]


def without(suffix: re.Pattern[str], text: str) -> str:
    """Return a text without what follows it."""
    ends = suffix.search(text)
    return text if ends is None else text[: ends.start()].rstrip()


def read_bare(lines: Sequence[Line]) -> list[Message | None]:
    """Return rows, figures and frames of a log without a prefix."""
    found = _BARE.findall("\n".join([*[line.text for line in lines], ""]))
    return [
        Message((own or frame).rstrip(), line.at, line.host, line.is_record, line.fields) if own or frame else None
        for line, (own, frame, _) in zip(lines, found, strict=True)
    ]
