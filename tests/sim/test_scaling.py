"""A scenario in small: shares, scores and victims stay what they are."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from podqos.agent.journal import Kind
from podqos.qos.classes import classify
from podqos.qos.oom import oom_scores, pod_qos_class
from podqos.reading.scenario_files import load_scenario
from podqos.sim.run import simulate
from podqos.sim.scaling import ScaleFactors, scaled

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SMALL = ScaleFactors(Fraction(1, 32), Fraction(1, 8))


def _kills(scenario):
    return [
        (entry.kind, entry.pod, entry.time_us)
        for entry in simulate(scenario).entries
        if entry.kind in {Kind.OOM_KILLED, Kind.EVICTED}
    ]


@pytest.mark.parametrize("name", ["race", "oom-by-class", "oom-loop", "oom-by-request", "accidental-burstable"])
def test_in_small_the_same_pods_die_at_the_same_times(name):
    scenario = load_scenario(str(SCENARIOS / f"{name}.yaml"))
    large, small = _kills(scenario), _kills(scaled(scenario, SMALL))
    assert large
    assert [each[:2] for each in small] == [each[:2] for each in large]
    assert [each[2] for each in small] == pytest.approx([each[2] for each in large], abs=50_000)


def test_requests_keep_their_share_and_with_it_their_score():
    scenario = load_scenario(str(SCENARIOS / "race.yaml"))
    small = scaled(scenario, SMALL)

    def scores(each):
        memory = each.nodes[0].spec.memory_bytes
        return {
            workload.name: [
                score.value
                for score in oom_scores(
                    workload.pod, pod_qos_class(workload.pod, classify(workload.pod).qos_class), memory
                )
            ]
            for workload in each.workloads
        }

    assert scores(small) == scores(scenario)


def test_thresholds_shrink_and_percentages_stay():
    config = scaled(load_scenario(str(SCENARIOS / "race.yaml")), SMALL).nodes[0].spec.config
    assert config.eviction_hard == {"memory.available": str((100 << 20) // 32), "nodefs.available": "10%"}


def test_time_can_be_shortened_without_touching_the_kubelet():
    scenario = load_scenario(str(SCENARIOS / "oom-by-class.yaml"))
    fast = scaled(scenario, ScaleFactors(Fraction(1), time=Fraction(1, 2)))
    assert fast.duration_us == scenario.duration_us // 2
    assert fast.options == scenario.options
    assert [each[2] * 2 for each in _kills(fast)] == pytest.approx([each[2] for each in _kills(scenario)], abs=10)
