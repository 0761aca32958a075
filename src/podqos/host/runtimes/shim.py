"""The shim: a small process that starts containers' processes, writes their logs, and learns how they end.

It is the parent of the pods so that they outlive the agent: the parent of a process learns how it ended and holds the
other end of its output. The agent can be killed at any moment and recovers everything from the shim. The shim therefore
does as little as possible: no decisions, only the standard library, a few megabytes. It runs as a program of its own
(``python shim.py SOCKET READY DELAY FILES``) in its own session: DELAY seconds later, it writes to the descriptor READY
as soon as it listens, and closes it. FILES is the soft limit of open files for containers.

One request per packet on a Unix socket, in JSON: ``start``, ``list``, ``forget``, ``end``; each has one answer, also
one that makes no sense: ``{"error": text}``. ``{"exited": id, "code": n}`` is sent unsolicited. What is too long for a
packet is in a file in memory that comes with it (``send``, ``receive``). Every exit is also appended to ``exits``
next to the socket, in case the shim itself ends. Logs are written in CRI format and rotated by size.

Nothing about one process may end the shim, for all the others would end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import select
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

PACKET_BYTES = 1 << 20
_PLAIN_BYTES = 1 << 16  # fits into any socket's buffer
_MOST_BYTES = 1 << 24
_IN_FILE = b'{"do": "read the file"}'
_START_SECONDS = 5.0
_PAUSE_SECONDS = 0.01
_READ_BYTES = 1 << 16
# containerd splits longer lines as well (max_container_log_line_size).
_LINE_BYTES = 16384
_IDLE_SECONDS = 30.0
# Descriptors that no container gets: for the agent, its exits, and rotated logs.
_RESERVE = 16
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_CLONE_NEWNS = 0x00020000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18

Request = dict[str, Any]


def send(connection: socket.socket, message: bytes, flags: int = 0) -> None:
    """Send a message of any length."""
    if len(message) <= _PLAIN_BYTES:
        connection.send(message, flags)
        return
    file = os.memfd_create("podqos")
    try:
        rest = memoryview(message)
        while rest:
            rest = rest[os.write(file, rest) :]
        socket.send_fds(connection, [_IN_FILE], [file], flags)
    finally:
        os.close(file)


def receive(connection: socket.socket) -> bytes:
    """Receive a message; empty at the end of the connection."""
    data, files, _, _ = socket.recv_fds(connection, PACKET_BYTES, 1, socket.MSG_CMSG_CLOEXEC)
    try:
        return os.pread(files[0], min(os.fstat(files[0]).st_size, _MOST_BYTES), 0) if files else data
    finally:
        for file in files:
            os.close(file)


class ContainerLog:
    """A container's log: lines in CRI format, rotated by size."""

    def __init__(self, path: str, max_bytes: int, max_files: int) -> None:
        self._path, self._max_bytes, self._max_files = path, max_bytes, max_files
        self._file = -1
        self._size = 0
        self._lost, self._why = 0, ""
        with contextlib.suppress(OSError):
            self._open()

    def write(self, stream: bytes, line: bytes, *, is_whole: bool) -> None:
        """Append a line or part of one; a full disk loses lines, which is said once there is space again."""
        self._say_lost()
        if self._lost or not self._append(stream, line, is_whole=is_whole):
            self._lost += 1

    def end(self) -> None:
        """Close the file for good."""
        self._say_lost()
        self._close()

    def _say_lost(self) -> None:
        if self._lost:
            said = b"podqos: %d lines lost: %s" % (self._lost, self._why.encode())
            if self._append(b"stderr", said, is_whole=True):
                self._lost = 0

    def _append(self, stream: bytes, line: bytes, *, is_whole: bool) -> bool:
        """Append a whole line or nothing."""
        now_ns = time.time_ns()
        head = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now_ns // 1_000_000_000))
        text = b"%s.%09dZ %s %s %s\n" % (
            head.encode(), now_ns % 1_000_000_000, stream, b"F" if is_whole else b"P", line,
        )  # fmt: skip
        try:
            if self._file < 0:
                self._open()
            if self._size and self._size + len(text) > self._max_bytes:
                self._rotate()
            append_whole(self._file, text, self._size)
        except OSError as error:
            self._why = error.strerror or str(error)
            return False
        self._size += len(text)
        return True

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        self._size = os.fstat(self._file).st_size

    def _rotate(self) -> None:
        self._close()
        folder, name = os.path.split(self._path)
        try:
            os.rename(self._path, f"{self._path}.{time.time_ns()}")
            rotated = sorted(each for each in os.listdir(folder) if each.startswith(f"{name}."))
            for each in rotated[: max(0, len(rotated) - (self._max_files - 1))]:
                os.unlink(os.path.join(folder, each))
        except OSError:
            pass  # continue in the old file
        self._open()


