"""When the kubelet looks: recorded without carrying out the looks at which nothing can be seen."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given, settings

from podqos.agent.driver import Driver
from podqos.agent.journal import By, Kind
from podqos.agent.reasons import NothingToDo
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.stats import Summary
from podqos.sim.node.node import SimNode
from podqos.sim.record import LookSpan, Recorder
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import NodeAdded, NodeLost, Scenario
from sim.test_properties import scenarios
from sim.worlds import MI, SECOND_US, node, ramp, run, scenario, using, workload


def recorded(scenario: Scenario) -> dict[str, set[int]]:
    """Return when the kubelet of each node looked, as a picture shows it."""
    recorder = Recorder()
    simulate(scenario, recorder=recorder)
    return {
        name: {
            time_us
            for span in record.looks_until(scenario.duration_us)
            for time_us in range(span.first_us, span.last_us + 1, span.every_us)
        }
        for name, record in recorder.nodes.items()
    }


def carried_out(scenario: Scenario) -> dict[str, set[int]]:
    """Return when the kubelet of each node looks where no look is skipped."""
    found: dict[str, set[int]] = {}
    looking = SimNode.summary

    def summary(self: SimNode, *, is_urgent: bool = False) -> Summary:
        found.setdefault(self.name, set()).add(self.now_us)
        return looking(self, is_urgent=is_urgent)

    all_run = patch.object(SimNode, "_may_skip", lambda _: False), patch.object(Driver, "skip_idle_passes")
    with all_run[0], all_run[1], patch.object(SimNode, "summary", summary):
        simulate(scenario, recorder=Recorder())
    return found


@settings(max_examples=10)
@given(scenarios())
def test_the_looks_that_are_drawn_are_those_of_a_kubelet_that_skips_none(scenario):
    assert recorded(scenario) == carried_out(scenario)


@pytest.mark.slow
@settings(max_examples=30)
@given(scenarios())
def test_the_looks_of_many_scenarios_are_those_of_a_kubelet_that_skips_none(scenario):
    assert recorded(scenario) == carried_out(scenario)


def test_a_kubelet_that_evicts_looks_when_it_is_done_and_regularly_from_then_on():
    config = KubeletConfiguration(eviction_hard={"memory.available": "300Mi"}, enforce_node_allocatable=())
    leak = workload("leak", using(ramp(0, 900 * MI, 40)))
    tried = scenario(leak, workload("other", using(100 * MI)), spec=node(config=config), seconds=90)
    looks = [0, 10, 20, 30, *range(31, 90, 10)]
    assert recorded(tried) == carried_out(tried) == {"n": {each * SECOND_US for each in looks}}


def test_a_machine_that_is_lost_and_joins_again_does_not_look_meanwhile():
    happenings = (NodeLost(at_us=20 * SECOND_US, node="n"), NodeAdded(at_us=42 * SECOND_US, node="n"))
    tried = scenario(workload("a", using(MI)), spec=node(), happenings=happenings)
    assert recorded(tried) == {"n": {each * SECOND_US for each in (0, 10, 42, 52)}}


def test_regular_looks_are_one_span_even_where_the_first_event_of_a_machine_is_a_look():
    happenings = (NodeLost(at_us=20 * SECOND_US, node="n"), NodeAdded(at_us=42 * SECOND_US, node="n"))
    late = workload("a", using(MI), arrives_us=50 * SECOND_US)
    recorder = Recorder()
    simulate(scenario(late, spec=node(loop_phase_us=3 * SECOND_US), happenings=happenings), recorder=recorder)
    looks = recorder.nodes["n"].looks_until(60 * SECOND_US)
    assert looks == (LookSpan(3 * SECOND_US, 13 * SECOND_US), LookSpan(45 * SECOND_US, 55 * SECOND_US))


def test_the_first_look_after_a_kill_is_in_the_journal_if_it_finds_nothing_to_do():
    """The pod grows by 100Mi/s from 3 s on, and is killed at 12 s and, started again, 10 s later."""
    config = KubeletConfiguration(eviction_hard={"memory.available": "1Mi"}, enforce_node_allocatable=())
    grows = using(ramp(100 * MI, 2100 * MI, 20, after=3))
    done = run(workload("a", grows), spec=node(memory=1000 * MI, config=config), seconds=45)
    killed = [entry.time_us / SECOND_US for entry in done.entries if entry.kind is Kind.OOM_KILLED]
    looks = [entry for entry in done.entries if isinstance(entry.because, NothingToDo)]
    assert [round(each) for each in killed] == [12, 25]
    assert [entry.time_us / SECOND_US for entry in looks] == [20, 30], "not before, and not again"
    assert [(entry.by, entry.pod) for entry in looks] == [(By.KUBELET, None)] * 2
    assert [each.threshold for each in looks[0].because.thresholds] == [MI]
