"""Running a program for its output, within limits: of time, and of what it prints.

The program gets a session of its own, without a terminal to ask questions on. It is killed together with everything it
started when the time is up, when it prints too much, and when podqos is interrupted.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum, auto
from threading import Thread
from typing import IO

from msgspec import Struct

_PART_BYTES = 1 << 16
_MOST_ERROR_BYTES = 1 << 16
_LAST_WORDS_S = 1.0


class Stopped(Enum):
    """Why a program was killed."""

    LATE = auto()
    LONG = auto()
    """It printed too much."""


class Output(Struct, frozen=True):
    """What a program printed, and how it ended."""

    code: int
    text: bytes
    errors: str
    stopped: Stopped | None = None


def run(command: Sequence[str], *, timeout_s: float, most_bytes: int) -> Output:
    """Run a program to its end; raise ``OSError`` if it cannot be started."""
    deadline = time.monotonic() + timeout_s
    # git, which kustomize runs for remote bases, would otherwise ask for passwords.
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    held = _hold_interrupts()
    try:
        process = subprocess.Popen(  # noqa: S603 # no shell, and asked for
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        _allow_interrupts(held)
        raise
    assert process.stdout is not None
    assert process.stderr is not None
    text = _Pipe(process.stdout, most_bytes, process)
    errors = _Pipe(process.stderr, _MOST_ERROR_BYTES)
    is_over = False
    try:
        _allow_interrupts(held)
        for pipe in (text, errors):
            pipe.join(max(0.0, deadline - time.monotonic()))
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        is_over = process.returncode is not None and not (text.is_alive() or errors.is_alive())
    finally:
        if not is_over:
            _kill(process)
            process.wait()
            errors.join(_LAST_WORDS_S)
    stopped = Stopped.LONG if text.is_cut else None if is_over else Stopped.LATE
    return Output(process.returncode, text.content(), errors.content().decode(errors="replace"), stopped)


class _Pipe(Thread):
    """Reads what a program prints. Whatever is longer than wanted is dropped, and kills ``process``."""

    def __init__(self, stream: IO[bytes], most_bytes: int, process: subprocess.Popen[bytes] | None = None) -> None:
        super().__init__(daemon=True)
        self._stream = stream
        self._room = most_bytes
        self._process = process
        self._parts: list[bytes] = []
        self.is_cut = False
        self.start()

    def run(self) -> None:
        """Read to the end."""
        with self._stream as stream:
            while part := stream.read(_PART_BYTES):
                if len(part) <= self._room:
                    self._parts.append(part)
                    self._room -= len(part)
                    continue
                self._room = 0
                if self._process is not None:
                    self.is_cut = True
                    _kill(self._process)
                    return

    def content(self) -> bytes:
        """Return what was read."""
        return b"".join(self._parts)


def _hold_interrupts() -> Iterable[int]:
    """Let Ctrl-C wait until the program is known, which would be left behind otherwise; return what was held before."""
    return signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else ()


def _allow_interrupts(held: Iterable[int]) -> None:
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and everything it started; the group outlives its first process."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
