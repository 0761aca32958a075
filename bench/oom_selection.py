"""How long the OOM killer's model takes to choose a victim and to rank everybody: linear, and n log n."""

from __future__ import annotations

import random
import timeit

from history import record

from podqos.kernel.oom import Process, rank, select

TOTAL_PAGES = 64 * 2**30 // 4096


def machine(processes: int, seed: int = 1) -> list[Process]:
    """Return the processes of a node, some hundred to a cgroup."""
    chance = random.Random(seed)
    return [
        Process(
            pid,
            f"/kubepods/pod{chance.randrange(max(1, processes // 100))}",
            chance.randrange(500_000),
            page_table_pages=chance.randrange(1000),
            oom_score_adj=chance.choice((-997, 3, 500, 938, 999, 1000)),
        )
        for pid in range(2, processes + 2)
    ]


def main() -> None:
    for count in (1_000, 10_000, 100_000):
        processes = machine(count)
        for name, function in (("select", select), ("rank", rank)):
            seconds = min(
                timeit.repeat(
                    lambda f=function, p=processes: f(p, TOTAL_PAGES), number=1, repeat=7 if count < 10**5 else 3
                )
            )
            print(f"oom {name}, {count} processes: {seconds * 1e3:.2f} ms")
            record(f"oom {name}, {count} processes", seconds * 1e3, "ms")


if __name__ == "__main__":
    main()
