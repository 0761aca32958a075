"""Scenarios, runs, blasts and sweeps as a program gets them: values, nothing printed."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

import podqos
from eviction.nodes import pod
from podqos.cli.main import main
from podqos.manifest.encoding import SLOT
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage

GI = 1 << 30


@pytest.fixture(autouse=True)
def _nothing_is_printed(capfd):
    yield
    assert capfd.readouterr() == ("", "")


def snapshot() -> podqos.Snapshot:
    leaker = pod("leaker", "memory=1Gi")
    held = ContainerUsage(leaker.spec.containers[0].name, anon_bytes=GI)
    return podqos.Snapshot(NodeUsage(4 * GI), (PodUsage(leaker, None, (held,)),))


def test_a_run_that_was_not_recorded_gives_the_same_report():
    scenario = podqos.load_scenario("race")
    assert podqos.simulate(scenario, record=False).report == podqos.simulate(scenario).report


def test_the_summary_is_that_of_the_report_and_the_journal_has_all_kills():
    run = podqos.simulate(podqos.load_scenario("oom-loop"))
    assert run.summary == run.report.summary
    assert sum(entry.kind == "OOMKilled" for entry in run.journal) == run.summary.oom_kills > 0


def test_a_page_holds_the_report():
    run = podqos.simulate(podqos.load_scenario("oom-by-class"))
    data = run.html(f"<html>{SLOT}</html>").partition('json">')[2].partition("</script>")[0]
    shown = msgspec.json.decode(data, type=podqos.RunView)
    assert len(shown.pictures) == len(run.report.nodes)
    assert msgspec.structs.replace(shown, pictures=()) == run.report


def test_a_picture_is_of_the_node_that_is_asked_for():
    scenario = podqos.load_scenario("oom-by-class")
    run = podqos.simulate(scenario)
    (name,) = (node.name for node in run.report.nodes)
    assert run.svg(name) == run.svg()
    with pytest.raises(podqos.InputError, match="'elsewhere' is not shown"):
        run.svg("elsewhere")
    with pytest.raises(podqos.InputError, match="no such node: 'elsewhere'"):
        podqos.simulate(scenario, nodes=["elsewhere"])


def test_warnings_are_data_and_errors_are_raised_with_all_their_problems(tmp_path: Path):
    assert podqos.read_scenario("race").problems == ()
    (tmp_path / "bad.yaml").write_text("kind: Scenario\n")
    with pytest.raises(podqos.InvalidScenario) as raised:
        podqos.load_scenario(str(tmp_path / "bad.yaml"))
    assert raised.value.problems == podqos.read_scenario(str(tmp_path / "bad.yaml")).problems != ()


def test_a_scenario_that_is_not_there_is_an_error_of_the_input():
    with pytest.raises(podqos.InputError, match="the scenario has 1 error"):
        podqos.load_scenario("no-such-scenario")


def test_a_node_without_kubelet_settings_has_the_defaults_and_says_so():
    assumed = podqos.blast(podqos.NodeState(snapshot())).assumptions
    assert [(each.what, each.value) for each in assumed] == [("kubelet settings", "defaults")]


def test_a_state_brings_its_kubelet_and_what_it_assumes_to_a_blast():
    kubelet = podqos.Kubelet(podqos.KubeletConfiguration(eviction_hard={"memory.available": "300Mi"}))
    state = podqos.NodeState(
        crowded().snapshot, assumptions=(podqos.Assumption("usage", "known", ""),), kubelet=kubelet
    )
    assert podqos.blast(state, cores=1).assumptions == state.assumptions
    first = replace(state, neighbours=frozenset(each.pod.key for each in state.snapshot.pods[1:]))
    assert {leak.pod for leak in podqos.blast(first, cores=1)} == {state.snapshot.pods[0].pod.key}


def test_no_pods_no_blast():
    with pytest.raises(podqos.InputError, match="no pods there"):
        podqos.blast(podqos.NodeState(replace(snapshot(), pods=())))


def crowded() -> podqos.NodeState:
    """Return a node on which a leak of a pod with a request takes those without one down first."""
    pods = [pod(f"p{number}", "memory=5Gi" if number % 2 else "") for number in range(6)]
    used = [PodUsage(each, None, (ContainerUsage(each.spec.containers[0].name, anon_bytes=GI),)) for each in pods]
    return podqos.NodeState(podqos.Snapshot(NodeUsage(16 * GI, system_bytes=9 * GI), tuple(used)))


def test_leaks_of_one_node_are_the_same_on_any_number_of_cores():
    alone = podqos.blast(crowded(), cores=1)
    assert any(leak.others for leak in alone.leaks)
    assert podqos.blast(crowded(), cores=3) == alone


def test_progress_is_told_leak_by_leak():
    told: list[tuple[int, int]] = []
    radius = podqos.blast(crowded(), cores=1, progress=lambda done, total: told.append((done, total)))
    taking = sum(bool(leak.others) for leak in radius.leaks)
    assert len(set(told)) >= taking > 1
    assert told == sorted(told)
    assert told[-1] == (12, 12)


def test_progress_ends_with_all_that_there_is():
    told: list[tuple[int, int]] = []
    podqos.blast(podqos.NodeState(snapshot()), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2, 2)  # one pod, slowly and fast
    told.clear()
    podqos.sweep("race", ["phase=0s,2s"], jobs=1, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize("seeds", [0, -1, 100_001])
def test_a_sweep_has_some_seeds_and_not_too_many(seeds):
    with pytest.raises(podqos.InputError, match="is not a number of seeds"):
        podqos.sweep("race", seeds=seeds)


def test_a_command_prints_what_the_library_returns(capfd):
    assert main(["blast", "oom-by-class", "-o", "json"]) == 0
    printed = msgspec.json.decode(capfd.readouterr().out, type=podqos.BlastRadius)
    assert printed == podqos.blast(podqos.load_scenario("oom-by-class"))
