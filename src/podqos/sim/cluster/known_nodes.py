"""What is known of a scenario's nodes before any of them runs, and is the same whichever of them are simulated.

Shards that run one after the other share it: what nodes have in common is worked out once.
"""

from __future__ import annotations

from collections.abc import Collection, Container
from functools import cached_property

from msgspec import Struct

from podqos.sim.idle.initial_state import InitialStates
from podqos.sim.node.settings import SimNodeSettings, node_settings
from podqos.sim.node.would_evict import MemoryRequests
from podqos.sim.scenario.replicas import BindingTurns
from podqos.sim.scenario.scenario import Scenario, ScenarioWorkload


class FleetNode(Struct, frozen=True):
    """One node of the whole fleet."""

    number: int
    settings: SimNodeSettings
    loop_phase_us: int
    """When its eviction loop runs first, counted from when it joins."""


class KnownNodes:
    """All nodes of a scenario, by name."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.requests = MemoryRequests(scenario.profile)
        self.initial_states = InitialStates(scenario, self.requests)
        self._nodes: dict[str, FleetNode] = {}
        self._turns: dict[int, dict[str, list[int]]] = {}
        for group in scenario.nodes:
            settings = node_settings(group.spec, scenario.profile, scenario.policy)
            for index in range(group.count):
                node = FleetNode(len(self._nodes), settings, group.loop_phase_us(index))
                self._nodes[group.name_of(index)] = node

    @cached_property
    def bends(self) -> int:
        """About how many bends of memory and CPU there are to follow: by the first demand of each workload."""
        bends = 0
        for workload in self._scenario.workloads:
            for demand in workload.demands[0].values():
                for curve in (demand.anon_bytes, demand.cpu_milli):
                    turns = 1 if curve.period_us is None else self._scenario.duration_us // curve.period_us + 1
                    bends += workload.replicas * (len(curve.knots) - 1) * turns
        return bends

    @cached_property
    def has_services(self) -> bool:
        """Whether any workload answers requests."""
        return any(workload.service is not None for workload in self._scenario.workloads)

    def __getitem__(self, name: str) -> FleetNode:
        return self._nodes[name]

    def turns(self, workload: ScenarioWorkload, names: Collection[str]) -> BindingTurns:
        """Return which of some nodes the pods of a workload are bound to without asking the scheduler."""
        listed, is_all = workload.nodes, len(names) == len(self._nodes)
        if not listed:
            numbered = enumerate(names) if is_all else ((self._nodes[name].number, name) for name in names)
            return BindingTurns(len(self._nodes), [*numbered])
        by_name = self._turns.get(id(workload))
        if by_name is None:
            by_name = self._turns[id(workload)] = {}
            for turn, name in enumerate(listed):
                by_name.setdefault(name, []).append(turn)
        here: Container[str] = self._nodes if is_all else names
        some = by_name if len(by_name) < len(names) else names
        return BindingTurns(
            len(listed), sorted((turn, name) for name in some if name in here for turn in by_name.get(name, ()))
        )
