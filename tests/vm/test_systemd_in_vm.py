"""A node on a machine that systemd runs: it asks for a delegated scope, and stays below it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vm.boot import run_in_vm
from vm.packages import Missing

pytestmark = pytest.mark.slow

SYSTEMD = Path("/lib/systemd/systemd")


@pytest.mark.skipif(not SYSTEMD.exists(), reason="this machine has no systemd for the guest to run")
@pytest.mark.skipif(os.geteuid() != 0, reason="the virtual machine's files are fetched as root")
def test_the_pods_of_a_node_live_in_a_scope_that_outlives_the_agent():
    guest = Path(__file__).with_name("systemd_guest.py")
    try:
        reports, console = run_in_vm(guest, memory_mib=768, timeout_seconds=900, systemd=True)
    except Missing as reason:
        pytest.skip(f"no virtual machine: {reason}")
    if not reports:
        pytest.skip(f"the virtual machine did not start: {console[-2000:]}")
    found = {each.pop("check"): each for each in reports}
    assert {check: each["good"] for check, each in found.items() if "good" in each} == {
        "started": True,
        "outlives": True,
        "adopted": True,
        "ended": True,
    }, console[-4000:]
    scope = found["scope"]
    assert scope["limit"] == str(200 << 20)
    assert scope["shown"].split() == ["Delegate=yes", "ActiveState=active"]
    assert scope["shim"].strip().isdecimal()
