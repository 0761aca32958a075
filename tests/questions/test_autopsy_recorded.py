"""Autopsies of OOMs provoked on real kernels (``kernel/record_ooms.py``), where it is known who really died."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from kernel import record_ooms, trials
from podqos.model.pod import QOSClass
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.questions.autopsy_death import Cause, Reason, SavedBy, ShortageKind
from questions.test_autopsy_rule import examined

FOLDER = Path(__file__).parents[1] / "kernel" / "ooms"
RECORDED = [
    pytest.param(json.loads(line), id=f"{path.name.partition('.jsonl')[0]}-{json.loads(line)['name']}")
    for path in sorted(FOLDER.glob("*.jsonl.gz"))
    for line in gzip.decompress(path.read_bytes()).decode().splitlines()
]
MAIN_CAUSE = {
    "container-tmpfs": Cause.TMPFS,
    "container-kernel": Cause.KERNEL_MEMORY,
    "kubepods-tmpfs": Cause.TMPFS,
    "machine-tmpfs": Cause.TMPFS,
    "machine-guaranteed": Cause.NEIGHBOUR,
    "machine-own": Cause.OWN_USE,
    "machine-daemon": Cause.OWN_USE,
    "kubepods-own": Cause.OWN_USE,
    "nodes-cpuset": Cause.ELSEWHERE,
    "nodes-policy": Cause.ELSEWHERE,
}
UNPROVEN = {CgroupLevel.CGROUP, CgroupLevel.UNKNOWN}
LEVELS = {"nodes": CgroupLevel.MACHINE} | {str(level): level for level in CgroupLevel if level not in UNPROVEN}
OWN = {CgroupLevel.CONTAINER, CgroupLevel.POD, CgroupLevel.SYSTEM}


def test_there_are_recordings_of_both_cgroup_versions_and_of_other_pages():
    kernels = {param.values[0]["kernel"] for param in RECORDED}
    assert len(kernels) >= 4
    assert any(name.endswith("16k") for name in kernels)
    assert {param.values[0]["name"].partition("-")[0] for param in RECORDED} == set(LEVELS)


@pytest.mark.parametrize("recorded", RECORDED)
def test_the_autopsy_of_a_real_oom_names_who_died_at_which_level_and_why(recorded):
    kills = examined(recorded["log"])
    name = recorded["name"]
    level = LEVELS[name.partition("-")[0]]
    died = [victim.pid for kill in kills for victim in kill.victims]
    assert set(died) == set(recorded["killed"])
    assert len(kills) == 1 or len(kills) == len(died)
    for kill in kills:
        roles = recorded["roles"]
        assert all(victim.name.startswith(roles[str(victim.pid)]) for victim in kill.victims)
        expected = {"oom_kill_allocating_task": Reason.ASKED, "oom_dump_tasks": Reason.NO_TABLE}
        assert kill.reason is expected.get(name.rpartition("-")[2], Reason.HIGHEST)
        assert kill.follows_rule is (None if kill.reason is Reason.NO_TABLE else True)
        assert kill.oom.scope is level
        assert (kill.oom.page_bytes == 16384) is recorded["kernel"].endswith("16k")
        _judged(kill, name, level)
    assert kills[0].causes[0].cause is MAIN_CAUSE.get(name, kills[0].causes[0].cause)


@pytest.mark.slow
@pytest.mark.parametrize("case", record_ooms.CASES, ids=lambda case: case.name)
def test_the_autopsy_of_an_oom_of_this_machine_names_who_died(case):
    try:
        found = trials.hierarchy()
        recorded = record_ooms.record(case, found.mount, found.version)
    except (trials.Missing, PermissionError) as reason:
        pytest.skip(f"no memory cgroups of our own, or no kernel log: {reason}")
    if not recorded["log"]:
        pytest.skip("the kernel's report was left out: they are rate limited")
    assert {victim.pid for kill in examined(recorded["log"]) for victim in kill.victims} <= set(recorded["killed"])
    assert all(kill.follows_rule for kill in examined(recorded["log"]))


def _judged(kill, name, level):
    """Check shortage, causes and savings."""
    shortage = kill.oom.shortage
    used = shortage.parts
    if level is CgroupLevel.MACHINE:
        assert shortage.kind is (ShortageKind.NODES if name.startswith("nodes") else ShortageKind.WATERMARKS)
        # The memory is accounted for, but for what is being freed in the second of two OOMs.
        assert used.other_bytes < 100 << 20
        assert shortage.free_elsewhere_bytes > 50 << 20 or not name.startswith("nodes")
    else:
        assert shortage.kind is ShortageKind.LIMIT
        # The second of two OOMs is told while the first victim's memory is being freed.
        assert shortage.usage_bytes >= 0.9 * shortage.limit_bytes
        assert used.anon_bytes + used.file_bytes + used.shmem_bytes + used.kernel_bytes >= 0.7 * shortage.usage_bytes
        changes = {each.change for each in kill.saved_by}
        expected = SavedBy.NODE_SIZE if level is CgroupLevel.KUBEPODS else SavedBy.LIMIT
        assert expected in changes
        assert level not in OWN or changes == {SavedBy.LIMIT}
        assert (Cause.OWN_LIMIT in {each.cause for each in kill.causes}) is (level in OWN)
    assert (kill.qos_class is QOSClass.GUARANTEED) <= (kill.victims[0].oom_score_adj == -997)
