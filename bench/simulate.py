"""How long large simulations take, and how much memory: three sizes of each kind, every one in a process of its own.

Pods are bound beforehand, 100 on every node. Set-up (until everything runs) is reported apart from the run, and so is
the writing of the journal as JSON lines. Times are those of the processor; on an idle machine others hardly differ.

    quiet   24 hours in which nothing happens; the budget for 10,000 nodes is 60 s and 4 GiB
    daily   the same with daily load curves that cross nothing, no two nodes alike; 180 s
    busy    daily curves, and leaks on every node: what it costs where every bend has to be followed
    kills   an hour of leaks, killed at the limits of containers and of nodes; 2,000 kills a second on one core
    length  the same leaks in 2 hours, 24 hours, 7 days: the time per event must not grow
    events  leaks that fill up one, two, four times as often on the same nodes: nor there

    python bench/simulate.py [KIND …]
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

from history import record

from podqos.agent.journal import encode
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.model.time_units import SECOND_US
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.run import Simulation
from podqos.sim.scenario.demand import ContainerDemand, SystemDemand
from podqos.sim.scenario.scenario import Filesystem, MachineSpec, NodeGroup, Scenario, ScenarioWorkload

MI, GI = 1 << 20, 1 << 30
HOUR_US = 3600 * SECOND_US
WORKLOADS, PER_NODE = 20, 5
"""So many workloads with so many pods each on every node: 100 pods."""

SIZES = {
    "quiet": ((2_500, 24, 1), (5_000, 24, 1), (10_000, 24, 1)),
    "daily": ((2_500, 24, 1), (5_000, 24, 1), (10_000, 24, 1)),
    "busy": ((20, 24, 1), (40, 24, 1), (80, 24, 1)),
    "kills": ((250, 1, 1), (500, 1, 1), (1_000, 1, 1)),
    "length": ((100, 2, 1), (100, 24, 1), (100, 7 * 24, 1)),
    "events": ((100, 1, 1), (100, 1, 2), (100, 1, 4)),
}
"""Nodes, hours, and how often leaks fill up."""

PRIMES = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197)

Demands = tuple[dict[str, ContainerDemand], ...]


def workload(index: int, nodes: int, limit: str | None, demands: Demands) -> ScenarioWorkload:
    """Return a workload with pods on every node, of one of three kinds unless its limit is given."""
    requests = {"cpu": "100m", "memory": "128Mi"}
    kinds: tuple[dict[str, str], ...] = ({}, {"memory": "512Mi"}, requests)
    limits = kinds[index % 3] if limit is None else {"memory": limit}
    container = Container("app", resources=ResourceRequirements(_amounts(requests), _amounts(limits)))
    name = f"service-{index}"
    return ScenarioWorkload(
        kind="Deployment",
        namespace="production",
        name=name,
        pod=Pod(ObjectMeta(name, "production"), PodSpec(containers=(container,))),
        replicas=nodes * PER_NODE,
        demands=demands,
        spread=True,
    )


def _amounts(texts: dict[str, str]) -> dict[str, Quantity]:
    return {name: Quantity.parse(text) for name, text in texts.items()}


def still(index: int) -> Demands:
    """Return a demand that never changes."""
    return ({"app": ContainerDemand(anon_bytes=constant((40 + index) * MI), cpu_milli=constant(20))},)


def day(phase: int, size: int) -> Curve:
    """Return a curve that rises and falls within a day, with a bend every hour."""
    knots = ((hour * HOUR_US, size // 2 + size // 2 * abs((hour + phase) % 24 - 12) // 12) for hour in range(25))
    return Curve(tuple(knots), period_us=24 * HOUR_US)


def daily(index: int) -> Demands:
    """Return demands of which every pod of a node has another."""
    return tuple(
        {"app": ContainerDemand(anon_bytes=day(each, (80 + each % 45) * MI), cpu_milli=day(each + 7, 40 + each % 50))}
        for each in range(PRIMES[index])
    )


def leaks(index: int, hours: int, times: int) -> Demands:
    """Return a leak that begins again with the container, and fills up ``times`` × 4 times in so many hours."""
    top = 10 * GI
    full = 256 * MI - 40 * MI
    span_us = (hours * HOUR_US - 1000 * SECOND_US) * top // (full * (4 * times + 1))
    return (
        {"app": ContainerDemand(anon_bytes=Curve(((0, (40 + index) * MI), (span_us, top)), clock=Clock.CONTAINER))},
    )


def spill(hours: int, times: int) -> Demands:
    """Return a leak without a limit, that fills the node instead: its pods take turns to be killed."""
    span_us = hours * HOUR_US * 4 // (5 * times)
    return ({"app": ContainerDemand(anon_bytes=Curve(((0, 40 * MI), (span_us, 6 * GI)), clock=Clock.CONTAINER))},)


def scenario(kind: str, nodes: int, hours: int, times: int) -> Scenario:
    """Return the scenario of a row."""
    if kind == "quiet":
        workloads = [workload(index, nodes, None, still(index)) for index in range(WORKLOADS)]
    elif kind == "busy":
        workloads = [workload(0, nodes, "256Mi", leaks(0, hours, times))]
        workloads += [workload(index, nodes, None, daily(index)) for index in range(1, WORKLOADS)]
    elif kind == "daily":
        workloads = [workload(index, nodes, None, daily(index)) for index in range(WORKLOADS)]
    else:
        workloads = [workload(0, nodes, None, spill(hours, times))]
        workloads += [workload(index, nodes, "256Mi", leaks(index, hours, times)) for index in (1, 2, 3)]
        workloads += [workload(index, nodes, None, still(index)) for index in range(4, WORKLOADS)]
    kernel_only = KubeletConfiguration(eviction_hard={}, enforce_node_allocatable=())
    spec = MachineSpec(
        name="node",
        memory_bytes=16 * GI,
        cpu_milli=16_000,
        nodefs=Filesystem(100 * GI, 6_000_000),
        system=SystemDemand(anon_bytes=constant(6 * GI if kind == "daily" else GI)),
        config=KubeletConfiguration() if kind in {"quiet", "daily", "busy"} else kernel_only,
    )
    return Scenario(
        name=kind,
        duration_us=hours * HOUR_US,
        nodes=(NodeGroup(spec, nodes, phase_step_us=SECOND_US),),
        workloads=tuple(workloads),
    )


def measure(kind: str, nodes: int, hours: int, times: int) -> None:
    """Run one row and print it."""
    made = scenario(kind, nodes, hours, times)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    simulation = Simulation(made)
    set_up = time.process_time()
    done = simulation.finish()
    ran = time.process_time()
    lines = size = 0
    for entry in done.entries:
        lines += 1
        size += len(encode((entry,)))
    written = time.process_time()
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pods = nodes * WORKLOADS * PER_NODE
    kills = done.tallies.kinds.get("OOMKilled", 0)
    run = ran - set_up
    print(
        f"{kind:7} {nodes:6,} nodes {pods:9,} pods {hours:4} h: set-up {set_up - began:7.2f} s, run {run:7.2f} s, "
        f"{done.tallies.events:9,} events ({done.tallies.events / run:9,.0f}/s), "
        f"{kills:7,} kills ({kills / run:7,.0f}/s), "
        f"journal {lines:9,} lines, {size / 1e6:6.1f} MB in {written - ran:6.2f} s, "
        f"peak {peak_kib / 1024:6.0f} MiB, {(peak_kib - before_kib) * 1024 / pods:6.0f} bytes per pod",
        flush=True,
    )
    name = f"simulate {kind}, {nodes} nodes, {hours} h × {times}"
    record(f"{name}, set-up and run", ran - began, "s")
    record(f"{name}, peak memory", peak_kib * 1024, "bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(SIZES)} (default: all)")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for kind in arguments.kinds or SIZES:
        for row, size in enumerate(SIZES[kind]):
            if arguments.row is None:
                subprocess.run([sys.executable, __file__, kind, "--row", str(row)], check=True)
            elif arguments.row == row:
                measure(kind, *size)


if __name__ == "__main__":
    main()
