"""Two versions of pods against each other: who is worse off, and because of whose change."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import container, pod
from podqos.eviction.ranking import Ranking, Spared
from podqos.eviction.signals import RankKey, Signal
from podqos.model.pod import ObjectMeta, Pod, QOSClass
from podqos.model.snapshot import NodeUsage, Snapshot
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.survival.drift.differences import DifferenceKind
from podqos.survival.drift.drift import (
    DriftStatus,
    Identity,
    ManifestVersion,
    Order,
    VersionWorkload,
    WorkloadChange,
    drift,
)
from podqos.survival.node.assumed_usage import NOMINAL_BYTES, assumed_usage
from podqos.survival.orders.orders import KillKey

GI = 1 << 30
NODE = NodeUsage(64 * GI)


def one(requests: str = "", limits: str = "", priority: int | None = None, *more, **spec) -> Pod:
    """Make a pod of a container ``app`` and what else there is."""
    return pod(container("app", requests=requests, limits=limits), *more, priority=priority, **spec)


GUARANTEED = one("cpu=1,memory=4Gi", "cpu=1,memory=4Gi", 1000)
BURSTABLE = one("cpu=1,memory=4Gi", "cpu=2,memory=8Gi", 1000)
BATCH = one("cpu=1,memory=8Gi", "", 100)
BEST_EFFORT = one(priority=0)


def compare(old: dict[str, Pod], new: dict[str, Pod]) -> dict[str, WorkloadChange]:
    """Compare versions of one pod per workload, each using what its older version requests."""
    found = drift(
        _version(old, old), _version(new, old), Ranking(Signal.MEMORY), CgroupSettings(node_memory_bytes=64 * GI)
    )
    return {each.name: each for each in found}


def _version(pods: dict[str, Pod], older: dict[str, Pod]) -> ManifestVersion:
    named = {name: replace(each, metadata=ObjectMeta(name, "prod", uid=name)) for name, each in pods.items()}
    return ManifestVersion(
        tuple(VersionWorkload(Identity("prod", "Deployment", name), each, (name,)) for name, each in named.items()),
        Snapshot(NODE, tuple(assumed_usage(each, older.get(name)) for name, each in named.items())),
    )


def turns(found: WorkloadChange) -> set[tuple[Order, str]]:
    """Return whom a workload goes before now, in which order."""
    return {(move.order, move.outlives.rpartition("/")[2]) for move in found.moved_ahead}


def test_nothing_changed_is_said_to_be_nothing():
    same = {"web": GUARANTEED, "batch": BATCH, "logs": BEST_EFFORT}
    assert {each.status for each in compare(same, same).values()} == {DriftStatus.UNCHANGED}
    assert not any(each.is_shifted for each in compare(same, same).values())


def test_a_lower_class_is_a_downgrade_with_its_cause():
    """The incident: a sidecar without limits makes a Guaranteed pod the kernel's choice before the batch jobs."""
    sidecar = container("logger")
    with_sidecar = replace(GUARANTEED, spec=replace(GUARANTEED.spec, containers=(*GUARANTEED.spec.containers, sidecar)))
    found = compare({"web": GUARANTEED, "batch": BATCH}, {"web": with_sidecar, "batch": BATCH})
    web = found["web"]
    assert web.status is DriftStatus.DOWNGRADED
    assert web.before is not None
    assert web.after is not None
    assert (web.before.qos_class, web.after.qos_class) == (QOSClass.GUARANTEED, QOSClass.BURSTABLE)
    assert [(score.container, score.oom_score_adj) for score in web.before.scores] == [("app", -997)]
    assert [(score.container, score.oom_score_adj) for score in web.after.scores] == [("app", 938), ("logger", 999)]
    assert [(each.kind, each.container) for each in web.differences] == [(DifferenceKind.CONTAINER_ADDED, "logger")]
    # 4096Mi and 938 thousandths of 65536Mi are 65568Mi; 8192Mi and 875 thousandths are 65536Mi. And the 64Mi of the
    # logger put web over its request, which batch is not.
    assert turns(web) == {(Order.EVICTION, "batch"), (Order.KERNEL, "batch")}
    assert found["batch"].status is DriftStatus.BACK


def test_a_higher_class_is_an_upgrade_and_others_are_said_to_be_shifted():
    """In a tie of the kernel's, the later name goes first: it moves up although nothing changed in it."""
    found = compare({"api": BURSTABLE, "web": BURSTABLE}, {"api": BURSTABLE, "web": GUARANTEED})
    assert found["web"].status is DriftStatus.UPGRADED
    other = found["api"]
    assert other.is_shifted
    assert turns(other) == {(Order.KERNEL, "web")}
    (move,) = other.moved_ahead
    assert (move.first_changed, move.other_changed, move.key) == (False, True, KillKey.ADJUSTMENT)
    assert [each.goes_first for each in found["web"].moved_back] == ["Deployment prod/api"]


