"""Lines that need no closer look, taken apart many at a time: behind a known prefix, or a report's own without one.

Most lines of a log are carried like the one before. One search takes all of them apart; what it does not match, or what
may be more than a message, is left to ``text_lines``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from podqos.kernel.carriers.prefixes import Prefix, in_seconds, may_be_known
from podqos.kernel.carriers.tokens import BEGINNING, may_begin
from podqos.kernel.carriers.wrapping import Physical, Wrapping
from podqos.kernel.message import Line, Message

_TEXT = r"(?P<text>(?:(?![\[ \t\n])|(?=\[ {0,12}[0-9]{1,10}\] {1,16}[0-9]| ))[^\n]*+)"
"""What begins with a bracket may be the rest of a prefix, unless it is a row of the task table."""
_INVOKED = "invoked oom-killer"
_NAME = r"(?=[A-Za-z0-9_ -]{1,15}+\n)[A-Za-z][A-Za-z0-9_-]*+(?: [A-Za-z][A-Za-z0-9_-]*+)*"
_FIGURES_AND_NAME = r"(?![0-9]{1,15} (?:pages|total) )[0-9 -]*+" + _NAME
"""What begins no message, wherever it stands."""
_REST = r"(?P<rest>[^\n]*+)\n"


class PlainLines:
    """Lines behind a prefix; ``more``: what may continue one."""

    def __init__(self, prefix: Prefix, suffix: re.Pattern[str] | None, more: str = "") -> None:
        self._suffix = suffix
        source = on_one_line(prefix.pattern.pattern)
        self._pattern = re.compile(rf"(?:{source}{_TEXT}{more})?{_REST}")
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


class WrappedLines(PlainLines):
    """Lines behind a prefix, some of which are broken: most of them before figures and a name, all that a row loses."""

    def __init__(self, forms: Sequence[Prefix], outer: re.Pattern[str] | None, way: Wrapping) -> None:
        self._way = way
        quoting = "" if outer is None else outer.pattern
        others = "".join(f"(?!{''.join(form.parts)})" for form in forms[1:])
        more = on_one_line(others + quoting)
        super().__init__(forms[0], None, rf"(?:\n{more}(?P<more>{_FIGURES_AND_NAME})(?=\n))?")
        self._more = self._pattern.groupindex["more"] - 1
        self._outer = re.compile(quoting)
        self._naked = re.compile(f"(?!{''.join(forms[0].parts)}){others}{quoting}")

    def read_broken(self, lines: Sequence[Line], columns: int) -> list[tuple[Message | None, int]]:
        """Return messages, and of how many lines; None for one that needs a closer look, or before such a one."""
        if not self._is_sure:
            return [(None, 1)] * len(lines)
        place_of_text, place_of_more, at, host = self._text, self._more, self._at, self._host
        read: list[tuple[Message | None, int]] = []
        number, is_followed = len(lines), False
        rests: list[str] = []
        for groups in reversed(self._pattern.findall("\n".join([*[line.text for line in lines], ""]))):
            text, more = groups[place_of_text], groups[place_of_more]
            count = 2 if more else 1
            number -= count
            line = lines[number]
            if not text and (rest := self._rest(line.text)):
                rests.append(rest)
                continue
            whole = text if is_followed and _INVOKED not in text else ""
            if whole and (more or rests):
                whole = self._whole(line.text, text, more, rests, columns)
            if not whole:
                read += [(None, 1)] * (len(rests) + count)
            else:
                message = Message(
                    whole.rstrip(),
                    line.at or (in_seconds(groups[at].strip()) if self._is_counted else groups[at].strip()),
                    line.host or (groups[host] if host >= 0 else ""),
                    True,
                    line.fields,
                )
                read.append((message, len(rests) + count))
            is_followed = bool(text)
            rests.clear()
        read += [(None, 1)] * len(rests)
        read.reverse()
        return read

    def _rest(self, line: str) -> str:
        """Return what a line continues another one with, if nothing begins in it; else nothing."""
        start = self._naked.match(line)
        rest = "" if start is None else line[start.end() :]
        return "" if may_begin(rest) or may_be_known(rest) else rest

    def _whole(self, line: str, text: str, more: str, rests: list[str], columns: int) -> str:
        """Return a message with what continues it, the last of it first; nothing if not all of that does."""
        start = self._outer.match(line)
        length = len(line) if start is None else len(line) - start.end()
        if not rests and (whole := self._way.at_once(text, length, more, columns)):
            return whole
        before = Physical(line[len(line) - length :], text, begins=True, is_naked=False)
        return self._way.put_together(before, [*([more] if more else []), *reversed(rests)], columns)


def on_one_line(source: str) -> str:
    """Return a pattern whose blanks are none that end a line."""
    # A backslash is no blank.
    return source.replace(r"\s", r"[^\S\n]")


def without(suffix: re.Pattern[str], text: str) -> str:
    """Return a text without what follows it."""
    ends = suffix.search(text)
    return text if ends is None else text[: ends.start()].rstrip()


_BARE = re.compile(
    r"(?:(\[ {0,12}+[0-9]{1,10}+\](?: {1,16}+[0-9]{1,15}+){4} {1,16}+-?[0-9][^\n]*+|[a-z_]{3,40}+ [0-9]{1,17}+(?=\n)"
    rf"|(?!\[){on_one_line(BEGINNING)}[^\n]*+)"
    r"| {0,4}+((?:(?:\? )?[A-Za-z_][\w.]{2,80}+\+0x[0-9a-f]{1,8}+/0x[0-9a-f]{1,8}+(?: \[\w{1,60}+\])?"
    r"|</?TASK>|[a-z_]{3,40}+:[0-9]{1,17}+(?: [a-z_]{3,40}+:[0-9]{1,17}+){1,4})(?=\n)))?" + _REST,
    re.ASCII,
)
"""Rows, figures, what has a distinctive beginning, and frames. A table's header may show what follows every message."""


def read_bare(lines: Sequence[Line]) -> list[Message | None]:
    """Return rows, figures and frames of a log without a prefix."""
    found = _BARE.findall("\n".join([*[line.text for line in lines], ""]))
    return [
        Message((own or frame).rstrip(), line.at, line.host, line.is_record, line.fields)
        if (own or frame) and _INVOKED not in own and "\t" not in own
        else None
        for line, (own, frame, _) in zip(lines, found, strict=True)
    ]
