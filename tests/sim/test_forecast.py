"""The forecast in closed form, against simulations at every phase of the kubelet's loop."""

from __future__ import annotations

from fractions import Fraction

import pytest
from msgspec.structs import replace

from eviction.nodes import pod
from podqos.agent.journal import By
from podqos.eviction.signals import Signal
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.time_units import SECOND_US
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.run import simulate
from podqos.sim.scenario.demand import ContainerDemand
from podqos.sim.scenario.scenario import Filesystem, MachineSpec, NodeGroup, Scenario, ScenarioWorkload
from podqos.survival.comparison import victims
from podqos.survival.exhaustion import exhaustion
from podqos.survival.forecast import Eviction, Growth, Watch, forecast
from survival.nodes import GI, MI, snapshot, using

NODE_BYTES = 16 * GI
HARD = {"memory.available": "2Gi"}
PHASES = 40

LEAK, STEADY = pod("leak", "memory=1Gi"), pod("steady", "memory=1Gi")


def _scenario(rate: int, phase_us: int) -> Scenario:
    seconds = NODE_BYTES // rate + 30
    growing = Curve(((0, GI), (seconds * SECOND_US, GI + rate * seconds)), clock=Clock.CONTAINER)
    node = MachineSpec(
        name="n",
        memory_bytes=NODE_BYTES,
        cpu_milli=4000,
        nodefs=Filesystem(1 << 40, 1 << 30),
        config=KubeletConfiguration(eviction_hard=HARD, enforce_node_allocatable=("none",)),
        loop_phase_us=phase_us,
    )

    def workload(spec, curve):
        demand = {spec.spec.containers[0].name: ContainerDemand(anon_bytes=curve)}
        return ScenarioWorkload(
            kind="Pod",
            namespace=spec.metadata.namespace,
            name=spec.metadata.name,
            pod=spec,
            demands=(demand,),
            nodes=("n",),
            recreate=False,
        )

    workloads = (workload(LEAK, growing), workload(STEADY, constant(3 * GI)))
    return Scenario(name="x", duration_us=seconds * SECOND_US, nodes=(NodeGroup(node),), workloads=workloads)


@pytest.mark.parametrize("rate", [100 * MI, 256 * MI, 400 * MI, GI, 4 * GI])
def test_the_share_of_phases_and_the_first_victims_are_those_of_the_simulation(rate):
    node = snapshot(using(LEAK, "1Gi"), using(STEADY, "3Gi"), memory_bytes=NODE_BYTES)
    watch = Watch(exhaustion(KubeletConfiguration(eviction_hard=HARD), {Signal.MEMORY: NODE_BYTES}))
    watch = replace(watch, allocatable_bytes=None)
    growth = Growth(node.pods[0].pod.metadata.uid, node.pods[0].containers[0].name, rate)
    found = forecast(node, CgroupSettings(node_memory_bytes=NODE_BYTES), growth, watch)
    first = [victims(simulate(_scenario(rate, phase * 10 * SECOND_US // PHASES)).entries)[0] for phase in range(PHASES)]
    by_kubelet = Fraction(sum(victim.by is By.KUBELET for victim in first), PHASES)
    assert float(found.kubelet_first) == pytest.approx(float(by_kubelet), abs=1.5 / PHASES)
    foreseen = {
        (By.KUBELET if isinstance(each.what, Eviction) else By.KERNEL, each.what.victim.pod.key)
        for each in found.outcomes
        if each.probability > Fraction(1, PHASES)
    }
    assert foreseen <= {(victim.by, victim.pod) for victim in first}
