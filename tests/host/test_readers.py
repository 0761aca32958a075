"""The readers over a made-up tree, where every figure is known, and over the machine's own, where some are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities, detect, find_mounts
from podqos.host.linux.cgroupfs import CgroupMemory
from podqos.host.linux.cgroupfs_v1 import CgroupsV1
from podqos.host.linux.cgroupfs_v2 import CgroupsV2
from podqos.host.linux.procfs import Procfs, read_text
from podqos.host.linux.psi import read_pressure
from podqos.qos.cgroup_settings import CgroupVersion

TREE = Path(__file__).parent / "tree"
PROC = Procfs(TREE / "proc")
V1 = CgroupsV1({name: TREE / "v1" / name for name in ("memory", "pids")}, "/podqos", PROC)
V2 = CgroupsV2(TREE / "v2", "/podqos", PROC)
POD = "/podqos/kubepods/podx"


class TestProcfs:
    def test_a_name_may_hold_parentheses_and_blanks(self):
        assert PROC.stat(4711)[:2] == ["S", "12"]

    def test_cgroups_are_by_controller_whatever_they_are_mounted_with(self):
        assert PROC.cgroups(4711) == {
            **dict.fromkeys(("pids", "memory", "cpu", "cpuacct"), "/podqos/kubepods/podx/abc"),
            "": "/user.slice",
        }

    def test_a_file_is_read_to_its_end_however_long_it_is(self, tmp_path):
        file = tmp_path / "cgroup.procs"
        for text in ("", "7\n", "".join(f"{pid}\n" for pid in range(50_000))):
            file.write_text(text)
            assert read_text(file) == text

    def test_bytes_that_are_no_text_and_a_directory_end_nothing(self, tmp_path):
        (tmp_path / "comm").write_bytes(b"caf\xe9\r\n")
        assert read_text(tmp_path / "comm") == "caf\ufffd\r\n"
        assert read_text(tmp_path) is None
        assert read_text(tmp_path / "gone") is None

    def test_what_is_gone_is_none(self):
        assert PROC.stat(1) == []
        assert PROC.oom_score_adj(1) is None
        assert PROC.cgroups(1) == {}

    def test_the_machine(self):
        memory = PROC.machine_memory()
        assert (memory.total_bytes, memory.inactive_file_bytes) == (24682000 << 10, 500000 << 10)
        assert (PROC.max_pids(), PROC.running_threads()) == (192720, 345)

    def test_this_very_process(self):
        real = Procfs()
        assert real.stat(os.getpid())[1] == str(os.getppid())
        assert f"PATH={os.environ['PATH']}" in real.environment(os.getpid())
        assert real.oom_score_adj(os.getpid()) is not None
        assert real.machine_memory().total_bytes > real.machine_memory().free_bytes > 0
        assert real.running_threads() < real.max_pids()


@pytest.mark.parametrize("cgroups", [V1, V2], ids=["v1", "v2"])
class TestBothVersions:
    def test_memory_counts_those_below_and_the_working_set_leaves_inactive_file_pages_out(self, cgroups):
        memory = cgroups.memory(POD)
        assert memory == CgroupMemory(60_000_000, 4_000_000, 50_000_000)
        assert memory.working_set_bytes == 56_000_000

    def test_limits(self, cgroups):
        assert cgroups.memory_limit(POD) == 100 << 20
        assert cgroups.memory_limit("/podqos") is None

    def test_counters(self, cgroups):
        assert (cgroups.pids(POD), cgroups.oom_kills(POD)) == (5, 3)

    def test_processes_and_children(self, cgroups):
        assert cgroups.processes("/podqos") == [17, 18]
        assert cgroups.children("/podqos/kubepods") == ["podx"]

    def test_what_has_vanished_is_none(self, cgroups):
        gone = "/podqos/kubepods/pody"
        assert cgroups.memory(gone) is cgroups.memory_limit(gone) is cgroups.pids(gone) is None
        assert (cgroups.exists(gone), cgroups.processes(gone), cgroups.oom_kills(gone)) == (False, [], 0)

    def test_a_process_is_where_the_kernel_says_it_is(self, cgroups):
        assert cgroups.holds(POD, 4711) == (cgroups is V1)
        assert not cgroups.holds("/podqos/kubepods/po", 4711)

    @pytest.mark.parametrize("path", ["/", "/podqos2", "/podqos/../system.slice", "/system.slice"])
    def test_cgroups_outside_the_node_are_not_touched(self, cgroups, path):
        for change in (cgroups.create, cgroups.remove, cgroups.kill, cgroups.entrances, cgroups.hold):
            with pytest.raises(HostError, match="refusing to touch it"):
                change(path)


def test_a_tree_without_the_memory_controller_is_refused(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("cpu pids\n")
    with pytest.raises(HostError, match="no cgroup controller for memory"):
        CgroupsV2(tmp_path, "/podqos")
    with pytest.raises(HostError, match="no cgroup controller for memory"):
        CgroupsV1({"cpu": tmp_path}, "/podqos")


def test_pressure():
    pressure = read_pressure(TREE / "proc" / "pressure" / "memory")
    assert (pressure.some.avg10, pressure.some.total_us, pressure.full.total_us) == (1.5, 378688, 166839)
    assert read_pressure(TREE / "nothing") is None


class TestCapabilities:
    def test_mounts_are_found_by_controller(self):
        mounts = find_mounts(PROC)
        assert mounts.v1["memory"] == Path("/sys/fs/cgroup/memory")
        assert mounts.v1["cpuacct"] == mounts.v1["cpu"] == Path("/sys/fs/cgroup/cpu,cpuacct")

    def test_what_is_missing_is_said_in_one_line_each(self):
        found = detect(PROC)
        assert (found.can_lower_oom_score, found.version, found.is_hybrid) == (False, CgroupVersion.V1, True)
        lines = found.lines()
        assert "no pids controller: pod pid limits are not enforced, and processes are not counted per pod" in lines
        assert any(line.startswith("CAP_SYS_RESOURCE is missing") for line in lines)
        assert all("\n" not in line for line in lines)

    @pytest.mark.parametrize(
        ("can_lower", "wanted", "own", "expected"),
        [
            (True, -997, 0, (-997, None)),
            (False, 1000, 0, (1000, None)),
            (False, -997, 0, (0, "wanted −997, kept 0: CAP_SYS_RESOURCE is missing")),
            (False, -997, -999, (-997, None)),
        ],
        ids=["allowed", "raising", "lowering", "not-below-own"],
    )
    def test_a_score_that_cannot_be_had_is_replaced_and_named(self, can_lower, wanted, own, expected):
        held = Capabilities(
            is_root=True,
            can_lower_oom_score=can_lower,
            own_oom_score_adj=own,
            can_mount=True,
            version=CgroupVersion.V1,
            is_hybrid=False,
            controllers=("memory",),
            has_cgroup_kill=False,
            has_pressure=True,
            has_systemd=False,
        )
        assert held.oom_score_adj(wanted) == expected

    @pytest.mark.skipif(sys.platform != "linux", reason="reads this machine")
    def test_this_machine_can_be_described(self):
        assert all(isinstance(line, str) for line in detect().lines())
