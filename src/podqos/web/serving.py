"""Runs the webhook until it is told to stop, and then stops without losing a request.

On SIGTERM ``/readyz`` fails at once, while requests are still taken: the API server is told of a pod that ends only a
moment later. Every answer is now the last of its connection. Then no more connections are taken, what is under way is
answered, and the process ends.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import suppress

from msgspec import Struct

from podqos.web import event_loop
from podqos.web.webhook import Webhook

_LOOK_SECONDS = 1.0


class ShutdownPeriods(Struct, frozen=True):
    """How the server ends."""

    delay_seconds: float = 5.0
    """Between being told to stop and taking no more connections."""
    most_seconds: float = 20.0
    """For what is under way."""


def serve(
    webhook: Webhook,
    host: str,
    port: int,
    *,
    say: Callable[[str], None],
    stopping: ShutdownPeriods | None = None,
) -> bool:
    """Serve until SIGTERM or SIGINT; return whether everything was answered."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)  # what a request makes has no cycles
    return event_loop.run(_run(webhook, host, port, say, stopping or ShutdownPeriods()))


async def _run(webhook: Webhook, host: str, port: int, say: Callable[[str], None], stopping: ShutdownPeriods) -> bool:
    is_told = asyncio.Event()
    event_loop.on_request_to_stop(is_told.set)
    assert webhook.certificate is not None
    address = await webhook.server.start(host, port, webhook.certificate.context)
    say(f"listening on https://{address[0]}:{address[1]}")
    looking = asyncio.create_task(_look(webhook, say))
    await is_told.wait()
    webhook.drain()
    say("shutting down: no longer ready")
    is_told.clear()
    with suppress(TimeoutError):
        await asyncio.wait_for(is_told.wait(), stopping.delay_seconds)  # told twice: at once
    was_clean = await webhook.server.stop(stopping.most_seconds)
    looking.cancel()
    webhook.audit.close()
    say("stopped" if was_clean else "stopped with requests in flight")
    return was_clean


async def _look(webhook: Webhook, say: Callable[[str], None]) -> None:
    """Load what has changed, beside the requests."""
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        for source in webhook.sources:
            was_in_order = await asyncio.to_thread(source.look)
            if was_in_order is None:
                continue
            webhook.metrics.reloads.add((("what", source.what), ("in_order", "true" if was_in_order else "false")))
            say(
                f"{source.what}: reloaded"
                if was_in_order
                else f"{source.what}: not valid, still using the previous version: {source.error}"
            )
