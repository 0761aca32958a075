"""How long the CPU model takes: what 500 pods get when everybody bursts. Budget: 5 ms."""

from __future__ import annotations

import random
import timeit

from history import record

from podqos.kernel.cpu import CORE_NANO, CpuGroup, cpu_shares


def node(pods: int, seed: int = 1) -> list[CpuGroup]:
    """Return the cgroups of a node: classes, pods, and one container with a demand in each."""
    chance = random.Random(seed)
    groups = [
        CpuGroup("/kubepods", 10_000),
        CpuGroup("/kubepods/burstable", 5_000),
        CpuGroup("/kubepods/besteffort", 2),
    ]
    for index in range(pods):
        parent = chance.choice(("/kubepods", "/kubepods/burstable", "/kubepods/besteffort"))
        pod = f"{parent}/pod{index}"
        weight, quota = chance.randint(2, 4096), chance.choice((None, chance.randint(10_000, 400_000)))
        groups.append(CpuGroup(pod, weight, quota))
        demand = chance.randint(0, 4 * CORE_NANO)
        groups.append(CpuGroup(f"{pod}/c", weight, quota, demand_nano=demand, threads=chance.randint(1, 8)))
    return groups


def main() -> None:
    for pods in (110, 500, 5000):
        groups = node(pods)
        seconds = min(timeit.repeat(lambda groups=groups: cpu_shares(groups, 64), number=1, repeat=20))
        print(f"cpu model, {pods} pods ({len(groups)} cgroups): {seconds * 1e3:.2f} ms")
        record(f"cpu model, {pods} pods", seconds * 1e3, "ms")


if __name__ == "__main__":
    main()
