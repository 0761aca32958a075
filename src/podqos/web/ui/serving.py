"""Serves the page until Ctrl-C or SIGTERM, and then leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable
from contextlib import suppress

import uvloop
from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.descriptors import raise_limit
from podqos.library.page.feeds import Feed
from podqos.library.page.source import PageSource
from podqos.web.tls import Certificate
from podqos.web.ui.live import Live
from podqos.web.ui.server import Ui

_LAST_ANSWERS_SECONDS = 1.0


class Started(Struct, frozen=True):
    """What a server is started with."""

    source: PageSource | None
    """None: there is nothing to show until a visitor gives something."""
    feed: Feed | None = None
    """What keeps it up to date."""


def serve_page(
    ui: Ui,
    started: Started,
    host: str,
    port: int,
    *,
    or_any_port: bool = False,
    certificate: Certificate | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve until told to stop; ``ready`` is told the address. ``or_any_port``: another one will do if it is taken."""
    raise_limit()
    gc.enable()
    uvloop.run(_run(ui, started, host, port, or_any_port, certificate, ready))


async def _run(
    ui: Ui,
    started: Started,
    host: str,
    port: int,
    or_any_port: bool,  # noqa: FBT001
    certificate: Certificate | None,
    ready: Callable[[str], None],
) -> None:
    loop = asyncio.get_running_loop()
    is_told = asyncio.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, is_told.set)
    context = None if certificate is None else certificate.context
    try:
        address = await ui.server.start(host, port, context)
    except HostError:
        if not or_any_port:
            raise
        address = await ui.server.start(host, 0, context)
    live = None if started.source is None else Live(started.source, started.feed, ui.pool, ui.say)
    ui.begin(live, address[1])
    ready(url(host, address[1], ui.access.token, is_encrypted=context is not None))
    with suppress(asyncio.CancelledError):
        await is_told.wait()
    await ui.end(_LAST_ANSWERS_SECONDS)


def url(host: str, port: int, token: str, *, is_encrypted: bool) -> str:
    """Return the address to open."""
    name = f"[{host}]" if ":" in host else host
    query = f"?token={token}" if token else ""
    return f"http{'s' if is_encrypted else ''}://{name}:{port}/{query}"
