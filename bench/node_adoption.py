"""An agent that is killed (``kill -9``) at random moments, again and again, while pods come, crash and go.

After every kill: no pod runs twice, none that should run has been restarted, and the journal still begins with all that
was in it before. At the end the journal tells every start, exit and restart of every pod in order, and an orderly stop
leaves no process, no cgroup and no state behind.

    bench/node_adoption.py [--kills 100] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

from real_node import RealNode, pod_document

from podqos.agent.journal import Entry
from podqos.agent.reasons import RestartedAfter
from podqos.host.linux.procfs import Procfs

STABLE = 5


def commands(node: RealNode) -> dict[int, str]:
    """Return what runs in the node's cgroups: the last argument of each process."""
    found = {}
    for pid in node.cgroups.processes(node.own):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if len(words) > 1:
            found[pid] = words[-2].decode()
    return found


class Watcher:
    """What has to stay as it is from one kill to the next."""

    def __init__(self, node: RealNode) -> None:
        self._node = node
        self._journal = b""
        self._first: dict[str, tuple[int, int]] = {}
        """The process of each stable pod: its id and when it began."""
        self.problems: list[str] = []

    def check(self) -> None:
        """Compare with the last time."""
        there = commands(self._node)
        for command, count in Counter(there.values()).items():
            if command.startswith("1000") and count > 1:
                self.problems.append(f"{command} runs {count} times")
        stat = Procfs().stat
        for pid, command in there.items():
            start = stat(pid)[19:20]
            if not command.startswith("1000") or not start:
                continue
            now = (pid, int(start[0]))
            if self._first.setdefault(command, now) != now:
                self.problems.append(f"{command} was {self._first[command]}, is {now}")
                self._first[command] = now
        if len(self._first) > len(there):
            gone = self._first.keys() - set(there.values())
            self.problems += [f"{command} is gone" for command in gone]
        file = self._node.state / "journal.jsonl"
        journal = file.read_bytes() if file.exists() else b""
        if not journal.startswith(self._journal):
            self.problems.append("the journal has lost lines")
        self._journal = journal


def told(entries: list[Entry]) -> list[str]:
    """Return what the journal does not tell, or not in order: each pod's life from admission on."""
    problems = []
    lives: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.pod is not None:
            lives[entry.pod].append(entry)
    for pod, life in lives.items():
        kinds = [entry.kind.value for entry in life]
        if kinds == ["Rejected"]:
            continue
        # Killed after it started the pod and before it could say so: the next one says that it took the pod over.
        if kinds[0] != "Admitted" or kinds[1] not in {"Started", "Adopted"} or kinds.count("Started") > 1:
            problems.append(f"{pod}: {kinds[:8]}")
        restarts = [entry.because.restarts for entry in life if isinstance(entry.because, RestartedAfter)]
        if list(dict.fromkeys(restarts)) != list(range(1, len(set(restarts)) + 1)):
            problems.append(f"{pod}: restarts {restarts}")
        exits = kinds.count("Exited")
        if exits < len(restarts):
            problems.append(f"{pod}: {exits} exits, {len(restarts)} restarts")
        # What an agent did last before it was killed the next one may do, and tell, once more.
        last = kinds[len(kinds) - kinds[::-1].index("Adopted") :] if "Adopted" in kinds else kinds
        if last.count("Stopped") > 1 or last.count("CleanedUp") > 1 or kinds[-1] != "CleanedUp":
            problems.append(f"{pod}: ends with {kinds[-4:]}")
    return problems


def main() -> None:
    """Kill, look, and start again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with RealNode("256Mi", evictionHard={"memory.available": "10Mi"}) as node:
        problems = run(node, arguments.kills, chance)
    for problem in problems:
        print(problem)
    print(f"{arguments.kills} kills, seed {arguments.seed}: {len(problems)} problems")
    sys.exit(bool(problems))


def run(node: RealNode, kills: int, chance: random.Random) -> list[str]:
    """Return what went wrong."""
    for number in range(STABLE):
        node.put(pod_document(f"stable-{number}", "sleep", f"1000.{number}"))
    watcher = Watcher(node)
    for kill in range(kills):
        change(node, kill, chance)
        time.sleep(chance.uniform(0.05, 1.5))
        assert node.process is not None
        assert node.process.poll() is None, (node.folder / "said").read_text()[-2000:]
        node.end(signal.SIGKILL)
        watcher.check()
        node.start()
    # The last one is let live; it hears signals once it has taken over what runs.
    before = len(node.journal())
    node.until(lambda: sum(entry.kind == "Adopted" for entry in node.journal()[before:]) >= STABLE)
    node.until(lambda: {f"1000.{number}" for number in range(STABLE)} <= set(commands(node).values()))
    time.sleep(1)
    watcher.check()
    problems = watcher.problems
    if len(node.shims()) != 1:
        problems.append(f"{len(node.shims())} shims")
    if node.end(signal.SIGTERM):
        problems.append("it did not end in order")
    problems += told(node.journal())
    if node.cgroups.exists(node.own):
        problems.append(f"left: {node.own} with {commands(node)}")
    if node.shims():
        problems.append("left: a shim")
    problems += [f"left: {file}" for file in (node.state / "pods").iterdir()]
    problems += [f"left: {file}" for file in (node.state / "data").iterdir()]
    print(f"journal: {len(node.journal())} lines, {Counter(entry.kind.value for entry in node.journal())}")
    return problems


def change(node: RealNode, kill: int, chance: random.Random) -> None:
    """Let a pod come that ends by itself, and another go."""
    spec: dict[str, object] = {"terminationGracePeriodSeconds": 1}
    if chance.random() < 0.5:
        ends = chance.choice(["exit 1", "exit 0", "sleep 999"])
        node.put(pod_document(f"comes-{kill}", "sh", "-c", f"sleep {chance.uniform(0.05, 0.5):.2f}; {ends}", spec=spec))
    there = sorted(file.stem for file in node.manifests.glob("comes-*.json"))
    if len(there) > 4 or (there and chance.random() < 0.3):
        node.take_away(chance.choice(there))


if __name__ == "__main__":
    main()
