"""The real node where cgroups are of version 2 and negative scores are allowed: its own tests, run inside."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

import pytest

from vm.boot import run_in_vm
from vm.node_guest import CHECKS
from vm.packages import Missing

pytestmark = pytest.mark.slow

GUEST = Path(__file__).with_name("node_guest.py")
MEMORY_MIB = 768


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory, worker_id):
    """Return what the guest reported, by name of the test; one boot for all, whichever process runs them."""
    if os.geteuid() != 0:
        pytest.skip("the virtual machine's files are fetched as root")
    shared = tmp_path_factory.getbasetemp()
    shared = shared if worker_id == "master" else shared.parent
    kept = shared / "node-vm.json"
    with (shared / "node-vm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_text(json.dumps(boot()))
    result = json.loads(kept.read_text())
    if "missing" in result:
        pytest.skip(result["missing"])
    return result


def boot() -> dict[str, object]:
    """Run the guest; says what is missing where that cannot be done."""
    try:
        found, console = run_in_vm(GUEST, memory_mib=MEMORY_MIB, timeout_seconds=1500)
    except Missing as reason:
        return {"missing": f"no virtual machine: {reason}"}
    end = console[-2000:].strip() or "it said nothing"
    if not found:
        return {"missing": f"the virtual machine did not start: {end}"}
    return {**{str(each["check"]): each for each in found}, "end": end}


@pytest.mark.parametrize("check", [name.rpartition("::")[2] for name in CHECKS])
def test_on_cgroup_v2(outcomes, check):
    assert check in outcomes, f"the virtual machine did not come to it: {outcomes['end']}"
    outcome = outcomes[check]
    assert outcome["outcome"] == "passed", outcome["text"]
