"""Who acts first by a kubelet's settings alone: what the forecast says, and the simulator confirms."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eviction.nodes import container, pod_of
from podqos.agent.journal import By
from podqos.eviction.signals import Signal
from podqos.kernel.memory import machine
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.snapshot import ContainerUsage
from podqos.model.time_units import SECOND_US
from podqos.orders.exhaustion import exhaustion
from podqos.orders.plain_node import (
    PlainNode,
    always_first,
    first_actor,
    kubelet_sure_growth,
    sure_growth,
    with_sure_growth,
)
from podqos.orders.race import Race, winning_growth_bytes_per_second, winning_threshold_bytes
from sim.growths import GROWER, INTERVAL_US, Setting

MI, GI = 1 << 20, 1 << 30
MEMORY = "memory.available"


def kubelet(hard: str = "100Mi", reserved: str = "", soft: str = "", grace: str = "30s") -> KubeletConfiguration:
    """Make a kubelet."""
    return KubeletConfiguration(
        eviction_hard={MEMORY: hard},
        eviction_soft={MEMORY: soft} if soft else {},
        eviction_soft_grace_period={MEMORY: grace} if soft else {},
        system_reserved={"memory": reserved} if reserved else {},
    )


@pytest.mark.parametrize(("gibibytes", "percent"), [(16, 73), (64, 35), (128, 0)])
def test_the_mark_at_which_the_kernel_kills_counts(gibibytes, percent):
    """500Mi last for ten seconds at 50Mi/s, but the kernel of a large machine keeps some of them."""
    found = first_actor(PlainNode(gibibytes * GI, kubelet("500Mi")), 50 * MI)
    assert int(found.kubelet_first * 100) == percent
    kept = machine(gibibytes * GI).watermarks.min_bytes
    assert found.needed_bytes == found.sufficient_bytes == -(-(kept + 500 * MI) // MI) * MI


def test_with_the_defaults_the_kernel_is_always_first_on_a_large_machine():
    node = PlainNode(64 * GI)
    assert sure_growth(node.growing()) is None
    assert first_actor(node, 1).kubelet_first == 0
    sure = {each.signal: each.sure_growth_bytes_per_second for each in watched(node) if each.amount is not None}
    assert sure == {Signal.MEMORY: None, Signal.ALLOCATABLE_MEMORY: None}


def test_a_reservation_that_the_system_does_not_use_gives_the_kubelet_time():
    """The pods' cgroup ends before the machine does, and of it nothing is kept."""
    node = PlainNode(64 * GI, kubelet("100Mi", "2Gi"))
    assert sure_growth(node.growing()) == 10 * MI
    assert kubelet_sure_growth(node).reserved_in_use_bytes_per_second is None
    found = first_actor(node, 50 * MI)
    assert (found.kubelet_first, found.needed_bytes) == (Fraction(1, 5), 500 * MI)
    assert found.sufficient_bytes == 825 * MI


def watched(node: PlainNode):
    """Return the thresholds of a node with the growth that each is enough for."""
    return with_sure_growth(exhaustion(node.config, {Signal.MEMORY: node.memory_bytes}), node).thresholds


def test_a_soft_threshold_waits_for_whole_looks():
    node = PlainNode(64 * GI, kubelet("1Mi", soft="1Gi", grace="25s"))
    soft = next(each for each in watched(node) if not each.is_hard)
    kept = machine(64 * GI).watermarks.min_bytes
    assert soft.sure_growth_bytes_per_second == (GI - kept) // 40  # three whole looks, and the wait for the first


NODES = st.builds(
    lambda gibibytes, hard, reserved, used: PlainNode(
        gibibytes * GI, kubelet(f"{hard}Mi", f"{reserved}Mi" if reserved else ""), used * reserved * MI // 4
    ),
    st.sampled_from((4, 8, 16, 64, 128)),
    st.integers(1, 1200),
    st.sampled_from((0, 0, 100, 400, 1000)),
    st.integers(0, 6),
)


@settings(max_examples=30)
@given(NODES, st.sampled_from((1, 10, 50, 200)))
def test_no_use_by_the_system_is_worse_than_that_of_all_that_is_reserved(node, mebibytes):
    rate = mebibytes * MI
    worst = node.with_reserved_in_use().growing().kubelet_first(rate)
    assert node.growing().kubelet_first(rate) >= worst
    sufficient = first_actor(node, rate).sufficient_bytes
    tried = replace(node, config=replace(node.config, eviction_hard={MEMORY: str(sufficient)}))
    assert tried.growing().kubelet_first(rate) == 1


@settings(max_examples=30)
@given(NODES, st.sampled_from((10, 50, 200)))
def test_what_is_sufficient_always_wins_and_a_mebibyte_less_does_not(node, mebibytes):
    rate = mebibytes * MI
    found = first_actor(node, rate)

    def set_to(amount: int) -> PlainNode:
        return replace(node, config=replace(node.config, eviction_hard={MEMORY: str(amount)}))

    assert always_first(set_to(found.sufficient_bytes), rate)
    assert not always_first(set_to(found.sufficient_bytes - MI), rate)
    assert set_to(found.needed_bytes).growing().kubelet_first(rate) == 1
    assert set_to(found.needed_bytes - MI).growing().kubelet_first(rate) < 1


@settings(max_examples=30)
@given(NODES, st.sampled_from((1, 10, 50, 200)))
def test_the_closed_form_for_logs_says_the_same(node, mebibytes):
    """``race`` has amounts that a log states; given those of a node, it agrees with the forecast."""
    growing, rate = node.growing(), mebibytes * MI
    for level in growing.levels:
        race = Race(growing.available[level.signal], growing.until_oom_bytes, level.amount, rate)
        assert sure_growth(growing, [level]) == winning_growth_bytes_per_second(race)
        needed = winning_threshold_bytes(race)
        assert growing.kubelet_first(rate, [replace(level, amount=needed)]) == 1


@pytest.mark.parametrize(
    ("config", "system_bytes"),
    [
        pytest.param(kubelet("100Mi"), 0, id="nothing is reserved"),
        pytest.param(kubelet("100Mi", "1Gi"), 0, id="what is reserved is free"),
        pytest.param(kubelet("100Mi", "1Gi"), GI, id="what is reserved is in use"),
        pytest.param(kubelet("100Mi", "1Gi"), 950 * MI, id="it is nearly in use"),
    ],
)
def test_the_simulator_confirms_what_is_needed(config, system_bytes):
    """With the needed threshold the kubelet is first at every phase; with a MiB less, not if it looked just before."""
    memory_bytes, rate = 8 * GI, 50 * MI
    node = PlainNode(memory_bytes, config, system_bytes)
    needed = first_actor(node, rate).needed_bytes
    grower = pod_of(GROWER, container("c0"))
    pods = ((grower, (ContainerUsage("c0", 5 * GI, processes=1),)),)
    setting = Setting(memory_bytes, system_bytes, 0, config, pods, rate)

    def first(amount: int) -> set[By]:
        tried = setting.with_hard(amount)
        growing = tried.growing()
        crossed_us = SECOND_US + min(map(growing.crossed_bytes, growing.levels)) * SECOND_US // rate
        phases = [(crossed_us + later_us) % INTERVAL_US for later_us in (-5_000, 5_000, INTERVAL_US // 2)]
        return {each.by for each in tried.simulated(phases, 60 * SECOND_US, SECOND_US)}

    assert first(needed) == {By.KUBELET}
    assert first(needed - MI) == {By.KUBELET, By.KERNEL}
