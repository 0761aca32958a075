"""Text that was encoded on its way: bytes that are not UTF-8, the base64 of mails, the percent signs of addresses.

What is UTF-8 and plain, as nearly all of it is, costs nothing more than to be decoded.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator

_STRAY = re.compile(rb"(?<![\x80-\xff])[\x85\x91-\x97\xa0\xad]{1,80}(?![\x80-\xff])")
"""Spaces, quotes, dashes of Windows and of Latin-1: what programs put where the kernel writes ASCII."""
_CONTROLS = bytes(code for code in range(32) if code not in b"\0\t\n\r\x1b")
_MOST_CONTROLS = 16
"""One byte in so many may be one of them: more are no text."""
_BASE64 = re.compile(rb"[A-Za-z0-9+/]{4,}={0,2}")
_SHORTEST = 56
"""Of the first line of what is encoded in base64."""
_PRINTED = bytes(range(32, 127)) + b"\t\r\n\x1b"
_MOST_ODD = 20
"""One character in so many may be none of them."""
_MOST_LINES = 2048
_LONGEST = 1 << 20
_CODE = re.compile(rb"%([0-9A-Fa-f]{2})")
_IN_ADDRESS = (b"invoked%20oom-killer", b"Killed%20process", b"illed%20as%20a%20result")
_IN_FORM = (b"invoked+oom-killer", b"Killed+process")


def text_of(data: bytes) -> str:
    """Return bytes as text: UTF-8, with odd bytes as those of Windows-1252 that stand for plain characters."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        if len(data.translate(None, _CONTROLS)) < len(data) - len(data) // _MOST_CONTROLS:
            return data.decode(errors="replace")
        return _STRAY.sub(lambda odd: odd[0].decode("cp1252").encode(), data).decode(errors="replace")


def decoded_parts(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the parts of a log, decoded if its beginning is encoded."""
    head = next(parts, b"")
    if head and (_has_base64(head) or _is_in_address(head)):
        yield from _decoded(head, parts)
        return
    if head:
        yield head
    yield from parts


def _has_base64(head: bytes) -> bool:
    if b"ase64" in head and b"transfer-encoding: base64" in head.lower():
        return True
    first = head.lstrip()[: _SHORTEST * 2].split(b"\n", 1)[0].rstrip()
    return len(first) >= _SHORTEST and _BASE64.fullmatch(first) is not None and bool(_from_base64(first[:_SHORTEST]))


def _is_in_address(head: bytes) -> bool:
    return any(mark in head for mark in _IN_ADDRESS) or (b"%0A" in head and any(mark in head for mark in _IN_FORM))


def _decoded(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    is_form = any(mark in head for mark in _IN_FORM)
    is_address = is_form or _is_in_address(head)
    run: list[bytes] = []
    for line in _lines(head, rest):
        text = line.strip()
        is_own = len(text) % 4 == 0 and (run or len(text) >= _SHORTEST) and _BASE64.fullmatch(text)
        if not is_own or len(run) >= _MOST_LINES:
            yield _of_run(run)
            run = []
        if is_own:
            run.append(line)
        elif is_address:
            yield _CODE.sub(_byte, line.replace(b"+", b" ") if is_form else line)
        else:
            yield line
    yield _of_run(run)


def _byte(code: re.Match[bytes]) -> bytes:
    return bytes((int(code[1], 16),))


def _lines(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """Yield lines with their ends; one that is very long in parts that can be decoded."""
    held = head
    while True:
        *whole, held = held.split(b"\n")
        yield from (line + b"\n" for line in whole)
        while len(held) >= _LONGEST:
            yield held[:_LONGEST]
            held = held[_LONGEST:]
        part = next(rest, b"")
        if not part:
            break
        held += part
    if held:
        yield held


def _of_run(run: list[bytes]) -> bytes:
    """Return the text in lines of base64; the lines themselves where there is none."""
    if not run:
        return b""
    data = b"".join(run)
    text = _from_base64(b"".join(data.split()))
    if not text:
        return data
    return text + b"\n" if data.endswith(b"\n") and not text.endswith(b"\n") and data.rstrip().endswith(b"=") else text


def _from_base64(data: bytes) -> bytes:
    """Return the text that is encoded; nothing where it is no text."""
    try:
        text = b64decode(data, validate=True)
    except ValueError:
        return b""
    is_text = b" " in text and len(text.translate(None, _PRINTED)) * _MOST_ODD <= len(text)
    return text if is_text else b""