class OutputStream:
    """An output stream of a container."""

    def __init__(self, name: bytes, log: ContainerLog | None) -> None:
        self._name, self._log = name, log
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Add data; write complete lines to the log."""
        if self._log is None:
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._log.write(self._name, line, is_whole=True)
        while len(self._rest) >= _LINE_BYTES:
            self._log.write(self._name, self._rest[:_LINE_BYTES], is_whole=False)
            self._rest = self._rest[_LINE_BYTES:]

    def end(self) -> None:
        """Write the last line if it has no newline."""
        if self._rest and self._log is not None:
            self._log.write(self._name, self._rest, is_whole=True)
            self._rest = b""


class Shim:
    """The state of the program: running and ended processes, and the client."""

    def __init__(self, path: str, soft_limit: int = 1024) -> None:
        self._soft_limit = soft_limit
        """Of open files, for containers."""
        self._selector = selectors.DefaultSelector()
        self._exits_path = os.path.join(os.path.dirname(path), "exits")
        self._running: dict[int, str] = {}
        self._labels: dict[str, object] = {}
        self._ended: dict[str, int] = {}
        self._unrecorded: list[bytes] = []
        """Exits that are not in the file yet: the disk is full."""
        self._deadlines: dict[int, float] = {}
        self._client: socket.socket | None = None
        self._idle_since = time.monotonic()
        self._over = False
        self._path = path
        # One shim at a time; what an earlier one left is in the way.
        self._lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for stale in (path, f"{path}.new"):
            if os.path.lexists(stale):
                os.unlink(stale)
        # The name appears only once the socket listens.
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(f"{path}.new")
        self._listener.listen(4)
        os.rename(f"{path}.new", path)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        woken, wake = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        self._selector.register(woken, selectors.EVENT_READ, lambda: self._reap(woken))

    def run(self) -> None:
        """Serve until shutdown, or until idle without processes and client."""
        while not self._over:
            next_deadline = min(self._deadlines.values(), default=float("inf"))
            for key, _ in self._selector.select(min(_IDLE_SECONDS, next_deadline - time.monotonic())):
                handler: Callable[[], None] = key.data
                try:
                    handler()
                except Exception:  # noqa: BLE001 - nothing may end the shim
                    traceback.print_exc()
                    time.sleep(_PAUSE_SECONDS)
            for pid in [pid for pid, when in self._deadlines.items() if when <= time.monotonic()]:
                del self._deadlines[pid]
                kill_group(pid)
            if self._running or self._client is not None:
                self._idle_since = time.monotonic()
            elif time.monotonic() - self._idle_since > _IDLE_SECONDS:
                break
        if os.path.exists(self._path):
            os.unlink(self._path)

    # ---- the agent -----------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            client, _ = self._listener.accept()
        except OSError:
            return  # it has given up
        self._drop()
        self._client = client
        client.setblocking(False)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, PACKET_BYTES)
        self._selector.register(client, selectors.EVENT_READ, self._serve)

    def _serve(self) -> None:
        assert self._client is not None
        try:
            data = receive(self._client)
        except BlockingIOError:
            return  # it was for the previous client
        except OSError:
            data = b""
        if not data:
            self._drop()
            return
        try:
            answer = self._answer(json.loads(data))
        except Exception as error:  # noqa: BLE001 - every request has an answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        self._send(answer)

    def _answer(self, request: Request) -> Request:
        match request["do"]:
            case "start":
                return self._start(request)
            case "list":
                running = [{"id": name, "pid": pid, "label": self._labels[name]} for pid, name in self._running.items()]
                ended = [{"id": name, "code": code, "label": self._labels[name]} for name, code in self._ended.items()]
                return {"running": running, "ended": ended}
            case "forget":
                if self._ended.pop(request["id"], None) is not None:
                    del self._labels[request["id"]]
                self._forget_record(request["id"])
                return {}
            case "end":
                self._over = True
                return {}
        return {"error": f"unknown request {request['do']!r}"}

    def _send(self, message: Request) -> None:
        if self._client is None:
            return
        try:
            send(self._client, json.dumps(message).encode(), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except OSError:
            self._drop()  # it reconnects and asks for the list

    def _drop(self) -> None:
        if self._client is not None:
            self._selector.unregister(self._client)
            self._client.close()
            self._client = None

    # ---- the containers ------------------------------------------------------------------------------------------

    def _start(self, request: Request) -> Request:
        name = request["id"]
        if name in self._ended or name in self._running.values():
            return {"error": "already started"}
        log = None
        pipes: list[int] = []
        try:
            if request.get("log"):
                log = ContainerLog(request["log"], request["logBytes"], request["logFiles"])
            # What is not logged goes nowhere: a process that stays behind would keep a pipe open.
            for _ in range(3 if log else 1):
                pipes += os.pipe2(os.O_CLOEXEC)
            _check_free(pipes[-1])
            pid = self._run(request, pipes)
        except Exception as error:  # noqa: BLE001 - the answer says so
            for descriptor in pipes:
                os.close(descriptor)
            if log is not None:
                log.end()
            if isinstance(error, OSError):
                no_process = "no more processes are allowed: " if error.errno == errno.EAGAIN else ""
                return {"error": f"{no_process}{error.strerror or error}"}
            return {"error": str(error)}
        self._running[pid] = name
        if request.get("seconds") is not None:
            self._deadlines[pid] = time.monotonic() + request["seconds"]
        self._labels[name] = request.get("label", "")
        open_streams = pipes[:]
        for descriptor, stream in zip(
            pipes, (OutputStream(b"stdout", log), OutputStream(b"stderr", log)), strict=False
        ):
            os.set_blocking(descriptor, False)
            self._selector.register(descriptor, selectors.EVENT_READ, self._pump(descriptor, stream, log, open_streams))
        return {"pid": pid}

    def _run(self, request: Request, pipes: list[int]) -> int:
        """Start a process and return its id; leave only the ends of the pipes to read from."""
        parent, pid = os.getpid(), os.fork()
        if pid == 0:
            become(request, pipes[1::2], parent, self._soft_limit)
        for write in pipes[1::2]:
            os.close(write)
        del pipes[1::2]
        with open(pipes.pop(0), "rb", buffering=0) as told:
            problem = heard_within(told.fileno(), _START_SECONDS)
        if problem is None:
            kill_group(pid)  # it is reaped once the kernel lets go of it
            raise RuntimeError(f"not started within {_START_SECONDS:.0f} seconds")
        if problem:
            os.waitpid(pid, 0)
        elif request.get("pidFile"):
            pid, problem = self._launched(pid, request["pidFile"])
        if problem:
            raise RuntimeError(problem)
        return pid

    @staticmethod
    def _launched(launcher: int, pid_file: str) -> tuple[int, str]:
        """Wait for a launcher to exit; the process it started, an orphan, is now our child."""
        status = os.waitpid(launcher, 0)[1]
        if status:
            return launcher, f"ended with {os.waitstatus_to_exitcode(status)}"
        try:
            with open(pid_file, encoding="ascii") as file:
                return int(file.read()), ""
        except (OSError, ValueError) as error:
            return launcher, f"{pid_file}: {error}"

    def _pump(
        self, descriptor: int, stream: OutputStream, log: ContainerLog | None, still_open: list[int]
    ) -> Callable[[], None]:
        def pump() -> None:
            try:
                data = os.read(descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if data:
                stream.feed(data)
                return
            stream.end()
            self._selector.unregister(descriptor)
            os.close(descriptor)
            still_open.remove(descriptor)
            if not still_open and log is not None:
                log.end()

        return pump

    def _reap(self, woken: int) -> None:
        os.read(woken, _READ_BYTES)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._deadlines.pop(pid, None)
            name = self._running.pop(pid, None)
            if name is None:
                continue  # an orphan of some container
            code = os.waitstatus_to_exitcode(status)
            code = code if code >= 0 else 128 - code
            self._ended[name] = code
            self._record(name, code, self._labels[name])
            self._send({"exited": name, "code": code})

    def _record(self, name: str, code: int, label: object) -> None:
        self._unrecorded.append(json.dumps({"id": name, "code": code, "label": label}).encode() + b"\n")
        try:
            file = os.open(self._exits_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                while self._unrecorded:
                    append_whole(file, self._unrecorded[0], os.fstat(file).st_size)
                    del self._unrecorded[0]
            finally:
                os.close(file)
        except OSError:
            return  # the agent is notified anyway; the next exit retries

    def _forget_record(self, name: str) -> None:
        """Rewrite the file without an exit, which may be from an earlier shim."""
        start = json.dumps({"id": name}).encode()[:-1] + b","
        self._unrecorded = [line for line in self._unrecorded if not line.startswith(start)]
        try:
            with open(self._exits_path, "rb") as file:
                lines = file.readlines()
            kept = [line for line in lines if not line.startswith(start)]
            if len(kept) == len(lines):
                return
            with open(f"{self._exits_path}.new", "wb") as file:
                file.writelines(kept)
            os.rename(f"{self._exits_path}.new", self._exits_path)
        except OSError:
            return  # the record is only kept longer


def kill_group(leader: int) -> None:
    """Kill a process with everything that it has started and that has not left its group."""
    for kill in (os.killpg, os.kill):  # it may have no group of its own yet
        try:
            kill(leader, signal.SIGKILL)
        except OSError:
            continue


def is_readable(descriptor: int, seconds: float) -> bool:
    """Wait for something to read; unlike ``select``, also from a descriptor beyond 1,023."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, seconds) * 1000))


