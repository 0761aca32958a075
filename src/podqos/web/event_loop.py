"""The event loop of servers: uvloop's if it is installed, else Python's own, which is slower and runs everywhere."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")

_SWITCH_SECONDS = 0.0002
"""A thread that computes gives way after this time, so that the event loop answers others; Python's default is 5 ms."""


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run until it is done and return what it returns."""
    _allow_many_connections()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    result: Result = uvloop.run(main)
    return result


def on_request_to_stop(stop: Callable[[], object]) -> None:
    """Call a function in the running loop on Ctrl-C and SIGTERM."""
    loop = asyncio.get_running_loop()

    def received(_number: int, _frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)

    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # on Windows
            signal.signal(number, received)


def _allow_many_connections() -> None:
    try:
        from podqos.host.linux.descriptors import raise_limit
    except ImportError:  # Windows has no such limit
        return
    raise_limit()


def most_connections() -> int:
    """Return how many connections the limit of open files allows."""
    try:
        from podqos.host.linux.descriptors import most_used
    except ImportError:
        return sys.maxsize
    return most_used()
