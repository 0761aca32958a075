"""The memory of a process that was killed is freed by the one who killed it; nothing else is touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from host.machine import needs_node
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.memory_release import release_memory
from podqos.qos.cgroup_settings import CgroupVersion

MIB = 1 << 20
HOLDS = 64 * MIB
PROGRAM = f"import time; kept = bytearray(b'x') * {HOLDS}; print('grown', flush=True); time.sleep(1000)"


@pytest.fixture
def holder():
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", PROGRAM], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_what_was_not_killed_keeps_its_memory(holder):
    assert release_memory([holder.pid, os.getpid(), 0, 2**22 - 1]) == 0
    assert holder.poll() is None
    assert resident_bytes(holder.pid) >= HOLDS


@needs_node
def test_what_was_killed_is_freed_before_it_runs_again(holder):
    own = f"/podqos-test-freeing-{os.getpid()}"
    cgroups = open_cgroups(own)
    if cgroups.version is not CgroupVersion.V1:
        pytest.skip("in version 2 what is frozen dies at once")
    cgroups.create(own)
    try:
        for entrance in cgroups.entrances(own):
            Path(entrance).write_text(str(holder.pid))
        assert cgroups.freeze(own)
        holder.send_signal(signal.SIGKILL)
        assert resident_bytes(holder.pid) >= HOLDS
        assert release_memory([holder.pid]) == 1
        assert resident_bytes(holder.pid) < HOLDS // 2
    finally:
        cgroups.thaw(own)
        holder.wait()
        cgroups.remove(own)
