"""What is recorded of a run reaches from its beginning to its end."""

from podqos.model.time_units import SECOND_US
from podqos.reading.scenario_files import load_scenario
from podqos.sim.record import Recorder
from podqos.sim.run import simulate


def test_every_node_is_seen_at_the_end_though_nothing_happens_any_more():
    scenario = load_scenario("cpu-burst")
    recorder = Recorder()
    simulate(scenario, recorder=recorder)
    assert {name: node.moments[-1].time_us for name, node in recorder.nodes.items()} == {
        "wide": scenario.duration_us,
        "narrow": scenario.duration_us,
    }


def test_what_is_too_much_to_keep_is_thinned_and_still_reaches_from_beginning_to_end():
    """Of all moments those of journal entries are kept, and others that lie apart."""
    scenario = load_scenario("soft-eviction")
    whole, thin = Recorder(), Recorder(most_moments=8)
    for recorder in (whole, thin):
        simulate(scenario, recorder=recorder)
    for name, node in thin.nodes.items():
        times = [moment.time_us for moment in whole.nodes[name].moments]
        kept = [moment.time_us for moment in node.moments]
        others = {time_us for time_us in kept if time_us not in node.pinned}
        assert len(others) <= 8 < len(times)
        assert whole.nodes[name].pinned == node.pinned <= set(kept) <= set(times)
        assert kept[0] == times[0]
        assert kept[-1] == scenario.duration_us


def test_nothing_runs_on_a_lost_machine_until_it_is_back():
    recorder = Recorder()
    simulate(load_scenario("statefulset-lost-node"), recorder=recorder)
    moments = recorder.nodes["worker-0"].moments
    while_lost = [
        (moment.time_us // SECOND_US, sorted(moment.pods), moment.system_bytes)
        for moment in moments
        if 60 * SECOND_US <= moment.time_us <= 1260 * SECOND_US
    ]
    assert while_lost[1] == (60, [], 0)
    assert while_lost[2] == (1259, [], 0)  # a microsecond before it joins
    assert while_lost[0][1] == ["default/db-0", "default/web-0"]


def test_a_change_of_a_services_load_is_a_step():
    recorder = Recorder()
    simulate(load_scenario("hpa-at-cpu-limit"), recorder=recorder)
    moments = recorder.nodes["worker"].moments
    wanted = [moment.pods["default/api-0"].cpu_wanted_milli for moment in moments if moment.time_us == 55 * SECOND_US]
    assert wanted[0] == 300
    assert wanted[-1] == 2000
