"""Text for a terminal or a log: control sequences in the input are shown, never executed.

Names, messages and file names may hold terminal sequences, line breaks, workflow commands of GitHub, or bytes that are
not UTF-8. ``harmless`` makes all of them visible. What podqos itself says to a terminal or to GitHub goes through
``own``, which writes it in lone surrogates: no input can hold those, because neither UTF-8, JSON nor YAML carry them.
"""

from __future__ import annotations

import re

_OWN = 0xD800
"""Plus an ASCII character: the same character, said by podqos."""
_FIRST_BYTE, _LAST_BYTE = 0xDC80, 0xDCFF
"""Bytes of a file name that are not UTF-8, as Python keeps them."""
_CONTROL = "\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069"
_LOUD = re.compile(f"[{_CONTROL}\ud800-\udfff]")
_LOUD_ASCII = bytes(code for code in range(0x80) if _LOUD.match(chr(code)))
_SURROGATE = re.compile("[\ud800-\udfff]")
_OWNED = re.compile("[\x00-\x1f:]")
_COMMAND = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_APPROXIMATIONS = {
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "·": "-",
    "×": "x",
    "→": "->",
    "≥": ">=",
    "≤": "<=",
    "≈": "~",
    "│": "|",
    "├": "|",
    "└": "`",
    "─": "-",
    "█": "#",
    "░": ".",
    "●": "*",
    "◆": "#",
    "✓": "ok",
    "✗": "x",
    "’": "'",
    "“": '"',
    "”": '"',
}
_WIDER = str.maketrans({c: text for c, text in _APPROXIMATIONS.items() if len(text) > 1})


def own(text: str) -> str:
    """Return controls and colons of podqos itself, for ``harmless`` to let through."""
    return _OWNED.sub(lambda found: chr(_OWN + ord(found[0])), text)


def harmless(text: str) -> str:
    """Return text with what could steer a terminal or a GitHub log made visible; line ends and tabs stay."""
    if "::" in text:
        text = _COMMAND.sub(r"\1\\u003a", text)
    # Nearly all text is ASCII, and that is looked through ten times as fast.
    if text.isascii() and len(text.encode().translate(None, _LOUD_ASCII)) == len(text):
        return text
    return _LOUD.sub(_shown, text) if _LOUD.search(text) else text


def one_line(text: str) -> str:
    """Return text without line breaks of its own."""
    return text.replace("\n", "\\n") if "\n" in text else text


def readable(text: str) -> str:
    r"""Return text that can be encoded: bytes of a file name that are not UTF-8 become ``\xff``."""
    return _SURROGATE.sub(_shown, text) if _SURROGATE.search(text) else text


def cell(value: object) -> object:
    """Return a CSV cell that a spreadsheet reads as text if it is text; numbers stay as they are."""
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def approximated(text: str) -> str:
    """Return text in ASCII, for an output that cannot carry its characters."""
    return "".join(_APPROXIMATIONS.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text)


def widened(text: str) -> str:
    """Return text with those characters in ASCII that take more columns there: lay out what will be printed."""
    return text.translate(_WIDER)


def _shown(found: re.Match[str]) -> str:
    number = ord(found[0])
    if _OWN <= number < _OWN + 0x80:
        return chr(number - _OWN)
    if _FIRST_BYTE <= number <= _LAST_BYTE:
        return f"\\x{number - 0xDC00:02x}"
    if number == ord("\r"):
        return "\\r"
    return f"\\x{number:02x}" if number < 0x20 else f"\\u{number:04x}"
