"""The process that computes one job: a task on standard input, messages on standard output (``jobs``)."""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from msgspec import Struct

from podqos.answers.page.job import JobKind
from podqos.errors import InputError, PodqosError
from podqos.manifest.encoding import json_line
from podqos.web.ui.jobs import FAILURE, HEAD, PROGRESS, RESULT, JobTask, PasteJob, ReadingJob
from podqos.web.ui.source_files import read_given

_PR_SET_PDEATHSIG = 1
_NICENESS = 10
_OOM_SCORE_ADJ = b"500"
_MOST_BYTES = 8 << 30
_TOLD_SECONDS = 0.1


def main(server: int) -> None:
    """Compute the task, and report progress."""
    if sys.platform == "linux":
        _end_with_server()
    if sys.platform != "win32" and os.getppid() != server:  # on Windows a launcher stands between the two
        return
    _be_modest()
    out = os.dup(1)
    os.dup2(2, 1)  # prints must not corrupt the messages
    task: JobTask | ReadingJob | PasteJob = pickle.load(sys.stdin.buffer)  # noqa: S301 - written by our own server
    if sys.platform != "linux":
        # Only there: Linux ends it by itself, and a process with threads is not forked.
        Thread(target=_end_with_input, daemon=True).start()
    try:
        result = json_line(_computed(task, _Told(out))) if isinstance(task, JobTask) else _read(task)
    except PodqosError as error:
        _send(out, FAILURE, str(error).encode())
    except MemoryError:
        _send(out, FAILURE, b"the run needs more memory than it may use; open a smaller part")
    except Exception as error:
        _send(out, FAILURE, f"podqos failed: {type(error).__name__}".encode())
        raise
    else:
        _send(out, RESULT, result)


def _end_with_server() -> None:
    from ctypes import CDLL
    from signal import SIGKILL

    CDLL(None).prctl(_PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)


def _end_with_input() -> None:
    """Exit when the server, and with it the other end of the pipe, is gone."""
    sys.stdin.buffer.read(1)
    os._exit(1)


def _be_modest() -> None:
    """Lower the priority and bound the memory of this process, as far as the system supports it."""
    if sys.platform == "win32":
        return
    from resource import RLIMIT_AS, getrlimit, setrlimit

    os.nice(_NICENESS)
    with suppress(OSError), open("/proc/self/oom_score_adj", "wb") as file:
        file.write(_OOM_SCORE_ADJ)
    most = getrlimit(RLIMIT_AS)[1]
    with suppress(OSError, ValueError):  # macOS may refuse
        setrlimit(RLIMIT_AS, (_MOST_BYTES if most < 0 else min(most, _MOST_BYTES), most))


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


def _read(task: ReadingJob | PasteJob) -> bytes:
    """Return the content of files, the autopsy of a text as JSON, or the error in it, pickled."""
    try:
        if isinstance(task, ReadingJob):
            return pickle.dumps(read_given(task.files), pickle.HIGHEST_PROTOCOL)
        from podqos.web.ui.pasting import pasted_autopsy

        return pickle.dumps(json_line(pasted_autopsy(task.text, task.source)), pickle.HIGHEST_PROTOCOL)
    except InputError as error:
        return pickle.dumps(error, pickle.HIGHEST_PROTOCOL)


def _computed(task: JobTask, told: Callable[[float], None]) -> Struct:
    from podqos.web.ui.runs import blast_of, run_of

    if task.kind is JobKind.RUN:
        return run_of(task.source, task.edits, told)
    return blast_of(task.source, task.edits, task.node, told, task.cores)


def _send(out: int, kind: bytes, body: bytes) -> None:
    data = memoryview(HEAD.pack(kind, len(body)) + body)
    while data:
        data = data[os.write(out, data) :]


if __name__ == "__main__":
    main(int(sys.argv[1]))
