"""What would have spared a pod: every counterfactual holds when the changed pod is ranked by those who rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import container, resources
from eviction.nodes import guaranteed, pod, pod_of, volume
from eviction.nodes import using as stats_of
from orders.moments import of_snapshot, short_of
from orders.nodes import GI, MI, settings, snapshot, using
from podqos.admission.priority import HIGHEST_USER_PRIORITY
from podqos.eviction.ranking import Ranking, rank
from podqos.eviction.signals import Layout, Signal
from podqos.model.pod import EmptyDir
from podqos.model.profile import LATEST
from podqos.model.quantity import Quantity
from podqos.model.stats import ContainerStats, MemoryStats
from podqos.orders.counterfactual import PodChange, Surroundings, in_mebibytes
from podqos.orders.memory import OOMDomain
from podqos.orders.trials import KernelMoment, kernel_counterfactuals, kubelet_counterfactuals, kubelet_place

MEMORY = Ranking(Signal.MEMORY)
MACHINE = OOMDomain(64 * GI)


def _kernel(node, name, *, lacking_bytes=0, **surroundings):
    moment = KernelMoment(node, settings(node), MACHINE, LATEST, lacking_bytes)
    found = kernel_counterfactuals(moment, (_uid(node, name), "main"), Surroundings(**surroundings))
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
    assert {counterfactual.decision.instead for counterfactual in counterfactuals.values()} == {"default/analytics"}
    assert counterfactuals[PodChange.GUARANTEED].oom_score_adj == -997
    assert counterfactuals[PodChange.GUARANTEED].edits
    assert all(counterfactual.saves for counterfactual in counterfactuals.values())


def test_made_guaranteed_a_pod_that_uses_more_than_it_requests_gets_what_it_uses_with_headroom():
    """A limit as low as its request, or as what is in use, would kill it at the next allocation."""
    node = snapshot(using(pod("batch", "cpu=1,memory=1Gi"), "6Gi"), using(pod("other", "memory=8Gi"), "4Gi"))
    counterfactual = _by_change(_kernel(node, "batch").counterfactuals)[PodChange.GUARANTEED]
    assert counterfactual.oom_score_adj == -997
    assert counterfactual.decision.instead == "default/other"
    assert counterfactual.pod.spec.containers[0].resources.limits["memory"].value == -(-6 * GI * 6 // 5 // MI) * MI
    assert counterfactual.added["memory"] == -(-6 * GI * 6 // 5 // MI) * MI - GI
    assert counterfactual.saves


def test_a_guaranteed_pod_can_only_use_less():
    node = snapshot(using(guaranteed("big", "8Gi"), "6Gi"), using(guaranteed("small", "8Gi"), "2Gi"))
    found = _kernel(node, "big")
    (counterfactual,) = found.counterfactuals
    assert counterfactual.change is PodChange.LESS
    assert 4 * GI <= counterfactual.amount <= 4 * GI + MI


def test_nobody_else_could_have_been_killed_in_a_cgroup_of_its_own():
    node = snapshot(using(pod("alone", "memory=1Gi"), "2Gi"))
    assert _kernel(node, "alone").counterfactuals == ()


def test_no_limit_of_its_own_saves_the_last_pod_of_a_machine_that_is_out_of_memory():
    node = snapshot(using(guaranteed("alone", "1Gi"), "1Gi"))
    assert _kernel(node, "alone", lacking_bytes=MI).counterfactuals == ()


def test_a_container_that_does_not_run_has_no_place():
    node = snapshot(using(pod("alone"), "2Gi"))
    assert kernel_counterfactuals(KernelMoment(node, settings(node), MACHINE), ("nobody", "main")) is None


def test_a_container_is_not_saved_by_one_before_it_that_frees_too_little():
    """The killing goes on until enough is free, so the second is taken as well."""
    node = snapshot(using(pod("big"), "6Gi"), using(pod("small"), "1Gi"), using(guaranteed("web", "8Gi"), "4Gi"))
    assert PodChange.LESS in _by_change(_kernel(node, "big", lacking_bytes=GI).counterfactuals)
    assert PodChange.LESS not in _by_change(_kernel(node, "big", lacking_bytes=GI + 1).counterfactuals)


def test_what_a_container_waits_for_counts_where_the_killing_goes_on():
    """The first that dies frees too little; by the next kill the others have got what they want."""
    node = snapshot(*(using(pod(name), size) for name, size in (("big", "6Gi"), ("one", "1Gi"), ("two", "1Gi"))))

    def less(withheld: int) -> int | None:
        waits = {(_uid(node, "big"), "main"): withheld}
        moment = KernelMoment(node, settings(node), MACHINE, LATEST, GI + GI // 2, waits)
        found = _by_change(kernel_counterfactuals(moment, (_uid(node, "big"), "main")).counterfactuals)
        return found[PodChange.LESS].amount if PodChange.LESS in found else None

    assert less(256 * MI) == less(0) + 256 * MI
    assert less(4 * GI) is None


@pytest.mark.parametrize(("used", "mebibytes"), [(0, 1), (1, 1), (MI, 1), (MI + 1, 2)])
def test_memory_is_suggested_in_whole_mebibytes_and_at_least_one(used, mebibytes):
    assert in_mebibytes(used).value == mebibytes * MI


def test_an_equal_does_not_save_a_container_because_which_of_them_is_scanned_last_is_chance():
    node = snapshot(using(pod("one"), "3Gi"), using(pod("two"), "2Gi"))
    assert _by_change(_kernel(node, "one").counterfactuals)[PodChange.LESS].amount == GI + MI


def test_a_request_for_which_the_node_has_no_room_does_not_save_and_says_what_is_missing():
    node = snapshot(using(pod("logs"), "250Mi"), using(pod("analytics", "memory=4130Mi"), "8500Mi", processes=2))
    (counterfactual,) = [
        each
        for each in _kernel(node, "logs", allocatable={"memory": 4200 * MI}).counterfactuals
        if each.change is PodChange.REQUEST
    ]
    assert not counterfactual.saves
    assert (counterfactual.lacks.resource, counterfactual.lacks.capacity) == ("memory", 4200 * MI)
    assert counterfactual.lacks.requested == 4130 * MI + counterfactual.amount


def test_a_container_within_its_request_is_not_told_to_request_more():
    node = snapshot(using(pod("within", "memory=8Gi"), "7Gi"), using(guaranteed("web", "8Gi"), "6Gi"))
    assert PodChange.REQUEST not in _by_change(_kernel(node, "within").counterfactuals)
    over = snapshot(using(pod("over", "memory=6Gi"), "7Gi"), using(pod("web", "memory=8Gi"), "6Gi"))
    assert PodChange.REQUEST in _by_change(_kernel(over, "over").counterfactuals)


def test_pods_of_the_same_manifest_get_the_same_request_so_that_none_is_taken_for_the_other():
    node = snapshot(
        using(pod("job-0", "memory=1Gi"), "8Gi"),
        using(pod("job-1", "memory=1Gi"), "7Gi"),
        using(pod("web", "memory=4Gi"), "6Gi"),
    )
    alone = _by_change(_kernel(node, "job-0").counterfactuals)[PodChange.REQUEST]
    both = _by_change(_kernel(node, "job-0", alike=frozenset({"job-0", "job-1"})).counterfactuals)[PodChange.REQUEST]
    assert alone.decision.instead == "default/job-1"
    assert both.decision.instead == "default/web"
    assert both.amount > alone.amount


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


def _kubelet(node, name, **surroundings):
    return _by_change(kubelet_counterfactuals(of_snapshot(node), _uid(node, name), Surroundings(**surroundings)))


def test_the_request_that_spares_a_pod_leaves_it_further_below_than_the_next():
    """3Gi used and 3Gi below the request, as the other is, would be a tie."""
    node = snapshot(using(pod("greedy", "memory=1Gi"), "3Gi"), using(pod("modest", "memory=4Gi"), "1Gi"))
    assert kubelet_place(node, MEMORY, _uid(node, "greedy")) == 1
    counterfactual = _kubelet(node, "greedy")[PodChange.REQUEST]
    assert counterfactual.amount == 6 * GI + MI
    assert (counterfactual.decision.instead, counterfactual.decision.place) == ("default/modest", 2)


def test_no_request_above_the_limit_is_suggested():
    node = snapshot(using(pod("greedy", "memory=1Gi", "memory=4Gi"), "3Gi"), using(pod("modest", "memory=4Gi"), "1Gi"))
    assert PodChange.REQUEST not in _kubelet(node, "greedy")


def test_a_pod_within_its_request_is_not_told_to_request_more():
    node = snapshot(using(pod("one", "memory=4Gi"), "3Gi"), using(pod("two", "memory=6Gi"), "3Gi"))
    assert set(_kubelet(node, "one")) == {PodChange.GUARANTEED, PodChange.LESS, PodChange.PRIORITY}


def test_a_request_without_room_on_the_node_does_not_save():
    node = snapshot(using(pod("greedy", "memory=1Gi"), "3Gi"), using(pod("modest", "memory=4Gi"), "1Gi"))
    found = {each: _kubelet(node, "greedy", allocatable={"memory": each * GI})[PodChange.REQUEST] for each in (10, 11)}
    assert not found[10].saves
    assert found[10].lacks.requested == 10 * GI + MI
    assert found[11].saves


@pytest.mark.parametrize("limits", ["memory=4Gi", ""])
def test_the_request_is_that_of_the_container_furthest_over_its_own(limits):
    """The other uses more, and requests as much."""
    containers = container("app", requests="memory=4Gi", limits=limits), container("proxy", requests="memory=1Gi")
    mesh = pod_of("mesh", *containers)
    stats = replace(
        stats_of(mesh, 6 * 1024),
        containers=(
            ContainerStats("app", MemoryStats(working_set_bytes=4 * GI)),
            ContainerStats("proxy", MemoryStats(working_set_bytes=2 * GI)),
        ),
    )
    other = pod("other", "memory=1Gi")
    moment = short_of(Signal.MEMORY, (mesh, stats), (other, stats_of(other, 1024)))
    counterfactual = _by_change(kubelet_counterfactuals(moment, "mesh"))[PodChange.REQUEST]
    assert (counterfactual.container, counterfactual.amount) == ("proxy", 2 * GI + MI)


def test_made_guaranteed_each_container_gets_its_own_limit_above_its_own_use():
    """What one has to spare is of no use to the other."""
    containers = container("app", requests="cpu=1,memory=4Gi"), container("proxy", requests="cpu=1,memory=1Gi")
    mesh = pod_of("mesh", *containers)
    stats = replace(
        stats_of(mesh, 8 * 1024),
        containers=(
            ContainerStats("app", MemoryStats(working_set_bytes=GI)),
            ContainerStats("proxy", MemoryStats(working_set_bytes=7 * GI)),
        ),
    )
    other = pod("other", "memory=1Gi")
    moment = short_of(Signal.MEMORY, (mesh, stats), (other, stats_of(other, 1024)))
    counterfactual = _by_change(kubelet_counterfactuals(moment, "mesh"))[PodChange.GUARANTEED]
    limits = {each.name: each.resources.limits["memory"].value for each in counterfactual.pod.spec.containers}
    assert limits == {"app": 4 * GI, "proxy": -(-7 * GI * 6 // 5 // MI) * MI}
    assert counterfactual.saves


def test_with_pod_level_resources_it_is_the_pods_own_request():
    whole = replace(pod("whole"), spec=replace(pod("whole").spec, resources=resources("memory=1Gi")))
    other = pod("other", "memory=1Gi")
    moment = short_of(Signal.MEMORY, (whole, stats_of(whole, 2048)), (other, stats_of(other, 1024)))
    counterfactual = _by_change(kubelet_counterfactuals(moment, "whole"))[PodChange.REQUEST]
    assert counterfactual.amount == 2 * GI + MI
    assert counterfactual.pod.spec.resources.requests["memory"].value == counterfactual.amount


def test_priority_spares_a_pod_only_among_those_over_their_request():
    over = snapshot(using(pod("one", "memory=1Gi"), "3Gi"), using(pod("two", "memory=1Gi", priority=7), "2Gi"))
    assert _kubelet(over, "one")[PodChange.PRIORITY].amount == 8
    within = snapshot(using(pod("one", "memory=1Gi"), "3Gi"), using(pod("two", "memory=4Gi", priority=7), "2Gi"))
    assert PodChange.PRIORITY not in _kubelet(within, "one")


def test_no_priority_is_suggested_that_is_kept_for_the_system():
    most = HIGHEST_USER_PRIORITY
    node = snapshot(using(pod("one"), "3Gi"), using(pod("two", priority=most), "2Gi"))
    assert PodChange.PRIORITY not in _kubelet(node, "one")


def test_pods_of_the_same_manifest_are_raised_together():
    node = snapshot(
        using(pod("job-0", "memory=1Gi"), "4Gi"),
        using(pod("job-1", "memory=1Gi"), "3Gi"),
        using(pod("web", "memory=1Gi"), "2Gi"),
    )
    assert _kubelet(node, "job-0")[PodChange.PRIORITY].decision.instead == "default/job-1"
    both = _kubelet(node, "job-0", alike=frozenset({"job-0", "job-1"}))
    assert both[PodChange.PRIORITY].decision.instead == "default/web"
    assert both[PodChange.LESS].decision.instead == "default/job-1"


@pytest.mark.parametrize("name", ["critical", "nobody"])
def test_who_cannot_be_evicted_has_no_place_and_needs_no_counterfactual(name):
    node = snapshot(using(pod("critical", priority=2_000_000_000), "3Gi"), using(pod("other"), "1Gi"))
    uid = _uid(node, name) if name == "critical" else name
    assert kubelet_place(node, MEMORY, uid) is None
    assert kubelet_counterfactuals(of_snapshot(node), uid) == ()


def test_a_pod_alone_on_its_node_has_no_counterfactual_that_saves():
    node = snapshot(using(pod("alone", "memory=1Gi"), "3Gi"))
    assert not [each for each in _kubelet(node, "alone").values() if each.saves]


def test_on_disk_the_request_is_more_than_before_and_more_than_what_is_used():
    report, web = pod("report", "ephemeral-storage=8Gi"), pod("web", "ephemeral-storage=2Gi")
    moment = short_of(
        Signal.NODEFS, (report, stats_of(report, rootfs=51 * GI)), (web, stats_of(web, rootfs=GI)), layout=Layout.SINGLE
    )
    counterfactuals = _by_change(kubelet_counterfactuals(moment, "report"))
    assert (counterfactuals[PodChange.REQUEST].resource, counterfactuals[PodChange.REQUEST].amount) == (
        "ephemeral-storage",
        52 * GI + MI,
    )
    assert counterfactuals[PodChange.LESS].amount == 44 * GI + MI


@pytest.mark.parametrize(
    ("signal", "used"),
    [(Signal.NODEFS_INODES, {"rootfs": 10}), (Signal.PID, {"processes": 10})],
    ids=["inodes", "pids"],
)
def test_of_inodes_and_processes_nothing_can_be_requested_but_fewer_can_be_used(signal, used):
    one, two = pod("one"), pod("two")
    fewer = {name: amount - 4 for name, amount in used.items()}
    moment = short_of(signal, (one, stats_of(one, **used)), (two, stats_of(two, **fewer)))
    counterfactuals = _by_change(kubelet_counterfactuals(moment, "one"))
    assert set(counterfactuals) == {PodChange.PRIORITY, PodChange.LESS}
    assert counterfactuals[PodChange.LESS].amount == 5


# ---- limits of the pod's own -----------------------------------------------------------------------------------------


def _scratch(limit, **fields):
    return pod("report", volumes=(volume("scratch", empty_dir=EmptyDir("", Quantity.parse(limit))),), **fields)


def test_a_larger_size_limit_saves_a_pod_that_exceeded_it_and_no_request_does():
    report, web = _scratch("1Gi", requests="ephemeral-storage=1Gi"), pod("web")
    stats = stats_of(report, volumes={"scratch": 3 * GI}, ephemeral=3 * GI)
    moment = short_of(Signal.MEMORY, (report, stats), (web, stats_of(web, 2048)))
    counterfactuals = _by_change(kubelet_counterfactuals(moment, "report"))
    assert set(counterfactuals) == {PodChange.LIMIT, PodChange.LESS}
    assert (counterfactuals[PodChange.LIMIT].container, counterfactuals[PodChange.LIMIT].amount) == (
        "scratch",
        3 * GI + MI,
    ), "a page more still fits"
    assert counterfactuals[PodChange.LIMIT].decision.instead == "default/web"
    assert counterfactuals[PodChange.LESS].amount == 2 * GI + MI


def test_a_size_limit_does_not_save_a_pod_that_another_of_its_limits_would_end():
    report = _scratch("1Gi", limits="ephemeral-storage=2Gi")
    stats = stats_of(report, volumes={"scratch": 3 * GI}, ephemeral=3 * GI)
    moment = short_of(Signal.PID, (report, stats), (pod("web"), None))
    assert set(_by_change(kubelet_counterfactuals(moment, "report"))) == {PodChange.LESS}


def test_a_larger_limit_of_local_storage_saves_a_pod_that_exceeded_it():
    report = pod("report", limits="ephemeral-storage=2Gi")
    stats = stats_of(report, rootfs=3 * GI, ephemeral=3 * GI)
    moment = short_of(Signal.PID, (report, stats), (pod("web"), None))
    counterfactual = _by_change(kubelet_counterfactuals(moment, "report"))[PodChange.LIMIT]
    assert (counterfactual.container, counterfactual.amount) == ("main", 3 * GI + MI)


def test_where_the_writable_layer_does_not_count_a_pod_is_saved_by_less_in_its_logs():
    containers = container("app", limits="ephemeral-storage=1Gi"), container("other", limits="ephemeral-storage=8Gi")
    report = pod_of("report", *containers)
    stats = stats_of(report, rootfs=4 * GI, logs=2 * GI, ephemeral=6 * GI)
    moment = short_of(Signal.PID, (report, stats), (pod("web"), None), layout=Layout.DEDICATED)
    counterfactuals = _by_change(kubelet_counterfactuals(moment, "report"))
    assert counterfactuals[PodChange.LESS].amount == GI + MI
    assert (counterfactuals[PodChange.LIMIT].container, counterfactuals[PodChange.LIMIT].amount) == ("app", 2 * GI + MI)


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
    for counterfactual in _kubelet(node, first.metadata.name).values():
        assert counterfactual.decision.spared == (counterfactual.decision.place > 1)
        assert counterfactual.decision.spared == (counterfactual.decision.instead is not None)
        assert counterfactual.decision.instead != first.key
