"""The whole screen of a terminal, drawn again and again until q or Ctrl-C, and given back as it was."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from podqos.controls import own

_ENTER = own("\x1b[?1049h\x1b[?25l")
_LEAVE = own("\x1b[?25h\x1b[?1049l")
_HOME, _TO_LINE_END, _TO_SCREEN_END = map(own, ("\x1b[H", "\x1b[K", "\x1b[J"))
_USUAL_LINES = 24


class Screen:
    """A screen to draw on."""

    def __init__(self, keyboard: int | None) -> None:
        self._keyboard = keyboard

    @property
    def height(self) -> int:
        """How many lines fit on it now, without the one the cursor is on."""
        return (os.get_terminal_size(sys.stdout.fileno()).lines or _USUAL_LINES) - 1

    def draw(self, lines: Iterable[str]) -> None:
        """Show these lines, which fit, and nothing else."""
        text = "".join(f"{line}{_TO_LINE_END}\n" for line in lines)
        sys.stdout.write(f"{_HOME}{text}{_TO_SCREEN_END}")
        sys.stdout.flush()

    def is_left(self, seconds: float) -> bool:
        """Wait, and return whether a key was pressed by which a view is left."""
        if self._keyboard is None:
            time.sleep(seconds)
            return False
        ready, _, _ = select.select([self._keyboard], [], [], seconds)
        if not ready:
            return False
        pressed = os.read(self._keyboard, 16)
        if not pressed:  # the end of a terminal that is gone
            raise KeyboardInterrupt
        return pressed[:1] in {b"q", b"Q", b"\x1b"}


@contextmanager
def whole_screen() -> Iterator[Screen]:
    """Use the whole terminal, and restore it in any case."""
    keyboard = sys.stdin.fileno() if sys.stdin.isatty() else None
    before = termios.tcgetattr(keyboard) if keyboard is not None else None
    handlers = {number: signal.signal(number, _end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        if keyboard is not None:
            tty.setcbreak(keyboard)
        sys.stdout.write(_ENTER)
        yield Screen(keyboard)
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        if keyboard is not None and before is not None:
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
