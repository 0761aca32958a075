"""Signals that ask a program to end, heard on its loop."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from podqos.host.linux.loop import Loop

# SIGHUP: its terminal is gone.
_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def on_stop(loop: Loop, stop: Callable[[], None]) -> None:
    """Call on the loop whenever one of these signals comes."""
    woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in _STOPPING:
        # Under nohup the end of the terminal is not ours.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)

    def heard() -> None:
        for number in os.read(woken, 64):
            if number in _STOPPING:
                stop()

    loop.watch(woken, heard)


def stop_at_once() -> None:
    """Let these signals end the program again."""
    signal.set_wakeup_fd(-1)
    for number in _STOPPING:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
