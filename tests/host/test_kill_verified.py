"""Killing the processes of a cgroup one by one: those forked meanwhile are found in the next round."""

from __future__ import annotations

import signal
import subprocess

import pytest

from podqos.host.linux.cgroupfs_v2 import CgroupsV2


class Crowd(CgroupsV2):
    """A cgroup in which another process appears with every look, until all have appeared."""

    def __init__(self, *pids: int, elsewhere: tuple[int, ...] = ()) -> None:
        self.pids = pids
        self.elsewhere = elsewhere
        self.looks = 0

    def _write(self, _path: str, _files: object) -> tuple[()]:
        return ()

    def processes(self, _path: str) -> list[int]:
        self.looks += 1
        return list(self.pids[: self.looks])

    def holds(self, _path: str, pid: int) -> bool:
        return pid not in self.elsewhere


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
    assert [child.wait(60) for child in children] == [-signal.SIGKILL] * 3
    assert cgroup.looks == 4, "the last round finds no new process"


def test_a_process_that_has_left_the_cgroup_lives(children):
    cgroup = Crowd(*(child.pid for child in children), elsewhere=(children[1].pid,))
    assert cgroup._kill_each("/n/pod")
    assert [child.wait(60) for child in (children[0], children[2])] == [-signal.SIGKILL] * 2
    assert children[1].poll() is None
