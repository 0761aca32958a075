"""The thread between the node and a slow runtime, with a runtime that does what the test says."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from podqos.errors import HostError
from podqos.host.linux.cgroupfs_v2 import CgroupsV2
from podqos.host.runtimes import engine as engine_module
from podqos.host.runtimes.engine import CANNOT_START_CODE, EngineRuntime
from podqos.host.runtimes.runtime import (
    LOST_CODE,
    ContainerExit,
    ContainerId,
    ContainerPlace,
    ContainerStart,
    ExecResult,
    FoundContainer,
    StartError,
)
from podqos.qos.cgroup import Cgroup, Level

NAME = ContainerId("u", "main", 0)
CGROUP = Cgroup(Level.CONTAINER, "/own/pod/id", ())
START = ContainerStart(
    id=NAME, image="", command=(), args=(), env={}, working_dir="", mounts=(), cgroup=CGROUP, oom_score_adj=0,
    folder=Path("/nowhere"), log=Path("/nowhere"), log_bytes=1, log_files=1,
)  # fmt: skip


class FakeCgroups(CgroupsV2):
    """Cgroups in which every process of ours is."""

    own = "/own"

    def __init__(self) -> None:
        self.killed: list[str] = []

    def holds(self, _path: str, _pid: int) -> bool:
        return True

    def kill(self, path: str) -> bool:
        self.killed.append(path)
        return True


class FakeEngine:
    """Starts a process that sleeps, when it is let."""

    name = "fake"

    def __init__(self) -> None:
        self.may_start = threading.Event()
        self.begun = threading.Event()
        self.fails: Exception | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.found: list[FoundContainer] = []
        self.knows_ends = True

    def start(self, _container: ContainerStart) -> ContainerPlace:
        self.begun.set()
        assert self.may_start.wait(300)
        if self.fails is not None:
            raise self.fails
        self.process = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(1000)"])
        return ContainerPlace(NAME, "/own/pod/id", self.process.pid)

    def ended(self, _container: ContainerId) -> ContainerExit | None:
        if not self.knows_ends:
            raise HostError("it does not answer")
        assert self.process is not None
        code = self.process.poll()
        return None if code is None else ContainerExit(NAME, 128 - code, oom_killed=True)

    def execute(self, _container: ContainerStart, _command: list[str], _seconds: float) -> int:
        raise HostError("the container is not running yet")

    def containers(self) -> list[FoundContainer]:
        return self.found

    def remove(self, container: ContainerId) -> None: ...

    def tidy(self) -> None: ...

    def close(self, *, end: bool) -> None: ...


@pytest.fixture
def engine():
    made = FakeEngine()
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.wait()


@pytest.fixture
def cgroups():
    return FakeCgroups()


@pytest.fixture
def notes():
    return []


@pytest.fixture
def runtime(engine, cgroups, notes):
    made = EngineRuntime(lambda _note: engine, cgroups, notes.append)
    yield made
    engine.may_start.set()
    made.close(end=True)


def exits(runtime: EngineRuntime, seconds: float = 300) -> list[ContainerExit]:
    """Wait for the next ends."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        select.select([runtime.fileno()], [], [], 0.05)
        found = [each for each in runtime.heard() if isinstance(each, ContainerExit)]
        if found:
            return found
    return []


def test_a_start_does_not_keep_the_node_waiting(runtime, engine):
    before = time.monotonic()
    runtime.start(START)
    assert time.monotonic() - before < 50, "it would wait a minute for the engine"
    assert engine.begun.wait(300)
    assert runtime.heard() == []


def test_a_container_killed_before_it_was_started_is_killed_once_it_is(runtime, engine, cgroups):
    runtime.start(START)
    assert engine.begun.wait(300)
    runtime.kill(NAME)
    assert cgroups.killed == []
    engine.may_start.set()
    while engine.process is None:
        time.sleep(0.001)
    while not cgroups.killed:
        time.sleep(0.001)
    engine.process.kill()
    assert exits(runtime) == [ContainerExit(NAME, 137, oom_killed=True)]


@pytest.mark.parametrize(("numbers", "code"), [(["terminate"], 143), (["kill", "terminate"], None)])
def test_a_signal_that_comes_too_early_is_kept_and_the_stronger_one_counts(runtime, engine, cgroups, numbers, code):
    runtime.start(START)
    assert engine.begun.wait(300)
    for name in numbers:
        getattr(runtime, name)(NAME)
    engine.may_start.set()
    if code is None:
        while not cgroups.killed:
            time.sleep(0.001)
    else:
        assert exits(runtime) == [ContainerExit(NAME, code, oom_killed=True)]


