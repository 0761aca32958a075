"""What would have spared a pod: every counterfactual holds when the changed pod is ranked by those who rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eviction.nodes import guaranteed, pod
from podqos.eviction.ranking import Ranking, rank
from podqos.eviction.signals import Signal
from podqos.model.profile import LATEST
from podqos.survival.counterfactual import PodChange, kernel_counterfactuals, kubelet_counterfactuals, kubelet_place
from podqos.survival.orders import OOMDomain
from survival.nodes import GI, MI, settings, snapshot, using

MEMORY = Ranking(Signal.MEMORY)
MACHINE = OOMDomain(64 * GI)


def _kernel(node, name):
    found = kernel_counterfactuals(node, settings(node), MACHINE, (_uid(node, name), "main"), LATEST)
    assert found is not None
    return found


def _uid(node, name):
    return next(entry.pod.metadata.uid for entry in node.pods if entry.pod.metadata.name == name)


def _by_change(counterfactuals):
    return {counterfactual.change: counterfactual for counterfactual in counterfactuals}


# ---- the kernel ------------------------------------------------------------------------------------------------------


def test_a_best_effort_pod_is_spared_by_using_less_requesting_more_or_being_guaranteed():
    node = snapshot(using(pod("logs"), "250Mi"), using(pod("analytics", "memory=4130Mi"), "8500Mi", processes=2))
    found = _kernel(node, "logs")
    counterfactuals = _by_change(found.counterfactuals)
    assert found.place == 1
    assert set(counterfactuals) == {PodChange.LESS, PodChange.REQUEST, PodChange.GUARANTEED}
    assert {counterfactual.instead for counterfactual in counterfactuals.values()} == {"default/analytics"}
    assert counterfactuals[PodChange.GUARANTEED].oom_score_adj == -997
    assert counterfactuals[PodChange.GUARANTEED].edits
    assert all(counterfactual.saves for counterfactual in counterfactuals.values())


def test_limits_as_low_as_the_requests_do_not_save_a_pod_that_uses_more():
    node = snapshot(using(pod("batch", "cpu=1,memory=1Gi"), "6Gi"), using(pod("other", "memory=8Gi"), "4Gi"))
    counterfactual = _by_change(_kernel(node, "batch").counterfactuals)[PodChange.GUARANTEED]
    assert counterfactual.oom_score_adj == -997
    assert counterfactual.instead == "default/other"
    assert counterfactual.over_limit_bytes == 5 * GI
    assert not counterfactual.saves


def test_a_guaranteed_pod_can_only_use_less():
    node = snapshot(using(guaranteed("big", "8Gi"), "6Gi"), using(guaranteed("small", "8Gi"), "2Gi"))
    found = _kernel(node, "big")
    (counterfactual,) = found.counterfactuals
    assert counterfactual.change is PodChange.LESS
    assert 4 * GI <= counterfactual.amount <= 4 * GI + MI


def test_nobody_else_could_have_been_killed_in_a_cgroup_of_its_own():
    node = snapshot(using(pod("alone", "memory=1Gi"), "2Gi"))
    assert _kernel(node, "alone").counterfactuals == ()


def test_a_container_that_does_not_run_has_no_place():
    node = snapshot(using(pod("alone"), "2Gi"))
    assert kernel_counterfactuals(node, settings(node), MACHINE, ("nobody", "main"), LATEST) is None


@given(st.lists(st.tuples(st.integers(0, 16), st.integers(1, 24)), min_size=2, max_size=5))
def test_the_smallest_amount_saves_and_a_mebibyte_less_does_not(figures):
    pods = [
        using(pod(f"p{index}", f"memory={request * 128}Mi" if request else ""), f"{used * 256}Mi")
        for index, (request, used) in enumerate(figures)
    ]
    node = snapshot(*pods)
    first = min(range(len(pods)), key=lambda index: _kernel(node, f"p{index}").place)
    counterfactual = _by_change(_kernel(node, f"p{first}").counterfactuals).get(PodChange.LESS)
    if counterfactual is None:
        return
    used = figures[first][1] * 256 - counterfactual.amount // MI
    assert _kernel(snapshot(*(_lighter(pods, first, used))), f"p{first}").place > 1
    assert _kernel(snapshot(*(_lighter(pods, first, used + 1))), f"p{first}").place == 1


def _lighter(pods, index, mebibytes):
    changed = list(pods)
    changed[index] = using(pods[index][0], f"{mebibytes}Mi")
    return changed


# ---- the kubelet -----------------------------------------------------------------------------------------------------


def test_the_request_that_spares_a_pod_leaves_it_further_below_than_the_next():
    node = snapshot(using(pod("greedy", "memory=1Gi"), "3Gi"), using(pod("modest", "memory=4Gi"), "1Gi"))
    uid = _uid(node, "greedy")
    assert kubelet_place(node, MEMORY, uid) == 1
    counterfactual = _by_change(kubelet_counterfactuals(node, MEMORY, uid))[PodChange.REQUEST]
    assert counterfactual.amount == 6 * GI + MI
    assert counterfactual.instead == "default/modest"


def test_no_request_above_the_limit_is_suggested():
    node = snapshot(using(pod("greedy", "memory=1Gi", "memory=4Gi"), "3Gi"), using(pod("modest", "memory=4Gi"), "1Gi"))
    assert PodChange.REQUEST not in _by_change(kubelet_counterfactuals(node, MEMORY, _uid(node, "greedy")))


def test_priority_spares_a_pod_only_among_those_over_their_request():
    over = snapshot(using(pod("one", "memory=1Gi"), "3Gi"), using(pod("two", "memory=1Gi", priority=7), "2Gi"))
    assert _by_change(kubelet_counterfactuals(over, MEMORY, _uid(over, "one")))[PodChange.PRIORITY].amount == 8
    within = snapshot(using(pod("one", "memory=1Gi"), "3Gi"), using(pod("two", "memory=4Gi", priority=7), "2Gi"))
    assert PodChange.PRIORITY not in _by_change(kubelet_counterfactuals(within, MEMORY, _uid(within, "one")))


@pytest.mark.parametrize("name", ["critical", "nobody"])
def test_who_cannot_be_evicted_has_no_place_and_needs_no_counterfactual(name):
    node = snapshot(using(pod("critical", priority=2_000_000_000), "3Gi"), using(pod("other"), "1Gi"))
    uid = _uid(node, name) if name == "critical" else name
    assert kubelet_place(node, MEMORY, uid) is None
    assert kubelet_counterfactuals(node, MEMORY, uid) == ()


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 16), st.integers(0, 3)), min_size=2, max_size=6))
def test_a_counterfactual_says_who_would_have_been_first_instead(figures):
    node = snapshot(
        *(
            using(
                pod(f"p{index}", f"memory={request * 256}Mi" if request else "", priority=priority), f"{used * 256}Mi"
            )
            for index, (request, used, priority) in enumerate(figures)
        )
    )
    order = rank([entry.pod for entry in node.pods], node.stats, MEMORY)
    first = order[0].pod
    for counterfactual in kubelet_counterfactuals(node, MEMORY, first.metadata.uid):
        assert (counterfactual.place == 1) == (counterfactual.instead is None)
        assert counterfactual.instead != first.key
