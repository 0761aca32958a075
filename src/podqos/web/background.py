"""A server in a thread of its own, for a command whose main thread does something else."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from podqos.web import event_loop
from podqos.web.http import Server

_LAST_ANSWERS_SECONDS = 1.0


class BackgroundServer:
    """Serves from its creation until it is closed. Raises HostError if it cannot listen."""

    def __init__(self, server: Server, host: str, port: int) -> None:
        self.server = server
        self._started: Future[tuple[tuple[str, int], asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=self._run, args=(host, port), name="server", daemon=True)
        self._thread.start()
        self.address, self._loop, self._is_over = self._started.result()

    def _run(self, host: str, port: int) -> None:
        event_loop.run(self._serve(host, port))

    async def _serve(self, host: str, port: int) -> None:
        is_over = asyncio.Event()
        try:
            address = await self.server.start(host, port, None)
        except Exception as error:  # noqa: BLE001 - raised again where the server was asked for
            self._started.set_exception(error)
            return
        self._started.set_result((address, asyncio.get_running_loop(), is_over))
        await is_over.wait()
        await self.server.stop(_LAST_ANSWERS_SECONDS)

    def close(self) -> None:
        """Stop serving."""
        self._loop.call_soon_threadsafe(self._is_over.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
