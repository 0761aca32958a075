"""The forecast against simulations of the same node at many phases of the kubelet's loop.

The two share the kernel's model of reclaim and nothing else: the simulation runs an agent, the forecast computes with
spans of time. ``PODQOS_EXAMPLES=1000`` holds them against each other in so many settings.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction

import pytest

from eviction.nodes import pod
from podqos.agent.journal import By
from podqos.eviction.signals import Signal
from podqos.kernel.memory import machine
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.snapshot import ContainerUsage
from podqos.model.time_units import SECOND_US
from podqos.objects.kubelet_node import Kubelet
from podqos.orders.growing import GrowingNode
from podqos.questions.forecast import forecast as library_forecast
from podqos.questions.growth import Impractical
from podqos.questions.growth import forecast_growth as forecast
from podqos.questions.node import NodeState
from sim.growths import GI, GROWER, INTERVAL_US, MI, First, Setting, drawn

PHASES = 10
STEP_US = INTERVAL_US // PHASES
CLOSE_US = 2000
"""So close to a change of outcome a phase may be on its other side: reclaim is to the microsecond, not to the byte."""
START_US = 3 * INTERVAL_US
FAST, ALL = range(12), range(int(os.environ.get("PODQOS_EXAMPLES") or 40))
SEEDS = [*FAST, *(pytest.param(seed, marks=pytest.mark.slow) for seed in ALL[len(FAST) :])]


def foreseen(node: GrowingNode, rate: int) -> Callable[[int], First]:
    """Return what the forecast says, by phase."""
    acts, killed = [*node.acts(rate)], node.killed().pod.metadata.name

    def at(phase_us: int) -> First:
        phase = phase_us % INTERVAL_US * rate
        for act in acts:
            if act.begin <= phase < act.end:
                time = act.first if act.first == act.last else act.first + phase - act.begin
                return First(By.KUBELET, act.victim.pod.metadata.name, act.level.signal, time / SECOND_US / rate)
        return First(By.KERNEL, killed, None, node.until_oom_bytes / rate)

    return at


def is_same(one: First | None, other: First) -> bool:
    """Whether both are about the same actor, pod, signal and moment."""
    return one is not None and one[:3] == other[:3] and abs(one.seconds - other.seconds) < CLOSE_US / SECOND_US


def simulated(setting: Setting, node: GrowingNode, phases_us: list[int], start_us: int = 0) -> list[First | None]:
    return setting.simulated(phases_us, node.until_oom_bytes * SECOND_US // setting.rate + SECOND_US, start_us)


def prepared(seed: int, *, of_system: bool = False) -> tuple[Setting, GrowingNode, int]:
    """Return a setting, and when its growth begins.

    Old figures, and levels that an agent is told of, are of the time before the growth. A threshold that is met even
    then would act in that time.
    """
    setting = drawn(seed)._replace(of_system=of_system)
    node = setting.growing()
    if any(node.crossed_bytes(level) == 0 for level in node.levels):
        setting = setting._replace(statistics_age_us=0, fast_path=False, cgroup_version=2)
        return setting, setting.growing(), 0
    return setting, node, START_US if setting.statistics_age_us or setting.looks_between_passes else 0


@pytest.mark.parametrize("seed", SEEDS)
def test_at_every_phase_the_same_actor_takes_the_same_pod_at_the_same_time(seed):
    hold(seed, *prepared(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_at_every_phase_the_same_where_the_daemons_of_the_machine_grow(seed):
    hold(seed, *prepared(seed, of_system=True))


def hold(seed: int, setting: Setting, node: GrowingNode, start_us: int) -> None:
    """Hold the forecast against simulations."""
    phases_us = [place * STEP_US + seed * 7919 % STEP_US for place in range(PHASES)]
    found = simulated(setting, node, phases_us, start_us)
    expected = foreseen(node, setting.rate)
    for phase_us, first in zip(phases_us, found, strict=True):
        near = [expected(phase_us + off_us) for off_us in (0, -CLOSE_US, CLOSE_US)]
        assert any(is_same(first, each) for each in near), (phase_us, first, near[0])
    by_kubelet = Fraction(sum(first is not None and first.by is By.KUBELET for first in found), PHASES)
    assert abs(node.kubelet_first(setting.rate) - by_kubelet) <= Fraction(_turns(node, setting.rate), PHASES)


def _turns(node: GrowingNode, rate: int) -> int:
    """Return how many stretches of phases the kubelet wins: each is as long as the phases in it say, to one step."""
    acts = [*node.acts(rate)]
    return max(1, len({act.begin for act in acts} - {act.end for act in acts}))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_threshold_needed_wins_at_all_phases_and_one_mebibyte_less_does_not(seed):
    setting = drawn(seed).unlimited()._replace(fast_path=False, statistics_age_us=0, cgroup_version=2)
    # Fast enough for the phase to matter, slow enough for a threshold below what is available.
    setting = setting._replace(rate=setting.growing().until_oom_bytes // (12 + seed * 7 % 60) + 1)
    node = setting.growing()
    needed = forecast(node, setting.rate, wanted=Fraction(1)).needed
    assert needed is not None
    if needed.eviction_hard_bytes is None:
        # All pods are critical.
        assert needed.impractical is Impractical.SPARED
        assert {first and first.by for first in simulated(setting, node, [0, STEP_US])} == {By.KERNEL}
        return
    at, below = (setting.with_hard(needed.eviction_hard_bytes - less) for less in (0, MI))
    before = below.growing()
    lost_us, length_us = _lost(before, setting.rate)
    phases_us = [(lost_us + place * STEP_US) % INTERVAL_US for place in range(0, PHASES, 3)]
    assert {first and first.by for first in simulated(at, at.growing(), phases_us)} == {By.KUBELET}
    # Teeth of kswapd's work that are shorter than this are not told apart.
    if length_us > 100:
        (first,) = simulated(below, before, [lost_us])
        assert first is not None
        assert first.by is By.KERNEL
    else:
        assert before.kubelet_first(setting.rate) < 1


def _lost(node: GrowingNode, rate: int) -> tuple[int, int]:
    """Return the middle, and the length, of the longest stretch of phases that the kernel wins."""
    acts = sorted(node.acts(rate), key=lambda act: act.begin)
    ends, begins = [0, *(act.end for act in acts)], [*(act.begin for act in acts), INTERVAL_US * rate]
    length, begin = max((begin - end, end) for end, begin in zip(ends, begins, strict=True))
    return (begin + length // 2) // rate, length // rate


@pytest.mark.parametrize("seed", range(40))
def test_the_library_forecasts_the_same_node(seed):
    setting = drawn(seed)._replace(statistics_age_us=0)
    node = setting.growing()
    kubelet = Kubelet(setting.config, "kubelet.yaml")
    report = library_forecast(
        NodeState(node.snapshot, kubelet=kubelet),
        growing=f"{GROWER}:{node.growth.container}",
        rates=[setting.rate],
        wanted=Fraction(1),
        fast_path=setting.fast_path,
        policy=setting.policy,
        cgroup_version=node.settings.cgroup_version,
    )
    (growth,) = report.growths
    expected = forecast(node, setting.rate, wanted=Fraction(1))
    assert growth.kubelet_first == expected.kubelet_first
    assert growth.out_of_memory_after_seconds == expected.out_of_memory_after_seconds
    assert [(each.by, each.pod, each.probability) for each in growth.outcomes] == [
        (each.by, each.pod, each.probability) for each in expected.outcomes
    ]


def _node(hard: str, enforced: tuple[str, ...] = (), **usage: ContainerUsage) -> Setting:
    config = KubeletConfiguration(
        eviction_hard={"memory.available": hard},
        enforce_node_allocatable=enforced,
        system_reserved={"memory": "1Gi"} if enforced else {},
    )
    pods = tuple((pod(name, "memory=256Mi"), (each,)) for name, each in usage.items())
    return Setting(16 * GI, 0, 0, config, pods, 32 * MI)


def test_active_page_cache_goes_before_anything_dies_so_a_low_threshold_is_never_met():
    """By the kubelet's count memory is short 8 GiB of growth too early; kswapd keeps giving it back."""
    threshold = f"{machine(16 * GI).watermarks.min_bytes // MI - 1}Mi"
    setting = _node(
        threshold,
        **{GROWER: ContainerUsage("main", GI), "reader": ContainerUsage("main", GI, 8 * GI, GI)},
    )
    node = setting.growing()
    assert node.kubelet_first(setting.rate) == 0
    assert node.until_oom_bytes > node.available[Signal.MEMORY] + 7 * GI
    firsts = simulated(setting, node, [place * STEP_US for place in range(PHASES)])
    assert {first and first.by for first in firsts} == {By.KERNEL}


def test_one_setting_makes_the_threshold_of_allocatable_too_so_less_is_enough():
    """Pods are stopped at 15 of 16 GiB: that much sooner allocatableMemory.available meets the same amount."""
    held = {GROWER: ContainerUsage("main", GI), "steady": ContainerUsage("main", 2 * GI)}
    alone, enforced = _node("100Mi", **held), _node("100Mi", ("pods",), **held)
    # An interval's growth is 320 MiB; the machine keeps its reserve, the cgroup of all pods nothing.
    kept = machine(16 * GI).watermarks.min_bytes
    for setting, amount in ((alone, 320 * MI + kept), (enforced, 320 * MI)):
        needed = forecast(setting.growing(), setting.rate, wanted=Fraction(1)).needed
        assert amount <= needed.eviction_hard_bytes < amount + MI
        at = setting.with_hard(needed.eviction_hard_bytes)
        firsts = simulated(at, at.growing(), [place * STEP_US + 1 for place in range(PHASES)])
        assert {first and first.by for first in firsts} == {By.KUBELET}
