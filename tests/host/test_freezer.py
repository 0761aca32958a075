"""The freezer and the kill of both versions of cgroups, on this machine's own; a hybrid one has both."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from host.machine import why_not
from podqos.errors import HostError
from podqos.host.linux.capabilities import find_mounts
from podqos.host.linux.cgroupfs_v1 import CgroupsV1
from podqos.host.linux.cgroupfs_v2 import CgroupsV2
from podqos.host.linux.procfs import Procfs

FORKS = "while :; do sleep 1000 & sleep 0.001; done"


def wait_until(condition, seconds=30.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.002)


@pytest.fixture(params=["v1", "v2"])
def cgroups(request, monkeypatch):
    if (why := why_not()) is not None:
        pytest.skip(why)
    own, mounts = f"/podqos-freezer-{os.getpid()}", find_mounts(Procfs())
    if request.param == "v1":
        if not {"memory", "freezer"} <= mounts.v1.keys():
            pytest.skip("no freezer of version 1 is mounted")
        made = CgroupsV1(mounts.v1, own)
    else:
        if mounts.v2 is None:
            pytest.skip("no cgroup2 is mounted")
        # Beside version 1 it has no controllers: the freezer and the kill are the tree's own.
        monkeypatch.setattr("podqos.host.linux.cgroupfs_v2.read_text", lambda _file: "memory")
        made = CgroupsV2(mounts.v2, own)
        monkeypatch.undo()
    made.create(f"{own}/pod/container")
    started = []

    def start(script):
        entrances = made.entrances(f"{own}/pod/container")
        enter = "".join(f"echo 0 > {entrance}; " for entrance in entrances)
        started.append(subprocess.Popen(["/bin/sh", "-c", f"{enter}{script}"], start_new_session=True))
        wait_until(lambda: started[-1].pid in made.charged(f"{own}/pod"))
        return started[-1]

    made.start = start
    yield made
    made.thaw(f"{own}/pod")
    made.end([own], 30)
    for process in started:
        process.kill()
        process.wait()


def test_what_is_frozen_stands_still_until_it_is_thawed(cgroups):
    pod = f"{cgroups.own}/pod"
    cgroups.start(FORKS)
    wait_until(lambda: len(cgroups.charged(pod)) > 10)
    assert not cgroups.thaw(pod), "it was not frozen"

    assert cgroups.freeze(pod)
    file = "freezer.state" if isinstance(cgroups, CgroupsV1) else "cgroup.events"
    wait_until(lambda: any(word in cgroups.read(pod, file) for word in ("FROZEN", "frozen 1")))
    before = cgroups.charged(pod)
    time.sleep(0.1)
    assert cgroups.charged(pod) == before

    assert cgroups.thaw(pod)
    wait_until(lambda: cgroups.charged(pod) - before)


def test_what_was_killed_while_frozen_dies_at_once_or_when_it_is_thawed(cgroups):
    pod = f"{cgroups.own}/pod"
    cgroups.start(FORKS)
    wait_until(lambda: len(cgroups.charged(pod)) > 10)
    cgroups.freeze(pod)

    assert cgroups.kill_charged(f"{pod}/container") > 5  # some may just have ended
    if isinstance(cgroups, CgroupsV2):
        wait_until(lambda: not cgroups.has_processes(pod))
        return
    time.sleep(0.05)
    assert cgroups.has_processes(pod), "version 1 keeps it"
    cgroups.thaw(pod)
    wait_until(lambda: not cgroups.has_processes(pod))


def test_nothing_outside_the_own_cgroup_is_frozen_thawed_or_killed(cgroups):
    for change in (cgroups.freeze, cgroups.thaw, cgroups.kill_charged):
        with pytest.raises(HostError):
            change("/elsewhere")


def test_a_cgroup_that_is_gone_cannot_be_frozen_and_has_no_processes(cgroups):
    gone = f"{cgroups.own}/gone"
    assert not cgroups.freeze(gone)
    assert not cgroups.thaw(gone)
    assert cgroups.kill_charged(gone) == 0
    assert not cgroups.has_processes(gone)
