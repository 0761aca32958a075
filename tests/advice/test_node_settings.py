from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.advice.sizing.node_settings import GIB, MIB, NodeNeeds, advise_node, reservations
from podqos.eviction.signals import Signal
from podqos.kernel.memory import machine
from podqos.model.kubelet_config import kubelet_configuration
from podqos.model.quantity import Quantity
from podqos.orders.exhaustion import exhaustion
from podqos.placement.allocatable import node_allocatable


@pytest.mark.parametrize(
    ("memory_bytes", "kube_mib"),
    [
        # 25 % of 4Gi
        pytest.param(4 * GIB, 1024, id="4Gi"),
        # and 20 % of 4Gi: 1024 + 819.2
        pytest.param(8 * GIB, 1844, id="8Gi"),
        # and 10 % of 8Gi, and 6 % of 48Gi: 1024 + 819.2 + 819.2 + 2949.12
        pytest.param(64 * GIB, 5612, id="64Gi"),
        # 6 % of all 112Gi, and 2 % of 128Gi: 2662.4 + 6881.28 + 2621.44
        pytest.param(256 * GIB, 12166, id="256Gi"),
    ],
)
def test_the_kubelet_gets_less_per_unit_the_larger_the_node(memory_bytes, kube_mib):
    assert reservations(NodeNeeds(memory_bytes, 16_000), 0).kube_memory_bytes == kube_mib * MIB


def test_cpu_is_reserved_in_steps():
    """6 % of the first core, 1 % of the second, 0.5 % of two more, 0.25 % of twelve: 60 + 10 + 10 + 30 thousandths."""
    assert reservations(NodeNeeds(64 * GIB, 16_000), 0).kube_cpu_milli == 110


def test_the_hard_threshold_wins_the_race_at_the_rate_asked_for():
    """100Mi a second for the 10 s between two looks, above the mark at which the kernel kills."""
    needs = NodeNeeds(64 * GIB, 16_000, growth_bytes_per_second=100 * MIB)
    settings = advise_node(needs)
    kept = machine(64 * GIB).watermarks.min_bytes
    assert settings.kernel_keeps_bytes == kept
    assert settings.hard_bytes == -(-(kept + 1000 * MIB) // MIB) * MIB
    assert settings.hard_wins == 1
    # 10Mi a second for 90 s of grace and 10 s until the next look, above the hard threshold.
    assert settings.soft_bytes == settings.hard_bytes + 1000 * MIB


def test_a_lower_probability_needs_a_smaller_threshold():
    half = advise_node(NodeNeeds(64 * GIB, 16_000, growth_bytes_per_second=100 * MIB, probability=Fraction(1, 2)))
    kept = half.kernel_keeps_bytes
    assert half.hard_bytes == -(-(kept + 500 * MIB) // MIB) * MIB
    assert Fraction(1, 2) <= half.hard_wins < Fraction(51, 100)


def test_what_was_measured_outside_pods_counts_with_a_margin():
    """8Gi + 20 %, of which the kubelet's share covers 5612Mi; the soft threshold comes on top."""
    reserved = reservations(NodeNeeds(64 * GIB, 16_000, system_memory_bytes=8 * GIB), soft_bytes=MIB)
    assert reserved.system_memory_bytes - MIB == (9831 - 5612) * MIB


NEEDS = st.builds(
    NodeNeeds,
    memory_bytes=st.integers(2 * GIB, 2048 * GIB),
    cpu_milli=st.integers(500, 256_000),
    nodefs_bytes=st.one_of(st.none(), st.integers(10 * GIB, 4096 * GIB)),
    probability=st.fractions(Fraction(1, 100), 1),
    soft_grace_seconds=st.integers(1, 600),
)


@given(NEEDS)
def test_our_own_judge_finds_nothing_wrong(needs):
    """What is advised is valid, covers its soft thresholds, and leaves the kernel to act last."""
    settings = advise_node(needs)
    capacity = {"memory": Quantity.of_units(needs.memory_bytes, "BinarySI")}
    capacities = {Signal.MEMORY: needs.memory_bytes}
    if needs.nodefs_bytes is not None:
        capacity["ephemeral-storage"] = Quantity.of_units(needs.nodefs_bytes, "BinarySI")
        capacities[Signal.NODEFS] = capacities[Signal.IMAGEFS] = needs.nodefs_bytes
    config = kubelet_configuration(settings.configuration, "")
    found = exhaustion(config, capacities, allocatable=node_allocatable(capacity, config))
    assert found.warnings == ()
    assert found.too_late == ()
    assert found.uncovered == ()
    assert settings.hard_wins >= needs.probability
