"""Nobody computes for a client that has gone."""

from __future__ import annotations

import asyncio
import gc
import ssl

import pytest

from podqos.web.certificate import make
from podqos.web.http import Response, Server, text_response
from podqos.web.tls import Certificate

ASK = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"


class Slow:
    """A handler that answers when it is released."""

    def __init__(self):
        self.started, self.cancelled, self.release = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def __call__(self, request):
        return text_response(200, "quick") if request.path == "/quick" else self._answer()

    async def _answer(self):
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return Response(b"slow", content_type="text/plain")


@pytest.fixture(params=["plain", "tls"])
def contexts(request, tmp_path):
    if request.param == "plain":
        return None, None
    make(str(tmp_path), ("localhost", "127.0.0.1"))
    certificate = Certificate(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    return certificate.context, ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))


def connected(contexts, during):
    """Run a coroutine with a server and one client."""

    async def run():
        handler = Slow()
        server = Server(handler)
        _, port = await server.start("127.0.0.1", 0, contexts[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=contexts[1])
        await asyncio.wait_for(during(handler, reader, writer), 60)
        writer.close()
        await server.stop(5)
        assert not server.connections

    asyncio.run(run())


def test_an_answer_is_cancelled_when_its_client_disconnects(contexts):
    async def during(handler, _reader, writer):
        writer.write(ASK)
        await handler.started.wait()
        writer.close()
        await handler.cancelled.wait()

    connected(contexts, during)


def test_a_reset_connection_cancels_its_answer(contexts):
    async def during(handler, _reader, writer):
        writer.write(ASK)
        await handler.started.wait()
        writer.transport.abort()
        await handler.cancelled.wait()

    connected(contexts, during)


def test_a_request_that_waits_behind_a_slow_one_is_answered_afterwards(contexts):
    async def during(handler, reader, writer):
        writer.write(ASK + b"GET /quick HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await handler.started.wait()
        handler.release.set()
        answers = await reader.read()
        assert answers.index(b"\r\n\r\nslow") < answers.index(b"\r\n\r\nquick")

    connected(contexts, during)


def test_an_answer_that_has_not_begun_ends_with_its_client():
    """Otherwise Python warns of a coroutine that nobody has awaited."""

    async def run():
        handler = Slow()
        server = Server(handler, compresses=True)
        _, port = await server.start("127.0.0.1", 0, None)
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        while not server.connections:  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0.001)
        [connection] = server.connections
        connection.data_received(ASK)
        connection.connection_lost(None)
        await asyncio.sleep(0.01)
        assert not handler.started.is_set()
        gc.collect()
        writer.close()
        await server.stop(0)

    asyncio.run(run())
