"""Nodes that rest: the journal is the same as if they had been simulated, and they wake when they are wanted."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from podqos.agent.journal import encode
from podqos.sim.recording import Recorder
from podqos.sim.run import simulate
from podqos.sim.scenario import Filesystem, Scenario
from sim.test_properties import scenarios
from sim.worlds import MI


def all_awake(scenario: Scenario) -> bytes:
    """Return the journal of a run in which every node is simulated."""
    return encode(simulate(scenario, recorder=Recorder(2)).entries)


@st.composite
def calm_scenarios(draw: st.DrawFn) -> Scenario:
    """Return scenarios with larger machines, on many of which nothing happens by itself."""
    made = draw(scenarios())
    (group,) = made.nodes
    times = draw(st.sampled_from([2, 4, 40]))
    spec = replace(
        group.spec,
        memory_bytes=times * group.spec.memory_bytes,
        cpu_milli=times * group.spec.cpu_milli,
        max_pids=times * group.spec.max_pids,
        nodefs=Filesystem(times * 1000 * MI, times * 10_000),
        config=replace(group.spec.config, pod_pids_limit=-1),
    )
    workloads = tuple(
        replace(
            each,
            demands=tuple(
                {name: replace(demand, exits_after_us=None) for name, demand in demands.items()}
                for demands in each.demands
            ),
            spread=each.spread or draw(st.booleans()),
        )
        for each in made.workloads
    )
    return replace(made, nodes=(replace(group, spec=spec),), workloads=workloads)


@settings(max_examples=60)
@given(st.one_of(scenarios(), calm_scenarios(), calm_scenarios()))
def test_resting_changes_nothing(scenario):
    assert encode(simulate(scenario).entries) == all_awake(scenario)


@pytest.mark.slow
@settings(max_examples=1000)
@given(calm_scenarios())
def test_resting_changes_nothing_in_many_scenarios(scenario):
    assert encode(simulate(scenario).entries) == all_awake(scenario)
