"""What is said to save a pod in a shipped scenario saves it when the scenario is run again with it."""

from __future__ import annotations

from functools import cache

import pytest
from msgspec.structs import replace

from podqos.cli.scenario_files import load_scenario
from podqos.report.run_kills import rescues
from podqos.report.run_reading import run_view, shown_nodes, workload_of
from podqos.sim.recording import Recorder
from podqos.sim.run import simulate
from podqos.survival.rescue import Change
from scenarios.runs import NAMES

IN_TIME = "evictionHard memory.available "


@cache
def _run(name):
    """Run a shipped scenario and return the run and what was recorded of its nodes."""
    recorder = Recorder()
    return simulate(load_scenario(name), recorder=recorder), recorder.nodes


def _taken(entries):
    return [(entry.time_us, entry.pod) for entry in entries if entry.kind in {"OOMKilled", "Evicted"}]


def _is_spared(scenario, entry, before):
    """Whether a pod is not taken at the time at which it was, in a run that was the same up to then."""
    again = _taken(simulate(scenario).entries)
    earlier = [each for each in again if each[0] < entry.time_us]
    if earlier != [each for each in before if each[0] < entry.time_us]:
        return None
    return (entry.time_us, entry.pod) not in again


def _written(scenario, pod, key):
    """Return the scenario with the resources, volumes and priority of a pod in the manifest that it comes from."""
    names = {f"{each.namespace}/{each.name}" for each in scenario.workloads}
    owner = workload_of(key, names)

    def changed(workload):
        if f"{workload.namespace}/{workload.name}" != owner:
            return workload
        spec = replace(
            workload.pod.spec,
            containers=pod.spec.containers,
            init_containers=pod.spec.init_containers,
            resources=pod.spec.resources,
            volumes=pod.spec.volumes,
            priority=pod.spec.priority,
        )
        status = replace(workload.pod.status, qos_class=None)
        return replace(workload, pod=replace(workload.pod, spec=spec, status=status))

    return replace(scenario, workloads=tuple(map(changed, scenario.workloads)))


def _manifest_rescues(name):
    done, records = _run(name)
    for entry, found in rescues(done.entries, shown_nodes(done, records)):
        yield from ((entry, rescue) for rescue in found if rescue.saves and rescue.pod is not None)


@pytest.mark.parametrize("name", NAMES)
def test_a_pod_is_not_taken_again_once_its_manifest_says_what_saves_it(name):
    done, _ = _run(name)
    before = _taken(done.entries)
    for entry, rescue in _manifest_rescues(name):
        spared = _is_spared(_written(done.scenario, rescue.pod, entry.pod), entry, before)
        assert spared is not False, (entry.pod, entry.time_us, rescue.change, rescue.amount)


def test_the_scenarios_have_changes_of_every_kind_that_can_be_tried_again():
    """Nothing above would fail if none were found."""
    tried = []
    for name in NAMES:
        done, _ = _run(name)
        for entry, rescue in _manifest_rescues(name):
            if _is_spared(_written(done.scenario, rescue.pod, entry.pod), entry, _taken(done.entries)):
                tried.append((name, rescue.change))
    assert {change for _, change in tried} >= {Change.REQUEST, Change.GUARANTEED, Change.PRIORITY}
    assert ("disk-pressure", Change.REQUEST) in tried
    assert ("pid-exhaustion", Change.PRIORITY) in tried


@pytest.mark.parametrize("name", NAMES)
def test_no_change_of_use_that_saves_a_pod_leaves_it_first(name):
    done, records = _run(name)
    for entry, found in rescues(done.entries, shown_nodes(done, records)):
        for rescue in found:
            if rescue.change is Change.LESS:
                assert rescue.verdict.place > 1, entry.pod


def test_a_scenario_short_of_cpu_alone_takes_nobody_and_claims_nothing():
    done, records = _run("cpu-burst")
    assert run_view(done, records).kills == ()
