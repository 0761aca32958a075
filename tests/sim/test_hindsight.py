"""A threshold that is said to have been in time is, at every phase of the kubelet's loop, when the run is repeated."""

from __future__ import annotations

import pytest

from podqos.agent.journal import By
from podqos.model.time_units import SECOND_US
from podqos.sim.hindsight import KubeletInTime, hindsights
from podqos.sim.record import Recorder, recorded_nodes
from podqos.sim.run import simulate
from sim.growths import INTERVAL_US, Setting, drawn

PHASES_US = [place * INTERVAL_US // 8 + 77_777 for place in range(8)]
START_US = 3 * INTERVAL_US
FAST, ALL = range(16), range(76)


def told(setting: Setting) -> tuple[KubeletInTime | None, int]:
    """Return the threshold that is named for the first kill of a run without any, and how long the run takes."""
    node = setting.growing()
    until_us = node.until_oom_bytes * SECOND_US // setting.rate + SECOND_US
    recorder = Recorder()
    done = simulate(setting.scenario([0], until_us, START_US), recorder=recorder)
    found = next(hindsights(done.entries, recorded_nodes(done.scenario, recorder.nodes)), None)
    return None if found is None else found.in_time, until_us


def without_thresholds(seed: int) -> Setting:
    return drawn(seed).unlimited().with_hard(1)._replace(fast_path=False, cgroup_version=2)


@pytest.mark.parametrize("seeds", [FAST, pytest.param(ALL[len(FAST) :], marks=pytest.mark.slow)], ids=["fast", "slow"])
def test_a_threshold_that_is_named_is_in_time_at_every_phase(seeds):
    relieved = 0
    for seed in seeds:
        setting = without_thresholds(seed)
        found, until_us = told(setting)
        if found is None:
            continue
        relieved += bool(setting.growing().course.steps)
        firsts = setting.with_hard(found.threshold_bytes).simulated(PHASES_US, until_us, START_US)
        assert {first and first.by for first in firsts} == {By.KUBELET}, (seed, found)
        assert {first.pod for first in firsts if first} <= {
            name.rpartition("-")[0].split("/")[1] for name in found.evicted
        }
    assert relieved > 0, "some have page cache to reclaim"
