"""What is set above the pods: kubepods, the classes, and what qosReserved takes from the lower ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import amounts, container, pod
from podqos.model.pod import PodStatus, QOSClass
from podqos.model.profile import profile_for
from podqos.qos.cgroup_settings import CgroupSettings, MemoryQoS
from podqos.qos.cgroup_tiers import TierRequests, node_values, tier_requests, tier_values
from podqos.qos.cgroup_values import Rule

MI, GI = 2**20, 2**30
ALLOCATABLE = amounts("cpu=1800m,memory=14Gi,pid=32768,hugepages-2Mi=4Mi")
NODE = CgroupSettings(
    node_memory_bytes=16 * GI, node_allocatable=ALLOCATABLE, node_capacity=amounts("cpu=2,memory=16Gi")
)

GUARANTEED = pod(container(requests="cpu=1,memory=2Gi", limits="cpu=1,memory=2Gi"))
BURSTABLE = pod(container("a", requests="cpu=33m"), container("b", requests="cpu=500m,memory=1Gi"))
BEST_EFFORT = pod(container())


def test_requests_are_summed_by_class():
    found = tier_requests((GUARANTEED, BURSTABLE, BURSTABLE, BEST_EFFORT))
    assert found == TierRequests(1066, 2 * GI, 2 * GI)


def test_the_recorded_class_of_a_pod_counts():
    recorded = replace(GUARANTEED, status=PodStatus(qos_class=QOSClass.BURSTABLE))
    assert tier_requests((recorded,)) == TierRequests(1000, 2 * GI, 0)


def test_burstable_shares_follow_its_pods_and_best_effort_has_the_least():
    tiers = tier_values(tier_requests((GUARANTEED, BURSTABLE, BEST_EFFORT)), NODE)
    burstable, best_effort = tiers[QOSClass.BURSTABLE].cpu_shares, tiers[QOSClass.BEST_EFFORT].cpu_shares
    assert (burstable.amount, burstable.because.rule) == (545, Rule.TIER_REQUESTS)
    assert (best_effort.amount, best_effort.because.rule) == (2, Rule.TIER_LEAST)
    assert tiers[QOSClass.GUARANTEED].cpu_shares is None


def test_an_empty_tier_has_the_least_share():
    shares = tier_values(TierRequests(), NODE)[QOSClass.BURSTABLE].cpu_shares
    assert (shares.amount, shares.because.clamped) == (2, True)


@pytest.mark.parametrize(
    ("percent", "burstable", "best_effort"),
    [
        pytest.param(50, 13 * GI, 13 * GI - GI // 2, id="half of what is requested"),
        pytest.param(100, 12 * GI, 11 * GI, id="all of it"),
        pytest.param(0, 14 * GI, 14 * GI, id="nothing"),
    ],
)
def test_qos_reserved_lowers_the_ceiling_of_each_lower_class(percent, burstable, best_effort):
    settings = replace(NODE, qos_reserved_memory_percent=percent)
    tiers = tier_values(tier_requests((GUARANTEED, BURSTABLE)), settings)
    found = [tiers[qos_class].memory_limit_bytes for qos_class in (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT)]
    assert [value.amount for value in found] == [burstable, best_effort]
    assert {value.because.rule for value in found} == {Rule.QOS_RESERVED}


def test_where_more_is_reserved_than_there_is_the_reason_names_nothing_left():
    settings = replace(NODE, qos_reserved_memory_percent=100, node_allocatable=amounts("memory=1Gi"))
    ceiling = tier_values(tier_requests((GUARANTEED,)), settings)[QOSClass.BEST_EFFORT].memory_limit_bytes
    assert (ceiling.amount, ceiling.because.amount.value) == (-GI, 0)


@pytest.mark.parametrize("allocatable", ["cpu=1", "memory=0"])
def test_qos_reserved_needs_to_know_the_allocatable_memory(allocatable):
    settings = replace(NODE, qos_reserved_memory_percent=50, node_allocatable=amounts(allocatable))
    assert tier_values(TierRequests(), settings)[QOSClass.BURSTABLE].memory_limit_bytes is None


def test_without_qos_reserved_the_classes_have_no_ceiling():
    tiers = tier_values(tier_requests((GUARANTEED, BURSTABLE)), NODE)
    assert [values.memory_limit_bytes for values in tiers.values()] == [None, None, None]


@given(st.integers(0, 100), st.integers(0, 7 * GI), st.integers(0, 7 * GI))
def test_a_lower_class_never_has_the_higher_ceiling(percent, guaranteed, burstable):
    settings = replace(NODE, qos_reserved_memory_percent=percent)
    tiers = tier_values(TierRequests(0, burstable, guaranteed), settings)
    limits = [tiers[qos_class].memory_limit_bytes.amount for qos_class in (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT)]
    assert 14 * GI >= limits[0] >= limits[1] >= 0


@pytest.mark.parametrize(
    ("enforced", "rule", "memory_bytes", "shares", "pids"),
    [(True, Rule.NODE_ALLOCATABLE, 14 * GI, 1843, 32_768), (False, Rule.NODE_CAPACITY, 16 * GI, 2048, None)],
    ids=["what is not reserved", "the whole node"],
)
def test_all_pods_together_may_use(enforced, rule, memory_bytes, shares, pids):
    found = node_values(TierRequests(), replace(NODE, enforce_node_allocatable=enforced))
    assert (found.memory_limit_bytes.amount, found.memory_limit_bytes.because.rule) == (memory_bytes, rule)
    assert found.cpu_shares.amount == shares
    assert (found.pids_limit and found.pids_limit.amount) == pids


def test_a_node_that_is_not_known_gets_no_values():
    found = node_values(TierRequests(), CgroupSettings(node_memory_bytes=16 * GI))
    assert (found.memory_limit_bytes, found.cpu_shares, found.pids_limit) == (None, None, None)


@pytest.mark.parametrize(
    ("policy", "node", "burstable"), [("TieredReservation", 3 * GI, GI), ("None", 0, 0)], ids=["tiered", "none"]
)
def test_what_pods_protect_is_protected_above_them(policy, node, burstable):
    """On cgroup v2 nothing is protected beyond what every ancestor protects."""
    settings = replace(NODE, memory_qos=MemoryQoS(reservation_policy=policy))
    requests = tier_requests((GUARANTEED, BURSTABLE))
    assert node_values(requests, settings).memory_min_bytes.amount == node
    assert tier_values(requests, settings)[QOSClass.BURSTABLE].memory_low_bytes.amount == burstable


@pytest.mark.parametrize(
    ("minor", "node", "burstable"),
    [(35, (3 * GI, None), (GI, None)), (36, (3 * GI, None), (None, GI)), (37, (3 * GI, GI), (None, GI))],
)
def test_what_is_protected_above_the_pods_by_version(minor, node, burstable):
    """memory.min and memory.low: since 1.37 kubepods has what the protection of Burstable pods needs above it."""
    settings, profile = (
        replace(NODE, memory_qos=MemoryQoS(reservation_policy="TieredReservation")),
        profile_for((1, minor)),
    )
    requests = tier_requests((GUARANTEED, BURSTABLE), profile)
    of_node = node_values(requests, settings, profile)
    of_class = tier_values(requests, settings, profile)[QOSClass.BURSTABLE]
    for found, expected in ((of_node, node), (of_class, burstable)):
        protected = (found.memory_min_bytes, found.memory_low_bytes)
        assert tuple(value and value.amount for value in protected) == expected
