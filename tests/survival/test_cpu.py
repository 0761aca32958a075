"""What everybody gets when everybody bursts: the examples of the sources, and what always holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from admission.pods import amounts, container
from eviction.nodes import pod, pod_of
from podqos.errors import InputError
from podqos.kernel.cpu import CORE_NANO, CpuBound, CpuGroup, cpu_shares
from podqos.model.effective import pod_limits
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.resources import CPU
from podqos.qos.cgroup import Cgroup, Level, node_cgroups, pod_cgroups
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.qos.classes import classify
from podqos.survival.orders.cpu import burst
from strategies import accepted_pods

SETTINGS = CgroupSettings(node_memory_bytes=64 << 30)
V1 = CgroupSettings(node_memory_bytes=64 << 30, cgroup_version=CgroupVersion.V1)


def cores(pods: list[Pod], count: int, settings: CgroupSettings = SETTINGS) -> dict[str, float]:
    """Return what each pod gets, in cores."""
    result = burst(pods, count, settings).pods
    return {entry.pod.metadata.name: entry.share.granted_nano / CORE_NANO for entry in result}


@pytest.mark.parametrize("settings", [SETTINGS, V1], ids=["v2", "v1"])
def test_spare_cpu_is_shared_in_proportion_to_requests(settings):
    got = cores([pod("a", "cpu=500m"), pod("b", "cpu=250m")], 3, settings)
    assert got == pytest.approx({"a": 2, "b": 1}, abs=1e-6)


def _user_facing() -> list[Pod]:
    return [pod(name, "cpu=2,memory=1Gi", "cpu=2,memory=1Gi") for name in ("article", "search", "cdn")]


def test_32_cores_wanted_where_8_are_left():
    """Four analytics at 500m, four indexers at 1, all with a limit of 4: a quarter of what they want, by request."""
    batch = [pod(f"analytics-{index}", "cpu=500m", "cpu=4") for index in range(4)]
    batch += [pod(f"indexer-{index}", "cpu=1", "cpu=4") for index in range(4)]
    result = burst([*_user_facing(), *batch], 14, V1).pods
    by_name = {entry.pod.metadata.name: entry for entry in result}
    assert sum(entry.wanted_nano for entry in result[3:]) == 32 * CORE_NANO
    assert sum(entry.share.granted_nano for entry in result[3:]) == pytest.approx(8 * CORE_NANO, abs=10)
    assert by_name["article"].share.granted_nano == 2 * CORE_NANO
    assert by_name["analytics-0"].share.granted_nano == pytest.approx(CORE_NANO * 2 / 3, rel=1e-3)
    assert by_name["indexer-0"].share.granted_nano == pytest.approx(CORE_NANO * 4 / 3, rel=1e-3)
    assert {entry.share.bound for entry in result[3:]} == {CpuBound.CONTENTION}


def test_16_cores_wanted_where_8_are_left():
    """With a budget of twice the requests everybody gets half of what he wants."""
    batch = [pod(f"batch-{index}", "cpu=1", "cpu=2") for index in range(8)]
    result = burst([*_user_facing(), *batch], 14, SETTINGS).pods
    assert [entry.denied_nano * 100 // entry.wanted_nano for entry in result] == [0] * 3 + [50] * 8


def test_guaranteed_pods_that_want_their_limit_get_it():
    got = cores(
        [pod("g", "cpu=2,memory=1Gi", "cpu=2,memory=1Gi"), *(pod(f"b{index}", "cpu=1") for index in range(6))], 8
    )
    assert got["g"] == 2


def test_best_effort_gets_what_nobody_else_wants():
    alone = cores([pod("idle"), pod("b", "cpu=1", "cpu=1")], 8)
    assert alone == {"idle": 7, "b": 1}
    contended = cores([pod("idle"), pod("b", "cpu=1")], 8)
    assert contended["idle"] == pytest.approx(8 / 40, rel=0.01)  # weight 1 against the 39 of one core


@pytest.mark.parametrize(
    ("settings", "weight", "granted_milli"),
    [
        pytest.param(V1, 1024, 667, id="v1: cpu.shares of one core against 2048"),
        pytest.param(SETTINGS, 100, 1000, id="v2: cpu.weight 100 against the 79 of two cores"),
    ],
)
def test_daemons_compete_with_all_pods_by_the_weight_systemd_gives_a_slice(settings, weight, granted_milli):
    node = replace(settings, node_allocatable=amounts("cpu=2"))
    daemons = burst([pod("a", "cpu=2")], 2, node, reserved_milli=1000).daemons
    assert (daemons.weight, daemons.granted_milli) == (weight, granted_milli)


def test_containers_share_what_their_pod_gets():
    two = pod_of("two", container("large", requests="cpu=300m"), container("small", requests="cpu=100m"))
    result = burst([two, pod("other", "cpu=400m")], 4, V1).pods
    assert [each.granted_nano / CORE_NANO for each in result[0].containers] == pytest.approx([1.5, 0.5], rel=0.01)


@pytest.mark.parametrize(("second", "limit"), [("cpu=500m", "1500m"), ("", None)])
def test_a_pod_has_a_limit_where_all_its_containers_have_one(second, limit):
    two = pod_of("two", container("a", limits="cpu=1"), container("b", limits=second))
    (entry,) = burst([two], 8, SETTINGS).pods
    assert (entry.limit and str(entry.limit)) == limit


def test_a_limit_binds_though_cores_are_idle():
    result = burst([pod("a", "cpu=1", "cpu=1")], 8, SETTINGS).pods
    assert [(entry.wanted_nano, entry.share.granted_nano) for entry in result] == [(CORE_NANO, CORE_NANO)]


@given(st.lists(accepted_pods(), min_size=1, max_size=6), st.integers(1, 16), st.sampled_from([SETTINGS, V1]))
def test_nobody_gets_more_than_he_may_and_all_together_no_more_than_there_is(pods, count, settings):
    result = burst(pods, count, settings).pods
    wanted, granted = sum(entry.wanted_nano for entry in result), sum(entry.share.granted_nano for entry in result)
    # Integer division leaves a few nanocores with nobody.
    assert granted <= count * CORE_NANO
    assert granted >= min(wanted, count * CORE_NANO) - 1000 or any(
        entry.share.bound is CpuBound.QUOTA for entry in result
    )
    for entry in result:
        assert 0 <= entry.share.granted_nano <= entry.wanted_nano
        limits = [container.resources.limits.get(CPU) for container in entry.pod.running_containers]
        if len(limits) == 1 and limits[0]:
            assert entry.share.granted_nano <= max(limits[0].milli_value, 10) * CORE_NANO // 1000
        if CPU in pod_limits(entry.pod) and all(limits):
            assert entry.wanted_nano <= sum(max(limit.milli_value, 10) for limit in limits) * CORE_NANO // 1000


@given(accepted_pods(), accepted_pods(), st.integers(1, 16))
def test_the_division_is_that_of_the_planned_cgroups(one, other, count):
    """Building every cgroup of the plan from its files gives the same, also where pod and container are one here."""
    pods = [replace(each, metadata=ObjectMeta(uid=uid)) for each, uid in ((one, "1"), (other, "2"))]
    groups = [_group(cgroup, 0) for cgroup in node_cgroups(pods, SETTINGS)]
    paths = []
    for each in pods:
        ids = {container.name: container.name for container in each.running_containers}
        plan = pod_cgroups(each, classify(each).qos_class, SETTINGS, ids=ids)
        groups += [_group(cgroup, 0) for cgroup in plan if cgroup.level is Level.POD]
        groups += [_group(cgroup, count) for cgroup in plan if cgroup.container in ids]
        by_name = {cgroup.container: cgroup.path for cgroup in plan if cgroup.level is Level.CONTAINER}
        paths += [by_name[name] for name in ids]
    whole = cpu_shares(groups, count)
    mine = [each.granted_nano for entry in burst(pods, count, SETTINGS).pods for each in entry.containers]
    assert mine == pytest.approx([whole[path].granted_nano for path in paths], abs=1000)


def _group(cgroup: Cgroup, count: int) -> CpuGroup:
    """Return a group of the CPU controller as its files have it; a container wants so many cores."""
    quota, _, period = (cgroup.text("cpu.max") or "max 100000").partition(" ")
    weight = int(cgroup.text("cpu.weight") or 100)
    if quota == "max":
        return CpuGroup(cgroup.path, weight, demand_nano=count * CORE_NANO)
    wanted = min(count * CORE_NANO, int(quota) * CORE_NANO // int(period))
    return CpuGroup(cgroup.path, weight, int(quota), int(period), wanted)


class TestExclusiveCores:
    """What a static CPU manager changes."""

    STATIC = replace(SETTINGS, static_cpu_manager=True)

    def test_cores_of_its_own_are_not_shared_out(self):
        pods = [pod("own", "cpu=2,memory=1Gi", "cpu=2,memory=1Gi"), pod("a", "cpu=6"), pod("b", "cpu=2")]
        assert cores(pods, 4)["own"] < 2
        assert cores(pods, 4, self.STATIC) == pytest.approx({"own": 2, "a": 1.5, "b": 0.5}, rel=1e-2)

    def test_a_fraction_of_a_core_stays_in_the_shared_pool(self):
        pods = [pod("own", "cpu=1500m,memory=1Gi", "cpu=1500m,memory=1Gi"), pod("a", "cpu=1500m")]
        assert cores(pods, 2, self.STATIC) == cores(pods, 2)

    def test_containers_of_one_pod_are_told_apart(self):
        mixed = pod_of(
            "mixed",
            container("whole", requests="cpu=2,memory=1Gi", limits="cpu=2,memory=1Gi"),
            container("part", requests="cpu=500m,memory=1Gi", limits="cpu=500m,memory=1Gi"),
        )
        (entry,) = burst([mixed], 4, self.STATIC).pods
        got = [each.granted_nano / CORE_NANO for each in entry.containers]
        assert got == [2, 0.5]
        assert entry.share.granted_nano == 2.5 * CORE_NANO

    def test_all_cores_can_be_taken_and_then_nothing_is_left(self):
        pods = [pod("own", "cpu=2,memory=1Gi", "cpu=2,memory=1Gi"), pod("a", "cpu=1")]
        assert cores(pods, 2, self.STATIC) == {"own": 2, "a": 0}

    def test_the_weight_of_all_pods_is_spread_over_all_cores(self):
        """Of 118 for three cores the half counts on the two that are shared, against 100 of the daemons."""
        node = replace(self.STATIC, node_allocatable=amounts("cpu=3"))
        pods = [pod("own", "cpu=2,memory=1Gi", "cpu=2,memory=1Gi"), pod("a", "cpu=1")]
        daemons = burst(pods, 4, node, reserved_milli=2000).daemons
        assert (daemons.pods_weight, daemons.granted_milli) == (118, 1258)

    def test_more_than_there_is_cannot_be_given_away(self):
        with pytest.raises(InputError, match=r"4 exclusive CPUs .*, but pods have 3"):
            burst([pod("own", "cpu=4,memory=1Gi", "cpu=4,memory=1Gi")], 3, self.STATIC)


def test_without_qos_cgroups_containers_compete_alone_and_classes_do_not_count():
    flat = replace(SETTINGS, cgroups_per_qos=False, weight_conversion="linear")
    two = pod_of("two", container("a", requests="cpu=1"), container("b", requests="cpu=1"))
    pods = [two, pod("guaranteed", "cpu=1,memory=1Gi", "cpu=4,memory=1Gi"), pod("nothing")]
    got = cores(pods, 3, flat)
    assert got["two"] == pytest.approx(2 * got["guaranteed"], rel=1e-2)
    assert got["nothing"] > cores(pods, 3)["nothing"]
    assert sum(got.values()) == pytest.approx(3)
