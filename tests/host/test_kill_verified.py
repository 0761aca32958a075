"""Killing the processes of a cgroup one by one: those forked meanwhile are found in the next round."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from podqos.host.linux import cgroupfs
from podqos.host.linux.cgroupfs_v2 import CgroupsV2
from podqos.host.runtimes.process import ProcessRuntime
from podqos.host.runtimes.runtime import ContainerId

CONTAINER = ContainerId("uid", "main", 0)


class Crowd(CgroupsV2):
    """A cgroup in which another process appears with every round, until all have appeared; some leave at once."""

    def __init__(self, *pids: int, leaving: tuple[int, ...] = ()) -> None:
        self.pids = pids
        self.leaving = leaving
        self.looks = 0

    def _write(self, _path: str, _files: object) -> tuple[()]:
        return ()

    def processes(self, _path: str) -> list[int]:
        rounds, is_second = divmod(self.looks, 2)
        self.looks += 1
        return [pid for pid in self.pids[: rounds + 1] if not (is_second and pid in self.leaving)]


@pytest.fixture
def children():
    made = [subprocess.Popen(["/bin/sleep", "1000"]) for _ in range(3)]
    yield made
    for child in made:
        child.kill()
        child.wait()


def test_processes_that_are_forked_while_others_are_killed_die_too(children):
    cgroup = Crowd(*(child.pid for child in children))
    assert cgroup._kill_each("/n/pod")
    assert [child.wait(300) for child in children] == [-signal.SIGKILL] * 3
    assert cgroup.looks == 2 * 3 + 1, "the last round finds no new process"


def test_a_process_that_has_left_the_cgroup_lives(children):
    cgroup = Crowd(*(child.pid for child in children), leaving=(children[1].pid,))
    assert cgroup._kill_each("/n/pod")
    assert [child.wait(300) for child in (children[0], children[2])] == [-signal.SIGKILL] * 2
    assert children[1].poll() is None


def test_a_process_whose_id_was_reused_lives(children, monkeypatch):
    """Between the list and the signal a process ends, and another one outside the cgroup gets its id."""
    ended, other = children[0].pid, children[1].pid
    cgroup = Crowd(ended, leaving=(ended,))
    monkeypatch.setattr(cgroupfs, "open_pidfd", lambda pid: os.pidfd_open(other if pid == ended else pid))
    assert cgroup._kill_each("/n/pod")
    assert children[1].poll() is None


def test_more_processes_than_descriptors_are_killed_some_at_a_time(children, monkeypatch):
    monkeypatch.setattr(cgroupfs, "_at_once", lambda: 2)
    cgroup = Crowd()
    monkeypatch.setattr(cgroup, "processes", lambda _path: [child.pid for child in children])
    assert cgroup._kill_each("/n/pod")
    assert [child.wait(300) for child in children] == [-signal.SIGKILL] * 3


class Watched(Crowd):
    """A cgroup that says what was asked of it, and what the main process was doing by then."""

    def __init__(self, main: subprocess.Popen[bytes]) -> None:
        super().__init__(main.pid)
        self.main = main
        self.asked: list[str] = []

    def holds(self, _path: str, pid: int) -> bool:
        self.asked.append("holds")
        return pid == self.main.pid

    def kill(self, _path: str) -> bool:
        self.asked.append("kill")
        assert self.main.wait(30) == -signal.SIGKILL, "it is killed before the others are looked for"
        return True


@pytest.fixture
def main_alone(children):
    runtime = ProcessRuntime.__new__(ProcessRuntime)
    runtime._cgroups = Watched(children[0])
    runtime._running = {CONTAINER: (children[0].pid, "/n/pod/main")}
    return runtime


def test_the_main_process_is_killed_before_the_others_are_looked_for(main_alone):
    main_alone.kill(CONTAINER)
    assert main_alone._cgroups.asked == ["holds", "kill"]


def test_where_the_main_process_is_is_asked_once_to_terminate_it(main_alone):
    main_alone.terminate(CONTAINER)
    assert main_alone._cgroups.asked == ["holds"]
    assert main_alone._cgroups.main.wait(300) == -signal.SIGTERM
