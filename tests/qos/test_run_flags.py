"""The decisions as ``docker run`` and ``podman run`` flags: which follow, which have no counterpart, which are gone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from admission.pods import container, pod
from podqos.model.pod import Pod
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion, MemoryQoS, SwapBehavior
from podqos.qos.cgroup_values import Rule
from podqos.qos.classes import classify
from podqos.qos.oom import OOMRule
from podqos.qos.run_flags import ContainerFlags, Flag, FlagStatus, Note, run_flags

GI = 2**30
NODE = CgroupSettings(node_memory_bytes=64 * GI)
V1 = replace(NODE, cgroup_version=CgroupVersion.V1)

BURSTABLE = pod(container(requests="cpu=250m,memory=4130Mi", limits="cpu=500m,memory=8Gi"))
GUARANTEED = pod(container(requests="cpu=2,memory=1Gi", limits="cpu=2,memory=1Gi"))
BEST_EFFORT = pod(container())

# The list of source 001, in its order of subjects.
FLAGS = [
    "--oom-score-adj",
    "--memory",
    "--memory-reservation",
    "--memory-swap",
    "--memory-swappiness",
    "--cpu-shares",
    "--cpu-period",
    "--cpu-quota",
    "--cpuset-cpus",
    "--cpuset-mems",
    "--cpu-percent",
    "--oom-kill-disable",
    "--kernel-memory",
]


def flags(given_pod: Pod, settings: CgroupSettings = NODE, engine: str = "docker") -> ContainerFlags:
    (found,) = run_flags(given_pod, classify(given_pod).qos_class, settings, engine)
    return found


def flag(name: str, given_pod: Pod, settings: CgroupSettings = NODE, engine: str = "docker") -> Flag:
    (found,) = (each for each in flags(given_pod, settings, engine).flags if each.name == name)
    return found


@pytest.mark.parametrize("settings", [NODE, V1], ids=["v2", "v1"])
@pytest.mark.parametrize("given_pod", [BURSTABLE, GUARANTEED, BEST_EFFORT], ids=["burstable", "guaranteed", "nothing"])
def test_every_flag_of_the_list_is_answered_for_every_container(given_pod, settings):
    assert [each.name for each in flags(given_pod, settings).flags] == FLAGS


def test_a_burstable_container_as_a_command_line():
    assert flags(BURSTABLE).arguments() == (
        "--oom-score-adj=937",
        "--memory=8589934592",
        "--memory-swap=8589934592",
        "--cpu-shares=256",
        "--cpu-period=100000",
        "--cpu-quota=50000",
    )


def test_a_best_effort_container_as_a_command_line():
    assert flags(BEST_EFFORT).arguments() == ("--oom-score-adj=1000", "--cpu-shares=2")


def test_values_carry_the_reasons_of_the_plan():
    score = flag("--oom-score-adj", BURSTABLE).oom_score
    assert (score.rule, score.request_bytes) == (OOMRule.BURSTABLE, 4130 * 2**20)
    memory, quota = flag("--memory", BURSTABLE).because, flag("--cpu-quota", BEST_EFFORT).because
    assert (memory.rule, str(memory.amount)) == (Rule.LIMIT, "8Gi")
    assert (quota.rule, quota.containers) == (Rule.NO_LIMIT, ("main",))


@pytest.mark.parametrize(
    ("name", "settings", "status", "note", "also"),
    [
        ("--memory-reservation", NODE, FlagStatus.NO_COUNTERPART, Note.SOFT_LIMIT, None),
        ("--memory-swappiness", V1, FlagStatus.NO_COUNTERPART, Note.SWAPPINESS, None),
        ("--memory-swappiness", NODE, FlagStatus.GONE, Note.SWAPPINESS, Note.NOT_ON_CGROUP_V2),
        ("--oom-kill-disable", V1, FlagStatus.NO_COUNTERPART, Note.OOM_KILLER_STAYS, None),
        ("--oom-kill-disable", NODE, FlagStatus.GONE, Note.OOM_KILLER_STAYS, Note.NOT_ON_CGROUP_V2),
        ("--kernel-memory", NODE, FlagStatus.GONE, Note.KERNEL_MEMORY, None),
        ("--kernel-memory", V1, FlagStatus.GONE, Note.KERNEL_MEMORY, None),
    ],
)
def test_flags_that_no_pod_decides(name, settings, status, note, also):
    assert flag(name, BURSTABLE, settings) == Flag(name, status, None, note, also=also)


def test_a_request_becomes_a_soft_limit_only_with_memory_qos():
    settings = replace(NODE, memory_qos=MemoryQoS(reservation_policy="TieredReservation"))
    found = flag("--memory-reservation", BURSTABLE, settings)
    assert (found.status, found.value) == (FlagStatus.FOLLOWS, str(4130 * 2**20))
    assert flag("--memory-reservation", GUARANTEED, settings).status is FlagStatus.NO_COUNTERPART


def test_swap_is_counted_together_with_memory():
    settings = replace(NODE, swap_behavior=SwapBehavior.LIMITED_SWAP, node_swap_bytes=64 * GI)
    found = flag("--memory-swap", BURSTABLE, settings)
    assert (found.value, found.because.rule) == (str(8 * GI + 4130 * 2**20), Rule.SWAP_SHARE)


@pytest.mark.parametrize(
    ("settings", "note"),
    [(NODE, Note.SWAP_NEEDS_LIMIT), (replace(NODE, swap_controller=False), Note.SWAP_UNKNOWN)],
    ids=["no memory limit", "swap not accounted"],
)
def test_swap_that_cannot_be_said(settings, note):
    found = flag("--memory-swap", BEST_EFFORT, settings)
    assert (found.value, found.note) == (None, note)


@pytest.mark.parametrize(
    ("given_pod", "cpus", "mems"),
    [
        pytest.param(GUARANTEED, Note.CPU_MANAGER, Note.MEMORY_MANAGER, id="whole CPUs, Guaranteed"),
        pytest.param(
            pod(container(requests="cpu=500m,memory=1Gi", limits="cpu=500m,memory=1Gi")),
            Note.SHARED_CPUS,
            Note.MEMORY_MANAGER,
            id="half a CPU, Guaranteed",
        ),
        pytest.param(BURSTABLE, Note.SHARED_CPUS, Note.SHARED_MEMORY_NODES, id="Burstable"),
    ],
)
def test_who_might_get_cpus_and_memory_nodes_of_his_own(given_pod, cpus, mems):
    assert flag("--cpuset-cpus", given_pod).note is cpus
    assert flag("--cpuset-mems", given_pod).note is mems


@pytest.mark.parametrize(
    ("engine", "given_pod", "also"),
    [
        ("podman", GUARANTEED, Note.ROOTLESS_CLAMP),
        ("podman", BURSTABLE, None),
        ("docker", GUARANTEED, None),
    ],
)
def test_rootless_podman_cannot_go_below_its_own_score(engine, given_pod, also):
    assert flag("--oom-score-adj", given_pod, engine=engine).also is also


@pytest.mark.parametrize(
    ("engine", "limit", "also"),
    [
        ("docker", "6291455", Note.BELOW_DOCKER_MINIMUM),
        ("docker", "6Mi", None),
        ("podman", "4Mi", None),
    ],
)
def test_docker_refuses_memory_limits_below_6_mi(engine, limit, also):
    assert flag("--memory", pod(container(limits=f"memory={limit}")), engine=engine).also is also
