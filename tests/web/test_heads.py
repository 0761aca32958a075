"""What a request may look like: how long its head may be, and which ambiguous forms are refused.

The server receives each in one read, and in several: that must not make a difference.
"""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from podqos.web.http import Response, Server
from podqos.web.ui.settings import HTTP_LIMITS

LIMITS = replace(HTTP_LIMITS, linger_seconds=0.05, sweep_seconds=0.02)
MOST = LIMITS.head_bytes
CHUNKED = b"POST /upload HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"


def sent(*parts, wait=0.01):
    """Return what a server answers to these writes, and which requests it handled."""
    seen = []

    def handle(request):
        seen.append((request.method, request.path, request.body, dict(request.headers)))
        return Response(b"handled", content_type="text/plain")

    async def run():
        server = Server(handle, LIMITS, kept_headers=frozenset({b"host", b"origin"}))
        _, port = await server.start("127.0.0.1", 0, None)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for part in parts:
            writer.write(part)
            await asyncio.sleep(wait)
        try:
            answer = await asyncio.wait_for(reader.read(), 60)
        except ConnectionResetError:
            answer = b""
        writer.close()
        await server.stop(0)
        assert server.buffered_bytes == 0
        return answer

    return asyncio.run(run()), seen


def split(data):
    """Return data in one write, and in three."""
    third = len(data) // 3
    return pytest.param((data,)), pytest.param((data[:third], data[third : 2 * third], data[2 * third :]))


def request(head, body=b""):
    length = b"Content-Length: %d\r\n" % len(body) if body else b""
    return b"POST /upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + head + length + b"\r\n" + body


TOO_LONG = (
    b"X-Long: " + b"x" * MOST + b"\r\n",
    b"".join(b"X-%d: y\r\n" % number for number in range(MOST // 6)),
    b"Cookie: " + b"a=b; " * (MOST // 5 + 1) + b"\r\n",
)


@pytest.mark.parametrize(
    "parts",
    [
        *(param for head in TOO_LONG for param in split(request(head))),
        *(param for head in TOO_LONG for param in split(request(head, b"a body in the same read"))),
        *split(b"GET /" + b"a" * MOST + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
        *split(b"GET /?" + b"a" * (4 * MOST) + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
        *split(CHUNKED + b"\r\n1\r\nx\r\n0\r\n" + b"X-Trailer: " + b"x" * MOST + b"\r\n\r\n"),
        *split(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + request(TOO_LONG[0])),
    ],
)
def test_the_limit_of_a_head_holds_however_it_arrives(parts):
    answer, seen = sent(*parts)
    assert b" 431 " in answer
    assert all(path == "/" for _, path, _, _ in seen)


@pytest.mark.parametrize(
    "parts", split(request(b"X-Long: " + b"x" * (MOST - 200) + b"\r\n", b"b" * 100_000)), ids=["one", "several"]
)
def test_a_head_below_the_limit_is_accepted_with_a_long_body_in_the_same_read(parts):
    answer, seen = sent(*parts)
    assert b"handled" in answer
    assert len(seen[0][2]) == 100_000


def test_trailers_are_not_headers():
    """Else a request could add an origin, or a host, after it was checked by a proxy."""
    end = b"\r\n5\r\nhello\r\n0\r\nOrigin: http://evil.example\r\nHost: evil.example\r\n\r\n"
    _, [(_, _, body, headers)] = sent(CHUNKED + b"Connection: close\r\n" + end)
    assert (body, headers) == (b"hello", {"host": "x"})


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
AMBIGUOUS = {
    "length and chunks": CHUNKED + b"Content-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "chunks and length": b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 37\r\n\r\n" + SMUGGLED,
    "a list of lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0, 37\r\n\r\n" + SMUGGLED,
    "a signed length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\nhello",
    "a hexadecimal length": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x5\r\n\r\nhello",
    "chunks that are not last": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "an unknown coding": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a space before the colon": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nhello",
    "a folded header": b"POST / HTTP/1.1\r\nHost: x\r\nA: b\r\n Content-Length: 5\r\n\r\nhello",
    "a size of a chunk that is not a number": CHUNKED + b"\r\n5g\r\nhello\r\n0\r\n\r\n",
    "a chunk that is longer than it says": CHUNKED + b"\r\n2\r\nhello\r\n0\r\n\r\n",
    "a huge chunk": CHUNKED + b"\r\nfffffffffffffffff\r\n",
    "a zero byte": b"GET / HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
    "a request for a tunnel": b"CONNECT evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n" + SMUGGLED,
    "another protocol": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + SMUGGLED,
}


@pytest.mark.parametrize("data", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_a_request_that_others_may_understand_differently_is_refused_and_ends_its_connection(data):
    answer, seen = sent(data)
    assert answer.startswith(b"HTTP/1.1 4")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert not seen


def test_continue_is_sent_only_for_a_body_and_only_once():
    ask = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n"
    assert sent(ask + b"Content-Length: 5\r\n\r\n", b"hello")[0].count(b" 100 Continue") == 1
    assert b" 100 " not in sent(ask + b"\r\n")[0]
    assert b" 100 " not in sent(ask + b"Content-Length: 999999999\r\n\r\n")[0]
