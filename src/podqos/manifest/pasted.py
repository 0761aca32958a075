"""What breaks YAML that was copied from a page, a terminal or a chat, and how to repair it: one hint, with its line.

Only texts that are broken already get here, and nothing is repaired: what a manifest says is for its author to decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

_ODD_SPACES = re.compile("[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000\ufeff]")
_CURLY_QUOTES = re.compile("[\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb]")
_NUMBER = re.compile(r"\s*([0-9]{1,4})(?:[:|.)]|\s|$)")
_LIST_ITEM = re.compile(r"( *)- +([\w.-]+):.*")
_LIST_MARK = re.compile("\\s*([\u2010-\u2015\u2022\u2023\u2212\u00b7*]) ")
_NO_SPACE = re.compile(r"\s*(?:- )?([\w.-]+):([^\s:/].*)")
_RESERVED = re.compile(r"\s*(?:- )?([\w./-]+): +([@`%].*?)\s*")
_COLON_IN_VALUE = re.compile(r"\s*(?:- )?([\w./-]+): +([^\s'\"\[{|>#&*!].*: .*?)\s*")
_MARKERS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"\s*(?:```|~~~).*"), "is a Markdown fence: remove it"),
    (re.compile(r"\s*\$ .*|\s*%\s(?:kubectl|oc|helm|cat)\b.*"), "is a shell prompt: remove it"),
    (
        re.compile(r"[a-z][\w.-]*/[\w.-]+ (?:created|configured|unchanged|deleted|patched|serverside-applied)\s*"),
        "is the output of a command: remove it",
    ),
    (
        re.compile(r"\s*(?:- )?(?:\u2026|\.\.\.|\[\.\.\.\]|<snip>)\s*"),
        "marks lines that were left out: write them out",
    ),
)
_FEW = 3


def paste_hint(text: str, at: int, began: int, first_line: int = 1) -> str:
    """Return what to do about a broken text that was pasted; empty where it does not look like one.

    ``at`` is the line where the parser stopped and ``began`` the one where what it read began, counted from 0;
    ``first_line`` is the number of the first in its file.
    """
    lines = text.splitlines()
    if not lines:
        return ""
    at, began = min(at, len(lines) - 1), min(began, len(lines) - 1)
    for hint in (_of_all_lines(lines, first_line), *_of_markers(lines, at, first_line)):
        if hint:
            return hint
    near = dict.fromkeys((at, began, max(0, at - 1)))
    hints = (hint(lines, line, first_line) for hint in _OF_A_LINE for line in near)
    return next(filter(None, hints), "")


def _of_all_lines(lines: Sequence[str], first_line: int) -> str:
    written = [(number, line) for number, line in enumerate(lines, first_line) if line.strip()]
    if len(written) < _FEW:
        return ""
    if all(line.startswith(">") for _, line in written):
        return "every line begins with >, as in a quoted mail: remove that"
    counted = [matched and int(matched[1]) for matched in map(_NUMBER.match, lines)]
    if all(number is not None and number == (counted[0] or 0) + index for index, number in enumerate(counted)):
        return "every line begins with its number: remove the numbers"
    added = next((number for number, line in written if line.startswith("+")), None)
    if added is not None:
        return f"line {added} begins with +, as in a diff: keep the new lines, without their marks"
    return ""


def _of_markers(lines: Sequence[str], at: int, first_line: int) -> Iterator[str]:
    """Yield what lines are that belong to the page or terminal; the nearest first."""
    for line in range(at, -1, -1):
        for marker, what in _MARKERS:
            if marker.fullmatch(lines[line]):
                yield f"line {line + first_line} {what}"


def _odd_space(lines: Sequence[str], line: int, first_line: int) -> str:
    odd = _ODD_SPACES.search(lines[line])
    if odd is None:
        return ""
    return f"line {line + first_line} has U+{ord(odd[0]):04X}, which looks like a space: write a space"


def _list_mark(lines: Sequence[str], line: int, first_line: int) -> str:
    mark = _LIST_MARK.match(lines[line])
    return "" if mark is None else f'line {line + first_line} begins with {mark[1]}: begin items of a list with "- "'


def _curly_quote(lines: Sequence[str], line: int, first_line: int) -> str:
    return (
        f"line {line + first_line} has curly quotes: write straight ones" if _CURLY_QUOTES.search(lines[line]) else ""
    )


def _colon(lines: Sequence[str], line: int, first_line: int) -> str:
    if "\uff1a" in lines[line]:
        return f"line {line + first_line} has a full-width colon: write a plain one and a space"
    missing = _NO_SPACE.fullmatch(lines[line])
    if missing is not None:
        return f'line {line + first_line} has no space after its colon: write "{missing[1]}: {missing[2].strip()}"'
    return ""


def _quoting(lines: Sequence[str], line: int, first_line: int) -> str:
    bare = _RESERVED.fullmatch(lines[line]) or _COLON_IN_VALUE.fullmatch(lines[line])
    if bare is None or '"' in bare[2]:
        return ""
    return f'put the value of line {line + first_line} in quotes: {bare[1]}: "{bare[2]}"'


def _indentation(lines: Sequence[str], line: int, first_line: int) -> str:
    """Return how far a line below the first of a list's item is to be indented."""
    above = next((number for number in range(line - 1, -1, -1) if lines[number].strip()), None)
    item = None if above is None else _LIST_ITEM.fullmatch(lines[above])
    indented = len(lines[line]) - len(lines[line].lstrip(" "))
    if item is None or not lines[line].strip() or lines[line].lstrip().startswith("-"):
        return ""
    wanted = item.start(2)
    if indented == wanted or indented <= len(item[1]):
        return ""
    return f'indent line {line + first_line} by {wanted} spaces, like "{item[2]}" above it'


_OF_A_LINE: Sequence[Callable[[Sequence[str], int, int], str]] = (
    _odd_space,
    _list_mark,
    _curly_quote,
    _colon,
    _indentation,
    _quoting,
)
