"""The kernel says when something waits for memory: of real cgroups, where it has such a signal and allows it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from guard.kubelets import wait_until
from host.machine import MI, Share, needs_node
from podqos.host.linux.loop import Loop
from podqos.host.linux.psi import PressureWatch
from podqos.qos.cgroup_settings import CgroupVersion

GROWS = "import os, sys; open(sys.argv[1], 'w').write('0'); kept = bytearray(b'x') * (96 << 20); input()"


@needs_node
@pytest.mark.slow
def test_a_cgroup_that_waits_for_memory_is_heard_also_after_it_was_made_again():
    share, loop, heard = Share(), Loop(), []
    cgroups, path = share.cgroups, f"{share.own}/pods"
    if cgroups.version is CgroupVersion.V1:
        share.close()
        pytest.skip("cgroup v1 has no pressure of cgroups")
    cgroups.create(path)
    watch = PressureWatch(loop, cgroups.folder(path) / "memory.pressure", 10_000, 500_000, lambda: heard.append(1))

    def step(condition):
        loop.step(0.05)
        return condition()

    def stalls():
        """Let a process grow far above what makes it wait."""
        (cgroups.folder(path) / "memory.high").write_text(str(16 * MI))
        heard.clear()
        entrance = str(cgroups.folder(path) / "cgroup.procs")
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", GROWS, entrance], stdin=subprocess.PIPE) as process:
            wait_until(lambda: step(lambda: heard), "its waiting is heard")
            process.kill()

    try:
        if not watch.is_armed:
            pytest.skip("this kernel does not allow it")
        stalls()
        wait_until(lambda: cgroups.remove(path), "the cgroup is removed")
        wait_until(lambda: step(lambda: not watch.is_armed), "that is noticed")
        heard.clear()
        loop.run_for(0.5)
        assert len(heard) <= 1, "and not heard without end"
        cgroups.create(path)
        wait_until(lambda: step(lambda: watch.is_armed), "there is a cgroup again")
        stalls()
    finally:
        watch.close()
        loop.close()
        share.close()


def test_where_there_is_no_such_file_nothing_is_heard(tmp_path):
    loop = Loop()
    watch = PressureWatch(loop, tmp_path / "memory.pressure", 10_000, 500_000, lambda: None)
    assert not watch.is_armed
    watch.close()
    loop.close()