def heard_within(descriptor: int, seconds: float) -> str | None:
    """Return what comes out of a pipe until it is closed; None if it stays open for longer."""
    until, text = time.monotonic() + seconds, b""
    while is_readable(descriptor, until - time.monotonic()):
        piece = os.read(descriptor, _READ_BYTES)
        if not piece:
            return text.decode(errors="replace")
        text += piece
    return None


def become(request: Request, ends: Sequence[int], parent: int, soft_limit: int) -> None:
    """Turn the new process into the container's: its cgroups first, then everything else. Never returns."""
    trouble, *outputs = ends
    try:
        # Until it is the container's, it ends with the shim: no later agent could find it.
        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(127)
        os.setsid()
        for entrance in request["entrances"]:
            _write(entrance, "0")
        adjustment = request.get("oomScoreAdj")
        if adjustment is not None:
            _write("/proc/self/oom_score_adj", str(adjustment))
        _mount(request["mounts"])
        _limit_files(soft_limit)
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.umask(0o022)
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        for place, output in enumerate(outputs or (nothing, nothing), 1):
            os.dup2(output, place)
        os.chdir(request["cwd"])
        libc.prctl(_PR_SET_PDEATHSIG, 0, 0, 0, 0)
        _lower(request)
        os.execvpe(request["argv"][0], request["argv"], request["env"])  # noqa: S606 - to run what it is told to is its purpose
    except BaseException as error:  # noqa: BLE001 - nothing may escape into a second shim
        where = getattr(error, "filename", None)
        text = getattr(error, "strerror", None) or str(error)
        os.write(trouble, (f"{where}: {text}" if where else text).encode() or b"unknown")
    finally:
        os._exit(127)


