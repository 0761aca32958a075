"""The nodes of a simulated cluster, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from podqos.sim.engine.event_queue import CLUSTER
from podqos.sim.node.cpu import CpuAccount
from podqos.sim.node.node import MakeRest, NodeIdentity, Outside, SimNode
from podqos.sim.node.settings import SimNodeSettings, node_settings
from podqos.sim.scenario.scenario import Happening, NodeAdded, NodeLost, Scenario, ScenarioWorkload


class _Machine(Struct, frozen=True):
    """What is known of a node before it runs."""

    settings: SimNodeSettings
    loop_phase_us: int
    """When its eviction loop runs first, counted from when it joins."""


class Fleet:
    """All nodes, in the order of the scenario."""

    def __init__(
        self,
        scenario: Scenario,
        cluster: Outside,
        is_watched: Callable[[str], bool],
        rest: MakeRest | None = None,
    ) -> None:
        self._scenario = scenario
        self._cluster = cluster
        self._is_watched = is_watched
        self._rest = rest
        self.present: dict[str, SimNode] = {}
        """Those that have joined and are not lost."""
        self._lost_accounts: list[CpuAccount] = []
        """Of machines that were lost."""
        self._machines: dict[str, _Machine] = {}
        for group in scenario.nodes:
            settings = node_settings(group.spec, scenario.profile, scenario.policy)
            for index in range(group.count):
                self._machines[group.name_of(index)] = _Machine(settings, group.loop_phase_us(index))
        self.names: tuple[str, ...] = tuple(self._machines)
        self._indexes = {name: index for index, name in enumerate(self.names)}
        first: dict[str, Happening] = {}
        for happening in sorted(scenario.happenings, key=lambda each: each.at_us):
            if isinstance(happening, NodeLost | NodeAdded):
                first.setdefault(happening.node, happening)
        for name in self.names:
            if not isinstance(first.get(name), NodeAdded):
                self.add(name)

    def numbered(self, index: int) -> tuple[SimNode, ...]:
        """Return the node with a number if it is present; all of them for what concerns the cluster."""
        if index == CLUSTER:
            return tuple(self.present.values())
        node = self.present.get(self.names[index])
        return () if node is None else (node,)

    def settings(self, name: str) -> SimNodeSettings:
        """Return the settings of a node."""
        return self._machines[name].settings

    def places(self, workload: ScenarioWorkload) -> Iterator[tuple[int, str]]:
        """Yield the numbers of the pods that are bound without asking the scheduler, and their nodes in turn."""
        names = workload.nodes or self.names
        return ((number, names[number % len(names)]) for number in range(workload.replicas))

    def get(self, name: str) -> SimNode | None:
        """Return a node; None if it is away."""
        return self.present.get(name)

    def add(self, name: str) -> None:
        """Set up an empty node."""
        rest = None if self._is_watched(name) else self._rest
        identity = NodeIdentity(self._indexes[name], name, self._machines[name].loop_phase_us)
        options = self._scenario.options
        self.present[name] = SimNode(
            identity, self.settings(name), options, self._cluster.queue, self._cluster, rest=rest
        )

    def drop(self, name: str) -> None:
        """Remove a lost node."""
        lost = self.present.pop(name, None)
        if lost is not None:
            self._lost_accounts += lost.world.cpu.ledger.accounts

    def cpu_accounts(self) -> tuple[CpuAccount, ...]:
        """Return what containers wanted of the CPU and got, where that is not the same; at the end of a run."""
        found = list(self._lost_accounts)
        for node in self.present.values():
            node.close()
            found += node.world.cpu.ledger.accounts
        return tuple(sorted(found, key=lambda account: (account.started_us, account.pod, account.container)))
