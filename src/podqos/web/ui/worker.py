"""The process that computes one job: a task on standard input, messages on standard output (``jobs``)."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from threading import Thread

from msgspec import Struct

from podqos.answers.page.job import JobKind
from podqos.errors import PodqosError
from podqos.manifest.encoding import json_line
from podqos.web.ui.jobs import FAILURE, HEAD, PROGRESS, RESULT, JobTask
from podqos.web.ui.modesty import end_with_server, limit_memory, lower_priority
from podqos.web.ui.source_files import read_given

_NICENESS = 10
_TOLD_SECONDS = 0.1


def main(server: int, most_bytes: int) -> None:
    """Compute the task, and report progress."""
    end_with_server()
    if sys.platform != "win32" and os.getppid() != server:  # on Windows a launcher stands between the two
        return
    lower_priority(_NICENESS)
    limit_memory(most_bytes)
    out = os.dup(1)
    os.dup2(2, 1)  # prints must not corrupt the messages
    task: JobTask = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our own server
    if sys.platform != "linux":
        # Only there: Linux ends it by itself, and a process with threads is not forked.
        Thread(target=_end_with_input, daemon=True).start()
    try:
        result = json_line(_computed(task, _Told(out)))
    except PodqosError as error:
        _send(out, FAILURE, str(error).encode())
    except MemoryError:
        _send(out, FAILURE, b"the run needs more memory than it may use; open a smaller part")
    except Exception as error:
        _send(out, FAILURE, f"podqos failed: {type(error).__name__}".encode())
        raise
    else:
        _send(out, RESULT, result)


def _end_with_input() -> None:
    """Exit when the server, and with it the other end of the pipe, is gone."""
    sys.stdin.buffer.read(1)
    os._exit(1)


class _Told:
    """Sends progress, rate-limited."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._at = 0.0

    def __call__(self, fraction: float) -> None:
        now = time.monotonic()
        if now >= self._at + _TOLD_SECONDS:
            self._at = now
            _send(self._out, PROGRESS, str(fraction).encode())


def _computed(task: JobTask, told: Callable[[float], None]) -> Struct:
    from podqos.web.ui.runs import blast_of, run_of

    source = read_given(task.files) if task.source is None else task.source
    if task.kind is JobKind.RUN:
        return run_of(source, task.edits, told)
    return blast_of(source, task.edits, task.node, told, task.cores)


def _send(out: int, kind: bytes, body: bytes) -> None:
    data = memoryview(HEAD.pack(kind, len(body)) + body)
    while data:
        data = data[os.write(out, data) :]


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
