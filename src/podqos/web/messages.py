"""Requests and answers, as handlers see them, and how answers are written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from http import HTTPStatus

from msgspec import Struct

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_PHRASES = {int(status): status.phrase for status in HTTPStatus}


class Request(Struct, frozen=True):
    """A client's request."""

    method: str
    path: str
    query: str
    content_type: str
    body: bytes
    began: float
    """Arrival of its first byte, in event loop time."""
    headers: Mapping[str, str] = {}
    """The headers that the server keeps, by lower-case name; repeated headers are joined with commas."""


class Response(Struct, frozen=True):
    """The answer to a request."""

    body: bytes
    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()


class EventStream(Struct, frozen=True):
    """An answer sent in parts as they become available; clients that are too slow are disconnected."""

    parts: AsyncGenerator[bytes, None]
    content_type: str
    headers: tuple[tuple[str, str], ...] = ()


Answer = Response | EventStream
Handler = Callable[[Request], Answer | Awaitable[Answer]]
"""An awaitable answer is cancelled when its client disconnects."""


def text_response(status: int, text: str, **headers: str) -> Response:
    """Return a one-line answer."""
    extra = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Response(f"{text}\n".encode(), status, TEXT, extra)


def encoded_head(response: Response, *, keeps: bool) -> bytes:
    """Return the head of an answer; ``keeps`` is whether the connection stays open."""
    extra: Iterable[tuple[str, str]] = response.headers
    if response.status not in {HTTPStatus.NOT_MODIFIED, HTTPStatus.NO_CONTENT}:
        extra = (("content-length", str(len(response.body))), *extra)
    return _head(response.status, response.content_type, extra, keeps=keeps)


def stream_head(stream: EventStream) -> bytes:
    """Return the head of a stream, which ends with its connection."""
    return _head(200, stream.content_type, stream.headers, keeps=False)


def _head(status: int, content_type: str, headers: Iterable[tuple[str, str]], *, keeps: bool) -> bytes:
    extra = "".join(f"{name}: {value}\r\n" for name, value in headers)
    closing = "" if keeps else "connection: close\r\n"
    head = (
        f"HTTP/1.1 {status} {_PHRASES[status]}\r\ncontent-type: {content_type}\r\n"
        f"x-content-type-options: nosniff\r\n{extra}{closing}\r\n"
    )
    return head.encode("latin-1")
