"""How much faster a fleet is simulated on several cores: the same scenario in one process, and in shards.

Nodes do not interact, so shards need not wait for each other; what is lost is starting workers, and reading their
journals. All outputs are compared. On a machine that does other things only the processor's time says something: what
shards take more of it than one process is what splitting costs.

    python bench/shards.py [KIND] [NODES] [HOURS]
"""

from __future__ import annotations

import argparse
import resource
import time
from hashlib import sha256

from history import record
from simulate import scenario

from podqos.agent.journal import encode
from podqos.library.simulation import simulate
from podqos.sim.scenario.scenario import Scenario

JOBS = (None, 1, 2)
"""None is one process without shards."""


def processor_seconds() -> float:
    """Return what this process and the workers that have ended took."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def measure(made: Scenario, jobs: int | None) -> tuple[float, float, float, str]:
    """Run once; return its seconds, those of the processor, those of reading the journal, and its hash."""
    began, busy = time.perf_counter(), processor_seconds()
    if jobs is None:
        run = simulate(made, record=False)
    else:
        run = simulate(made, record=False, engine="processes", jobs=jobs)
        assert run.together is None, run.together
    ran, busy = time.perf_counter(), processor_seconds() - busy
    written = sha256()
    for entry in run.journal:
        written.update(encode((entry,)))
    return ran - began, busy, time.perf_counter() - ran, written.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", nargs="?", default="busy", help="of bench/simulate.py (default: busy)")
    parser.add_argument("nodes", nargs="?", type=int, default=40)
    parser.add_argument("hours", nargs="?", type=int, default=24)
    arguments = parser.parse_args()
    made = scenario(arguments.kind, arguments.nodes, arguments.hours, 1)
    first = None
    hashes = set()
    for jobs in JOBS:
        run, busy, write, written = measure(made, jobs)
        first = first or run
        hashes.add(written)
        here, there = (
            resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        name = "one process" if jobs is None else f"shards, {jobs} jobs"
        print(
            f"{arguments.kind} {arguments.nodes:,} nodes, {name:15} {run:7.2f} s, {first / run:4.2f} times as fast, "
            f"processor {busy:7.2f} s, "
            f"journal in {write:5.2f} s, so far at most {here:,.0f} MiB here and {there:,.0f} MiB in a worker",
            flush=True,
        )
        record(f"shards {arguments.kind}, {arguments.nodes} nodes, {name}", run, "s")
    assert len(hashes) == 1, "the journals differ"


if __name__ == "__main__":
    main()
