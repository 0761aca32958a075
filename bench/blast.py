"""How long ``podqos blast`` takes: 10,000 different pods on 100 nodes, each leaking slowly and fast.

Twice, on two cores: once with room on every node, so that a leak ends with its own pod (target 30 s); once on nodes
that are almost full, where at least a third of the leaks take neighbours, fast ones by the kernel and slow ones by the
kubelet (target 90 s). A third of the pods has a limit, a third a request, a third nothing; all hold a different amount,
so that nothing can be shared. Three sizes show that the cost grows with the number of pods.
"""

from __future__ import annotations

import csv
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from history import record
from msgspec import Struct

PODS_PER_NODE = 100
SIZES = (10, 30, 100)
LIMIT, REQUEST, NOTHING = "limit", "request", "nothing"
POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: bench}}
spec:
  containers:
    - {{name: main, image: x, resources: {resources}}}
"""


class Setting(Struct, frozen=True):
    """What nodes and pods are like."""

    name: str
    node_memory: str
    resources: tuple[str, str, str]
    """In turn."""
    target_seconds: int
    least_harmful: float
    """Which part of the leaks has to take neighbours, for the figure to mean something."""


ROOM = Setting(
    "room",
    "64Gi",
    (
        "{requests: {cpu: 10m, memory: 300Mi}, limits: {memory: 800Mi}}",
        "{requests: {cpu: 10m, memory: 300Mi}}",
        "{}",
    ),
    30,
    0,
)
CASCADES = Setting(
    "cascades",
    "35800Mi",
    (
        "{requests: {cpu: 10m, memory: 100Mi}, limits: {memory: 620Mi}}",
        "{requests: {cpu: 10m, memory: 900Mi}}",
        "{}",
    ),
    90,
    1 / 3,
)


def scenario(folder: Path, nodes: int, setting: Setting) -> Path:
    """Write the scenario and return its path."""
    generator = random.Random(1)
    names = [f"p{number}" for number in range(nodes * PODS_PER_NODE)]
    pods = (POD.format(name=name, resources=setting.resources[number % 3]) for number, name in enumerate(names))
    (folder / "pods.yaml").write_text("---\n".join(pods))
    lines = [
        "apiVersion: podqos.dev/v1alpha1",
        "kind: Scenario",
        "metadata: {name: bench}",
        "spec:",
        "  duration: 1h",
        "  manifests: [pods.yaml]",
        "  nodes:",
        "    - name: node",
        f"      count: {nodes}",
        f"      capacity: {{cpu: 64, memory: {setting.node_memory}}}",
        "      filesystems: {nodefs: {capacity: 1Ti}}",
        "      kubelet: {evictionHard: {memory.available: 500Mi}}",
        "  workloads:",
    ]
    for node in range(nodes):
        # All nodes are about equally full: of every ten pods, one uses between 100Mi and 150Mi, one up to 200Mi, …
        memory = [(100 + number % 10 * 50) * 1024 + generator.randrange(50 * 1024) for number in range(PODS_PER_NODE)]
        generator.shuffle(memory)
        for name, size in zip(names[node * PODS_PER_NODE :], memory, strict=False):
            lines.append(f"    - {{workload: {name}, nodes: [node-{node}], demand: {{memory: {size}Ki}}}}")
    (folder / "bench.yaml").write_text("\n".join(lines) + "\n")
    return folder / "bench.yaml"


def measure(nodes: int, setting: Setting) -> None:
    """Run one size and print its figures."""
    with tempfile.TemporaryDirectory() as folder:
        path = scenario(Path(folder), nodes, setting)
        command = [sys.executable, "-m", "podqos", "blast", str(path), "-o", "csv"]
        started = time.perf_counter()
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        seconds = time.perf_counter() - started
    leaks = list(csv.DictReader(output.splitlines()))
    harmful = sum(leak["others_killed"] != "0" for leak in leaks) / len(leaks)
    each = seconds / len(leaks) * 1000
    print(
        f"{setting.name:>8}: {nodes * PODS_PER_NODE:>6} pods on {nodes:>3} nodes: {seconds:6.1f} s, "
        f"{each:.2f} ms a leak, {harmful:.0%} take neighbours",
        flush=True,
    )
    record(f"blast, {setting.name}, {nodes * PODS_PER_NODE} pods, a leak", each, "ms")
    if harmful < setting.least_harmful:
        sys.exit(f"only {harmful:.0%} of the leaks take neighbours")
    if nodes == SIZES[-1]:
        met = "met" if seconds < setting.target_seconds else "MISSED"
        print(f"{setting.name:>8}: target {setting.target_seconds} s: {met}")


def main() -> int:
    for setting in (ROOM, CASCADES):
        for nodes in SIZES:
            measure(nodes, setting)
    print(f"largest process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
