"""The forecast of a race, against the race run for every phase of the kubelet's loop."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eviction.nodes import pod
from orders.nodes import GI, MI, snapshot, using
from podqos.agent.journal import By
from podqos.agent.reasons import OOMLevel
from podqos.agent.state import MemoryNotification
from podqos.eviction.signals import Signal
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.time_units import SECOND_US
from podqos.orders.exhaustion import exhaustion
from podqos.orders.growing import GrowingNode, Growth, KubeletWatch, grown
from podqos.orders.race import Race, run_race
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.questions.growth import Impractical
from podqos.questions.growth import forecast_growth as forecast

NODE_BYTES = 64 * GI
LEAK = using(pod("leak"), "1Gi")
STEADY = using(pod("steady", "memory=1Gi"), "3Gi", processes=1)


def _watch(hard: str = "1Gi", soft: str | None = None, grace: str = "30s", **settings) -> KubeletWatch:
    eviction = KubeletConfiguration(
        eviction_hard={"memory.available": hard},
        eviction_soft={} if soft is None else {"memory.available": soft},
        eviction_soft_grace_period={} if soft is None else {"memory.available": grace},
        enforce_node_allocatable=(),
    )
    return KubeletWatch(exhaustion(eviction, {Signal.MEMORY: NODE_BYTES}), **settings)


def _forecast(
    node, rate: int, watch: KubeletWatch, name: str = "leak", settings: CgroupSettings | None = None, **kwargs
):
    uid = next(entry.pod.metadata.uid for entry in node.pods if entry.pod.metadata.name == name)
    container = next(entry for entry in node.pods if entry.pod.metadata.uid == uid).containers[0].name
    settings = settings or CgroupSettings(node_memory_bytes=NODE_BYTES)
    return forecast(GrowingNode(node, settings, Growth(uid, container), watch), rate, **kwargs)


def test_one_hard_threshold_is_the_race_in_closed_form():
    node = snapshot(LEAK, STEADY)
    found = _forecast(node, 128 * MI, _watch())
    race = Race(60 * GI, int(found.out_of_memory_after_seconds * 128 * MI), GI, 128 * MI)
    assert found.out_of_memory is OOMLevel.NODE
    assert 59 * GI < race.until_oom_bytes < 60 * GI
    assert found.kubelet_first == run_race(race).kubelet_first
    assert 0 < found.kubelet_first < 1


def test_probabilities_add_up_to_one_and_each_outcome_names_who_goes():
    found = _forecast(snapshot(LEAK, STEADY), 128 * MI, _watch())
    assert sum(each.probability for each in found.outcomes) == 1
    eviction, kill = found.outcomes
    assert (eviction.by, eviction.signal, eviction.threshold_type) == (By.KUBELET, Signal.MEMORY, "hard")
    assert (kill.by, kill.container, kill.oom_score_adj) == (By.KERNEL, "main", 1000)
    assert eviction.pod == kill.pod == "default/leak"
    assert eviction.ends_growth
    assert kill.ends_growth


def test_the_kernel_takes_the_one_with_the_worst_badness_though_another_grows():
    """A Burstable pod of a large request grows; the BestEffort pod beside it outweighs it by its adjustment alone."""
    grower = using(pod("grower", "memory=60Gi"), "1Gi")
    node = snapshot(grower, using(pod("bystander"), "8Gi"))
    found = _forecast(node, GI, _watch("100Mi"), "grower")
    (kill,) = (each for each in found.outcomes if each.by is By.KERNEL)
    assert kill.pod == "default/bystander"
    assert not kill.ends_growth


def test_the_first_in_the_ranking_changes_while_the_pod_grows():
    """The one that grows passes its request during the window: before that another one is over its own."""
    node = snapshot(using(pod("grower", "memory=20Gi"), "1Gi"), using(pod("over", "memory=1Gi"), "13Gi"))
    watch = _watch("33Gi")  # crossed when the grower has 18 Gi; it is over by more than the other only from 32 Gi on
    found = _forecast(node, 2 * GI, watch, "grower")
    assert [each.pod for each in found.outcomes] == ["default/over", "default/grower"]
    first, second = found.outcomes
    assert first.earliest_seconds == Fraction(17, 2)
    assert first.latest_seconds == pytest.approx(second.earliest_seconds)
    assert float(second.earliest_seconds) == pytest.approx((32 - 1) / 2, abs=2e-6)


def test_a_limit_of_its_own_holds_a_growth_and_needs_no_threshold():
    grower = using(pod("grower", "memory=1Gi", limits="memory=2Gi"), "1Gi")
    found = _forecast(snapshot(grower, STEADY), GI, _watch(), "grower")
    assert found.out_of_memory in {OOMLevel.CONTAINER, OOMLevel.POD}
    assert found.out_of_memory_after_seconds == 1
    assert (found.kubelet_first, found.needed) == (0, None)


def test_all_pods_together_run_out_first_where_that_is_enforced():
    settings = CgroupSettings(
        node_memory_bytes=NODE_BYTES, node_allocatable={MEMORY: Quantity.of_units(8 * GI, "BinarySI")}
    )
    found = _forecast(snapshot(LEAK, STEADY), GI, _watch(), settings=settings)
    assert (found.out_of_memory, found.out_of_memory_after_seconds) == (OOMLevel.KUBEPODS, 4)


def test_what_is_needed_makes_the_kubelet_first_as_often_as_wanted():
    node = snapshot(LEAK, STEADY)
    needed = _forecast(node, 512 * MI, _watch("100Mi"), wanted=Fraction(9, 10)).needed
    assert needed is not None
    assert needed.attainable
    better = _forecast(node, 512 * MI, _watch(str(needed.eviction_hard_bytes)))
    worse = _forecast(node, 512 * MI, _watch(str(needed.eviction_hard_bytes - MI)))
    assert worse.kubelet_first < Fraction(9, 10) <= better.kubelet_first


def test_the_longest_grace_period_that_still_wins():
    node = snapshot(LEAK, STEADY)
    needed = _forecast(node, 16 * MI, _watch("100Mi", "4Gi", "10m"), wanted=Fraction(1)).needed
    assert needed is not None
    assert needed.soft_grace_seconds is not None
    grace = int(needed.soft_grace_seconds)
    assert _forecast(node, 16 * MI, _watch("100Mi", "4Gi", f"{grace}s")).kubelet_first == 1
    assert _forecast(node, 16 * MI, _watch("100Mi", "4Gi", f"{grace + 10}s")).kubelet_first < 1


def test_growing_changes_one_container_and_its_figures_alone():
    node = snapshot(LEAK, STEADY)
    entry = node.pods[0]
    after = grown(node, Growth(entry.pod.metadata.uid, entry.containers[0].name), 5)
    assert after.pods[1] is node.pods[1]
    assert after.pods[0].containers[0].anon_bytes == entry.containers[0].anon_bytes + 5
    assert after.pods[0].stats.memory.working_set_bytes == entry.stats.memory.working_set_bytes + 5


def test_a_threshold_that_would_not_be_set_is_called_impractical_and_what_to_do_is_said():
    """At nearly 6 GiB a second an interval's growth is 58 of the 64 GiB: limit the pod, or be told."""
    needed = _forecast(snapshot(LEAK, STEADY), 6 * GI - 200 * MI, _watch("2Gi"), wanted=Fraction(1)).needed
    assert needed is not None
    assert needed.eviction_hard_bytes is not None
    assert needed.eviction_hard_bytes > 57 * GI
    assert needed.impractical is Impractical.SHARE
    assert needed.instead is not None
    assert (needed.instead.limit_bytes, needed.instead.fast_path) == (59 * GI, True)


