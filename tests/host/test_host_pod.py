"""How a pod on this machine is stopped, in virtual time: the rules are those of ``agent.shutdown``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from host.virtual_loop import virtual_loop
from podqos.agent.port import ContainerPlan
from podqos.host.node import host_pod as host_pod_module
from podqos.host.node.host_pod import ContainerRun, HostPod
from podqos.host.runtimes.runtime import ContainerId
from podqos.host.storage.state import PodState
from podqos.model.pod import Container, Lifecycle, LifecycleHandler, ObjectMeta, Pod, PodSpec, SleepAction


class Machine:
    """Containers that ignore SIGTERM; what they are sent, and when."""

    def __init__(self, loop, clock):
        self._loop, self._clock, self.sent = loop, clock, []
        self.pod = None
        self.failures = Counter()
        """How often what fails, by container and signal."""

    def _fail(self, name: str, signal: str) -> None:
        if self.failures[name, signal]:
            self.failures[name, signal] -= 1
            raise OSError(5, "Input/output error")

    def terminate(self, container: ContainerId) -> None:
        self._fail(container.name, "TERM")
        self.sent.append((round(self._clock.now, 3), container.name, "TERM"))

    def kill(self, run: ContainerRun) -> None:
        self._fail(run.name, "KILL")
        self.sent.append((round(self._clock.now, 3), run.name, "KILL"))
        run.is_running = False
        if self.pod.running:
            self.pod.terminate_next()

    def stop(self, pod: HostPod, grace_seconds: int, seconds: float) -> list[tuple[float, str, str]]:
        self.pod = pod
        pod.stop(grace_seconds, self, self._loop, self.kill)
        self._loop.run_for(seconds)
        return self.sent


@pytest.fixture
def machine(monkeypatch):
    with virtual_loop() as (loop, clock):
        monkeypatch.setattr(host_pod_module, "time", clock)
        yield Machine(loop, clock)


def running(*containers: Container, sidecars: tuple[Container, ...] = ()) -> HostPod:
    """Return a pod of which all containers run."""
    pod = Pod(ObjectMeta("a", "default", uid="u"), PodSpec(containers=containers, init_containers=sidecars))
    made = HostPod(PodState(pod, None), "cgroup", Path())
    for container in (*containers, *sidecars):
        plan = ContainerPlan(container.name, None, 0)
        made.runs[container.name] = ContainerRun(ContainerId("u", container.name, 0), plan, None, 1, 0)
    return made


@pytest.mark.parametrize(("grace", "killed"), [(1, 2), (2, 2), (5, 5)])
def test_a_container_is_killed_after_its_grace_period_and_not_before_two_seconds(machine, grace, killed):
    assert machine.stop(running(Container("main")), grace, 10) == [(0, "main", "TERM"), (killed, "main", "KILL")]


def test_a_hook_that_sleeps_takes_its_time_off_the_grace_period(machine):
    """5 s of 6: SIGTERM at 5 s, one second is left and raised to two: SIGKILL at 7 s."""
    hook = Lifecycle(pre_stop=LifecycleHandler(SleepAction(5)))
    assert machine.stop(running(Container("main", lifecycle=hook)), 6, 10) == [(5, "main", "TERM"), (7, "main", "KILL")]


def test_a_sidecar_has_what_the_others_leave_of_the_grace_period_and_at_least_two_seconds(machine):
    """Main is killed at 4 s, when the sidecar has waited as long as it may: SIGTERM at 4 s, SIGKILL at 6 s."""
    sidecar = Container("proxy", restart_policy="Always")
    assert machine.stop(running(Container("main"), sidecars=(sidecar,)), 4, 10) == [
        (0, "main", "TERM"), (4, "main", "KILL"), (4, "proxy", "TERM"), (6, "proxy", "KILL"),
    ]  # fmt: skip


def test_a_grace_period_can_be_shortened_and_not_extended(machine):
    """30 s from 0 s, then 1 s from 3 s on: SIGKILL at 5 s. 60 s change nothing."""
    pod = running(Container("main"))
    machine.stop(pod, 30, 3)
    machine.stop(pod, 60, 0)
    assert machine.stop(pod, 1, 10) == [(0, "main", "TERM"), (5, "main", "KILL")]


def test_who_could_not_be_asked_is_asked_again_keeps_its_deadline_and_keeps_no_other_from_being_asked(machine):
    """The second call, at 1 s, sends what is missing; both are killed 5 s after the first."""
    machine.failures["main", "TERM"] = 1
    pod = running(Container("main"), Container("other"))
    with pytest.raises(OSError, match="Input/output error"):
        machine.stop(pod, 5, 0)
    machine._loop.run_for(1)
    assert machine.stop(pod, 5, 10) == [
        (0, "other", "TERM"), (1, "main", "TERM"), (5, "main", "KILL"), (5, "other", "KILL"),
    ]  # fmt: skip


def test_who_cannot_be_asked_at_all_is_killed_in_time(machine):
    machine.failures["main", "TERM"] = 99
    pod = running(Container("main"))
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            machine.stop(pod, 5, 0)
    machine._loop.run_for(10)
    assert machine.sent == [(5, "main", "KILL")]


def test_a_container_that_could_not_be_killed_is_killed_a_second_later(machine):
    machine.failures["main", "KILL"] = 2
    failed = []
    machine._loop.failed = failed.append
    assert machine.stop(running(Container("main")), 5, 10) == [(0, "main", "TERM"), (7, "main", "KILL")]
    assert len(failed) == 2
