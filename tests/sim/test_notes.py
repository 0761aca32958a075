"""Notes for words change nothing in a run, and say what a recording says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from podqos.agent.journal import encode
from podqos.eviction.signals import Signal
from podqos.sim.engine.curve import Curve
from podqos.sim.node.notes import FREEING, UNTOLD, NoteTaker
from podqos.sim.node.recording import Recorder
from podqos.sim.run import Simulation, simulate
from podqos.sim.scenario.happenings import NodeLost
from sim.test_properties import scenarios
from sim.worlds import MI, SECOND_US, using, workload
from sim.worlds import scenario as scenario_of


@settings(max_examples=25)
@given(scenarios())
def test_a_run_is_the_same_with_notes_and_they_agree_with_a_recording(scenario):
    notes, recorder = NoteTaker(lambda pod: pod), Recorder(1 << 40)
    plain, noted = simulate(scenario), simulate(scenario, notes=notes)
    simulate(scenario, recorder=recorder)
    assert encode(noted.entries) == encode(plain.entries)
    for name, record in recorder.nodes.items():
        of_node = notes.notes(name)
        left = [moment.left[Signal.MEMORY].available for moment in record.moments]
        assert of_node.extents[Signal.MEMORY].least == min(left)
        read = dict(zip(of_node.times_us, of_node.left[Signal.MEMORY], strict=True))
        for entry in plain.entries:
            at = [moment for moment in record.moments if moment.time_us == entry.time_us]
            if entry.node == name and entry.kind not in UNTOLD | FREEING and entry.time_us and at:
                assert read[entry.time_us] == at[-1].left[Signal.MEMORY].available


@settings(max_examples=15)
@given(scenarios())
def test_notes_are_the_same_whether_or_not_bends_are_followed(scenario):
    followed, asleep = NoteTaker(lambda pod: pod), NoteTaker(lambda pod: pod)
    Simulation(scenario, notes=followed, columns=False).finish()
    Simulation(scenario, notes=asleep, columns=True).finish()
    for name in scenario.node_names:
        one, other = followed.notes(name), asleep.notes(name)
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert one.times_us == other.times_us
            assert one.left == other.left
            assert (one.cpu_wanted_milli, one.cpu_granted_milli) == (other.cpu_wanted_milli, other.cpu_granted_milli)


@pytest.mark.parametrize(("lost_s", "least", "least_s"), [(0, 1000, 0), (20, 800, 10), (60, 800, 10)])
def test_a_node_is_noted_from_when_it_joined_though_nothing_was_asked_of_it_before_it_was_lost(lost_s, least, least_s):
    # It climbs to 200 MiB by the tenth second and then falls to 100 MiB.
    demand = using(Curve(((0, 0), (10 * SECOND_US, 200 * MI), (15 * SECOND_US, 100 * MI))))
    made = scenario_of(workload("a", demand), happenings=(NodeLost(lost_s * SECOND_US, "n"),))
    notes = NoteTaker(lambda pod: pod)
    simulate(made, notes=notes)
    extent = notes.notes("n").extents[Signal.MEMORY]
    assert (extent.least, extent.least_us, extent.most) == (least * MI, least_s * SECOND_US, 1000 * MI)
    assert [reach.available for reach in notes.memory_reaches()] == [extent]
