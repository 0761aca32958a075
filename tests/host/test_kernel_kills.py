"""Kills that the kernel does not explain are told all the same: of many within seconds it says only that they were."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from podqos.agent.reasons import OOMLevel
from podqos.host.linux.cgroupfs import CgroupMemory
from podqos.host.linux.kmsg import KernelKill
from podqos.host.shell.kernel_kills import oom_kill_entry

MI = 1 << 20
POD, RUN = "/n/kubepods/podx", "/n/kubepods/podx/abc"
# Above what exists, so that no process of this machine is meant.
PID = 1 << 30


class Cgroups:
    """Limits and usage of our choice."""

    own = "/n"

    def __init__(self, **full: str) -> None:
        self._full = set(full.values())

    def memory_limit(self, path: str) -> int | None:
        return 100 * MI if path in {RUN, "/n"} else None

    def memory(self, path: str) -> CgroupMemory:
        return CgroupMemory(99 * MI if path in self._full else 10 * MI, 0, 0)


def _pods(pid: int) -> list[SimpleNamespace]:
    run = SimpleNamespace(pid=pid, cgroup=RUN, name="main")
    return [SimpleNamespace(runs={"main": run}, cgroup=POD, pod=SimpleNamespace(key="default/x"))]


@pytest.mark.parametrize(
    ("full", "is_of_cgroup", "level", "domain"),
    [
        (RUN, True, OOMLevel.CONTAINER, RUN),
        ("/n", True, OOMLevel.NODE, "/n"),
        ("/n", False, OOMLevel.NODE, "/"),
    ],
    ids=["its own limit", "the node's", "the machine's"],
)
def test_a_kill_without_an_explanation_is_that_of_the_process_and_of_the_limit_used_up(
    full, is_of_cgroup, level, domain
):
    kill = KernelKill(PID, "x", "", "", 10, 1000, is_of_cgroup=is_of_cgroup)
    entry = oom_kill_entry(kill, 1, "n", Cgroups(full=full), _pods(PID))
    assert (entry.pod, entry.container) == ("default/x", "main")
    assert (entry.because.level, entry.because.domain) == (level, domain)


def test_a_kill_outside_the_node_is_ignored():
    kill = KernelKill(PID, "x", "", "", 10, 1000, is_of_cgroup=True)
    assert oom_kill_entry(kill, 1, "n", Cgroups(), _pods(PID + 1)) is None
