"""What is recorded of a run reaches from its beginning to its end."""

from podqos.reading.scenario_files import load_scenario
from podqos.sim.node.recording import Recorder
from podqos.sim.run import simulate


def test_every_node_is_seen_at_the_end_though_nothing_happens_any_more():
    scenario = load_scenario("cpu-burst")
    recorder = Recorder()
    simulate(scenario, recorder=recorder)
    assert {name: node.moments[-1].time_us for name, node in recorder.nodes.items()} == {
        "wide": scenario.duration_us,
        "narrow": scenario.duration_us,
    }
