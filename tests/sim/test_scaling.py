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


EVERYTHING = """
apiVersion: v1
kind: Pod
metadata: {name: cache}
spec:
  containers:
    - {name: main, image: i, volumeMounts: [{name: shm, mountPath: /s}], lifecycle: {preStop: {exec: {command: [x]}}}}
  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 12Gi}}, {name: disk, emptyDir: {sizeLimit: 1Gi}}]
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec: {restartPolicy: Never, containers: [{name: main, image: i}]}
---
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: everything}
spec:
  duration: 80s
  manifests: [everything.yaml]
  nodes: [{name: worker, capacity: {cpu: 4, memory: 16Gi}}]
  workloads:
    - workload: cache
      demand:
        memory: 8Gi
        preStop: 20s
        volumes: {shm: {points: {0s: 0, 60s: 12Gi}}, disk: {points: {0s: 0, 60s: 512Mi}}}
    - {workload: done, demand: {memory: 1Gi, exits: {after: 40s}}}
"""


@pytest.fixture
def everything(tmp_path):
    *pods, scenario = EVERYTHING.split("---")
    (tmp_path / "everything.yaml").write_text("---".join(pods))
    (tmp_path / "scenario.yaml").write_text(scenario)
    return load_scenario(str(tmp_path / "scenario.yaml"))


def test_volumes_in_memory_shrink_and_fill_up_the_node_at_the_same_time(everything):
    small = scaled(everything, SMALL)
    cache = small.workloads[0]
    limits = {volume.name: volume.empty_dir.size_limit.value for volume in cache.pod.spec.volumes}
    assert limits == {"shm": 384 << 20, "disk": 1 << 30}
    large = _kills(everything)
    assert large
    assert [each[:2] for each in _kills(small)] == [each[:2] for each in large]
    assert [each[2] for each in _kills(small)] == pytest.approx([each[2] for each in large], abs=50_000)


def test_with_time_containers_exit_hooks_end_and_volumes_grow_sooner(everything):
    fast = scaled(everything, ScaleFactors(Fraction(1), time=Fraction(1, 2)))
    assert fast.workloads[0].demands[0]["main"].pre_stop_us == 10_000_000
    disk = fast.workloads[0].demands[0]["main"].volumes["disk"].used_bytes
    assert disk.at(30_000_000) == 512 << 20
    (exited,) = (entry for entry in simulate(fast).entries if (entry.kind, entry.pod) == (Kind.EXITED, "default/done"))
    assert exited.because.finished_us == 20_000_000
