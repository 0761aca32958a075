"""Both orders side by side: the numbers, the reasons, and where they disagree."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.pods import container
from eviction.nodes import guaranteed, pod, pod_of
from orders.nodes import GI, MI, evicted, killed, orders, settings, snapshot, using
from podqos.eviction.ranking import Policy, Ranking, Spared
from podqos.eviction.signals import RankKey, Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.model.quantity import Quantity
from podqos.model.snapshot import NodeUsage
from podqos.orders.memory import OOMDomain
from podqos.orders.orders import Disagreement, KillKey, both_orders
from podqos.orders.pods import NodePod
from podqos.orders.usage import UsageRow, from_usage

MILLION = 1_000_000
PAGES_OF_64GI = 64 * GI // PAGE_BYTES


# ---- a BestEffort pod with a priority of a million, under every policy -------------------------------------------

IMPORTANT = using(pod("important", priority=MILLION), "1Gi")
ORDINARY = using(pod("ordinary", "memory=512Mi"), "1Gi")
POLICIES = {
    Policy.KUBELET: (["ordinary", "important"], RankKey.PRIORITY),
    Policy.QOS_TIERS: (["important", "ordinary"], RankKey.TIER),
    Policy.QOS_USAGE: (["important", "ordinary"], RankKey.QOS_CLASS),
}


@pytest.mark.parametrize(("policy", "expected"), POLICIES.items(), ids=POLICIES)
def test_a_best_effort_pod_with_a_priority_of_a_million(policy, expected):
    """The kubelet goes by priority among those over their request; the tiers of old do not; the kernel never does."""
    found = orders(snapshot(ORDINARY, IMPORTANT), policy)
    order, reason = expected
    assert evicted(found) == order
    assert found.eviction[0].before_next_by is reason
    assert killed(found) == ["important", "ordinary"]
    assert bool(found.disagreements) == (policy is Policy.KUBELET)


# ---- the kernel's order ------------------------------------------------------------------------------------------


def test_of_equal_containers_the_sidecar_is_killed_last_as_it_started_first():
    sidecar = container("proxy", restart_policy="Always")
    made = pod_of("a", container("one"), container("two"), init_containers=(sidecar,))
    rows = [UsageRow("a", name, memory=Quantity.parse("1Gi")) for name in ("one", "two", "proxy")]
    found = orders(from_usage([NodePod(made, "default/a")], rows, NodeUsage(64 * GI)))
    assert [place.usage.name for place in found.kernel] == ["two", "one", "proxy"]


def test_badness_is_what_the_kernel_would_compute():
    node = snapshot(using(pod("a", "memory=4130Mi"), "6Gi", processes=2, page_tables="8Mi", swap="4Mi"))
    (place,) = orders(node).kernel
    assert place.score.value == 937
    used = (6 * GI - 8 * MI) // 2 // PAGE_BYTES + 4 * MI // 2 // PAGE_BYTES + 8 * MI // 2 // PAGE_BYTES
    assert place.worst.used_pages == used
    assert place.worst.points == used + 937 * (PAGES_OF_64GI // 1000)
    assert place.shown_score(64 << 30) == (1000 + place.worst.points * 1000 // PAGES_OF_64GI) * 2 // 3


NEIGHBOURS = {
    "more memory": (using(pod("a"), "2Gi"), using(pod("b"), "1Gi"), KillKey.MEMORY),
    "higher score": (using(pod("a"), "1Gi"), using(guaranteed("b", "1Gi"), "1Gi"), KillKey.ADJUSTMENT),
    "higher score outweighs memory": (using(pod("a"), "1Mi"), using(guaranteed("b", "9Gi"), "9Gi"), KillKey.ADJUSTMENT),
    "both": (using(pod("a"), "2Gi"), using(guaranteed("b", "1Gi"), "1Gi"), KillKey.BOTH),
    "memory outweighs the score": (
        using(pod("a", "memory=4Gi"), "40Gi"),
        using(pod("b"), "1Gi"),
        KillKey.MEMORY,
    ),
}


@pytest.mark.parametrize(("one", "other", "key"), NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_what_puts_one_container_before_the_next(one, other, key):
    first, second = orders(snapshot(other, one)).kernel
    assert (first.pod.metadata.name, second.pod.metadata.name) == ("a", "b")
    assert first.before_next_by is key
    assert first.margin_bytes == (first.worst.points - second.worst.points) * PAGE_BYTES > 0
    assert (second.before_next_by, second.margin_bytes) == (None, None)


def test_of_equals_the_kernel_takes_the_one_it_scans_last():
    found = orders(snapshot(using(pod("a"), "1Gi"), using(pod("b"), "1Gi")))
    assert killed(found) == ["b", "a"]
    assert found.kernel[0].before_next_by is KillKey.SCANNED_LATER


def test_more_processes_make_a_container_safer():
    crowd = using(pod("crowd"), "10Gi", processes=10)
    assert killed(orders(snapshot(crowd, using(pod("single"), "2Gi")))) == ["single", "crowd"]


def test_a_pod_stands_where_its_first_container_does():
    both, other = pod_of("both", container("small"), container("large")), pod("other")
    rows = [
        UsageRow(both.key, "small", Quantity.parse("1Mi")),
        UsageRow(both.key, "large", Quantity.parse("2Gi")),
        UsageRow(other.key, memory=Quantity.parse("1Gi")),
    ]
    pods = [NodePod(each, each.key) for each in (both, other)]
    found = orders(from_usage(pods, rows, NodeUsage(64 * GI)))
    assert [place.usage.name for place in found.kernel] == ["large", "main", "small"]
    assert killed(found) == ["both", "other"]


def test_in_a_cgroup_that_ran_out_adjustments_are_of_its_limit():
    """The same points of oom_score_adj weigh less in a smaller place, and memory weighs more."""
    node = snapshot(using(pod("a", "memory=1Gi"), "1100Mi"), using(pod("b", "memory=2Gi"), "1300Mi"))
    whole = both_orders(node, Ranking(Signal.MEMORY), settings(node))
    small = both_orders(node, Ranking(Signal.MEMORY), settings(node), OOMDomain(4 * GI, "/kubepods.slice"))
    assert killed(whole) == ["a", "b"]  # 16 points are 1 GiB here
    assert killed(small) == ["b", "a"]  # and 64 MiB there


# ---- disagreement ------------------------------------------------------------------------------------------------


def test_a_disagreement_names_both_reasons():
    low, high = using(pod("low", "memory=8Gi"), "8500Mi"), using(pod("high", priority=10), "1Gi")
    found = orders(snapshot(low, high))
    assert found.disagreements == (
        Disagreement("default/low", "default/high", KillKey.ADJUSTMENT, RankKey.PRIORITY, None),
    )
    assert found.reversed_pairs == 1


def test_a_tie_is_no_disagreement():
    found = orders(snapshot(using(pod("a"), "1Gi"), using(pod("b"), "1Gi")))
    assert evicted(found) != killed(found)
    assert (found.disagreements, found.reversed_pairs) == ((), 0)


def test_the_kernel_knows_no_critical_pods():
    critical, other = using(pod("critical", priority=2 * 10**9), "2Gi"), using(guaranteed("other", "1Gi"), "512Mi")
    found = orders(snapshot(critical, other))
    assert found.disagreements == (
        Disagreement("default/other", "default/critical", KillKey.BOTH, None, Spared.CRITICAL),
    )


def test_passing_a_spared_pod_over_keeps_the_reason_between_its_neighbours():
    """Between a and c stands a critical pod; a goes before c because only it is over its request."""
    a = using(pod("a", "memory=4Gi"), "5Gi", processes=4)
    critical = using(pod("b", "memory=1Gi", priority=2 * 10**9), "2Gi")
    c = using(pod("c", "memory=60Gi"), "59Gi")
    found = orders(snapshot(a, critical, c))
    assert evicted(found) == ["a", "b", "c"]
    (between,) = (each for each in found.disagreements if each.killed_first == "default/c")
    assert (between.evicted_first, between.evicted_by) == ("default/a", RankKey.OVER_REQUEST)


def test_guaranteed_is_spared_under_a_soft_threshold_by_tiers():
    node = snapshot(using(guaranteed("g", "9Gi"), "9Gi"), using(pod("b", "memory=1Gi"), "2Gi"))
    soft, hard = (orders(node, Policy.QOS_TIERS, hard=hard) for hard in (False, True))
    assert [ranked.spared for ranked in soft.eviction] == [None, Spared.GUARANTEED]
    assert [ranked.spared for ranked in hard.eviction] == [None, None]


def test_a_pod_without_figures_is_first_for_the_kubelet_and_weightless_for_the_kernel():
    found = orders(snapshot(using(pod("known"), "1Gi"), (pod("unknown"), None)))
    assert evicted(found) == ["unknown", "known"]
    assert killed(found) == ["known", "unknown"]
    assert not found.kernel[1].usage.is_measured


# ---- what always holds -------------------------------------------------------------------------------------------

SIZES = st.integers(0, 20).map(lambda units: f"{units * 512}Mi")


@st.composite
def nodes(draw):
    """Draw nodes with pods of every class and priority; ties and pods without figures are frequent."""
    used = []
    for index in range(draw(st.integers(1, 8))):
        name, priority = f"p{index}", draw(st.sampled_from((0, 0, 100, MILLION, 2 * 10**9)))
        kind = draw(st.sampled_from(("best-effort", "burstable", "guaranteed")))
        request = draw(st.integers(1, 20)) * 512
        requests = "" if kind == "best-effort" else f"cpu=1,memory={request}Mi"
        made = pod(name, requests, requests if kind == "guaranteed" else "", priority=priority)
        row = using(made, draw(SIZES), processes=draw(st.integers(1, 3)))
        used.append(row if draw(st.integers(0, 7)) else (made, None))
    return snapshot(*used)


@given(nodes(), st.sampled_from(Policy), st.booleans())
def test_both_orders_hold_every_pod_once(node, policy, hard):
    found = orders(node, policy, hard=hard)
    names = sorted(entry.pod.metadata.name for entry in node.pods)
    assert sorted(evicted(found)) == sorted(killed(found)) == names


@given(nodes(), st.sampled_from(Policy), st.booleans())
def test_disagreements_are_what_a_comparison_of_all_pairs_finds(node, policy, hard):
    found = orders(node, policy, hard=hard)
    points = {place.pod.key: place.worst.points for place in reversed(found.kernel)}
    groups = eviction_groups(found)
    reversed_pairs = {
        (one, other)
        for (one, first), (other, second) in combinations(sorted(groups.items(), key=lambda item: item[1]), 2)
        if first < second and points[one] < points[other]
    }
    assert found.reversed_pairs == len(reversed_pairs)
    assert bool(found.disagreements) == bool(reversed_pairs)
    assert {(each.evicted_first, each.killed_first) for each in found.disagreements} <= reversed_pairs


def eviction_groups(found) -> dict[str, int]:
    """Give pods that the kubelet cannot tell apart the same number, and higher ones to those evicted later."""
    group, groups = 0, {}
    for ranked in found.eviction:
        groups[ranked.pod.key] = group if ranked.spared is None else len(found.eviction)
        group += ranked.before_next_by not in {RankKey.NAME, RankKey.INPUT_ORDER}
    return groups


@given(nodes())
def test_the_kernels_order_is_by_badness_and_every_reason_fits_the_numbers(node):
    for one, other in pairwise(orders(node).kernel):
        assert one.worst.points >= other.worst.points
        more = one.worst.used_pages - other.worst.used_pages, one.score.value - other.score.value
        assert {
            KillKey.MEMORY: more[0] > 0 >= more[1],
            KillKey.ADJUSTMENT: more[1] > 0 >= more[0],
            KillKey.BOTH: min(more) > 0,
            KillKey.SCANNED_LATER: one.worst.points == other.worst.points,
        }[one.before_next_by]
