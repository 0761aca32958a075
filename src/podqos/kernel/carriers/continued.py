"""Lines that go on in the next one: a backslash ends them, or they are strings that source code puts together."""

from __future__ import annotations

import re

from podqos.kernel.carriers.prefixes import known
from podqos.kernel.carriers.tokens import is_start
from podqos.kernel.message import MOST_CHARACTERS

_STRING = re.compile(
    r"\s{0,200}(?P<opened>[\[(]?)[bru]?(?P<quote>['\"]).*(?P=quote)(?P<end>,|[\])};]{1,3},?)?\s{0,40}$"
)
_QUOTES = frozenset("'\"")
_NO_CONTINUATION = ("\\\\", "\x1b\\")
"""An escaped backslash, and the end of a terminal's title."""


class ContinuedLines:
    """Takes lines, and returns those that are whole."""

    def __init__(self) -> None:
        self._held = ""
        self._is_list = False
        """Whether lines are strings in source code: one that no comma or line end follows goes on with the next one."""

    @property
    def is_open(self) -> bool:
        """Whether a line waits for the next one."""
        return bool(self._held)

    def feed(self, line: str) -> list[str]:
        """Return the lines that a line completes."""
        whole: list[str] = []
        if self._held and not self._is_list and (is_start(line) or known(line).is_marked):
            whole = self.end()  # a name ended with the backslash
        if self._held:
            rest = line.lstrip()
            if rest.startswith("\\ ") or (self._is_list and rest[:1] in _QUOTES):
                line = rest[1:]
            line, self._held = self._held + line, ""
        if self._joins(line):
            self._held = line.rstrip()[:-1]
        elif line.endswith("\\") and not line.endswith(_NO_CONTINUATION) and len(line) < MOST_CHARACTERS:
            self._held = line[:-1]
        else:
            whole.append(line)
        return whole

    def end(self) -> list[str]:
        """Return the line that no other one continues."""
        held, self._held = self._held, ""
        return [held if self._is_list else f"{held}\\"] if held else []

    def _joins(self, line: str) -> bool:
        """Whether a line is a string that the next one goes on with, as Python prints long ones and C joins them."""
        string = _STRING.match(line)
        if string is None:
            return False
        has_end = string["end"] is not None or line.rstrip()[-3:-1] == "\\n"
        self._is_list = self._is_list or has_end or bool(string["opened"])
        return self._is_list and not has_end and len(line) < MOST_CHARACTERS
