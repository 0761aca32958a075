"""The race of kernel and kubelet, as physics has it: the kernel acts twice before the kubelet looks."""

from __future__ import annotations

import pytest

from eviction.nodes import guaranteed, pod
from podqos.agent.reasons import OOMKill, OOMLevel
from podqos.kernel.memory import Watermarks
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import Curve
from podqos.sim.run import FinishedRun
from podqos.sim.scenario.scenario import Options
from sim.worlds import GI, MI, lines, node, run, using, workload

MARKS = Watermarks(50 * MI, 60 * MI, 70 * MI)
OTHERS = 56 * GI
GROWTH = 250 * MI * 10 // 11  # a second


@pytest.fixture(scope="module")
def race() -> FinishedRun:
    """Return 64Gi of which the kernel keeps 50Mi; analytics-pipeline takes the last at 1.0 s, and again at 2.1 s."""
    at_one = 64 * GI - 50 * MI - OTHERS - 250 * MI
    burst = Curve(((0, at_one - GROWTH + 1), (3 * SECOND_US, at_one + 2 * GROWTH + 1), (3 * SECOND_US, 4 * GI)))
    return run(
        workload(guaranteed("article-service", "56Gi"), using(OTHERS)),
        workload(pod("log-collector"), using(250 * MI)),
        workload(pod("analytics-pipeline", "memory=4130Mi"), using(burst, processes=2)),
        seconds=15,
        spec=node(
            memory=64 * GI,
            cpu_milli=16000,
            watermarks=MARKS,
            config=KubeletConfiguration(enforce_node_allocatable=()),
            loop_phase_us=10 * SECOND_US - 1,
        ),
        options=Options(container_start_us=SECOND_US // 2),
    )


def test_the_kernel_kills_the_log_collector_first_and_then_the_pipeline_and_the_kubelet_nobody(race):
    killed = [(round(seconds, 3), pod) for seconds, kind, pod in lines(race, "OOMKilled", "Evicted")]
    assert killed == [(1.0, "default/log-collector"), (2.1, "default/analytics-pipeline")]


def test_each_kill_says_by_which_numbers_and_whom_the_kubelet_would_have_evicted(race):
    first, second = (entry.because for entry in race.entries if isinstance(entry.because, OOMKill))
    assert (first.level, first.oom_score_adj, first.as_group, first.freed_bytes) == (
        OOMLevel.NODE,
        1000,
        True,
        250 * MI,
    )
    assert first.runner_up_pod == "default/analytics-pipeline"
    assert first.would_evict.pod == "default/analytics-pipeline"
    assert first.would_evict.threshold_met
    assert (second.oom_score_adj, second.killed_processes, second.as_group) == (937, 2, True)


def test_the_log_collector_comes_back_after_both_kills(race):
    assert lines(race, "Restarted") == [
        (2.5, "Restarted", "default/log-collector"),
        (3.5, "Restarted", "default/analytics-pipeline"),
    ]
    assert not lines(race, "ConditionChanged")
