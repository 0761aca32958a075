"""One past, many futures: try something out in a copy of this process, and keep only the answer.

Bringing a simulated node to where it is costs more than running it on from there. A forked child begins with all of
that, for free; what it changes is gone with it.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import TypeVar

from podqos.errors import HostError

R = TypeVar("R")


def in_copy(function: Callable[[], R]) -> R:
    """Return what a function returns, without anything else it does."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _answer(function, writing)
    os.close(writing)
    try:
        with open(reading, "rb") as pipe:
            answer = pipe.read()
    finally:
        os.waitpid(pid, 0)
    if not answer:
        raise HostError("a worker process was ended before its work was done (out of memory?)")
    outcome: R | Exception = pickle.loads(answer)  # noqa: S301 - written by our own child
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _answer(function: Callable[[], R], writing: int) -> None:
    """Be the child: answer and end, whatever happens."""
    try:
        try:
            outcome: R | Exception = function()
        except Exception as error:  # noqa: BLE001 - the parent raises it
            outcome = error
        with open(writing, "wb") as pipe:
            pipe.write(pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL))
    finally:
        os._exit(0)
