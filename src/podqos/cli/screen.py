"""Full-screen view of a terminal, redrawn until q or Ctrl-C, and then restored."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from podqos.controls import own

_ENTER = own("\x1b[?1049h\x1b[?25l")
_LEAVE = own("\x1b[?25h\x1b[?1049l")
_HOME, _TO_LINE_END, _TO_SCREEN_END = map(own, ("\x1b[H", "\x1b[K", "\x1b[J"))
_USUAL_LINES = 24
_POLL_SECONDS = 0.05
_LEAVING = {b"q", b"Q", b"\x1b"}

Keys = Callable[[float], bytes | None]
"""Waits for a key and returns it; empty if the terminal is gone, None after a timeout."""


class Screen:
    """A full-screen terminal."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    @property
    def height(self) -> int:
        """How many lines fit on it now, without the cursor's line."""
        return (os.get_terminal_size(sys.stdout.fileno()).lines or _USUAL_LINES) - 1

    def draw(self, lines: Iterable[str]) -> None:
        """Show exactly these lines, which fit."""
        text = "".join(f"{line}{_TO_LINE_END}\n" for line in lines)
        sys.stdout.write(f"{_HOME}{text}{_TO_SCREEN_END}")
        sys.stdout.flush()

    def is_left(self, seconds: float) -> bool:
        """Wait, and return whether a key was pressed that quits the view."""
        pressed = self._keys(seconds)
        if pressed is None:
            return False
        if not pressed:
            raise KeyboardInterrupt
        return pressed[:1] in _LEAVING


@contextmanager
def whole_screen() -> Iterator[Screen]:
    """Use the whole terminal, and always restore it."""
    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    handlers = {number: signal.signal(number, _end) for number in (getattr(signal, name) for name in names)}
    try:
        with _keyboard() as keys:
            sys.stdout.write(_ENTER)
            yield Screen(keys)
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def _keyboard() -> Iterator[Keys]:
    """Read keys as they are pressed, if there is a keyboard."""
    if not sys.stdin.isatty():
        yield _no_keys
        return
    if sys.platform == "win32":
        yield _windows_keys
        return
    import select
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    def keys(seconds: float) -> bytes | None:
        ready, _, _ = select.select([keyboard], [], [], seconds)
        return os.read(keyboard, 16) if ready else None

    try:
        tty.setcbreak(keyboard)
        yield keys
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _no_keys(seconds: float) -> None:
    time.sleep(seconds)


def _windows_keys(seconds: float) -> bytes | None:
    import msvcrt

    end = time.monotonic() + seconds
    while not msvcrt.kbhit():  # type: ignore[attr-defined]
        if time.monotonic() >= end:
            return None
        time.sleep(_POLL_SECONDS)
    key: bytes = msvcrt.getch()  # type: ignore[attr-defined]
    return key


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
