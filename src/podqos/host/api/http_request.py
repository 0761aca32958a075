"""The part of HTTP/1.1 that a node's local API needs: one request per connection, parsed strictly.

Bytes in, values out; no sockets here. What cannot be parsed is refused with a status.
"""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Mapping
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote

from msgspec import Struct

MOST_HEAD_BYTES = 8192
MOST_BODY_BYTES = 8192
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
JSON_LINES = "application/jsonl"

_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (/[\x21-\x7e]*) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*)")
_METHODS = {"GET", "HEAD"}

Pieces = Generator[bytes | None, None, None]
"""An answer in pieces: an empty piece yields to other clients, None means no data at the moment."""


class KubeletRequest(Struct, frozen=True):
    """A parsed request."""

    method: str
    segments: tuple[str, ...]
    """The path, split at slashes."""
    query: Mapping[str, str] = {}
    host: str = ""
    origin: str | None = None
    """The site whose page sends it, if a browser says so."""
    site: str | None = None
    """How that site is related to this server: the header Sec-Fetch-Site."""
    body_bytes: int = 0

    def flag(self, name: str) -> bool:
        """Whether a parameter is true, as the kubelet reads them."""
        return self.query.get(name, "").lower() in {"true", "1", "t"}

    def count(self, name: str) -> int | None:
        """Return a parameter that is a count; None if it is missing."""
        text = self.query.get(name)
        if text is None:
            return None
        if not text.isdecimal() or not text.isascii() or len(text) > 18:
            raise HttpRefusal(HTTPStatus.BAD_REQUEST, f"{name} must be a number, 0 or more")
        return int(text)


class HttpResponse(Struct, frozen=True):
    """A response."""

    body: bytes | Pieces
    content_type: str = TEXT
    status: HTTPStatus = HTTPStatus.OK
    follows: bool = False
    """Whether it continues until the client disconnects."""


class HttpRefusal(Exception):
    """A request that is refused with this answer."""

    def __init__(self, status: HTTPStatus, why: str) -> None:
        super().__init__(why)
        self.answer = HttpResponse(f"{why}\n".encode(), status=status)


def parse_request(data: bytes) -> tuple[KubeletRequest, int] | None:
    """Return a request and the length of its head; None while the head is incomplete."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        if len(data) > MOST_HEAD_BYTES:
            raise HttpRefusal(
                HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, f"more than {MOST_HEAD_BYTES} bytes of headers"
            )
        return None
    first, *lines = data[:end].split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if line is None:
        raise HttpRefusal(HTTPStatus.BAD_REQUEST, "not an HTTP/1.0 or HTTP/1.1 request")
    method = line[1].decode()
    if method not in _METHODS:
        raise HttpRefusal(HTTPStatus.METHOD_NOT_ALLOWED, f"method {method} is not supported")
    headers = _headers(lines)
    if line[3] == b"1" and "host" not in headers:
        raise HttpRefusal(HTTPStatus.BAD_REQUEST, "the Host header is missing")
    path, _, query = line[2].decode().partition("?")
    request = KubeletRequest(
        method=method,
        segments=tuple(unquote(part) for part in path.strip("/").split("/")),
        query=dict(parse_qsl(query, keep_blank_values=True)),
        host=headers.get("host", ""),
        origin=headers.get("origin"),
        site=headers.get("sec-fetch-site"),
        body_bytes=_body_bytes(headers),
    )
    return request, end + 4


def head(answer: HttpResponse, server: str) -> bytes:
    """Return the head of an answer; a body of unknown length is chunked. ``server`` is the Server header."""
    length = f"Content-Length: {len(answer.body)}" if isinstance(answer.body, bytes) else "Transfer-Encoding: chunked"
    return (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        f"Server: {server}\r\n"
        f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime())}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"{length}\r\n"
        "Cache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Connection: close\r\n\r\n"
    ).encode()


def chunk(piece: bytes) -> bytes:
    """Return a piece of an answer as a chunk; the empty one ends the answer."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        field = _HEADER.fullmatch(line)
        if field is None:
            raise HttpRefusal(HTTPStatus.BAD_REQUEST, "malformed header")
        name = field[1].decode().lower()
        if name in headers and name in {"host", "content-length", "origin", "sec-fetch-site"}:
            raise HttpRefusal(HTTPStatus.BAD_REQUEST, f"duplicate header {name}")
        headers[name] = field[2].decode("latin-1").strip()
    return headers


def _body_bytes(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise HttpRefusal(HTTPStatus.LENGTH_REQUIRED, "a body needs a Content-Length")
    text = headers.get("content-length", "0")
    if not text.isdecimal() or not text.isascii():
        raise HttpRefusal(HTTPStatus.BAD_REQUEST, "Content-Length is not a number")
    if len(text) > 9 or int(text) > MOST_BODY_BYTES:
        raise HttpRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MOST_BODY_BYTES} bytes of body")
    return int(text)
