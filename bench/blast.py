"""How long ``podqos blast`` takes: 10,000 different pods on 100 nodes, each leaking slowly and fast.

The target is 120 s on two cores. A third of the pods has a limit, a third a request, a third nothing; all hold a
different amount, so that nothing can be shared. Three sizes show that the cost grows with the number of pods.
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from history import record

PODS_PER_NODE = 100
SIZES = (10, 30, 100)
TARGET_SECONDS = 120
KINDS = (
    "{requests: {cpu: 10m, memory: 300Mi}, limits: {memory: 800Mi}}",
    "{requests: {cpu: 10m, memory: 300Mi}}",
    "{}",
)
POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: bench}}
spec:
  containers:
    - {{name: main, image: x, resources: {resources}}}
"""


def scenario(folder: Path, nodes: int) -> Path:
    generator = random.Random(1)
    names = [f"p{number}" for number in range(nodes * PODS_PER_NODE)]
    pods = (POD.format(name=name, resources=KINDS[number % 3]) for number, name in enumerate(names))
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
        "      capacity: {cpu: 64, memory: 64Gi}",
        "      filesystems: {nodefs: {capacity: 1Ti}}",
        "  workloads:",
    ]
    for number, name in enumerate(names):
        memory = generator.randrange(100, 600)
        lines.append(
            f"    - {{workload: {name}, nodes: [node-{number // PODS_PER_NODE}], demand: {{memory: {memory}Mi}}}}"
        )
    (folder / "bench.yaml").write_text("\n".join(lines) + "\n")
    return folder / "bench.yaml"


def main() -> int:
    seconds = 0.0
    for nodes in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            path = scenario(Path(folder), nodes)
            started = time.perf_counter()
            command = [sys.executable, "-m", "podqos", "blast", str(path), "-o", "csv"]
            rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout.count("\n") - 1
            seconds = time.perf_counter() - started
        each = seconds / rows * 1000
        print(f"{nodes * PODS_PER_NODE:>6} pods on {nodes:>3} nodes: {seconds:6.1f} s, {each:.2f} ms a leak")
        record(f"blast, {nodes * PODS_PER_NODE} pods, a leak", each, "ms")
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    print(f"largest process: {peak} MiB; target {TARGET_SECONDS} s: {'met' if seconds < TARGET_SECONDS else 'MISSED'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
