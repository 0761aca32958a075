"""One pod on the machine: the runs of its containers, and how they are stopped.

A pod is stopped as by the kubelet: the regular containers first, all at once; then the sidecars, in reverse order; all
within one grace period, after which everything is killed. When a container's main process ends, its other processes are
killed, as at the end of a pid namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from podqos.agent.commands import ContainerPlan
from podqos.agent.events import Remembered
from podqos.host.linux.cgroupfs import KernelSignal
from podqos.host.linux.loop import Loop, Timer
from podqos.host.runtimes.runtime import ContainerId, ContainerStart, Runtime
from podqos.host.storage.state import PodState
from podqos.model.pod import Pod


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
    elsewhere: str | None = None
    """The cgroup, if the runtime chose another one than planned."""

    @property
    def name(self) -> str:
        """The container's name."""
        return self.id.name

    @property
    def cgroup(self) -> str:
        """Where it runs."""
        path = self.elsewhere or self.start.cgroup.path
        assert path is not None
        return path


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
        self._deadline: Timer | None = None

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

    def stop(self, grace_seconds: int, runtime: Runtime, loop: Loop, kill: Callable[[HostPod], None]) -> None:
        """Start stopping the pod; when the grace period is over, ``kill`` is called."""
        self.is_stopping = True
        if grace_seconds <= 0:
            kill(self)
            return
        self._deadline = loop.call_after(grace_seconds, lambda: kill(self))
        self.terminate_next(runtime)

    def terminate_next(self, runtime: Runtime) -> None:
        """Send SIGTERM to the regular containers; once they have ended, to the last sidecar still running."""
        sidecars = [container.name for container in self.pod.spec.init_containers if container.is_sidecar]
        first = [run for run in self.running if run.id.name not in sidecars]
        last = [run for run in self.running if run.id.name in sidecars]
        asked = first or sorted(last, key=lambda run: sidecars.index(run.id.name))[-1:]
        for run in asked:
            if not run.is_terminating:
                run.is_terminating = True
                runtime.terminate(run.id)

    def stopped(self) -> None:
        """Cancel the deadline: all containers have ended."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