IMPRACTICAL = {
    "usual": (100 * MI, [LEAK, STEADY], None),
    "critical": (100 * MI, [using(pod("leak", priority=2_000_000_000), "1Gi")], Impractical.SPARED),
    "too late": (8 * GI, [LEAK, STEADY], Impractical.TOO_LATE),
    "under pressure": (6300 * MI, [LEAK, STEADY], Impractical.PRESSURE),
    "requests": (GI, [using(pod("leak", "memory=60Gi"), "1Gi"), STEADY], Impractical.REQUESTS),
    "share": (2 * GI, [LEAK, STEADY], Impractical.SHARE),
}


@pytest.mark.parametrize(("rate", "pods", "reason"), IMPRACTICAL.values(), ids=IMPRACTICAL)
def test_the_worst_reason_why_a_threshold_is_impractical_is_given(rate, pods, reason):
    needed = _forecast(snapshot(*pods), rate, _watch(statistics_age_us=2 * SECOND_US), wanted=Fraction(9, 10)).needed
    assert needed is not None
    assert needed.impractical is reason
    assert (needed.instead is None) == (reason is None)
    assert needed.attainable == (reason in {None, Impractical.REQUESTS, Impractical.SHARE})
    assert (needed.eviction_hard_bytes is None) == (reason in {Impractical.SPARED, Impractical.TOO_LATE})


