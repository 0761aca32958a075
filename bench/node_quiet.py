"""What a node costs while nothing happens: CPU and memory of agent and shim with a hundred pods that sleep.

bench/node_quiet.py [--pods 100] [--seconds 60]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from real_node import RealNode, pod_document

_SECONDS_PER_TICK = 1 / os.sysconf("SC_CLK_TCK")
SETTLE_SECONDS = 12
"""Starting a hundred pods leaves work behind; the first regular pass after it is over by then."""


def cpu_seconds(pid: int) -> float:
    """Return the CPU time a process has used, with that of children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) * _SECONDS_PER_TICK


def memory_mb(pid: int, name: str) -> float:
    """Return a figure of /proc/PID/status in MB."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024 / 1e6


def main() -> None:
    """Start the pods, wait, measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--realtime", action="store_true")
    arguments = parser.parse_args()
    with RealNode("2Gi", *(["--realtime"] if arguments.realtime else [])) as node:
        began = time.monotonic()
        for number in range(arguments.pods):
            node.put(pod_document(f"quiet-{number}", "sleep", "100000"))
        node.until(lambda: len(node.cgroups.processes(node.own)) == arguments.pods, seconds=120, pause=0.2)
        print(f"{arguments.pods} pods started in {time.monotonic() - began:.1f} s")
        time.sleep(SETTLE_SECONDS)
        (shim,) = node.shims()
        assert node.process is not None
        processes = {"agent": node.process.pid, "shim": shim}
        before = {name: cpu_seconds(pid) for name, pid in processes.items()}
        began = time.monotonic()
        time.sleep(arguments.seconds)
        seconds = time.monotonic() - began
        total_cpu = total_memory = 0.0
        for name, pid in processes.items():
            used = (cpu_seconds(pid) - before[name]) / seconds
            memory = memory_mb(pid, "VmRSS")
            total_cpu, total_memory = total_cpu + used, total_memory + memory
            descriptors = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
            peak = memory_mb(pid, "VmHWM")
            print(f"{name}: {used:.2%} of a core, {memory:.1f} MB (peak {peak:.1f} MB), {descriptors} descriptors")
        print(f"together: {total_cpu:.2%} of a core (at most 0.5 %), {total_memory:.1f} MB (at most 60 MB)")


if __name__ == "__main__":
    main()
