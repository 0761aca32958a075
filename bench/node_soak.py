"""A node over time: random demand, crashing pods, an agent that is killed now and then; nothing may grow or be left.

Every few seconds pods come and go: some hold memory, some grow until they are evicted or killed by the kernel, some
crash, some fork. At times the agent is killed (``kill -9``) or the shim asked for much output. Memory and descriptors
of agent and shim are measured when the node holds the same few pods; at the end everything is taken away, and what is
left is counted.

    bench/node_soak.py [--minutes 30] [--seed N]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from node_adoption import told
from node_quiet import memory_mb
from real_node import HOLD, PYTHON, RealNode, pod_document, resources

STABLE = 5
MOST_PODS = 25
ROUND_SECONDS = 60
GROW = (
    "import sys, time; kept = []\n"
    "for _ in range(int(sys.argv[1])): kept.append(bytearray(b'x') * (1 << 20)); time.sleep(0.002)\n"
    "time.sleep(100000)"
)
FORK = "for i in 1 2 3 4 5 6; do sleep 999 & done; sleep 3"
TALK = "i=0; while [ $i -lt 5000 ]; do echo this is line $i of many that nobody reads; i=$((i+1)); done; sleep 999"
MOST_GROWTH_MB = 4.0
KILL_SHARE = 0.03
"""How many steps kill the agent."""


@dataclass
class Sample:
    """What agent and shim have while the node is at rest."""

    minute: float
    agent_mb: float
    agent_descriptors: int
    shim_mb: float
    shim_descriptors: int
    kills: int
    """How often the agent had been killed: a new one starts afresh."""


def random_pod(name: str, chance: random.Random) -> dict[str, object]:
    """Return a pod of some kind."""
    spec: dict[str, object] = {"terminationGracePeriodSeconds": chance.choice([1, 2, 30])}
    if chance.random() < 0.3:
        spec["restartPolicy"] = chance.choice(["Never", "OnFailure"])
    amount = str(chance.randrange(5, 60))
    kinds: dict[str, Callable[[], tuple[tuple[str, ...], dict[str, object]]]] = {
        "hold": lambda: ((*PYTHON, HOLD, amount), resources("64Mi", chance.choice([None, "96Mi"]))),
        "leak": lambda: ((*PYTHON, GROW, str(chance.randrange(100, 400))), {}),
        "limited": lambda: ((*PYTHON, GROW, "100"), resources("16Mi", "48Mi")),
        "crash": lambda: (("sh", "-c", f"sleep {chance.uniform(0, 1):.1f}; exit {chance.randrange(3)}"), {}),
        "fork": lambda: (("sh", "-c", FORK), {}),
        "talk": lambda: (("sh", "-c", TALK), {}),
    }
    command, limits = kinds[chance.choice(list(kinds))]()
    return pod_document(name, *command, spec=spec, resources=limits)


class Soak:
    """One long run."""

    def __init__(self, node: RealNode, chance: random.Random, kill_share: float) -> None:
        self._node, self._chance, self._kill_share = node, chance, kill_share
        self._began = time.monotonic()
        self._journal = b""
        self._pods = 0
        self.kills = 0
        self.samples: list[Sample] = []
        self.problems: list[str] = []

    def run(self, minutes: float) -> None:
        """Be random for a while, in rounds; each ends in the same quiet state."""
        for number in range(STABLE):
            self._node.put(pod_document(f"stable-{number}", "sleep", f"1000.{number}"))
        while time.monotonic() - self._began < minutes * 60:
            until = min(time.monotonic() + ROUND_SECONDS, self._began + minutes * 60)
            while time.monotonic() < until:
                self._step()
            self._quieten()
            self._measure()
        if self._node.end(signal.SIGTERM):
            self.problems.append("it did not end in order")
        self._look_for_leavings()

    def _step(self) -> None:
        chance, node = self._chance, self._node
        there = sorted(file.stem for file in node.manifests.glob("random-*.json"))
        if len(there) < MOST_PODS:
            self._pods += 1
            node.put(random_pod(f"random-{self._pods}", chance))
        if there and chance.random() < len(there) / MOST_PODS:
            node.take_away(chance.choice(there))
        if chance.random() < self._kill_share:
            node.end(signal.SIGKILL)
            self.kills += 1
            self._check_journal()
            time.sleep(chance.uniform(0, 1))
            node.start()
        time.sleep(chance.expovariate(2))

    def _quieten(self) -> None:
        node = self._node
        for file in node.manifests.glob("random-*.json"):
            file.unlink()

        def is_quiet() -> bool:
            return (
                len(list((node.state / "pods").iterdir())) == STABLE and len(node.cgroups.processes(node.own)) == STABLE
            )

        node.until(is_quiet, seconds=90, pause=0.5)
        time.sleep(2)

    def _measure(self) -> None:
        self._check_journal()
        assert self._node.process is not None
        agent, (shim,) = self._node.process.pid, self._node.shims()
        sample = Sample(
            (time.monotonic() - self._began) / 60,
            memory_mb(agent, "VmRSS"), _descriptors(agent), memory_mb(shim, "VmRSS"), _descriptors(shim),
            self.kills,
        )  # fmt: skip
        self.samples.append(sample)
        print(
            f"{sample.minute:5.1f} min: agent {sample.agent_mb:.1f} MB, {sample.agent_descriptors} descriptors; "
            f"shim {sample.shim_mb:.1f} MB, {sample.shim_descriptors} descriptors; "
            f"{self._pods} pods so far, agent killed {self.kills} times",
            flush=True,
        )

    def _check_journal(self) -> None:
        journal = (self._node.state / "journal.jsonl").read_bytes()
        if not journal.startswith(self._journal):
            self.problems.append("the journal has lost lines")
        self._journal = journal

    def _look_for_leavings(self) -> None:
        node = self._node
        problems = self.problems
        entries = node.journal()
        problems += told(entries)
        if node.cgroups.exists(node.own):
            problems.append(f"left: {node.own} with {node.cgroups.processes(node.own)}")
        if node.shims():
            problems.append("left: a shim")
        for folder in ("pods", "data", "logs"):
            problems += [f"left: {file}" for file in (node.state / folder).iterdir()]
        first, last = self.samples[0], self.samples[-1]
        for who in ("agent", "shim"):
            if getattr(last, f"{who}_descriptors") > getattr(first, f"{who}_descriptors"):
                problems.append(f"{who}: descriptors have grown")
            if getattr(last, f"{who}_mb") > getattr(first, f"{who}_mb") + MOST_GROWTH_MB:
                problems.append(f"{who}: memory has grown")
        kinds = Counter(entry.kind.value for entry in entries)
        print(f"journal: {len(entries)} lines: {', '.join(f'{kind} {count}' for kind, count in kinds.most_common())}")


def _descriptors(pid: int) -> int:
    """Return how many are open all the time: directories are measured, and files brought to the disk, now and then."""
    counts = []
    for _ in range(5):
        counts.append(sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir()))
        time.sleep(0.3)
    return min(counts)


def main() -> None:
    """Soak, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--no-kills", action="store_true", help="leave the agent alive: does one and the same grow?")
    arguments = parser.parse_args()
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    with RealNode("512Mi", evictionHard={"memory.available": "64Mi"}, evictionPressureTransitionPeriod="1s") as node:
        soak = Soak(node, random.Random(arguments.seed), kill_share=0.0 if arguments.no_kills else KILL_SHARE)
        soak.run(arguments.minutes)
    for problem in soak.problems:
        print(problem)
    print(f"{arguments.minutes:g} minutes, seed {arguments.seed}: {len(soak.problems)} problems")
    sys.exit(bool(soak.problems))


if __name__ == "__main__":
    main()
