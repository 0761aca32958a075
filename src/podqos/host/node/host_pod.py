"""One pod on the machine: the runs of its containers, and how they are stopped.

A pod is stopped as by the kubelet (``agent.shutdown``): the regular containers first, all at once; then the sidecars,
in reverse order; each is killed when its grace period is over. Of ``preStop`` hooks only ``sleep`` is run. When a
container's main process ends, its other processes are killed, as at the end of a pid namespace.

A deadline is set before anything is sent: a container that cannot be sent SIGTERM is killed in time nevertheless.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.agent.port import ContainerPlan, Remembered
from podqos.agent.shutdown import hooks_of, left_seconds, stop_seconds, stopped_before
from podqos.host.linux.cgroupfs import KernelSignal
from podqos.host.linux.loop import Loop, Timer
from podqos.host.runtimes.runtime import ContainerId, ContainerStart, Runtime
from podqos.host.storage.state import PodState
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US

_KILL_AGAIN_SECONDS = 1.0


class ContainerRun(Struct):
    """One run of one container."""

    id: ContainerId
    plan: ContainerPlan
    start: ContainerStart
    pid: int | None
    started_us: int
    is_running: bool = True
    is_ready: bool = False
    is_terminating: bool = False
    exit_code: int | None = None
    ended_us: int = 0
    oom_killed: bool = False
    failure: str = ""
    """The kubelet's word for why it could not be started."""
    message: str = ""

    @property
    def name(self) -> str:
        """The container's name."""
        return self.id.name

    @property
    def cgroup(self) -> str:
        """Where it runs."""
        path = self.start.cgroup.path
        assert path is not None
        return path


class _Stop(Struct, frozen=True):
    """How a pod is being stopped."""

    grace_seconds: int
    runtime: Runtime
    loop: Loop
    kill: Callable[[ContainerRun], None]


class HostPod:
    """A pod on this machine."""

    def __init__(self, state: PodState, cgroup: str, data: Path) -> None:
        self.state = state
        self.cgroup = cgroup
        self.data = data
        self.runs: dict[str, ContainerRun] = {}
        """The last run of each container, by name."""
        self.dead: list[ContainerRun] = []
        """Ended runs whose files are still kept."""
        self.is_stopping = False
        self.held: KernelSignal | None = None
        """Signals that a held pod tries to grow."""
        self._stop: _Stop | None = None
        self._timers: list[Timer] = []
        self._waiting: dict[str, tuple[int, float]] = {}
        """By name: sidecars that wait for others to end, what is left of their grace period, and since when."""
        self._due: list[ContainerRun] = []
        """Whose turn to end has come."""

    @property
    def pod(self) -> Pod:
        """The pod as stored."""
        return self.state.pod

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.pod.metadata.uid

    @property
    def running(self) -> list[ContainerRun]:
        """The runs that have not ended."""
        return [run for run in self.runs.values() if run.is_running]

    @property
    def container_cgroups(self) -> list[str]:
        """Where its runs that have not ended are."""
        return [run.cgroup for run in self.running]

    def ends(self) -> dict[str, Remembered]:
        """Return how its containers ended."""
        known = dict(self.state.containers)
        for name, run in self.runs.items():
            if run.exit_code is not None:
                known[name] = msgspec.structs.replace(
                    known.get(name, Remembered()),
                    stage="ended",
                    restarts=run.id.attempt,
                    exit_code=run.exit_code,
                    oom_killed=run.oom_killed,
                )
        return known

    def stop(self, grace_seconds: int, runtime: Runtime, loop: Loop, kill: Callable[[ContainerRun], None]) -> None:
        """Start stopping the pod, or stop it sooner; ``kill`` is called for containers whose grace period is over.

        If SIGTERM cannot be sent to a container, this raises once all others have been asked; called again, it sends
        what is missing and leaves the deadlines as they are.
        """
        if self._stop is not None and self._stop.grace_seconds <= grace_seconds:
            self._ask()
            return
        self.stopped()
        self.is_stopping = True
        self._stop = _Stop(grace_seconds, runtime, loop, kill)
        hooks = hooks_of(self.pod, {}, self.runs)
        for run in self.running:
            hook = hooks.get(run.name)
            if hook:
                spent_us = min(hook, grace_seconds * SECOND_US)
                left = left_seconds(grace_seconds, spent_us)
                self._later(spent_us / SECOND_US, partial(self._hook_ended, run, left))
            else:
                self._await_turn(run, grace_seconds)
        self._ask()

    def terminate_next(self) -> None:
        """Send SIGTERM to the sidecars whose turn has come because a container has ended."""
        for name, (left, since) in list(self._waiting.items()):
            if not self._has_to_wait(name):
                spent_us = round((time.monotonic() - since) * SECOND_US)
                self._set_deadline(self.runs[name], left_seconds(left, spent_us))
        self._ask()

    def stopped(self) -> None:
        """Cancel all deadlines: all containers have ended."""
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()
        self._due.clear()

    def _hook_ended(self, run: ContainerRun, left: int) -> None:
        self._await_turn(run, left)
        self._ask()

    def _waited(self, run: ContainerRun) -> None:
        if run.name in self._waiting:
            self._set_deadline(run, 0)
            self._ask()

    def _await_turn(self, run: ContainerRun, left: int) -> None:
        if left > 0 and self._has_to_wait(run.name):
            self._waiting[run.name] = left, time.monotonic()
            self._later(left, partial(self._waited, run))
        else:
            self._set_deadline(run, left)

    def _has_to_wait(self, name: str) -> bool:
        running = {run.name for run in self.running}
        return not running.isdisjoint(stopped_before(self.pod, name))

    def _set_deadline(self, run: ContainerRun, left: int) -> None:
        """Have a container asked to end, and killed when what is left of the grace period is over."""
        self._waiting.pop(run.name, None)
        if run.is_running:
            self._due.append(run)
            self._later(stop_seconds(left), partial(self._kill, run))

    def _ask(self) -> None:
        """Send SIGTERM to all whose turn has come; one that cannot be sent it keeps no other from getting it."""
        stop = self._stop
        assert stop is not None
        failure: Exception | None = None
        for run in self._due:
            if run.is_running and not run.is_terminating:
                try:
                    stop.runtime.terminate(run.id)
                    run.is_terminating = True
                except Exception as error:  # noqa: BLE001 - raised below
                    failure = error
        if failure is not None:
            raise failure

    def _kill(self, run: ContainerRun) -> None:
        assert self._stop is not None
        try:
            self._stop.kill(run)
        except Exception:
            self._later(_KILL_AGAIN_SECONDS, partial(self._kill, run))
            raise

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        assert self._stop is not None
        self._timers.append(self._stop.loop.call_after(seconds, act))
