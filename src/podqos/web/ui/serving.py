"""Serves the page until Ctrl-C or SIGTERM, and cleans up."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

from msgspec import Struct

from podqos.answers.page.source import PageSource
from podqos.errors import HostError
from podqos.web import event_loop
from podqos.web.tls import Certificate
from podqos.web.ui.feeds import Feed
from podqos.web.ui.live import Live
from podqos.web.ui.server import Ui

_LAST_ANSWERS_SECONDS = 1.0


class Started(Struct, frozen=True):
    """What the server starts with."""

    source: PageSource | None
    """None: the page is empty until a visitor opens something."""
    feed: Feed | None = None
    """The feed that updates it."""


class ListenAddress(Struct, frozen=True):
    """Where a server listens."""

    host: str
    port: int
    or_any_port: bool = False
    """Whether to try another port if this one is taken."""
    certificate: Certificate | None = None
    """None: without TLS."""


def serve_page(ui: Ui, started: Started, listening: ListenAddress, ready: Callable[[str], None]) -> None:
    """Serve until shutdown; ``ready`` is called with the address."""
    gc.enable()
    event_loop.run(_run(ui, started, listening, ready))


async def _run(ui: Ui, started: Started, listening: ListenAddress, ready: Callable[[str], None]) -> None:
    is_told = asyncio.Event()
    event_loop.on_request_to_stop(is_told.set)
    context = None if listening.certificate is None else listening.certificate.context
    try:
        address = await ui.server.start(listening.host, listening.port, context)
    except HostError:
        if not listening.or_any_port:
            raise
        address = await ui.server.start(listening.host, 0, context)
    live = None if started.source is None else Live(started.source, started.feed, ui.pool, ui.say, ui.instance)
    ui.begin(live, address[1])
    if live is not None:
        await live.prepare()
    ready(url(listening.host, address[1], ui.access.token, is_encrypted=context is not None))
    await is_told.wait()
    await ui.end(_LAST_ANSWERS_SECONDS)


def url(host: str, port: int, token: str, *, is_encrypted: bool) -> str:
    """Return the address to open."""
    name = f"[{host}]" if ":" in host else host
    query = f"?token={token}" if token else ""
    return f"http{'s' if is_encrypted else ''}://{name}:{port}/{query}"
