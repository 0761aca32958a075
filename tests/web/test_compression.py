"""Answers are compressed as the client accepts it, and only then."""

from __future__ import annotations

import asyncio
import gzip
import sys
import types

import pytest

from podqos.web import compression
from podqos.web.compression import Compression, negotiated
from podqos.web.http import EventStream, Request, Response, Server

LARGE = b'{"pods": [' + b'"a-pod-with-a-name", ' * 20_000 + b'""]}'
PAGE = (("etag", '"abc"'),)


@pytest.mark.parametrize(
    ("accepted", "chosen"),
    [
        ("gzip", "gzip"),
        ("gzip, deflate, br, zstd", "br"),
        ("GZIP;Q=0.5", "gzip"),
        ("x-gzip", "gzip"),
        ("br;q=0.1, gzip;q=0.9", "gzip"),
        ("gzip;q=0", ""),
        ("gzip;q=0.0, *;q=0", ""),
        ("*", "br"),
        ("*;q=0.5, br;q=0", "gzip"),
        ("identity", ""),
        ("identity;q=1, gzip;q=0.5", ""),
        ("identity;q=0, gzip;q=0.1", "gzip"),
        ("", ""),
        ("deflate", ""),
        ("gzip;q=nonsense", ""),
        (",;,;;=,gzip;", ""),
        ("gzip," * 5000, "gzip"),
        (";q=" * 5000, ""),
    ],
)
def test_the_best_coding_that_the_client_accepts_is_chosen(accepted, chosen):
    assert negotiated(accepted, ("br", "gzip")) == chosen


def asked(handler, *requests, **options):
    """Return the answers of a server with this handler: status line, headers and body of each."""

    async def run():
        server = Server(handler, kept_headers=frozenset({b"if-none-match"}), compresses=True, **options)
        _, port = await server.start("127.0.0.1", 0, None)
        answers = []
        for headers in requests:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            given = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{given}\r\n".encode())
            head, _, body = (await asyncio.wait_for(reader.read(), 60)).partition(b"\r\n\r\n")
            first, *lines = head.decode().split("\r\n")
            answers.append((int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body))
            writer.close()
        await server.stop(0)
        return answers

    return asyncio.run(run())


GZIP = {"Accept-Encoding": "gzip"}


def test_whoever_accepts_gzip_gets_it_and_others_do_not():
    coded, plain = asked(lambda _: Response(LARGE), GZIP, {})
    assert gzip.decompress(coded[2]) == LARGE == plain[2]
    assert len(coded[2]) < len(LARGE) / 10
    assert coded[1]["content-encoding"] == "gzip"
    assert coded[1]["content-length"] == str(len(coded[2]))
    assert "content-encoding" not in plain[1]
    assert coded[1]["vary"] == plain[1]["vary"] == "accept-encoding"


def test_a_compressed_answer_has_a_tag_of_its_own_that_is_known_again():
    def handler(request):
        known = request.headers.get("if-none-match") == '"abc"'
        return Response(b"" if known else LARGE, 304 if known else 200, headers=PAGE)

    known = [{**GZIP, "If-None-Match": tag} for tag in ('"abc-gzip"', 'W/"abc-gzip"', '"abc"', '"other"')]
    plain, coded, *again = asked(handler, {}, GZIP, *known, {"If-None-Match": '"abc"'})
    assert plain[1]["etag"] == '"abc"'
    assert coded[1]["etag"] == '"abc-gzip"'
    assert [status for status, _, _ in again] == [304, 304, 304, 200, 304]
    assert again[0][1]["etag"] == '"abc-gzip"'
    assert again[0][1]["vary"] == "accept-encoding"
    assert "content-encoding" not in again[0][1]


def test_small_answers_other_types_and_streams_are_sent_as_they_are():
    async def parts():
        yield LARGE

    answers = iter([Response(b"{}"), Response(LARGE, 200, "image/png"), EventStream(parts(), "text/event-stream")])
    for _, headers, body in asked(lambda _: next(answers), GZIP, GZIP, GZIP):
        assert "content-encoding" not in headers
        assert body in {b"{}", LARGE}


def test_an_answer_is_compressed_once_for_all(monkeypatch):
    compressed = []
    monkeypatch.setattr(
        compression, "_gzip", lambda data, is_repeated: compressed.append(is_repeated) or gzip.compress(data)
    )
    compression.coders.cache_clear()
    asked(lambda _: Response(LARGE, headers=PAGE), GZIP, GZIP, GZIP)
    compression.coders.cache_clear()
    assert compressed == [True]


def test_a_large_answer_is_compressed_outside_the_event_loop():
    applied = Compression().applied(Request("GET", "/", "", "", b"", 0.0, {"accept-encoding": "gzip"}), Response(LARGE))
    assert not isinstance(applied, Response)
    applied.close()


def test_nobody_waits_for_many_others_to_be_compressed():
    async def run():
        request = Request("GET", "/", "", "", b"", 0.0, {"accept-encoding": "gzip"})
        compression = Compression()
        bodies = [LARGE + b"%d" % number for number in range(20)]
        first = asyncio.gather(*(compression.applied(request, Response(body)) for body in bodies[:4]))
        await asyncio.sleep(0)
        applied = compression.applied(request, Response(bodies[4]))
        await first
        return applied

    applied = asyncio.run(run())
    assert isinstance(applied, Response)
    assert applied.headers == (("vary", "accept-encoding"),)


def test_brotli_is_preferred_where_it_is_installed(monkeypatch):
    monkeypatch.setitem(
        sys.modules, "brotli", types.SimpleNamespace(compress=lambda data, quality: b"br%d" % (len(data) + quality))
    )
    compression.coders.cache_clear()
    [answer] = asked(lambda _: Response(LARGE, headers=PAGE), {"Accept-Encoding": "gzip, deflate, br"})
    compression.coders.cache_clear()
    assert answer[1]["content-encoding"] == "br"
    assert answer[1]["etag"] == '"abc-br"'
    assert answer[2].startswith(b"br")