@pytest.fixture
def urgent_thread():
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -5)
    except PermissionError:
        pytest.skip("not allowed to be more urgent than others")
    yield
    os.setpriority(os.PRIO_PROCESS, 0, before)


def test_containers_do_not_inherit_the_priority_of_the_agent(urgent_thread, runtime, engine):
    engine.may_start.set()
    runtime.start(START)
    while engine.process is None:
        time.sleep(0.001)
    assert os.getpriority(os.PRIO_PROCESS, engine.process.pid) == 0


def test_a_container_killed_while_queued_is_never_started(runtime, engine):
    other = ContainerId("u", "other", 0)
    runtime.start(START)
    runtime.start(replace(START, id=other))
    assert engine.begun.wait(300)
    runtime.kill(other)
    engine.fails = HostError("no")
    engine.may_start.set()
    heard = exits(runtime)
    heard += exits(runtime) if len(heard) == 1 else []
    assert [(each.id, each.exit_code) for each in heard] == [(NAME, CANNOT_START_CODE), (other, 137)]


@pytest.mark.parametrize(
    ("failure", "reason", "message"),
    [
        (HostError("no"), "RunContainerError", "no"),
        (StartError("ErrImagePull", "not a layer"), "ErrImagePull", "not a layer"),
        (ValueError("nobody thought of it"), "RunContainerError", "ValueError: nobody thought of it"),
    ],
    ids=["the machine's", "the image's", "unexpected"],
)
def test_a_start_that_fails_is_an_end_with_a_reason_and_others_go_on(engine, request, failure, reason, message):
    runtime, notes = (request.getfixturevalue(name) for name in ("runtime", "notes"))
    engine.fails = failure
    engine.may_start.set()
    runtime.start(START)
    assert exits(runtime) == [ContainerExit(NAME, CANNOT_START_CODE, reason=reason, message=message)]
    assert notes == [f"main: {message}"]
    engine.fails = None
    runtime.start(START)
    until = time.monotonic() + 300
    while engine.process is None:
        assert time.monotonic() < until, "its thread is gone"
        time.sleep(0.001)


def test_commands_without_threads_left_have_failed(runtime, notes, monkeypatch):
    def none_left(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    runtime.execute(START, ["true"], "token", 1)
    assert runtime.heard() == [ExecResult("token", 126)]
    assert notes == ["main: can't start new thread"]


def test_a_runtime_that_never_says_how_it_ended_is_not_waited_for_for_ever(runtime, engine, notes, monkeypatch):
    monkeypatch.setattr(engine_module, "_END_SECONDS", 0.1)
    engine.knows_ends = False
    engine.may_start.set()
    runtime.start(START)
    while engine.process is None:
        time.sleep(0.001)
    engine.process.kill()
    assert exits(runtime) == [ContainerExit(NAME, LOST_CODE)]
    assert notes == ["main: the runtime did not report an exit status"]


def test_an_end_that_the_runtime_notices_late_keeps_its_code_and_does_not_delay_other_work(runtime, engine):
    engine.knows_ends = False
    engine.may_start.set()
    runtime.start(START)
    while engine.process is None:
        time.sleep(0.001)
    engine.process.kill()
    assert exits(runtime, 0.3) == []
    before = time.monotonic()
    assert runtime.containers() == []
    assert time.monotonic() - before < 20, "it would wait half a minute for the end"
    engine.knows_ends = True
    assert exits(runtime) == [ContainerExit(NAME, 137, oom_killed=True)]


def test_what_is_found_twice_ends_once(runtime, engine):
    engine.process = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(1000)"])
    engine.found = [FoundContainer(NAME, "/own/pod/id", engine.process.pid, None)]
    assert runtime.containers() == runtime.containers() == engine.found
    engine.process.kill()
    assert exits(runtime) == [ContainerExit(NAME, 137, oom_killed=True)]
    assert exits(runtime, 0.2) == []


def test_a_command_that_cannot_run_says_why_and_has_failed(runtime, notes):
    runtime.execute(START, ["sleep"], "token", 1)
    until = time.monotonic() + 300
    results = []
    while not results and time.monotonic() < until:
        results = runtime.heard()
    assert [(result.token, result.exit_code) for result in results] == [("token", 126)]
    assert notes == ["main: the container is not running yet"]