def test_a_lower_request_moves_ahead_in_both_orders_without_another_class():
    smaller = one("cpu=1,memory=2Gi", "cpu=2,memory=8Gi", 1000)
    web = compare({"web": BURSTABLE, "other": BURSTABLE}, {"web": smaller, "other": BURSTABLE})["web"]
    assert web.status is DriftStatus.AHEAD
    assert not web.is_shifted, "by a change of its own"
    assert turns(web) == {(Order.EVICTION, "other"), (Order.KERNEL, "other")}
    assert {move.order: move.key for move in web.moved_ahead} == {
        Order.EVICTION: RankKey.OVER_REQUEST,
        Order.KERNEL: KillKey.ADJUSTMENT,
    }
    (change,) = web.differences
    assert (change.kind, change.container, change.field, change.before, change.after) == (
        DifferenceKind.AMOUNT,
        "app",
        "requests.memory",
        "4Gi",
        "2Gi",
    )


def test_a_lower_priority_counts_for_the_kubelet_only():
    lower = replace(BURSTABLE, spec=replace(BURSTABLE.spec, priority=10))
    web = compare({"web": BURSTABLE, "other": BURSTABLE}, {"web": lower, "other": BURSTABLE})["web"]
    assert turns(web) == {(Order.EVICTION, "other")}
    assert [each.kind for each in web.differences] == [DifferenceKind.PRIORITY]


def test_equal_pods_are_ahead_of_nobody():
    """Their order is that of their names, and no reason to fail."""
    found = compare({"b": BURSTABLE, "c": BURSTABLE}, {"a": BURSTABLE, "b": BURSTABLE, "c": BURSTABLE})
    assert {name: each.status for name, each in found.items()} == {
        "a": DriftStatus.ADDED,
        "b": DriftStatus.UNCHANGED,
        "c": DriftStatus.UNCHANGED,
    }


def test_becoming_level_is_not_moving_ahead():
    higher = replace(BURSTABLE, spec=replace(BURSTABLE.spec, priority=2000))
    found = compare({"a": higher, "b": BURSTABLE}, {"a": BURSTABLE, "b": BURSTABLE})
    assert found["a"].status is DriftStatus.CHANGED
    assert not found["a"].moved_ahead


def test_new_and_removed_workloads_turn_nobody_round():
    found = compare({"gone": BEST_EFFORT, "web": BATCH}, {"new": BEST_EFFORT, "web": BATCH})
    assert {name: each.status for name, each in found.items()} == {
        "gone": DriftStatus.REMOVED,
        "new": DriftStatus.ADDED,
        "web": DriftStatus.UNCHANGED,
    }
    assert found["web"].before is not None
    assert (found["web"].before.eviction_place, found["web"].before.kernel_place) == (2, 2)


def test_a_pod_that_is_no_longer_critical_can_be_evicted():
    """The kubelet evicts it before others that it never could before."""
    critical = replace(BURSTABLE, spec=replace(BURSTABLE.spec, priority=2_000_000_000))
    high = replace(BURSTABLE, spec=replace(BURSTABLE.spec, priority=1_999_999_999))
    found = compare({"a": critical, "b": critical}, {"a": high, "b": critical})
    (move,) = found["a"].moved_ahead
    assert (move.order, move.spared) == (Order.EVICTION, Spared.CRITICAL)


def test_both_changed_is_told_as_such():
    smaller, larger = one("memory=2Gi", "", 1000), one("memory=6Gi", "", 1000)
    start = one("memory=4Gi", "", 1000)
    found = compare({"a": start, "b": start}, {"a": smaller, "b": larger})
    assert {(move.first_changed, move.other_changed) for move in found["a"].moved_ahead} == {(True, True)}


def test_a_workload_without_pods_stands_nowhere():
    identity = Identity("prod", "Deployment", "idle")
    idle = ManifestVersion((VersionWorkload(identity, GUARANTEED),), Snapshot(NODE, ()))
    (found,) = drift(idle, idle, Ranking(Signal.MEMORY), CgroupSettings(node_memory_bytes=64 * GI))
    assert found.status is DriftStatus.UNCHANGED
    assert found.before is not None
    standing = found.before
    assert (standing.qos_class, standing.eviction_place, standing.kernel_place) == (QOSClass.GUARANTEED, None, None)


