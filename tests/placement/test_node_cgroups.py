"""A kubelet's configuration as the settings that cgroups are planned by."""

from __future__ import annotations

import pytest

from podqos.model.kubelet_config import API_VERSION, KIND, kubelet_configuration
from podqos.model.profile import LATEST, profile_for
from podqos.model.quantity import Quantity
from podqos.placement.allocatable import cgroup_settings
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, MemoryQoS, SwapBehavior, stock_node

CAPACITY = {"cpu": Quantity.parse("16"), "memory": Quantity.parse("64Gi")}


def settings(profile=LATEST, **fields: object) -> CgroupSettings:
    return cgroup_settings(
        kubelet_configuration({"apiVersion": API_VERSION, "kind": KIND, **fields}), CAPACITY, profile=profile
    )


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({}, "cgroup_driver", CgroupDriver.SYSTEMD),
        ({"cgroupDriver": "cgroupfs"}, "cgroup_driver", CgroupDriver.CGROUPFS),
        ({"cgroupRoot": "/pods"}, "cgroup_root", "/pods"),
        ({"cgroupsPerQOS": False}, "cgroups_per_qos", False),
        ({"cpuCFSQuota": False}, "cpu_cfs_quota", False),
        ({"cpuCFSQuotaPeriod": "20ms"}, "cpu_cfs_period_us", 20_000),
        ({"cpuManagerPolicy": "static"}, "static_cpu_manager", True),
        ({"podPidsLimit": 4096}, "pod_pids_limit", 4096),
        ({"podPidsLimit": -1}, "pod_pids_limit", None),
        ({"singleProcessOOMKill": True}, "single_process_oom_kill", True),
        ({"memorySwap": {"swapBehavior": "LimitedSwap"}}, "swap_behavior", SwapBehavior.LIMITED_SWAP),
        ({"enforceNodeAllocatable": []}, "enforce_node_allocatable", False),
        ({"memoryThrottlingFactor": 0.8}, "memory_qos", None),
        (
            {"featureGates": {"MemoryQoS": True}, "memoryThrottlingFactor": 0.8},
            "memory_qos",
            MemoryQoS(0.8, "None", 64 << 30),
        ),
        (
            {
                "featureGates": {"MemoryQoS": True},
                "memoryReservationPolicy": "TieredReservation",
                "systemReserved": {"memory": "4Gi"},
                "evictionHard": {"memory.available": "1Gi"},
            },
            "memory_qos",
            MemoryQoS(0.9, "TieredReservation", 60 << 30),
        ),
    ],
)
def test_field_reaches_the_plan(fields, name, value):
    assert getattr(settings(**fields), name) == value


def test_what_is_reserved_is_taken_from_the_cgroup_of_all_pods():
    found = settings(kubeReserved={"memory": "2Gi"}, systemReserved={"memory": "2Gi", "cpu": "1"})
    assert (found.node_allocatable["memory"], found.node_allocatable["cpu"]) == (
        Quantity.parse("60Gi"),
        Quantity.parse("15"),
    )


@pytest.mark.parametrize(
    ("version", "gates", "has_quota"),
    [((1, 32), {}, True), ((1, 33), {}, False), ((1, 36), {"DisableCPUQuotaWithExclusiveCPUs": False}, True)],
)
def test_exclusive_cpus_have_no_quota_since_1_33_unless_the_gate_is_off(version, gates, has_quota):
    found = settings(profile_for(version), cpuManagerPolicy="static", featureGates=gates)
    assert found.exclusive_cpu_quota is has_quota


def test_a_stock_node_is_one_whose_kubelet_has_its_defaults():
    assert stock_node(64 << 30, cores=16) == settings()


@pytest.mark.parametrize(
    ("version", "fields", "memory_qos"),
    [
        ((1, 21), {"featureGates": {"MemoryQoS": True}}, None),
        ((1, 26), {"featureGates": {"MemoryQoS": True}}, MemoryQoS(0.8, "None", 64 << 30)),
        ((1, 36), {}, None),
        ((1, 36), {"featureGates": {"AllAlpha": True}}, MemoryQoS(0.9, "None", 64 << 30)),
        ((1, 37), {}, MemoryQoS(None, "None", 64 << 30)),
        ((1, 37), {"memoryThrottlingFactor": 0.8}, MemoryQoS(0.8, "None", 64 << 30)),
        ((1, 37), {"featureGates": {"MemoryQoS": False}}, None),
        ((1, 37), {"featureGates": {"AllBeta": False}}, None),
    ],
)
def test_memory_qos_is_on_since_1_37_and_slows_nothing_unless_told(version, fields, memory_qos):
    """KEP-2570: alpha since 1.22, beta since 1.37."""
    assert settings(profile_for(version), **fields).memory_qos == memory_qos


def test_a_stock_node_of_1_37_is_one_whose_kubelet_has_its_defaults():
    profile = profile_for((1, 37))
    assert stock_node(64 << 30, cores=16, profile=profile) == settings(profile)
