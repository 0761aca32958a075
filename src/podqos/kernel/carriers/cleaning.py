"""Text as it was logged: what terminals, mail programs, web pages and word processors add is taken out.

Everything here is cheap for lines that have none of it, and linear for lines that have much.
"""

from __future__ import annotations

import re
from contextlib import suppress

_NOTHING = dict.fromkeys((0xAD, 0x180E, 0xFEFF, 0xFFF9, *range(0x200B, 0x2010), *range(0x2060, 0x2065)))
_SPACES = dict.fromkeys((0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000), " ")
_PUNCTUATION = {
    **dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B, 0x2032, 0x2035), "'"),
    **dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F, 0x2033), '"'),
    **dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2212, 0xFE63, 0xFF0D), "-"),
    0x2026: "...",
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
}
_PLAIN: dict[int, str | None] = {
    **_NOTHING,
    **_SPACES,
    **_PUNCTUATION,
    **{0xFF01 + n: chr(0x21 + n) for n in range(94)},
}
_NOT_PLAIN = re.compile(f"[{''.join(map(chr, _PLAIN))}]")
_BARE_COLOUR = re.compile(r"\[(?:\d{1,3}(?:;\d{1,3}){0,4})?[mK](?![\w-])(?=[^\]]|$)")
_MAY_BE_COLOUR = re.compile(r"\[[0-9;]*+[mK]")
_COLOUR = re.compile(
    r"(?:\x1b|\^\[|#033|\\033|\\e|\\x1b|\\u001[bB]|\u241b)(?:\[[0-9;:]{0,24}[mK]|\(B)|" + _BARE_COLOUR.pattern
)
_ESCAPE = re.compile(r"\x1b(?:\[[0-9;:]{0,24}[mK]|\(B)")
_MOST_ESCAPES = 16
"""Different ones, which terminals need only few of."""
_ENTITY = re.compile(r"&(?:#\d{1,6}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,10});")
_TAG = re.compile(
    r"</?(?:pre|code|br|p|div|span|td|tr|th|thead|tbody|table|li|ul|ol|tt|font|b|i|u|em|strong|samp|kbd|html|body|a|small"
    r"|blockquote|ins|del|mark|center|wbr|line|log|event|message|msg|text)(?:\s[^<>]{0,4000})?/?>|<!\[CDATA\[|\]\]>",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    r"\s(?:message|msg|text|line|value)=([\"'])(.{1,4000}?)\1\s{0,4}(?:[\w:-]{1,40}=|/?>)", re.IGNORECASE
)
"""A message inside of a tag."""
_MARKUP = re.compile(
    r"^[^\[(]{0,200}&(?:gt|lt|quot|amp|nbsp|#\d{1,5}|#x[0-9a-f]{1,4});|&nbsp;|&lt;/?[A-Z]{3,4}&gt;|<!\[CDATA\["
    r"|^\s{0,40}</?(?:pre|code|span|td|tr|p|div|li|samp|br|event|log|message)(?:\s[^<>]{0,4000})?/?>|<br ?/?>.{0,20}$",
    re.IGNORECASE,
)
_CONTROL = re.compile(r"\^M(?=\$?$)")
_ESCAPED = re.compile(r"\\([_\[\]*<>()#.|~`+!/-])")
_ENDS_WITH_KEY = re.compile(r"(?:mask|order|adj|constraint|cpuset|allowed|memcg|task|pid|uid)=$")
_PRINTABLE = re.compile(r"=([0-9A-F]{2})")
_NEWLINES = re.compile(
    r"\\r\\n|\\n|#012|&#(?:10|x0?a);|\\u000a|<br ?/?>|</(?:tr|li|p|div)>|[\x0b\x0c\x85\u2028\u2029\u240a\u23ce\u21b5]",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?<=['\"]), b?(?=['\"])")
_TUPLES = re.compile(r"(?<=['\"])\),\s?\((?=[\d'\"])")
"""Rows of a statement in SQL."""
_FRAME = re.compile(r"(\d{2,5}) (?=<\d{1,3}>)")
"""Before a message of syslog's over TCP: its length (RFC 6587)."""
_FEW = 2
_ESCAPED_END = re.compile(r"(?:\\r)?\\n(?:[\"'),;+.&\s]{0,8}|\", \d{1,6}\) = \d{1,6})$")
_LONGEST_END = 24
_SHORTEST_SOFT, _LONGEST_SOFT = 70, 77
_MOST_ENTITIES = 2


def cleaned(line: str, *, is_markup: bool = False) -> str:
    """Return a line without colour and escapes, of markup without tags, and with plain spaces, quotes and hyphens."""
    if not line.isascii() and _NOT_PLAIN.search(line):
        line = _read_once(line).translate(_PLAIN)
    if "\0" in line:
        line = line.replace("\0", "")
    if "\x1b" in line or "#033" in line or ("[" in line and _has_escape(line)):
        line = without_colour(line)
    elif "[" in line:
        line = _BARE_COLOUR.sub("", line)
    if is_markup:
        line = _TAG.sub(_in_tag, _without_entities(line))
    if "\\" in line:
        line = _ESCAPED.sub(r"\1", line).replace("\\t", " ")
    if "^" in line:
        line = _CONTROL.sub("", line).replace("^I", "\t")
    return line


def _read_once(line: str) -> str:
    """Return a line whose UTF-8 was read as Windows-1252, and encoded once more, as it was."""
    if "\u00c2" in line or "\u00e2\u20ac" in line:
        with suppress(UnicodeError):
            return line.encode("cp1252").decode()
    return line


def without_colour(text: str) -> str:
    """Return a text without the escapes of a terminal's colours."""
    return _COLOUR.sub("", text)


def without_escapes(text: str) -> str:
    """Return a text without most of the escapes of a terminal's colours: many lines have few of them."""
    for _ in range(_MOST_ESCAPES):
        if (escape := _ESCAPE.search(text)) is None:
            break
        text = text.replace(escape[0], "")
    return text


def has_bare_colour(line: str) -> bool:
    """Whether a text may have colour whose escape is lost."""
    return _MAY_BE_COLOUR.search(line) is not None


def _in_tag(tag: re.Match[str]) -> str:
    """Return the message that a tag has as an attribute."""
    found = _ATTRIBUTE.search(tag[0]) if "=" in tag[0] else None
    return "" if found is None else found[2]


def _has_escape(line: str) -> bool:
    return "\\" in line or "^[" in line or "\u241b" in line


def is_markup(line: str) -> bool:
    """Whether a line is that of a page: tags and entities stand where the kernel and its carriers write none."""
    return ("&" in line or ("<" in line and _has_tag(line))) and _MARKUP.search(line) is not None


def _has_tag(line: str) -> bool:
    """Whether a line may have a tag that ``_MARKUP`` looks for: levels such as <6> are none."""
    return line.lstrip()[:1] == "<" or "<b" in line or "<B" in line or "<![" in line


def _without_entities(line: str) -> str:
    from html import unescape

    for _ in range(_MOST_ENTITIES):  # what quotes a page may escape it again
        if not _ENTITY.search(line):
            break
        line = unescape(line).replace("\n", " ")
    return line.translate(_PLAIN)


def without_escaped_end(line: str) -> str:
    """Return a line without a line end that was written out, as in source code and quoted strings."""
    return _ESCAPED_END.sub("", line) if "\\n" in line[-_LONGEST_END:] else line


def pieces(line: str) -> list[str]:
    """Return the lines in a line whose line ends were escaped, or that is a list of quoted lines."""
    if line.count("', '") + line.count("', \"") + line.count("', b'") > (0 if line.startswith(("['", "[b'")) else _FEW):
        return _QUOTED.split(line)
    if "),(" in line and len(rows := _TUPLES.split(line)) > _FEW:
        return rows
    if line.startswith('["') and line.count('" "') > _FEW:
        return line.split('" "')
    if line[:1].isdigit() and len(framed := _framed(line)) > 1:
        return framed
    is_marked = "\\" in line or "#012" in line or "&#" in line or "<b" in line or "<B" in line or "</" in line
    if is_marked or "\x0b" in line or not line.isascii():
        return _NEWLINES.split(line)
    return [line]


def _framed(line: str) -> list[str]:
    """Return the messages in a line, each after its length."""
    found: list[str] = []
    start = 0
    while frame := _FRAME.match(line, start):
        start = frame.end() + int(frame[1])
        found.append(line[frame.end() : start])
    return found


def is_quoted_printable(line: str) -> bool:
    """Whether a line of a report is encoded as mail is: each equals sign begins a code."""
    is_soft = line.endswith("=")
    # A line that is broken behind the name of a figure is no proof.
    is_proof = is_soft and _SHORTEST_SOFT <= len(line) <= _LONGEST_SOFT and not _ENDS_WITH_KEY.search(line)
    if "=3D" not in line and not is_proof:
        return False
    return line.count("=") == len(_PRINTABLE.findall(line)) + is_soft


def from_quoted_printable(line: str) -> tuple[str, bool]:
    """Return a line decoded, and whether the next one continues it."""
    is_soft = line.endswith("=")
    line = line.removesuffix("=")
    if "=" not in line:
        return line, is_soft
    data = _PRINTABLE.sub(lambda code: chr(int(code[1], 16)), line).encode("latin-1", errors="replace")
    return data.decode(errors="replace"), is_soft