def test_the_assumed_usage_is_what_the_older_version_requests():
    """And a nominal amount where nothing is requested."""
    usage = assumed_usage(
        one("memory=1Gi", "", None, container("new", requests="memory=2Gi"), container("none")), BATCH
    )
    assert [each.working_set_bytes for each in usage.containers] == [8 * GI, 2 * GI, NOMINAL_BYTES]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(one("memory=1Gi"), one("memory=1Gi,cpu=1"), {("requests.cpu", None, "1")}, id="a-request-more"),
        pytest.param(one("memory=1Gi"), one("memory=1024Mi"), set(), id="another-spelling-is-no-difference"),
        pytest.param(one("memory=1Gi", "nvidia.com/gpu=1"), one("memory=1Gi"), set(), id="what-no-judge-looks-at"),
        pytest.param(one("", "memory=1Gi"), one(), {("limits.memory", "1Gi", None)}, id="a-limit-less"),
    ],
)
def test_differences_are_those_the_judges_can_see(before, after, expected):
    found = compare({"a": before}, {"a": after})["a"].differences
    assert {(each.field, each.before, each.after) for each in found} == expected


SIZES = st.sampled_from(["", "memory=64Mi", "memory=1Gi", "memory=4Gi", "cpu=1,memory=4Gi"])
PODS = st.builds(
    lambda requests, is_fixed, priority: one(requests, requests if is_fixed else "", priority),
    SIZES,
    st.booleans(),
    st.sampled_from([0, 100, 1000]),
)
VERSIONS = st.dictionaries(st.sampled_from("abcdef"), PODS, min_size=1)


@given(VERSIONS, VERSIONS)
def test_every_turn_has_a_change_in_one_of_the_two(old, new):
    """What a pod is in an order depends on itself alone."""
    for each in compare(old, new).values():
        for move in each.moved_ahead:
            assert move.first_changed or move.other_changed
            assert move.goes_first == each.workload == str(each.identity)


@given(VERSIONS, VERSIONS)
def test_the_verdict_agrees_with_the_numbers(old, new):
    """Worse only if something is worse, better only if something is better, and mixed only if both are."""
    for each in compare(old, new).values():
        if each.before is None or each.after is None:
            assert not each.fails
            continue
        forward = [each.eviction_shift, each.kernel_shift]
        places = [
            one - other
            for one, other in (
                (each.before.eviction_place, each.after.eviction_place),
                (each.before.kernel_place, each.after.kernel_place),
            )
        ]
        if each.status in {DriftStatus.AHEAD, DriftStatus.DOWNGRADED} or each.fails:
            assert each.protection < 0 or any(shift >= 0 for shift in forward)
        if each.status is DriftStatus.AHEAD:
            assert any(shift > 0 for shift in forward)
            assert not any(place < 0 < shift for shift, place in zip(forward, places, strict=True))
        if each.status in {DriftStatus.UPGRADED, DriftStatus.BACK}:
            assert not each.fails
            assert each.protection > 0 or any(shift < 0 for shift in forward)
            assert not any(place > 0 > shift for shift, place in zip(forward, places, strict=True))
        if not each.differences and each.status in {DriftStatus.AHEAD, DriftStatus.BACK}:
            way = 1 if each.status is DriftStatus.AHEAD else -1
            assert any(place * way > 0 for place in places)
        if not each.differences and each.status is DriftStatus.UNCHANGED:
            assert not each.fails


@given(VERSIONS, VERSIONS)
def test_what_one_gains_in_an_order_others_lose(old, new):
    found = compare(old, new).values()
    assert sum(each.eviction_shift for each in found) == 0
    assert sum(each.kernel_shift for each in found) == 0


def test_a_pod_that_moves_behind_many_and_ahead_of_one_is_better():
    """All were level. It is sized, and so is another, whose request covers what it uses."""
    old = dict.fromkeys("abcde", BEST_EFFORT)
    new = old | {"a": one("memory=32Mi"), "b": one("memory=64Mi")}
    found = compare(old, new)["a"]
    assert (Order.EVICTION, "b") in turns(found)
    assert (found.status, found.fails, found.eviction_shift) == (DriftStatus.UPGRADED, False, -1)


def test_earlier_in_one_order_and_later_in_the_other_is_mixed():
    """The kubelet looks at priority, the kernel at the request."""
    start, other = one("memory=1Gi", "", 100), one("memory=2Gi", "", 50)
    found = compare({"a": start, "b": other}, {"a": one("memory=4Gi", "", 10), "b": other})["a"]
    assert (found.worse_orders, found.better_orders) == ((Order.EVICTION,), (Order.KERNEL,))
    assert (found.status, found.fails) == (DriftStatus.MIXED, True)


@given(VERSIONS)
def test_going_back_and_forth_changes_nothing(version):
    assert {each.status for each in compare(version, version).values()} == {DriftStatus.UNCHANGED}
