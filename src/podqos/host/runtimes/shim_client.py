"""The agent's client of the shim: starts one if none runs, sends requests, and receives exits.

The protocol is in the docstring of ``shim``.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.descriptors import original_limit
from podqos.host.runtimes import shim
from podqos.host.runtimes.shim import PACKET_BYTES

_START_SECONDS = 30.0
_ANSWER_SECONDS = 10.0
_POLL_SECONDS = 0.005
_ATTEMPTS = 200


class Program(Struct, frozen=True, kw_only=True, rename="camel", tag_field="do", tag="start"):
    """A request to start a process."""

    id: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    entrances: Sequence[str]
    """Files through which it enters its cgroups."""
    oom_score_adj: int | None = None
    mounts: Sequence[tuple[str, str, bool]] = ()
    ids: tuple[int, int, Sequence[int]] | None = None
    """User, group and other groups; None: ours."""
    capabilities: Sequence[int] | None = None
    """The only ones it may ever have; None: ours."""
    no_new_privileges: bool = False
    log: str | None = None
    log_bytes: int = 10 << 20
    log_files: int = 5
    label: str = ""
    """Returned by the shim with the id."""
    seconds: float | None = None
    """It is killed after this time."""
    pid_file: str | None = None
    """For a launcher: it writes the id of the process it starts here and exits; that process counts instead."""


class ShimProgram(Struct, frozen=True):
    """A process that was started."""

    id: str
    label: str
    pid: int | None = None
    code: int | None = None
    """None while it runs."""


class ShimPrograms(Struct, frozen=True):
    """All programs of a shim."""

    running: dict[str, ShimProgram]
    ended: dict[str, ShimProgram]
    """By id."""


class Exit(Struct, frozen=True, gc=False):
    """The exit of a process."""

    id: str
    code: int


class ShimLost(HostError):
    """The shim is gone."""


class ShimClient:
    """A connection to the shim of a state directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exits: deque[Exit] = deque()
        # Exits that arrive while waiting for an answer are taken from the socket; this still signals them.
        self._overheard = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._ready = select.epoll()
        self._ready.register(self._overheard, select.EPOLLIN)
        self._socket = self._connect() or self._launch()
        self._ready.register(self._socket, select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when something has ended."""
        return self._ready.fileno()

    @property
    def pid(self) -> int:
        """The shim's process id, according to the kernel."""
        about = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", about)[0])

    def start(self, program: Program) -> int:
        """Start a process in its cgroups and return its id."""
        answer = self._ask(program)
        if "error" in answer:
            raise HostError(f"{program.argv[0]}: {answer['error']}")
        return int(str(answer["pid"]))

    def programs(self) -> ShimPrograms:
        """Return running and ended programs, including those of an earlier shim."""
        answer = self._ask({"do": "list"})
        running, ended = (msgspec.convert(answer[name], list[ShimProgram]) for name in ("running", "ended"))
        by_id = {program.id: program for program in ended}
        return ShimPrograms({program.id: program for program in running}, {**self._recorded(), **by_id})

    def forget(self, name: str) -> None:
        """Have the shim forget an exit that was handled."""
        self._ask({"do": "forget", "id": name})

    def exits(self) -> list[Exit]:
        """Return the exits since the last call; raises ``ShimLost`` if the shim is gone."""
        self._socket.setblocking(False)
        while self._receive() is not None:
            pass
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._overheard)
        heard = list(self._exits)
        self._exits.clear()
        return heard

    def forget_records(self) -> None:
        """Delete the recorded exits: the caller knows them all."""
        (self._folder / "exits").unlink(missing_ok=True)

    def end(self) -> None:
        """End the shim; its processes should have ended before."""
        self._ask({"do": "end"})
        self.close()

    def close(self) -> None:
        """Disconnect from the shim; it keeps running."""
        self._socket.close()
        self._ready.close()
        os.close(self._overheard)

    def reconnect(self) -> ShimPrograms:
        """Find or start a shim after one was lost, and return its programs; a dying one may accept first."""
        for _ in range(_ATTEMPTS):
            self._ready.unregister(self._socket)
            self._socket.close()
            self._socket = self._connect() or self._launch()
            self._ready.register(self._socket, select.EPOLLIN)
            try:
                return self.programs()
            except ShimLost:
                time.sleep(_POLL_SECONDS)
        raise HostError("the shim keeps dying")

    def _ask(self, request: Program | dict[str, str]) -> dict[str, object]:
        self._socket.settimeout(_ANSWER_SECONDS)
        try:
            self._socket.send(msgspec.json.encode(request))
        except OSError as error:
            raise ShimLost(f"the shim does not answer: {error.strerror}") from error
        while True:
            answer = self._receive()
            if answer is not None:
                if self._exits:
                    os.eventfd_write(self._overheard, 1)
                return answer

    def _receive(self) -> dict[str, object] | None:
        """Return an answer; exits are collected. None if non-blocking and nothing is there."""
        while True:
            try:
                data = self._socket.recv(PACKET_BYTES)
            except BlockingIOError:
                return None
            except OSError as error:
                raise ShimLost(f"the shim does not answer: {error}") from error
            if not data:
                raise ShimLost("the shim has ended")
            message: dict[str, object] = msgspec.json.decode(data)
            if "exited" not in message:
                return message
            self._exits.append(Exit(str(message["exited"]), int(str(message["code"]))))

    def _connect(self) -> socket.socket | None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PACKET_BYTES)
        try:
            connection.connect(self._name())
        except OSError:
            connection.close()
            return None
        return connection

    def _launch(self) -> socket.socket:
        """Start the program outside our session and without our descriptors."""
        for stale in ("shim.sock", "shim.sock.new"):
            (self._folder / stale).unlink(missing_ok=True)
        command = [sys.executable, "-I", "-S", shim.__file__, self._name(), str(original_limit()[0])]
        with (self._folder / "shim.log").open("ab") as log:
            # Double fork: the shim is not our child, so nothing has to wait for it.
            launcher = "import os, sys; os.fork() and os._exit(0); os.execv(sys.argv[1], sys.argv[1:])"
            subprocess.run(  # noqa: S603 - our own program
                [sys.executable, "-I", "-S", "-c", launcher, *command],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=True, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            connection = self._connect()
            if connection is not None:
                return connection
            time.sleep(_POLL_SECONDS)
        raise HostError(f"the shim did not start; {self._folder / 'shim.log'} may tell why")

    def _name(self) -> str:
        name = str(self._folder / "shim.sock")
        if len(os.fsencode(name)) > 100:
            raise HostError(f"{name} is too long for a socket: choose a shorter --state-dir")
        return name

    def _recorded(self) -> dict[str, ShimProgram]:
        try:
            lines = (self._folder / "exits").read_bytes().splitlines()
        except OSError:
            return {}
        found = {}
        for line in lines:
            try:
                record = msgspec.json.decode(line, type=ShimProgram)
            except msgspec.DecodeError:
                continue  # cut off by a full disk
            found[record.id] = record
        return found
