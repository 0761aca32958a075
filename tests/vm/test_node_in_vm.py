"""The real node where cgroups are of version 2 and negative scores are allowed: its own tests, run inside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vm.boot import run_in_vm
from vm.node_guest import CHECKS
from vm.packages import Missing

GUEST = Path(__file__).with_name("node_guest.py")
MEMORY_MIB = 768


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the virtual machine's files are fetched as root")
def test_the_nodes_own_tests_pass_on_cgroup_v2():
    """All in one machine, and one test here: as several, other processes would wait for it as well."""
    try:
        reports, console = run_in_vm(GUEST, memory_mib=MEMORY_MIB, timeout_seconds=1500)
    except Missing as reason:
        pytest.skip(f"no virtual machine: {reason}")
    end = console[-2000:].strip() or "it said nothing"
    if not reports:
        pytest.skip(f"the virtual machine did not start: {end}")
    outcomes = {each["check"]: each for each in reports}
    failed = {check: each["text"] for check, each in outcomes.items() if each["outcome"] != "passed"}
    assert not failed, "\n\n".join(f"{check}:\n{text}" for check, text in failed.items())
    assert {name.rpartition("::")[2] for name in CHECKS} == outcomes.keys(), end
