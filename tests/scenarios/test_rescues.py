"""What is said to save a pod saves it when the scenario is run again with it."""

from __future__ import annotations

from functools import cache
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podqos.cli.scenario_files import load_scenario
from podqos.report.run_kills import rescues
from podqos.report.run_reading import run_view, shown_nodes
from podqos.survival.rescue import Change
from scenarios.again import is_spared, manifest_rescues, recorded, rewritten
from scenarios.crowded import crowded
from scenarios.runs import NAMES
from sim.test_properties import scenarios


@cache
def _run(name):
    return recorded(load_scenario(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_pod_is_not_taken_again_once_its_manifest_says_what_saves_it(name):
    done, records = _run(name)
    for entry, rescue in manifest_rescues(done, records):
        spared = is_spared(done, entry, rewritten(done.scenario, rescue.pod, entry.pod))
        assert spared is not False, (entry.pod, entry.time_us, rescue.change, rescue.amount)


def test_the_scenarios_have_changes_of_every_kind_that_can_be_tried_again():
    """Nothing above would fail if none were found."""
    tried = []
    for name in NAMES:
        done, records = _run(name)
        for entry, rescue in manifest_rescues(done, records):
            if is_spared(done, entry, rewritten(done.scenario, rescue.pod, entry.pod)):
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


def _hold_rescues(scenario):
    """Try the first changes that are said to save a pod, each in a run of its own."""
    done, records = recorded(scenario)
    for entry, rescue in islice(manifest_rescues(done, records), 4):
        again = rewritten(scenario, rescue.pod, entry.pod)
        assert is_spared(done, entry, again) is not False, (entry.pod, entry.time_us, rescue.change, rescue.amount)


@settings(max_examples=8)
@given(crowded())
def test_no_manifest_on_a_crowded_node_fails_to_save_what_it_is_said_to_save(scenario):
    _hold_rescues(scenario)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.one_of(crowded(), scenarios()))
def test_no_manifest_of_many_random_scenarios_fails_to_save_what_it_is_said_to_save(scenario):
    _hold_rescues(scenario)
