"""The common part of runc, containerd and podman: calls take tens of milliseconds, so they run off the node's thread.

An ``Engine`` is one of them, called one call at a time and allowed to block. ``EngineRuntime`` turns it into a
``Runtime``: one thread calls the engine in order; results are signalled on a descriptor. The pidfd of its main process
tells that a container has ended; the engine is then asked how.

Ending a container does not wait for that thread: SIGTERM and SIGKILL go directly to the processes that the kernel lists
in the container's cgroup, because a runtime that is busy or thrashing must not delay an eviction. The kubelet asks the
runtime, which does the same a little later.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import shutil
import signal
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import ClassVar, TypeVar

from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities
from podqos.host.linux.cgroupfs import Cgroups, open_pidfd
from podqos.host.linux.descriptors import check_free
from podqos.host.linux.procfs import Procfs
from podqos.host.runtimes.resources import granted_score, pod_cgroup
from podqos.host.runtimes.runtime import (
    LOST_CODE,
    ContainerExit,
    ContainerId,
    ContainerPlace,
    ContainerStart,
    ExecResult,
    FoundContainer,
    Heard,
    Note,
    Sandbox,
    start_failure,
)

CANNOT_START_CODE = 128
"""As containerd reports it (``StartError``)."""
_CANNOT_EXECUTE_CODE = 126
_MARK = "PODQOS_EXECUTION"
_TIDY_SECONDS = 5.0
# On a busy machine a runtime takes seconds to notice an end; until then the exit code is unknown.
_END_SECONDS = 30.0
_CLOSE_SECONDS = 30.0
_STOP_SECONDS, _STOP_PAUSE_SECONDS = 10.0, 0.01
Result = TypeVar("Result")


class Engine(ABC):
    """A container runtime that is called by one thread and may block; raises ``HostError``."""

    name: ClassVar[str]

    def __init__(self, cgroups: Cgroups, capabilities: Capabilities, note: Note) -> None:
        self._cgroups, self._capabilities, self._note = cgroups, capabilities, note
        self._hostnames: dict[str, str] = {}

    def prepare(self, sandbox: Sandbox) -> None:
        """Prepare for the containers of a pod; by default this only stores their host name."""
        self._hostnames[sandbox.uid] = sandbox.hostname

    @abstractmethod
    def start(self, container: ContainerStart) -> ContainerPlace:
        """Start a container and return where it is."""

    @abstractmethod
    def ended(self, container: ContainerId) -> ContainerExit | None:
        """Return how a container ended; None if it has not, or is not cleaned up yet."""

    @abstractmethod
    def execute(self, container: ContainerStart, command: Sequence[str], seconds: float) -> int:
        """Run a command inside a container with a timeout; return its exit code. Called on threads of its own."""

    @abstractmethod
    def remove(self, container: ContainerId) -> None:
        """Remove a container; it may be gone already."""

    def remove_sandbox(self, uid: str) -> None:
        """Undo ``prepare``."""
        self._hostnames.pop(uid, None)

    @abstractmethod
    def containers(self) -> list[FoundContainer]:
        """Return the containers of this node."""

    def tidy(self) -> None:  # noqa: B027 - not every runtime leaves something to do
        """Do periodic work, every few seconds."""

    @abstractmethod
    def remove_unused_images(self) -> int:
        """Remove images that no container uses; return the bytes gained."""

    def image_folder(self) -> Path | None:
        """Return the directory of images; None if unknown."""
        return None

    @abstractmethod
    def close(self, *, end: bool) -> None:
        """Release everything; with ``end`` nothing of this node stays."""

    def _execute(
        self, program: Sequence[str], name: str, container: ContainerStart, command: Sequence[str], seconds: float
    ) -> int:
        """Run a program's ``exec``."""
        mark = f"{_MARK}={container.id.run_id[:12]}-{threading.get_native_id()}"
        with subprocess.Popen(  # noqa: S603 - a container runtime's own program
            [*program, "exec", "--env", mark, name, *command],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as running:  # fmt: skip
            try:
                code = running.wait(seconds)
            except subprocess.TimeoutExpired:
                self._stop(running, container, mark)
                code = running.wait()
        return code if code >= 0 else 128 - code

    def _stop(self, running: subprocess.Popen[bytes], container: ContainerStart, mark: str) -> None:
        """Kill the command, which ends the program. Killed first, the program could leave a starting command behind.

        The command is the program's child or, with podman, has the mark in its environment.
        """
        pod, procfs = pod_cgroup(container), Procfs()
        until = time.monotonic() + _STOP_SECONDS
        while running.poll() is None and time.monotonic() < until:
            for pid in self._cgroups.processes(pod):
                if str(running.pid) in procfs.stat(pid)[1:2] or mark in procfs.environment(pid):
                    self._cgroups.signal(pod, pid, signal.SIGKILL)
            time.sleep(_STOP_PAUSE_SECONDS)
        running.kill()

    def _score(self, container: ContainerStart) -> int:
        return granted_score(container, self._capabilities, self._note)

    def _hostname(self, container: ContainerStart) -> str:
        return self._hostnames.get(container.id.uid) or container.env.get("HOSTNAME", "podqos")


def call(arguments: Sequence[str], seconds: float, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program and wait for its end, with a timeout."""
    try:
        return subprocess.run(  # noqa: S603 - a container runtime's own program
            arguments, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise HostError(f"{Path(arguments[0]).name} did not finish within {seconds:.0f} s") from error


class _Run(Struct):
    """A container between start and end."""

    id: ContainerId
    place: ContainerPlace | None = None
    pending: int = 0
    """A signal sent before the container was running."""


class EngineRuntime:
    """Runs containers through an engine."""

    plans_cgroups = False

    def __init__(self, make_engine: Callable[[Note], Engine], cgroups: Cgroups, note: Note) -> None:
        self._heard: deque[Heard | str] = deque()
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._ending = threading.Lock()
        # Notes of the engine are delivered on the node's thread.
        self._engine = engine = make_engine(self._tell)
        self.name = engine.name
        self._cgroups = cgroups
        self._note = note
        self._lock = threading.Lock()
        self._runs: dict[ContainerId, _Run] = {}
        self._folders: dict[ContainerId, Path] = {}
        self._poll = select.epoll()
        self._poll.register(self._event, select.EPOLLIN)
        self._pidfds: dict[int, ContainerId] = {}
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"podqos-{engine.name}", daemon=True)
        self._thread.start()

    # ---- the port, on the node's thread --------------------------------------------------------------------------

    def prepare(self, sandbox: Sandbox) -> None:
        """Queue the creation of the pod's sandbox."""
        self._work.put(lambda: self._engine.prepare(sandbox))

    def start(self, container: ContainerStart) -> None:
        """Queue the start of a container; a failed start is an exit, with the reason in a note."""
        run = self._runs[container.id] = _Run(container.id)
        self._folders[container.id] = container.folder
        self._work.put(lambda: self._start(container, run))

    def terminate(self, container: ContainerId) -> None:
        """Send SIGTERM to the main process."""
        self._signal(container, signal.SIGTERM)

    def kill(self, container: ContainerId) -> None:
        """Kill everything in the container's cgroup."""
        self._signal(container, signal.SIGKILL)

    def execute(self, container: ContainerStart, command: Sequence[str], token: str, seconds: float) -> None:
        """Run a command in a thread that lives as long as the command."""

        def work() -> None:
            _be_ordinary()
            try:
                code = self._engine.execute(container, command, seconds)
            except (HostError, OSError) as error:
                self._tell(f"{container.id.name}: {error}")
                code = _CANNOT_EXECUTE_CODE
            self._tell(ExecResult(token, code))

        try:
            threading.Thread(target=work, name=f"podqos-{token}", daemon=True).start()
        except RuntimeError as error:  # no more threads or processes
            self._tell(f"{container.id.name}: {error}")
            self._tell(ExecResult(token, _CANNOT_EXECUTE_CODE))

    def remove(self, container: ContainerId) -> None:
        """Queue the removal of an ended container and its directory."""
        self._runs.pop(container, None)
        folder = self._folders.pop(container, None)

        def work() -> None:
            self._engine.remove(container)
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

        self._work.put(work)

    def remove_sandbox(self, uid: str) -> None:
        """Queue the removal of the sandbox."""
        self._work.put(lambda: self._engine.remove_sandbox(uid))

    def containers(self) -> list[FoundContainer]:
        """Return the engine's containers; running ones are adopted."""
        found = self._ask(self._engine.containers)
        for container in found:
            if container.exit_code is None and container.cgroup is not None and container.id not in self._runs:
                self._runs[container.id] = run = _Run(container.id)
                self._placed(run, ContainerPlace(container.id, container.cgroup, container.pid))
        return found

    def fileno(self) -> int:
        """Return the descriptor that signals events."""
        return self._poll.fileno()

    def heard(self) -> list[Heard]:
        """Return new events, and queue a query about processes that just ended."""
        for descriptor, _ in self._poll.poll(0):
            if descriptor == self._event:
                with contextlib.suppress(BlockingIOError):
                    os.eventfd_read(self._event)
            else:
                self._process_ended(descriptor)
        found: list[Heard] = []
        while self._heard:
            match self._heard.popleft():
                case str() as text:
                    self._note(text)
                case ContainerExit() as each:
                    self._runs.pop(each.id, None)
                    found.append(each)
                case each:
                    found.append(each)
        return found

    def remove_unused_images(self) -> int:
        """Ask the engine and wait: the disk is short, and the effect has to be visible."""
        return self._ask(self._engine.remove_unused_images)

    def image_folder(self) -> Path | None:
        """Ask the engine."""
        return self._engine.image_folder()

    def close(self, *, end: bool) -> None:
        """Let the thread finish its queue, and end it."""
        self._work.put(lambda: self._engine.close(end=end))
        self._work.put(None)
        self._thread.join(_CLOSE_SECONDS)
        self.heard()
        for descriptor in list(self._pidfds):
            self._forget_pidfd(descriptor)
        self._poll.close()
        # A command inside a container may still report its end.
        with self._ending:
            os.close(self._event)
            self._event = -1

    # ---- signals -------------------------------------------------------------------------------------------------

    def _signal(self, container: ContainerId, number: int) -> None:
        run = self._runs.get(container)
        if run is None:
            return
        with self._lock:
            if run.place is None:
                run.pending = run.pending if run.pending == signal.SIGKILL else number
                return
        self._send(run.place, number)

    def _send(self, place: ContainerPlace, number: int) -> None:
        if number == signal.SIGKILL:
            self._cgroups.kill(place.cgroup)
        elif place.pid is not None:
            self._cgroups.signal(place.cgroup, place.pid, number)

    # ---- the end of processes ------------------------------------------------------------------------------------

    def _placed(self, run: _Run, place: ContainerPlace) -> None:
        """Record where a container is and watch for its end."""
        with self._lock:
            run.place = place
            pending = run.pending
        self._tell(place)
        descriptor = None if place.pid is None else open_pidfd(place.pid)
        if descriptor is not None and not self._cgroups.holds(place.cgroup, place.pid or 0):
            os.close(descriptor)
            descriptor = None
        if descriptor is None:
            self._work.put(lambda: self._look(run.id))
            return
        self._pidfds[descriptor] = run.id
        self._poll.register(descriptor, select.EPOLLIN)
        if pending:
            self._send(place, pending)

    def _process_ended(self, descriptor: int) -> None:
        container = self._pidfds[descriptor]
        self._forget_pidfd(descriptor)
        self._work.put(lambda: self._look(container))

    def _forget_pidfd(self, descriptor: int) -> None:
        del self._pidfds[descriptor]
        self._poll.unregister(descriptor)
        os.close(descriptor)

    # ---- the engine, on its thread -------------------------------------------------------------------------------

    def _serve(self) -> None:
        _be_ordinary()
        due = time.monotonic() + _TIDY_SECONDS
        while True:
            try:
                work = self._work.get(timeout=max(0.0, due - time.monotonic()))
            except queue.Empty:
                work = self._engine.tidy
                due = time.monotonic() + _TIDY_SECONDS
            if work is None:
                return
            try:
                work()
            except Exception as error:  # noqa: BLE001 - without this thread no container would ever start or end again
                self._tell(str(error) if isinstance(error, HostError | OSError) else f"{type(error).__name__}: {error}")

    def _start(self, container: ContainerStart, run: _Run) -> None:
        if run.pending:
            self._tell(ContainerExit(run.id, 128 + run.pending))
            return
        try:
            check_free()
            place = self._engine.start(container)
        except Exception as error:  # noqa: BLE001 - whatever is wrong with one container, the others go on
            text = str(error) if isinstance(error, HostError | OSError) else f"{type(error).__name__}: {error}"
            self._tell(f"{container.id.name}: {text}")
            self._tell(ContainerExit(run.id, CANNOT_START_CODE, reason=start_failure(error), message=text))
            return
        if place.cgroup != container.cgroup.path and self._cgroups.exists(place.cgroup):
            # The runtime created the cgroup, roughly as requested; now it is exactly as planned.
            for unwritten in self._cgroups.write(place.cgroup, container.cgroup.files):
                self._tell(str(unwritten))
        self._placed(run, place)

    def _look(self, container: ContainerId, until: float = 0.0, pause: float = 0.002) -> None:
        """Query how a container ended; if the runtime has not noticed yet, retry after other work."""
        until = until or time.monotonic() + _END_SECONDS
        ended = None
        with contextlib.suppress(HostError, OSError):
            ended = self._engine.ended(container)
        if ended is None and time.monotonic() < until:
            time.sleep(pause)
            self._work.put(lambda: self._look(container, until, min(2 * pause, 0.1)))
            return
        if ended is None:
            self._tell(f"{container.name}: the runtime did not report an exit status")
            ended = ContainerExit(container, LOST_CODE)
        self._tell(ended)

    def _tell(self, what: Heard | str) -> None:
        self._heard.append(what)
        with self._ending:
            if self._event >= 0:
                os.eventfd_write(self._event, 1)

    def _ask(self, question: Callable[[], Result]) -> Result:
        """Run a call on the engine's thread and wait for its result."""
        answer: Future[Result] = Future()

        def work() -> None:
            try:
                answer.set_result(question())
            except Exception as error:  # noqa: BLE001 - the caller waits for it
                answer.set_exception(error)

        self._work.put(work)
        return answer.result()


def _be_ordinary() -> None:
    """Drop the agent's priority on this thread: containers are started from here."""
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, thread, max(0, os.getpriority(os.PRIO_PROCESS, thread)))
