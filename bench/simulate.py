"""How long large simulations take, and how much memory: three sizes of each kind, every one in a process of its own.

Pods are bound beforehand, 100 on every node. Set-up (until everything runs) is reported apart from the run, and so is
the writing of the journal as JSON lines. Times are those of the processor; on an idle machine others hardly differ.

    quiet   24 hours in which nothing happens; the budget for 10,000 nodes is 60 s and 4 GiB
    daily   the same with daily load curves that cross nothing, no two nodes alike; 180 s
    busy    daily curves, and leaks on every node
    fleet   a real day: every pod its own daily curve and noise, a new value every 5 minutes, no two alike; on every
            node two leaks, two rollouts and a cron job each hour, and one node of a hundred runs out of memory
    fleet-hourly  the same with a new value every hour
    kills   an hour of leaks, killed at the limits of containers and of nodes; 2,000 kills a second on one core
    length  the same leaks in 2 hours, 24 hours, 7 days: the time per event must not grow
    events  leaks that fill up one, two, four times as often on the same nodes: nor there
    text    a scenario file with a day like that of the fleet, run by ``podqos simulate`` as text and as CSV, in
            turn, each in a process of its own: text may take 1.5 × the CPU and memory of CSV

    python bench/simulate.py [KIND …] [--nodes N]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import overload
from zlib import crc32

import numpy as np
from history import record
from msgspec.structs import replace
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from podqos.agent.journal import encode
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.model.time_units import SECOND_US
from podqos.runs.run import simulate
from podqos.sim.engine.curve import Clock, Curve, Knots, constant
from podqos.sim.run import Simulation
from podqos.sim.scenario.scenario import (
    ContainerDemand,
    Filesystem,
    MachineSpec,
    NodeGroup,
    Scenario,
    ScenarioWorkload,
    SystemDemand,
)

MI, GI = 1 << 20, 1 << 30
HOUR_US = 3600 * SECOND_US
WORKLOADS, PER_NODE = 20, 5
"""So many workloads with so many pods each on every node: 100 pods."""
AT_ONCE = 16
"""For so many pods demands are drawn at a time."""

SIZES = {
    "quiet": ((2_500, 24, 1), (5_000, 24, 1), (10_000, 24, 1)),
    "daily": ((2_500, 24, 1), (5_000, 24, 1), (10_000, 24, 1)),
    "busy": ((20, 24, 1), (40, 24, 1), (80, 24, 1)),
    "fleet": ((100, 24, 1), (300, 24, 1), (1_000, 24, 1)),
    "fleet-hourly": ((100, 24, 1), (300, 24, 1), (1_000, 24, 1)),
    "kills": ((250, 1, 1), (500, 1, 1), (1_000, 1, 1)),
    "length": ((100, 2, 1), (100, 24, 1), (100, 7 * 24, 1)),
    "events": ((100, 1, 1), (100, 1, 2), (100, 1, 4)),
    "text": ((4, 24, 1), (12, 24, 1), (20, 24, 1), (60, 24, 1)),
}
"""Nodes, hours, and how often leaks fill up."""

PRIMES = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149, 151, 157, 163, 167, 173, 179, 181, 191, 193, 197)

Demands = Sequence[dict[str, ContainerDemand]]


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


class Noise(Sequence[dict[str, ContainerDemand]]):
    """Demands of which no two are alike, made when they are asked for: a daily curve, and a new value at every step.

    They are drawn for some pods at once and kept for a while: how long it takes to make them up is not the question.
    """

    def __init__(self, name: str, count: int, hours: int, every_us: int) -> None:
        self._count = count
        self._seed = crc32(name.encode()) << 32
        self._times = range(0, hours * HOUR_US + 1, every_us)
        day = 1000 * abs(2 * np.array(self._times, dtype=np.int64) - 24 * HOUR_US) // (24 * HOUR_US)
        self._days = sliding_window_view(np.concatenate([day, day]), len(day))
        self._drawn = lru_cache(maxsize=PER_NODE + 1)(self._draw)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> dict[str, ContainerDemand]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, ContainerDemand]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, ContainerDemand] | list[dict[str, ContainerDemand]]:
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(self._count))]
        if not 0 <= index < self._count:
            raise IndexError(index)
        turn, place = divmod(index, AT_ONCE)
        memory, cpu = (Curve(Knots(self._times, array("q", values[place].tobytes()))) for values in self._drawn(turn))
        return {"app": ContainerDemand(anon_bytes=memory, cpu_milli=cpu)}

    def _draw(self, turn: int) -> list[NDArray[np.int64]]:
        """Return memory and CPU of some pods: between a size and twice that, and noise of up to a quarter of it."""
        chance, count = np.random.default_rng(self._seed + turn), len(self._times)
        sizes = chance.integers(20, 50, (AT_ONCE, 1))
        days = self._days[chance.integers(count, size=AT_ONCE)]
        noise = chance.integers(1 << 16, size=(2, AT_ONCE, count))
        both = zip((sizes * MI, sizes // 2), noise, strict=True)
        return [size + size * days // 1000 + (size * own >> 18) for size, own in both]


def fleet_workloads(nodes: int, hours: int, every_us: int) -> list[ScenarioWorkload]:
    """Return what runs on a fleet: 100 pods on every node, and a cron job."""

    def noisy(index: int, name: str, arrives_us: int = 0, deleted_us: int | None = None) -> ScenarioWorkload:
        demands = Noise(name, nodes * PER_NODE, hours, every_us)
        return replace(workload(index, nodes, None, demands), name=name, arrives_us=arrives_us, deleted_us=deleted_us)

    rollouts = {3: hours * HOUR_US * 10 // 24, 4: hours * HOUR_US * 15 // 24}
    made = []
    for index in range(WORKLOADS):
        made.append(noisy(index, f"service-{index}", 0, rollouts.get(index)))
        if index in rollouts:
            made.append(noisy(index, f"service-{index}-new", rollouts[index]))
    # Two of the pods leak, at their own pace: they replace two of the last workload.
    made[-1] = replace(made[-1], replicas=nodes * (PER_NODE - 2))
    for name, share in (("leak", 9), ("slow-leak", 13)):
        slow = tuple(leaking(share * HOUR_US + each * 7 * SECOND_US) for each in range(nodes))
        made.append(replace(workload(0, nodes, "512Mi", slow), name=name, replicas=nodes))
    job = {"app": ContainerDemand(anon_bytes=constant(100 * MI), cpu_milli=constant(80), exits_after_us=HOUR_US // 12)}
    for hour in range(1, hours):
        cron = workload(0, nodes, "256Mi", (job,))
        pod = replace(cron.pod, spec=replace(cron.pod.spec, restart_policy="Never"))
        made.append(replace(cron, kind="Job", name=f"cron-{hour}", pod=pod, replicas=nodes, arrives_us=hour * HOUR_US))
    pressed = tuple(f"node-{each}" for each in range(0, nodes, 100)) if nodes > 1 else ("node",)
    spill = workload(
        0, nodes, None, ({"app": ContainerDemand(anon_bytes=Curve(((0, 0), (HOUR_US * hours, 48 * GI))))},)
    )
    made.append(replace(spill, name="spill", replicas=len(pressed), nodes=pressed, spread=False, recreate=False))
    return made


def leaking(span_us: int) -> dict[str, ContainerDemand]:
    """Return a leak that fills 512Mi within a time, and begins again with its container."""
    curve = Curve(((0, 64 * MI), (20 * span_us, 64 * MI + 20 * 448 * MI)), clock=Clock.CONTAINER)
    return {"app": ContainerDemand(anon_bytes=curve, cpu_milli=constant(30))}


def scenario(kind: str, nodes: int, hours: int, times: int) -> Scenario:
    """Return the scenario of a row."""
    is_fleet = kind.startswith("fleet")
    if kind == "quiet":
        workloads = [workload(index, nodes, None, still(index)) for index in range(WORKLOADS)]
    elif kind == "busy":
        workloads = [workload(0, nodes, "256Mi", leaks(0, hours, times))]
        workloads += [workload(index, nodes, None, daily(index)) for index in range(1, WORKLOADS)]
    elif is_fleet:
        workloads = fleet_workloads(nodes, hours, HOUR_US if kind == "fleet-hourly" else HOUR_US // 12)
    elif kind == "daily":
        workloads = [workload(index, nodes, None, daily(index)) for index in range(WORKLOADS)]
    else:
        workloads = [workload(0, nodes, None, spill(hours, times))]
        workloads += [workload(index, nodes, "256Mi", leaks(index, hours, times)) for index in (1, 2, 3)]
        workloads += [workload(index, nodes, None, still(index)) for index in range(4, WORKLOADS)]
    with_room = KubeletConfiguration(eviction_hard={"memory.available": "500Mi"})
    kernel_only = KubeletConfiguration(eviction_hard={}, enforce_node_allocatable=())
    spec = MachineSpec(
        name="node",
        memory_bytes=32 * GI if is_fleet else 16 * GI,
        cpu_milli=16_000,
        nodefs=Filesystem(100 * GI, 6_000_000),
        system=SystemDemand(anon_bytes=constant(6 * GI if kind == "daily" else GI)),
        config=with_room if is_fleet else KubeletConfiguration() if kind in {"quiet", "daily", "busy"} else kernel_only,
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
    kills, evictions = (done.tallies.kinds.get(each, 0) for each in ("OOMKilled", "Evicted"))
    run = ran - set_up
    print(
        f"{kind:7} {nodes:6,} nodes {pods:9,} pods {hours:4} h: set-up {set_up - began:7.2f} s, run {run:7.2f} s, "
        f"{done.tallies.events:9,} events ({done.tallies.events / run:9,.0f}/s), "
        f"{kills:7,} kills ({kills / run:7,.0f}/s), {evictions:5,} evictions, "
        f"journal {lines:9,} lines, {size / 1e6:6.1f} MB in {written - ran:6.2f} s, "
        f"peak {peak_kib / 1024:6.0f} MiB, {(peak_kib - before_kib) * 1024 / pods:6.0f} bytes per pod",
        flush=True,
    )
    name = f"simulate {kind}, {nodes} nodes, {hours} h × {times}"
    record(f"{name}, set-up and run", ran - began, "s")
    record(f"{name}, peak memory", peak_kib * 1024, "bytes")


def measure_split(kind: str, nodes: int, hours: int, times: int) -> None:
    """Run one row and print it."""
    made = scenario(kind, nodes, hours, times)
    began, began_cpu = time.perf_counter(), _cpu_seconds()
    run = simulate(made, record=False, progress=partial(_tell, made.duration_us))
    kinds = Counter(entry.kind.value for entry in run.journal)
    wall, cpu = time.perf_counter() - began, _cpu_seconds() - began_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"{kind:12} {nodes:6,} nodes {nodes * WORKLOADS * PER_NODE:9,} pods {hours:4} h: {cpu:7.2f} s of CPU "
        f"({cpu / nodes:6.3f} a node), {wall:7.2f} s, {kinds['OOMKilled']:7,} kills, "
        f"{kinds['Evicted']:5,} evictions, journal {kinds.total():9,} lines, peak {peak / (1 << 20):6.0f} MiB",
        flush=True,
    )
    name = f"simulate {kind}, {nodes} nodes, {hours} h"
    record(f"{name}, CPU", cpu, "s")
    record(f"{name}, peak memory", peak, "bytes")


def measure_text(kind: str, nodes: int, hours: int, times: int) -> None:
    """Write a day as a scenario file, and compare the text of its run with the CSV, the best of several turns each."""
    with TemporaryDirectory() as directory:
        path = text_scenario(Path(directory), nodes, hours)
        best = {output: (float("inf"), float("inf")) for output in ("text", "csv")}
        for _ in range(_TURNS * times):
            for output, before in best.items():
                best[output] = min(before[0], (now := _child(path, output))[0]), min(before[1], now[1])
    (text, text_bytes), (csv, csv_bytes) = best["text"], best["csv"]
    print(
        f"{kind:7} {nodes:6,} nodes {nodes * 40:9,} pods {hours:4} h: text {text:6.2f} s of CPU, "
        f"{text_bytes / (1 << 20):5.0f} MiB; csv {csv:6.2f} s, {csv_bytes / (1 << 20):5.0f} MiB; "
        f"text is {text / csv:4.2f} × the CPU and {text_bytes / csv_bytes:4.2f} × the memory",
        flush=True,
    )
    name = f"simulate text, {nodes} nodes, {hours} h"
    record(f"{name}, CPU as of csv", text / csv, "ratio")
    record(f"{name}, memory as of csv", text_bytes / csv_bytes, "ratio")


def _child(path: Path, output: str) -> tuple[float, float]:
    """Run the command and return its CPU seconds and its peak memory in bytes."""
    command = [sys.executable, "-m", "podqos", "simulate", str(path), "-o", output]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, f"{command} failed"
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def text_scenario(directory: Path, nodes: int, hours: int) -> Path:
    """Write a day of noise that never repeats, with leaks, rollouts, a job an hour, and a node that fills up."""
    manifests: list[str] = []
    workloads: list[str] = []

    def add(name: str, fields: str, limit: str = "", kind: str = "Deployment") -> None:
        resources = "requests: {cpu: 50m, memory: 128Mi}" + (f", limits: {{memory: {limit}}}" if limit else "")
        container = f"containers: [{{name: app, image: x, resources: {{{resources}}}}}]"
        if kind == "Deployment":
            rest = (
                f"selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, spec: "
            )
            manifests.append(
                f"{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: {name}}}, "
                f"spec: {{replicas: {nodes}, {rest}{{{container}}}}}}}}}"
            )
        else:
            manifests.append(
                f"{{apiVersion: batch/v1, kind: {kind}, metadata: {{name: {name}}}, spec: {{completions: {nodes}, "
                f"parallelism: {nodes}, template: {{spec: {{restartPolicy: Never, {container}}}}}}}}}"
            )
        workloads.append(f"    - {{workload: {name}, {fields}}}")

    rollouts = {3: hours * 10 // 24, 4: hours * 15 // 24}
    for index in range(38):
        memory = f"{{random: {{low: {40 + index}Mi, high: {140 + 3 * index}Mi, every: 5m}}}}"
        cpu = f"{{random: {{low: 20m, high: {100 + index}m, every: 5m}}}}"
        demand = f"spread: true, demand: {{memory: {memory}, cpu: {cpu}}}"
        rolled = rollouts.get(index)
        add(f"service-{index}", demand + (f", deleted: {rolled}h" if rolled else ""), "" if index % 3 else "512Mi")
        if rolled:
            add(f"service-{index}-new", f"{demand}, arrives: {rolled}h", "512Mi")
    for name, rate in (("leak", "1Mi"), ("slow-leak", "700Ki")):
        add(name, f"spread: true, demand: {{memory: 64Mi + {rate} per minute, cpu: 30m}}", "512Mi")
    for hour in range(1, hours):
        job = f"spread: true, arrives: {hour}h, demand: {{memory: 100Mi, cpu: 80m, exits: {{after: 5m}}}}"
        add(f"cron-{hour}", job, kind="Job")
    first = "node-0" if nodes > 1 else "node"
    add("spill", f"replicas: 1, nodes: [{first}], recreate: false, demand: {{memory: 14Mi per minute}}")
    (directory / "manifests.yaml").write_text("\n---\n".join(manifests) + "\n")
    path = directory / "scenario.yaml"
    path.write_text(
        f"""apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: day}}
