"""The forecast against simulations of the same node at many phases of the kubelet's loop.

The two share the kernel's model of reclaim and nothing else: the simulation runs an agent, the forecast computes with
spans of time.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from podqos.agent.journal import By
from podqos.model.time_units import SECOND_US
from podqos.survival.forecast import forecast
from podqos.survival.growing import GrowingNode
from sim.growths import INTERVAL_US, MI, First, Setting, drawn

PHASES = 10
STEP_US = INTERVAL_US // PHASES
CLOSE_US = 2000
"""So close to a change of outcome a phase may be on its other side: reclaim is to the microsecond, not to the byte."""
START_US = 2 * INTERVAL_US
FAST, ALL = range(12), range(212)
SEEDS = [*FAST, *(pytest.param(seed, marks=pytest.mark.slow) for seed in ALL[len(FAST) :])]


def foreseen(node: GrowingNode, rate: int, phase_us: int) -> First:
    """Return what the forecast says of one phase."""
    phase = phase_us % INTERVAL_US * rate
    for act in node.acts(rate):
        if act.begin <= phase < act.end:
            time = act.first if act.first == act.last else act.first + phase - act.begin
            return First(By.KUBELET, act.victim.pod.metadata.name, time / SECOND_US / rate)
    return First(By.KERNEL, node.killed().pod.metadata.name, node.until_oom_bytes / rate)


def is_same(one: First | None, other: First) -> bool:
    """Whether both are about the same pod, actor and moment."""
    return one is not None and one[:2] == other[:2] and abs(one.seconds - other.seconds) < CLOSE_US / SECOND_US


def simulated(setting: Setting, node: GrowingNode, phases_us: list[int], start_us: int = 0) -> list[First | None]:
    return setting.simulated(phases_us, node.until_oom_bytes * SECOND_US // setting.rate + SECOND_US, start_us)


def prepared(seed: int) -> tuple[Setting, GrowingNode, int]:
    """Return a setting, and when its growth begins.

    Old figures, and levels that an agent is told of, are of the time before the growth. A threshold that is met even then
    would act in that time.
    """
    setting = drawn(seed)
    node = setting.growing()
    if any(node.crossed_bytes(level) == 0 for level in node.levels):
        setting = setting._replace(statistics_age_us=0, fast_path=False, cgroup_version=2)
        return setting, setting.growing(), 0
    return setting, node, START_US if setting.statistics_age_us or setting.looks_between_passes else 0


@pytest.mark.parametrize("seed", SEEDS)
def test_at_every_phase_the_same_actor_takes_the_same_pod_at_the_same_time(seed):
    setting, node, start_us = prepared(seed)
    phases_us = [place * STEP_US + seed * 7919 % STEP_US for place in range(PHASES)]
    found = simulated(setting, node, phases_us, start_us)
    for phase_us, first in zip(phases_us, found, strict=True):
        near = [foreseen(node, setting.rate, phase_us + off_us) for off_us in (0, -CLOSE_US, CLOSE_US)]
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
    if needed is None or not needed.attainable or needed.eviction_hard_bytes is None:
        pytest.skip("there is none")
    at, below = (setting.with_hard(needed.eviction_hard_bytes - less) for less in (0, MI))
    before = below.growing()
    lost = _lost(before, setting.rate)
    assert lost is not None
    phases_us = [lost, *((lost + place * STEP_US) % INTERVAL_US for place in range(1, PHASES))]
    assert {first and first.by for first in simulated(at, at.growing(), phases_us)} == {By.KUBELET}
    (first,) = simulated(below, before, [lost])
    assert first is not None
    assert first.by is By.KERNEL


def _lost(node: GrowingNode, rate: int) -> int | None:
    """Return the middle of the longest stretch of phases that the kernel wins."""
    ends = [0, *(act.end for act in sorted(node.acts(rate), key=lambda act: act.begin))]
    begins = [*sorted(act.begin for act in node.acts(rate)), INTERVAL_US * rate]
    length, begin = max((begin - end, end) for end, begin in zip(ends, begins, strict=True))
    return (begin + length // 2) // rate if length > 20 * rate else None
