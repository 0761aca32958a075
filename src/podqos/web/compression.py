"""Compressed answers: gzip always, brotli if it is installed.

Larger answers are compressed in a thread, once for all visitors who get the same: the event loop never waits. If too
many are being compressed, others are sent as they are, and so are streams.

Compression reveals nothing about secrets (BREACH): an attacker would have to make a visitor's browser send requests
with chosen text and see the sizes of answers that also contain a secret. No answer contains the token or a cookie, the
cookie is not sent for another site (SameSite=Strict), and requests that another site causes are refused beforehand.
"""

from __future__ import annotations

import asyncio
import gzip
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from importlib import import_module

from podqos.web.messages import Request, Response

HEADERS = frozenset({b"accept-encoding", b"if-none-match"})
"""Request headers that have to be kept for this."""
_TYPES = ("text/html", "text/plain", "application/json", "application/jsonl", "image/svg+xml")
_LEAST_BYTES = 1400
"""A smaller answer fits a packet as it is."""
_AT_ONCE_BYTES = 16 << 10
"""Up to this size, compressing takes less time than handing it to a thread."""
_AT_A_TIME = 4
"""Nobody waits for more answers than these to be compressed."""
_KEPT_BYTES = 8 << 20
"""Of compressed answers."""
_CODED_TAG = re.compile(r'-(?:gzip|br)"$')
_QUALITY = re.compile(r"q=([01](?:\.[0-9]{0,3})?)", re.IGNORECASE)
_STATUSES = frozenset({200, 201, 304, 422})

Coder = Callable[[bytes, bool], bytes]
"""Compresses; the flag is whether the same is likely to be sent again, so that more effort pays."""


_Key = tuple[str, int, int]


def _gzip(data: bytes, is_repeated: bool) -> bytes:
    return gzip.compress(data, 9 if is_repeated else 4, mtime=0)


@cache
def coders() -> dict[str, Coder]:
    """Return the codings that can be sent, the best first."""
    try:
        brotli = import_module("brotli")
    except ImportError:
        return {"gzip": _gzip}

    def compress(data: bytes, is_repeated: bool) -> bytes:
        compressed: bytes = brotli.compress(data, quality=9 if is_repeated else 4)
        return compressed

    return {"br": compress, "gzip": _gzip}


def negotiated(accepted: str, available: Iterable[str]) -> str:
    """Return the coding that the client prefers of those available, by an Accept-Encoding header; empty: none."""
    qualities: dict[str, float] = {}
    for item in accepted.split(","):
        name, *parameters = item.split(";")
        quality = 1.0
        for parameter in parameters:
            given = _QUALITY.fullmatch(parameter.strip())
            quality = 0.0 if given is None else min(1.0, float(given[1]))
        coding = name.strip().lower().removeprefix("x-")
        if coding:
            qualities.setdefault(coding, quality)
    any_other = qualities.get("*", 0.0)
    best, chosen = 0.0, ""
    for coding in available:
        quality = qualities.get(coding, any_other)
        if quality > best:
            best, chosen = quality, coding
    return chosen if best >= qualities.get("identity", 0.0) else ""


class Compression:
    """Compresses the answers of a server."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._kept_bytes = 0
        self._running: dict[_Key, asyncio.Future[bytes]] = {}
        self._pool: ThreadPoolExecutor | None = None

    def applied(self, request: Request, response: Response) -> Response | Awaitable[Response]:
        """Return the answer as it is sent to this client."""
        if response.status not in _STATUSES or not response.content_type.startswith(_TYPES):
            return response
        if response.status != 304 and len(response.body) < _LEAST_BYTES:
            return response
        coding = negotiated(request.headers.get("accept-encoding", ""), coders())
        if not coding:
            return _varying(response)
        if response.status == 304:
            return _coded(response, b"", coding)
        if len(response.body) <= _AT_ONCE_BYTES:
            return _coded(response, coders()[coding](response.body, False), coding)
        key = (coding, len(response.body), hash(response.body))
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return _coded(response, kept, coding)
        if key not in self._running and len(self._running) >= _AT_A_TIME:
            return _varying(response)
        return self._in_thread(response, key, coding)

    async def _in_thread(self, response: Response, key: _Key, coding: str) -> Response:
        """Compress in a thread, and only once for all who ask for the same."""
        running = self._running.get(key)
        if running is None:
            self._pool = self._pool or ThreadPoolExecutor(1, "compress")
            is_tagged = any(name == "etag" for name, _ in response.headers)
            loop = asyncio.get_running_loop()
            running = self._running[key] = loop.run_in_executor(self._pool, coders()[coding], response.body, is_tagged)
            running.add_done_callback(partial(self._keep, key))
        return _coded(response, await asyncio.shield(running), coding)

    def _keep(self, key: _Key, done: asyncio.Future[bytes]) -> None:
        del self._running[key]
        if done.cancelled() or done.exception() is not None:
            return
        self._kept[key] = done.result()
        self._kept_bytes += len(done.result())
        while self._kept_bytes > _KEPT_BYTES:
            _, dropped = self._kept.popitem(last=False)
            self._kept_bytes -= len(dropped)


def without_coding(headers: dict[str, str]) -> None:
    """Change the entity tags that a client knows to those before compression; a proxy may have made them weak."""
    known = headers.get("if-none-match")
    if known is not None:
        headers["if-none-match"] = _CODED_TAG.sub('"', known.strip().removeprefix("W/"))


def _coded(response: Response, body: bytes, coding: str) -> Response:
    headers = [
        (name, f'{value[:-1]}-{coding}"' if name == "etag" and value.endswith('"') else value)
        for name, value in response.headers
    ]
    if response.status != 304:
        headers.append(("content-encoding", coding))
    return _varying(Response(body, response.status, response.content_type, tuple(headers)))


def _varying(response: Response) -> Response:
    headers = (*response.headers, ("vary", "accept-encoding"))
    return Response(response.body, response.status, response.content_type, headers)
