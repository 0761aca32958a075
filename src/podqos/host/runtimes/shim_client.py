"""The agent's client of the shim: starts one if none runs, sends requests, and receives exits.

The protocol is in the docstring of ``shim``.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.cgroupfs import open_pidfd, signal_if
from podqos.host.linux.descriptors import original_limit
from podqos.host.linux.procfs import Procfs
from podqos.host.runtimes import shim
from podqos.host.runtimes.shim import PACKET_BYTES
from podqos.naming import naming

_START_SECONDS = 30.0
_PATIENCE_SECONDS = 1.0
"""How long a request waits for a shim that is being started."""
_ANSWER_SECONDS = 10.0
_END_SECONDS = 10.0
_FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS = 0.02, 1.0
_MOST_WORDS = 200


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
    """A connection to the shim of a state directory, or one to come: what is being started signals on ``fileno``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exits: deque[Exit] = deque()
        # Exits that arrive while waiting for an answer are taken from the socket; this still signals them.
        self._overheard = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._ready = select.epoll()
        self._ready.register(self._overheard, select.EPOLLIN)
        self._socket: socket.socket | None = None
        self._launching = -1
        """Tells when a shim that is being started is ready, or has died."""
        self._launcher = 0
        self._launched = 0.0
        self._delay = 0.0
        try:
            self.reconnect()
        except HostError:
            self.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when something has ended."""
        return self._ready.fileno()

    @property
    def pid(self) -> int:
        """The shim's process id, according to the kernel; raises ``ShimLost`` while there is none."""
        return peer(self._connected())

    def start(self, program: Program) -> int:
        """Start a process in its cgroups and return its id."""
        answer = self._ask(program)
        if "error" in answer:
            raise HostError(f"{' '.join(program.argv[:1])[:_MOST_WORDS]}: {answer['error']}")
        return int(str(answer["pid"]))

    def programs(self) -> ShimPrograms:
        """Return running and ended programs, including those of an earlier shim."""
        answer = self._ask({"do": "list"})
        if "error" in answer:
            raise HostError(f"the shim does not list its programs: {answer['error']}")
        running, ended = (msgspec.convert(answer[name], list[ShimProgram]) for name in ("running", "ended"))
        by_id = {program.id: program for program in ended}
        return ShimPrograms({program.id: program for program in running}, {**self._recorded(), **by_id})

    def forget(self, name: str) -> None:
        """Have the shim forget an exit that was handled."""
        self._ask({"do": "forget", "id": name})

    def exits(self) -> list[Exit]:
        """Return the exits since the last call; raises ``ShimLost`` if the shim is gone."""
        if self._await(0):
            connection = self._connected()
            connection.setblocking(False)
            while self._receive(connection) is not None:
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
        """End the shim, and wait until it is gone; its processes should have ended before."""
        pidfd = open_pidfd(self.pid) if self.is_connected else None
        try:
            self._ask({"do": "end"})
            self.close()
        finally:
            _wait_for(pidfd)

    def close(self) -> None:
        """Disconnect from the shim; it keeps running."""
        self._disconnect()
        self._ready.close()
        os.close(self._overheard)

    def renew(self) -> bool:
        """Find or start a shim after one was lost; False while it is being started, which nothing waits for."""
        if self._launching < 0:
            self._disconnect()
            if not self._connect():
                self._launch()
        return self.is_connected

    @property
    def is_connected(self) -> bool:
        """Whether there is a shim, as far as is known."""
        return self._socket is not None

    def reconnect(self) -> ShimPrograms:
        """Find or start a shim, wait for it, and return its programs; a dying one may accept first."""
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            try:
                if self.renew() or self._await(until - time.monotonic()):
                    return self.programs()
            except ShimLost:
                self._disconnect()
            time.sleep(_FIRST_DELAY_SECONDS)
        raise HostError(f"the shim did not start; {self._folder / 'shim.log'} may tell why")

    def _ask(self, request: Program | dict[str, str]) -> dict[str, object]:
        if self._socket is None:
            self.renew()
        if not self._await(self._launched + _PATIENCE_SECONDS - time.monotonic()):
            raise ShimLost("the shim is being started")
        connection = self._connected()
        connection.settimeout(_ANSWER_SECONDS)
        try:
            shim.send(connection, msgspec.json.encode(request))
        except OSError as error:
            raise ShimLost(f"the shim does not answer: {error.strerror}") from error
        while True:
            answer = self._receive(connection)
            if answer is not None:
                if self._exits:
                    os.eventfd_write(self._overheard, 1)
                return answer

    def _connected(self) -> socket.socket:
        if self._socket is None:
            raise ShimLost("the shim has ended")
        return self._socket

    def _receive(self, connection: socket.socket) -> dict[str, object] | None:
        """Return an answer; exits are collected. None if non-blocking and nothing is there."""
        while True:
            try:
                data = shim.receive(connection)
            except BlockingIOError:
                return None
            except OSError as error:
                # A late answer would be taken for that to the next request.
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
                raise ShimLost(f"the shim does not answer: {error}") from error
            if not data:
                raise ShimLost("the shim has ended")
            message: dict[str, object] = msgspec.json.decode(data)
            if "exited" not in message:
                return message
            self._exits.append(Exit(str(message["exited"]), int(str(message["code"]))))

    # ---- finding and starting one --------------------------------------------------------------------------------

    def _connect(self) -> bool:
        """Connect to a shim that listens, if there is one."""
        name = self._name()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PACKET_BYTES)
        try:
            connection.connect(name)
        except OSError:
            connection.close()
            return False
        self._socket = connection
        self._ready.register(connection, select.EPOLLIN)
        return True

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._ready.unregister(self._socket)
            self._socket.close()
            self._socket = None
        if self._launching >= 0:
            self._ready.unregister(self._launching)
            os.close(self._launching)
            self._launching = -1

    def _launch(self) -> None:
        """Start the program outside our session and without our descriptors."""
        self._launching, ready = os.pipe2(os.O_CLOEXEC)
        self._ready.register(self._launching, select.EPOLLIN)
        self._launched = time.monotonic()
        # Where the directory is full, what the shim has to say is lost.
        log = next(filter(_can_append, (str(self._folder / "shim.log"), os.devnull)))
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        files, _ = original_limit()
        words = [sys.executable, "-I", "-S", shim.__file__, self._name(), "3", str(self._delay), str(files)]
        self._delay = min(2 * self._delay or _FIRST_DELAY_SECONDS, _LONGEST_DELAY_SECONDS)
        try:
            self._launcher = os.posix_spawn(
                sys.executable, words, os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, ready, 3),
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, log, append, 0o600),
                    (os.POSIX_SPAWN_DUP2, 1, 2),
                ],
                setsid=True,
            )  # fmt: skip
        except OSError:
            # The next request tries again.
            self._disconnect()
        finally:
            os.close(ready)

    def _await(self, seconds: float) -> bool:
        """Wait for a shim that is being started; whether one is connected. One that died meanwhile is started again."""
        until = time.monotonic() + seconds
        while self._launching >= 0:
            if not shim.is_readable(self._launching, until - time.monotonic()):
                return False
            is_listening = bool(os.read(self._launching, 1))
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._launcher, 0)
            self._disconnect()
            if is_listening and self._connect():
                self._delay = 0.0
                # What was lost with the previous one has yet to be handled.
                os.eventfd_write(self._overheard, 1)
            else:
                self.renew()
        return self.is_connected

    def _name(self) -> str:
        name = str(self._folder / "shim.sock")
        if len(os.fsencode(name)) > 100:
            raise HostError(f"{name} is too long for a socket: choose a shorter " + naming("state_dir"))
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


def end_shim(folder: Path) -> None:
    """Kill the shim of a state directory, if there is one, with everything below it: no agent will come back for it."""
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)) as connection:
        try:
            connection.connect(str(folder / "shim.sock"))
        except OSError:
            return
        pid_of_shim = peer(connection)
        pidfd = open_pidfd(pid_of_shim)
        for pid in (*Procfs().descendants(pid_of_shim), pid_of_shim):
            signal_if(pid, signal.SIGKILL, lambda: True)
        _wait_for(pidfd)


def _wait_for(pidfd: int | None) -> None:
    """Wait until a process is gone: it is not our child, so nothing else tells."""
    if pidfd is not None:
        shim.is_readable(pidfd, _END_SECONDS)
        os.close(pidfd)


def peer(connection: socket.socket) -> int:
    """Return the process at the other end, according to the kernel."""
    about = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", about)[0])


def _can_append(file: str) -> bool:
    try:
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    except OSError:
        return False
    return True
