"""The process that answers questions about uploads, one after the other, until the server ends it.

It keeps the sources it was asked about, so that the next question about one of them takes milliseconds. It may be
killed at any time: the server has the files.

``main`` is the process that forks workers when the server asks for one.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import socket
import sys
import time
import traceback
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import BinaryIO

import msgspec

from podqos.answers.page.compare import compare
from podqos.answers.page.page import Page
from podqos.answers.page.session import source_info
from podqos.answers.run_view import RunView
from podqos.errors import PodqosError
from podqos.manifest.encoding import json_line
from podqos.web.ui.modesty import end_with_server, limit_memory, lower_priority
from podqos.web.ui.pages import page_about
from podqos.web.ui.pasting import pasted_autopsy
from podqos.web.ui.refusal import RequestRefusal
from podqos.web.ui.source_files import read_given
from podqos.web.ui.tasks import (
    COUNT,
    HEAD,
    LENGTH,
    Comparison,
    Paste,
    Reading,
    ReadSource,
    Reply,
    Task,
    task_of,
)
from podqos.web.ui.views import answer

_NICENESS = 1


class Worker:
    """The sources that this process has read."""

    def __init__(self, out: socket.socket) -> None:
        self._out = out
        self._pages: dict[str, Page] = {}
        self._began = 0.0

    def take(self, task: Task) -> None:
        """Answer a question; any error is part of the answer."""
        self._began = time.process_time()
        try:
            for key in task.forget:
                self._pages.pop(key, None)
            if task.given is not None:
                self._read(task)
            answered = self._answer(task)
            self._report_time()
            self._send(Reply.RESULT, answered)
        except (PodqosError, RequestRefusal) as error:
            self._send(Reply.ERROR, pickle.dumps(error, pickle.HIGHEST_PROTOCOL))
        except MemoryError:
            self._pages.clear()
            self._send(Reply.NO_MEMORY, b"")
            os._exit(1)  # what is left of it cannot be trusted to be small
        except Exception as error:  # noqa: BLE001 - a bug of ours is reported, and ends this question only
            traceback.print_exc()
            self._send(Reply.FAILURE, f"{type(error).__name__}: {str(error)[:500]}".encode())

    def _read(self, task: Task) -> None:
        given = task.given
        assert given is not None
        source = pickle.loads(given.pickled) if given.pickled else read_given(given.files)  # noqa: S301 - our server's
        self._pages[given.key] = page_about(source)
        self._report_time()
        self._send(Reply.READ, b"")

    def _report_time(self) -> None:
        """Report the CPU time since the beginning."""
        self._send(Reply.TOOK, str(time.process_time() - self._began).encode())

    def _answer(self, task: Task) -> bytes:
        what, page = task.what, self._pages.get(task.key)
        if isinstance(what, Comparison):
            one, other = (msgspec.json.decode(run, type=RunView) for run in (what.before, what.after))
            return json_line(compare(one, other))
        if isinstance(what, Paste):
            return json_line(pasted_autopsy(what.text, None if page is None else page.source))
        assert page is not None, "the server sends what this process does not have"
        if isinstance(what, Reading):
            given = task.given
            info = source_info("", page.source, () if given is None else given.files)
            return msgspec.json.encode(ReadSource(info, page.source.size_bytes))
        return json_line(answer(page, what))

    def _send(self, kind: Reply, body: bytes) -> None:
        send(self._out, kind, body)


def send(out: socket.socket, kind: bytes, body: bytes) -> None:
    """Write a message."""
    out.sendall(HEAD.pack(kind, len(body)))
    out.sendall(body)


def _inbox(file: BinaryIO, tasks: SimpleQueue[Task]) -> None:
    """Receive tasks, and exit with the server, in the middle of a computation, too."""
    with suppress(EOFError, OSError):
        while True:
            (count,) = COUNT.unpack(_exactly(file, COUNT.size))
            lengths = [LENGTH.unpack(_exactly(file, LENGTH.size))[0] for _ in range(count)]
            tasks.put(task_of([_exactly(file, length) for length in lengths]))
    os._exit(0)


def _exactly(file: BinaryIO, length: int) -> bytes:
    data = file.read(length)
    if len(data) < length:
        raise EOFError
    return data


def _work(connection: socket.socket, most_bytes: int) -> None:
    """Answer questions until the server ends the connection or this process."""
    tasks: SimpleQueue[Task] = SimpleQueue()
    Thread(target=_inbox, args=(connection.makefile("rb"), tasks), daemon=True).start()
    limit_memory(most_bytes)
    worker = Worker(connection)
    send(connection, Reply.READY, str(os.getpid()).encode())
    while True:
        worker.take(tasks.get())


def _fork_on_demand(control: socket.socket, most_bytes: int) -> None:
    """Fork a worker for each connection that the server sends."""
    gc.collect()
    gc.freeze()  # collecting must not copy what all share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them here
    own = os.getpid()
    while True:
        data, received, _, _ = socket.recv_fds(control, 1, 1)
        if not data:
            return
        connection = socket.socket(fileno=received[0])
        with connection:
            if os.fork():
                continue
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            end_with_server()
            if os.getppid() == own:
                try:
                    _work(connection, most_bytes)
                finally:
                    os._exit(1)
            os._exit(0)


def main(server: int, most_bytes: int, where: str) -> None:
    """Answer questions until the server ends."""
    end_with_server()
    if where.startswith("port:"):  # where forking is not safe, or there is none
        address = "127.0.0.1", int(where.removeprefix("port:"))
        # The server may have stopped meanwhile.
        with suppress(ConnectionError), socket.create_connection(address) as connection:
            _work(connection, most_bytes)
    elif os.getppid() == server:
        lower_priority(_NICENESS)
        with socket.socket(fileno=int(where)) as control:
            _fork_on_demand(control, most_bytes)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