spec:
  duration: {hours}h
  manifests: [manifests.yaml]
  nodes:
    - name: node
      count: {nodes}
      capacity: {{cpu: 16, memory: 16Gi}}
      filesystems: {{nodefs: {{capacity: 100Gi}}}}
      system: {{memory: 1Gi, cpu: 200m}}
      phaseStep: 1s
  workloads:
"""
        + "\n".join(workloads)
        + "\n"
    )
    return path


def _tell(end_us: int, time_us: int, events: int) -> None:
    """Show how far a fleet is; its last shard ends the line."""
    end = "\n" if time_us == end_us else "\r"
    print(f"{time_us * 100 // end_us} %, {events:,} events", end=end, file=sys.stderr, flush=True)


_CORES = 2
_TURNS = 3
_WHO = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)


def _cpu_seconds() -> float:
    return sum(usage.ru_utime + usage.ru_stime for usage in map(resource.getrusage, _WHO))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(SIZES)} (default: all)")
    parser.add_argument("--nodes", type=int, help="one row, with so many nodes")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for kind in arguments.kinds or SIZES:
        run = measure_split if kind.startswith("fleet") else measure_text if kind == "text" else measure
        if arguments.nodes is not None:
            run(kind, arguments.nodes, *SIZES[kind][0][1:])
            continue
        for row, size in enumerate(SIZES[kind]):
            if arguments.row is None:
                subprocess.run([sys.executable, __file__, kind, "--row", str(row)], check=True)
            elif arguments.row == row:
                run(kind, *size)


if __name__ == "__main__":
    main()
