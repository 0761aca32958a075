"""Runs the webhook until shutdown, and shuts it down without losing a request.

On SIGTERM ``/readyz`` fails immediately, but requests are still accepted: the API server learns about a terminating pod
a moment later. Every answer now closes its connection. Then the server stops accepting connections, answers the
requests in flight, and exits.
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
    """The phases of a shutdown."""

    delay_seconds: float = 5.0
    """Between SIGTERM and closing the listener."""
    most_seconds: float = 20.0
    """For requests in flight."""


def serve(
    webhook: Webhook,
    host: str,
    port: int,
    *,
    say: Callable[[str], None],
    stopping: ShutdownPeriods | None = None,
) -> bool:
    """Serve until SIGTERM or SIGINT; return whether all requests were answered."""
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)  # requests create no reference cycles
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
        await asyncio.wait_for(is_told.wait(), stopping.delay_seconds)  # a second signal: stop immediately
    was_clean = await webhook.server.stop(stopping.most_seconds)
    looking.cancel()
    webhook.audit.close()
    say("stopped" if was_clean else "stopped with requests in flight")
    return was_clean


async def _look(webhook: Webhook, say: Callable[[str], None]) -> None:
    """Reload what has changed, concurrently with requests."""
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