def _lower(request: Request) -> None:
    """Give up what the container may not have; the user last, because it takes privileges to do so."""
    libc = ctypes.CDLL(None, use_errno=True)
    kept = request.get("capabilities")
    if kept is not None:
        for number in range(64):
            if number not in kept and libc.prctl(_PR_CAPBSET_READ, number, 0, 0, 0) == 1:
                _check(libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0), "capabilities")
    if request.get("noNewPrivileges"):
        _check(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    if request.get("ids") is not None:
        uid, gid, groups = request["ids"]
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)


def _check(result: int, where: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), where)


def _mount(mounts: Sequence[tuple[str, str, bool]]) -> None:
    """Mount the container's volumes in a mount namespace of its own."""
    if not mounts:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.unshare(_CLONE_NEWNS), "mount namespace")
    _check(libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "/")
    for source, target, read_only in mounts:
        _check(libc.mount(source.encode(), target.encode(), None, _MS_BIND | _MS_REC, None), target)
        if read_only:
            _check(libc.mount(b"none", target.encode(), None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY, None), target)


def _check_free(descriptor: int) -> None:
    """Raise if this was one of the last descriptors: the shim itself needs some, however many containers there are."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptor >= limit - _RESERVE:
        raise OSError(errno.EMFILE, f"{os.strerror(errno.EMFILE)}: the limit is {limit}")


def _limit_files(soft: int) -> None:
    """Set the soft limit of open files; the old one will do where the machine has lowered what it allows."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def append_whole(file: int, data: bytes, size: int) -> None:
    """Append to a file of this size, all or nothing: on a full disk a write is merely short."""
    if os.write(file, data) < len(data):
        os.ftruncate(file, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(descriptor)


def main() -> None:
    """Become a shim: in a session of its own, ignoring terminal signals, a subreaper for orphans."""
    # Not the agent's child: nothing has to wait for it.
    if os.fork():
        os._exit(0)
    os.setsid()
    path, ready, delay, soft_limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
    time.sleep(delay)
    # The agent's priority is not for the pods.
    os.setpriority(os.PRIO_PROCESS, 0, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    _limit_files(resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    shim = Shim(path, soft_limit)
    os.write(ready, b"1")
    os.close(ready)
    shim.run()


if __name__ == "__main__":
    main()
