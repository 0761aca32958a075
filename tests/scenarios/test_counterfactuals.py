"""What is said to save a pod saves it when the scenario is run again with it."""

from __future__ import annotations

from functools import cache
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podqos.orders.counterfactual import PodChange
from podqos.reading.scenario_files import load_scenario
from podqos.runs.run import run_view
from podqos.sim.hindsight import hindsights
from podqos.sim.record import recorded_nodes
from scenarios.again import is_spared, manifest_counterfactuals, recorded, rewritten
from scenarios.crowded import crowded
from scenarios.runs import NAMES
from sim.test_properties import scenarios


@cache
def _run(name):
    return recorded(load_scenario(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_pod_is_not_taken_again_once_its_manifest_says_what_saves_it(name):
    done, records = _run(name)
    for entry, counterfactual in manifest_counterfactuals(done, records):
        spared = is_spared(done, entry, rewritten(done.scenario, counterfactual.pod, entry.pod))
        assert spared is not False, (entry.pod, entry.time_us, counterfactual.change, counterfactual.amount)


def test_the_scenarios_have_changes_of_every_kind_that_can_be_tried_again():
    """Nothing above would fail if none were found."""
    tried = []
    for name in NAMES:
        done, records = _run(name)
        for entry, counterfactual in manifest_counterfactuals(done, records):
            if is_spared(done, entry, rewritten(done.scenario, counterfactual.pod, entry.pod)):
                tried.append((name, counterfactual.change))
    assert {change for _, change in tried} >= {PodChange.REQUEST, PodChange.GUARANTEED, PodChange.PRIORITY}
    assert ("disk-pressure", PodChange.REQUEST) in tried
    assert ("pid-exhaustion", PodChange.PRIORITY) in tried


@pytest.mark.parametrize("name", NAMES)
def test_no_change_of_use_that_saves_a_pod_leaves_it_first(name):
    done, records = _run(name)
    for found in hindsights(done.entries, recorded_nodes(done.scenario, records)):
        for counterfactual in found.counterfactuals:
            if counterfactual.change is PodChange.LESS:
                assert counterfactual.decision.place > 1, found.entry.pod


def test_a_scenario_short_of_cpu_alone_takes_nobody_and_claims_nothing():
    done, records = _run("cpu-burst")
    assert run_view(done, records).kills == ()


def _hold_counterfactuals(scenario):
    """Try the first changes that are said to save a pod, each in a run of its own."""
    done, records = recorded(scenario)
    for entry, counterfactual in islice(manifest_counterfactuals(done, records), 4):
        again = rewritten(scenario, counterfactual.pod, entry.pod)
        assert is_spared(done, entry, again) is not False, (
            entry.pod,
            entry.time_us,
            counterfactual.change,
            counterfactual.amount,
        )


@settings(max_examples=8)
@given(crowded())
def test_no_manifest_on_a_crowded_node_fails_to_save_what_it_is_said_to_save(scenario):
    _hold_counterfactuals(scenario)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.one_of(crowded(), scenarios()))
def test_no_manifest_of_many_random_scenarios_fails_to_save_what_it_is_said_to_save(scenario):
    _hold_counterfactuals(scenario)
