"""What thresholds mean on a node, and who acts in which order."""

from __future__ import annotations

import pytest

from podqos.eviction.signals import Layout, Signal
from podqos.eviction.thresholds import WarningKind
from podqos.model.kubelet_config import KubeletConfiguration, kubelet_configuration
from podqos.model.quantity import Quantity
from podqos.orders.exhaustion import Actor, exhaustion
from podqos.placement.allocatable import node_allocatable

MI, GI = 1 << 20, 1 << 30
MEMORY = {Signal.MEMORY: 64 * GI}


def settings(hard: str = "", soft: str = "", grace: str = "2m", **fields: object) -> KubeletConfiguration:
    """Make settings about memory."""
    return KubeletConfiguration(
        eviction_hard={"memory.available": hard} if hard else {},
        eviction_soft={"memory.available": soft} if soft else {},
        eviction_soft_grace_period={"memory.available": grace} if soft else {},
        **fields,
    )


def actors(found) -> list[Actor]:
    return [step.actor for step in found.steps if step.signal is Signal.MEMORY]


def test_the_soft_threshold_comes_first_then_the_hard_one_then_the_kernel():
    found = exhaustion(settings("1Gi", "2Gi"), MEMORY)
    assert actors(found) == [Actor.SOFT_THRESHOLD, Actor.HARD_THRESHOLD, Actor.KSWAPD, Actor.OOM_KILLER]
    assert found.too_late == ()


def test_the_default_threshold_is_below_what_the_kernel_keeps_of_a_large_machine():
    found = exhaustion(KubeletConfiguration(), MEMORY)
    assert actors(found) == [Actor.KSWAPD, Actor.OOM_KILLER, Actor.HARD_THRESHOLD]
    assert [threshold.signal for threshold in found.too_late] == [Signal.MEMORY]


def test_on_a_small_machine_it_is_not():
    assert exhaustion(KubeletConfiguration(), {Signal.MEMORY: 2 * GI}).too_late == ()


def test_shares_become_amounts_where_the_capacity_is_known():
    both = KubeletConfiguration(eviction_hard={"memory.available": "10%", "nodefs.available": "10%"})
    found = exhaustion(both, MEMORY)
    amounts = {facts.signal: facts.amount for facts in found.thresholds}
    assert amounts[Signal.MEMORY] == pytest.approx(6.4 * GI, rel=1e-6)
    assert amounts[Signal.NODEFS] is None
    known = exhaustion(both, {**MEMORY, Signal.NODEFS: 200 * GI})
    assert {step.signal for step in known.steps} - {step.signal for step in found.steps} == {Signal.NODEFS}


def test_minimum_reclaim_raises_what_lets_go():
    found = exhaustion(settings("1Gi", eviction_minimum_reclaim={"memory.available": "500Mi"}), MEMORY)
    facts = found.thresholds[0]
    assert (facts.amount, facts.lets_go_at) == (GI, GI + 500 * MI)
    unknown = exhaustion(settings("1Gi", eviction_minimum_reclaim={"memory.available": "5%"}), {})
    assert (unknown.thresholds[0].amount, unknown.thresholds[0].lets_go_at) == (GI, None)


def test_containerfs_is_derived_and_what_was_written_for_it_is_not_there():
    given = KubeletConfiguration(eviction_hard={"nodefs.available": "10%", "containerfs.available": "50%"})
    found = exhaustion(given, {**MEMORY, Signal.CONTAINERFS: 100 * GI}, layout=Layout.SINGLE)
    (containerfs,) = (facts for facts in found.thresholds if facts.signal is Signal.CONTAINERFS)
    assert containerfs.is_derived
    assert containerfs.amount == pytest.approx(10 * GI, rel=1e-6)
    assert WarningKind.CONTAINERFS_IGNORED in [warning.kind for warning in found.warnings]


def test_signals_come_in_the_order_in_which_the_kubelet_acts():
    signals = [facts.signal for facts in exhaustion(KubeletConfiguration(), MEMORY).thresholds]
    assert signals == sorted(signals, key=list(Signal).index)
    assert signals[0] is Signal.MEMORY


def test_without_the_nodes_memory_nothing_is_said_about_the_kernel():
    found = exhaustion(settings("1Gi", "2Gi"), {})
    assert actors(found) == [Actor.SOFT_THRESHOLD, Actor.HARD_THRESHOLD]
    assert (found.watermarks, found.too_late) == (None, ())


def test_reservations_say_how_large_the_pods_cgroup_is_and_what_they_cover():
    config = kubelet_configuration(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "evictionHard": {"memory.available": "10%"},
            "evictionSoft": {"memory.available": "20%"},
            "evictionSoftGracePeriod": {"memory.available": "1m"},
            "kubeReserved": {"memory": "4Gi"},
        }
    )
    allocatable = node_allocatable({"memory": Quantity.parse("64Gi")}, config)
    found = exhaustion(settings("10%", "20%"), MEMORY, allocatable=allocatable)
    of_pods = next(facts for facts in found.thresholds if facts.signal is Signal.ALLOCATABLE_MEMORY)
    assert of_pods.amount == pytest.approx(6 * GI, rel=1e-6)
    assert [coverage.resource for coverage in found.uncovered] == ["memory"]
    assert exhaustion(settings("10%", "20%"), MEMORY).uncovered == ()
