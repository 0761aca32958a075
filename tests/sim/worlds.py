"""Terse scenarios for the rows of tables."""

from __future__ import annotations

from collections.abc import Mapping

from eviction.nodes import pod
from podqos.kernel.memory import Watermarks
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.run import FinishedRun, simulate
from podqos.sim.scenario.scenario import (
    ContainerDemand,
    Filesystem,
    MachineSpec,
    NodeGroup,
    Options,
    Scenario,
    ScenarioWorkload,
    SystemDemand,
)

MI, GI = 1 << 20, 1 << 30

NO_MARKS = Watermarks(0, 0, 0)
PLAIN = KubeletConfiguration(eviction_hard={}, enforce_node_allocatable=())


def ramp(start: int, end: int, seconds: float, *, after: float = 0, clock: Clock = Clock.CONTAINER) -> Curve:
    """Return a curve from one amount to another, constant before and after."""
    return Curve(((int(after * SECOND_US), start), (int((after + seconds) * SECOND_US), end)), clock=clock)


def using(anon: int | Curve = 0, **curves: object) -> ContainerDemand:
    """Return the demand of a container; whole numbers are constant."""
    given = {"anon_bytes": anon, **curves}
    made = {
        name: constant(value) if isinstance(value, int) and not name.startswith("exit") else value
        for name, value in given.items()
    }
    return ContainerDemand(**made)


def node(name: str = "n", memory: int = 1000 * MI, **fields: object) -> MachineSpec:
    """Return a node that leaves everything to the kernel, unless told otherwise."""
    usual = {
        "cpu_milli": 4000,
        "nodefs": Filesystem(100 * GI, 1_000_000),
        "watermarks": NO_MARKS,
        "config": PLAIN,
        "system": SystemDemand(),
    }
    return MachineSpec(name=name, memory_bytes=memory, **{**usual, **fields})


def workload(
    made: Pod | str, demand: ContainerDemand | Mapping[str, ContainerDemand], **fields: object
) -> ScenarioWorkload:
    """Return one pod, bound to node ``n``; its container is called main."""
    if isinstance(made, str):
        made = pod(made)
    demands = {"main": demand} if isinstance(demand, ContainerDemand) else demand
    usual = {"nodes": ("n",), "kind": "Pod", "recreate": False}
    return ScenarioWorkload(
        namespace="default", name=made.metadata.name, pod=made, demands=(demands,), **{**usual, **fields}
    )


def scenario(
    *workloads: ScenarioWorkload, seconds: float = 60, spec: MachineSpec | None = None, **fields: object
) -> Scenario:
    """Return a scenario on one node."""
    usual = {"nodes": (NodeGroup(spec or node()),), "options": Options(), "name": "test"}
    return Scenario(duration_us=int(seconds * SECOND_US), workloads=workloads, **{**usual, **fields})


def run(*workloads: ScenarioWorkload, **fields: object) -> FinishedRun:
    """Run a scenario with all checkers."""
    return simulate(scenario(*workloads, **fields), check=True)


def lines(done: FinishedRun, *kinds: str) -> list[tuple[float, str, str | None]]:
    """Return time in seconds, kind and pod of the entries, of these kinds or of all."""
    return [
        (entry.time_us / SECOND_US, entry.kind.value, entry.pod)
        for entry in done.entries
        if not kinds or entry.kind in kinds
    ]
