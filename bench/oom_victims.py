"""Victims of the kernel's OOM killer on a real node, against what the node's own statistics foretell just before.

The trials are those of tests/host/victims.py, only more of them.

    bench/oom_victims.py [--trials 50] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from host.nodes import kubelet, running_node
from host.victims import MEMORY_BYTES, trial


def main() -> None:
    """Run the trials on one node and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    hard = kubelet(evictionHard={"memory.available": "100Ki"}, evictionPressureTransitionPeriod="1ms")
    with running_node(hard, memory_bytes=MEMORY_BYTES, fast_path=False) as stage:
        verdicts = [trial(stage, number, chance) for number in range(arguments.trials)]
    for verdict in verdicts:
        if not verdict.agrees:
            print(verdict)
    count = Counter(
        exactly=sum(verdict.killed == verdict.foretold for verdict in verdicts),
        agreed=sum(verdict.agrees for verdict in verdicts),
        close=sum(verdict.is_close for verdict in verdicts),
        grower=sum(verdict.killed == verdict.grower for verdict in verdicts),
    )
    print(
        f"{arguments.trials} trials, seed {arguments.seed}: {count['exactly']} victims as foretold, "
        f"{count['agreed']} counting those too close to call ({count['close']}); "
        f"{arguments.trials - count['grower']} times it was not the one that grew"
    )
    sys.exit(count["agreed"] < arguments.trials)


if __name__ == "__main__":
    main()