def test_with_the_limit_advised_instead_the_container_runs_out_before_any_threshold_is_met():
    needed = _forecast(snapshot(LEAK, STEADY), 4 * GI, _watch(soft="10Gi")).needed
    assert needed is not None
    assert needed.instead is not None
    limited = using(pod("leak", limits=f"memory={needed.instead.limit_bytes}"), "1Gi")
    found = _forecast(snapshot(limited, STEADY), 4 * GI, _watch(soft="10Gi"))
    assert found.out_of_memory is OOMLevel.CONTAINER
    assert all(each.crossed_after_seconds >= found.out_of_memory_after_seconds for each in found.thresholds)


def test_the_fast_path_is_first_at_every_phase_where_a_hard_threshold_is_met_in_time():
    watch = _watch(notification=MemoryNotification.FAST_PATH)
    (only,) = _forecast(snapshot(LEAK, STEADY), 8 * GI, watch).outcomes
    assert (only.by, only.probability) == (By.KUBELET, 1)
    assert [float(only.earliest_seconds), float(only.latest_seconds)] == pytest.approx([59 / 8] * 2, abs=1e-5)
    late = _watch("100Mi", notification=MemoryNotification.FAST_PATH)
    assert _forecast(snapshot(LEAK, STEADY), 8 * GI, late).kubelet_first == 0


def test_slow_growth_takes_no_longer_to_forecast():
    """A byte a second takes two thousand years, and a grace period may be as long."""
    found = _forecast(snapshot(LEAK, STEADY), 1, _watch("1Gi", "4Gi", "10000h"))
    assert found.kubelet_first == 1
    assert found.needed is not None
    assert found.needed.soft_grace_seconds > 10**9


SITUATIONS = st.fixed_dictionaries(
    {
        "rate": st.integers(64, 4096).map(lambda mebibytes: mebibytes * MI),
        "hard": st.integers(1, 16),
        "soft": st.integers(1, 32),
        "grace": st.integers(1, 40),
        "age": st.integers(0, 12),
        "reaction": st.integers(0, 3),
        "interval": st.integers(4, 20),
    }
)


@given(SITUATIONS)
def test_the_probability_is_the_share_of_phases_at_which_a_kubelet_that_is_run_comes_first(given_):
    watch = _watch(
        f"{given_['hard']}Gi",
        f"{given_['soft']}Gi",
        f"{given_['grace']}s",
        statistics_age_us=given_["age"] * SECOND_US,
        reaction_us=given_["reaction"] * SECOND_US,
        interval_us=given_["interval"] * SECOND_US,
    )
    found = _forecast(snapshot(LEAK, STEADY), given_["rate"], watch)
    phases = 80
    first = sum(
        _acts_first(found.out_of_memory_after_seconds * SECOND_US, phase * watch.interval_us // phases, given_)
        for phase in range(phases)
    )
    assert float(found.kubelet_first) == pytest.approx(first / phases, abs=2 / phases)


def _acts_first(oom_us, phase_us, given_) -> bool:
    """Run a kubelet that looks at its interval from ``phase_us`` on."""
    met_since = None
    now = phase_us
    while now + given_["reaction"] * SECOND_US < oom_us:
        left = 60 * GI - given_["rate"] * max(0, now - given_["age"] * SECOND_US) / SECOND_US
        if left < given_["hard"] * GI:
            return True
        if left < given_["soft"] * GI:
            met_since = now if met_since is None else met_since
            if now - met_since >= given_["grace"] * SECOND_US:
                return True
        now += given_["interval"] * SECOND_US
    return False
