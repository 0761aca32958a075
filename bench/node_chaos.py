"""A node that nothing takes down: everything that can be killed is, and at the end every healthy pod runs, once.

Agent, shim or both are killed at random moments, also while they start; hostile manifests come and go; the disk of the
state directory, a small tmpfs, fills up. In quiet moments all healthy pods have to run once, no line of the journal may
be lost or torn, and memory and descriptors of agent and shim must not grow. When the node is stopped, no process, no
cgroup and no record is left.

    bench/node_chaos.py [--minutes 30] [--seed N]
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from node_quiet import memory_mb
from real_node import PYTHON, RealNode, pod_document, resources

from podqos.agent.journal import decode
from podqos.host.linux.procfs import Procfs

HEALTHY = 8
MOST_HOSTILE = 12
ROUND_SECONDS = 25.0
QUIET_SECONDS = 40.0
STATE_MIB, STATE_MIB_PER_MINUTE = 8, 2
"""The size of the disk: the journal, which grows with time, is not to fill it for good."""
MOST_GROWTH_MB = 6.0
MOST_MORE_DESCRIPTORS = 8  # it has 54 to 59, by what it does at the moment
LEAK = "kept = []\nwhile True: kept.append(bytearray(b'x') * (1 << 20))"
# Manifests that no node can run, as they are.
GARBAGE = (
    b"",
    b"\x00\xff\xfe",
    b"{",
    b"[" * 5000,
    b"apiVersion: v1\nkind: Pod\n",
    b"kind: Pod\nmetadata: {name: []}\nspec: 7\n",
    b"apiVersion: v1\nkind: Pod\nmetadata: {name: ../../etc}\nspec: {containers: [{name: a, image: b}]}\n",
    b"{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{resources: {limits: {memory: -1}}}]}}",
)


class ChaosNode(RealNode):
    """A node whose state is on a small disk of its own, where the machine allows that."""

    def __init__(self, minutes: float) -> None:
        super().__init__(
            "384Mi",
            evictionHard={"memory.available": "48Mi"},
            evictionPressureTransitionPeriod="1s",
            crashLoopBackOff={"maxContainerRestartPeriod": "1s"},
            featureGates={"KubeletCrashLoopBackOffMax": True},
        )
        self.state.mkdir()
        size = STATE_MIB + int(minutes * STATE_MIB_PER_MINUTE)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}m", "podqos-chaos", str(self.state)]
        self.has_disk = subprocess.run(mount, check=False, capture_output=True).returncode == 0
        self.token = f"1000.{os.getpid()}"
        """What the commands of healthy pods end with, before their number."""

    def start(self) -> None:
        """Be a node again, as soon as nothing of the last start is left."""
        self.until_dead()
        super().start()

    def until_dead(self) -> None:
        """Reap the agent."""
        if self.process is not None:
            self.process.wait()

    def close(self) -> None:
        """End everything, the disk included."""
        self.fill(False)
        subprocess.run(["umount", "--lazy", str(self.state)], check=False, capture_output=True)
        super().close()

    def fill(self, full: bool) -> None:
        """Fill the disk to the last byte, or free it again."""
        filler = self.state / "filler"
        if not full:
            filler.unlink(missing_ok=True)
        elif self.has_disk:
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 16))

    def ask(self, path: str) -> bytes:
        """Have the agent answer a request."""
        answer = b""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(10)
            connection.connect(str(self.state / "api.sock"))
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\r\n".encode())
            while some := connection.recv(65536):
                answer += some
        return answer

    def answers(self) -> bool:
        """Whether the agent answers requests: one that was just started may not yet."""
        try:
            return bool(self.ask("/stats/summary"))
        except OSError:
            return False

    def healthy(self) -> Counter[str]:
        """Return which healthy pods run how often, wherever on the machine."""
        found: Counter[str] = Counter()
        for pid in Procfs().pids():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                if words[0] == b"sleep" and words[1].startswith(self.token.encode()):
                    found[words[1].decode()] += 1
        return found

    def processes(self) -> list[str]:
        """Return all processes of the node's pods, wherever they are: their environment tells."""
        mark = f"HOME={self.state}/"
        found = []
        for pid in Procfs().pids():
            if any(each.startswith(mark) for each in Procfs().environment(pid)):
                with contextlib.suppress(OSError):
                    line = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
                    found.append(f"{pid} {line[:60]!r} in {self.cgroups.of_process(pid)}")
        return found


class Chaos:
    """One run."""

    def __init__(self, node: ChaosNode, chance: random.Random) -> None:
        self._node, self._chance = node, chance
        self._began = time.monotonic()
        self._journal = b""
        self._manifests = 0
        self._is_full = False
        self._samples: list[dict[str, float]] = []
        self.done: Counter[str] = Counter()
        self.problems: list[str] = []

    def run(self, minutes: float) -> None:
        """Alternate between chaos and quiet, then stop the node."""
        for number in range(HEALTHY):
            limits = ({}, resources("16Mi"), resources("24Mi", "24Mi"))[number % 3]
            command = ("sleep", f"{self._node.token}{number}")
            self._node.put(pod_document(f"healthy-{number}", *command, resources=limits))
        end = self._began + minutes * 60
        self._node.start()
        while time.monotonic() < end and not self.problems:
            until = min(time.monotonic() + ROUND_SECONDS, end)
            while time.monotonic() < until:
                self._step()
            self._quieten()
        self._stop()

    # ---- faults --------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        faults: dict[Callable[[], None], float] = {
            self._kill_agent: 3, self._kill_shim: 2, self._kill_both: 3, self._kill_starting: 1,
            self._kill_new_shims: 1, self._restart: 0.3, self._fill_disk: 1.5,
            self._add_garbage: 2, self._add_hostile: 4, self._take_away: 3,
        }  # fmt: skip
        (fault,) = self._chance.choices(list(faults), list(faults.values()))
        self.done[fault.__name__.strip("_")] += 1
        fault()
        self._look()
        time.sleep(self._chance.uniform(0, 0.8))
        if self._node.process is not None and self._node.process.poll() is not None:
            # Where the disk is full a node may not start; another attempt follows, as by systemd.
            if not self._is_full:
                self.problems.append(
                    f"the agent has ended by itself: {(self._node.folder / 'said').read_text()[-800:]}"
                )
            self._node.start()

    def _kill(self, *pids: int) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _kill_agent(self) -> None:
        assert self._node.process is not None
        self._kill(self._node.process.pid)
        self._pause_and_start()

    def _kill_shim(self) -> None:
        self._kill(*self._node.shims())

    def _kill_both(self) -> None:
        assert self._node.process is not None
        pids = [self._node.process.pid, *self._node.shims()]
        self._chance.shuffle(pids)
        self._kill(*pids)
        self._pause_and_start()

    def _kill_starting(self) -> None:
        for _ in range(self._chance.randrange(1, 4)):
            self._kill_agent()
            time.sleep(self._chance.uniform(0, 0.5))
        self._kill_both()

    def _kill_new_shims(self) -> None:
        until = time.monotonic() + self._chance.uniform(0.1, 0.6)
        while time.monotonic() < until:
            self._kill_shim()

    def _restart(self) -> None:
        """Stop the node in an orderly way: it ends all pods."""
        assert self._node.process is not None
        self._node.process.send_signal(self._chance.choice([signal.SIGTERM, signal.SIGHUP]))
        try:
            self._node.process.wait(40)
        except subprocess.TimeoutExpired:
            self.problems.append(self._does_not_stop())
            self._kill(self._node.process.pid)
        self._node.start()

    def _pause_and_start(self) -> None:
        self._node.until_dead()
        self._check_journal()
        time.sleep(self._chance.choice([0, self._chance.uniform(0, 0.5)]))
        self._node.start()

    def _fill_disk(self) -> None:
        self._is_full = not self._is_full
        self._node.fill(self._is_full)

    # ---- manifests -----------------------------------------------------------------------------------------------

    def _add_garbage(self) -> None:
        self._manifests += 1
        suffix = self._chance.choice(["yaml", "json", "yml"])
        file = self._node.manifests / f"hostile-{self._manifests}.{suffix}"
        match self._chance.randrange(4):
            case 0:
                file.mkdir()
            case 1:
                file.symlink_to(self._chance.choice([file, Path("/nowhere"), Path("/dev/zero")]))
            case 2:
                file.write_bytes(self._chance.randbytes(self._chance.randrange(5000)))
            case _:
                file.write_bytes(self._chance.choice(GARBAGE))

    def _add_hostile(self) -> None:
        there = list(self._node.manifests.glob("hostile-*"))
        if len(there) >= MOST_HOSTILE:
            self._take_away()
            return
        self._manifests += 1
        spec: dict[str, object] = {"terminationGracePeriodSeconds": self._chance.choice([0, 1, 2])}
        up = "; ".join(f"echo $$$$ > {entrance}" for entrance in self._node.cgroups.entrances(self._node.own))
        command, container = self._chance.choice(
            [
                (("/nowhere/at/all",), {}),
                (("sh", "-c", "exit 3"), {}),
                (("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"), {}),
                (("sh", "-c", "for i in 1 2 3 4 5 6; do (setsid sleep 999 &); done; sleep 2"), {}),
                (("sh", "-c", f"{up}; sleep 998 & sleep 999"), {}),
                (("sh", "-c", "kill -9 $PPID; kill -STOP $$$$"), {}),
                (("sh", "-c", "while :; do echo this fills the disk; done"), resources("8Mi", cpu="50m")),
                ((*PYTHON, LEAK), {}),
                ((*PYTHON, LEAK), resources("8Mi", "24Mi")),
                (("sleep", "999"), {"livenessProbe": {"exec": {"command": ["sleep", "7"]}, "periodSeconds": 1}}),
            ]
        )
        self._node.put(pod_document(f"hostile-{self._manifests}", *command, spec=spec, **_with(container)))

    def _take_away(self, share: float = 0.5) -> None:
        for file in self._node.manifests.glob("hostile-*"):
            if self._chance.random() < share:
                file.rmdir() if file.is_dir() and not file.is_symlink() else file.unlink()

    # ---- what has to hold ----------------------------------------------------------------------------------------

    def _look(self) -> None:
        """No healthy pod runs twice; what is about to die gets a moment."""
        for _ in range(20):
            twice = {command: count for command, count in self._node.healthy().items() if count > 1}
            if not twice:
                return
            time.sleep(0.1)
        self.problems.append(f"runs more than once: {twice}")

    def _check_journal(self) -> None:
        """Every line that was there is still there; the last one may be being written."""
        with contextlib.suppress(FileNotFoundError):
            journal = (self._node.state / "journal.jsonl").read_bytes()
            journal = journal[: journal.rfind(b"\n") + 1]
            if not journal.startswith(self._journal):
                self.problems.append("the journal has lost lines")
            decode(journal[len(self._journal) :])
            self._journal = journal

    def _quieten(self) -> None:
        """Take the faults away: all healthy pods have to run, once, and nothing else."""
        self._is_full = False
        self._node.fill(False)
        self._take_away(1)
        wanted = {f"{self._node.token}{number}": 1 for number in range(HEALTHY)}
        until = time.monotonic() + QUIET_SECONDS

        def is_quiet() -> bool:
            there = self._node.cgroups.processes(self._node.own)
            is_complete = self._node.healthy() == wanted and len(there) == HEALTHY and len(self._node.shims()) == 1
            return is_complete and self._node.answers()

        while not is_quiet():
            assert self._node.process is not None
            if self._node.process.poll() is not None:
                self._node.start()
            if time.monotonic() > until:
                running = "\n  ".join(self._node.processes())
                self.problems.append(f"not quiet; shims {self._node.shims()}, processes\n  {running}")
                return
            time.sleep(0.1)
        time.sleep(2)
        self._look()
        self._check_journal()
        self._measure()

    def _measure(self) -> None:
        assert self._node.process is not None
        # It then has open what it keeps open for each pod.
        self._node.ask("/stats/summary")
        sample: dict[str, float] = {}
        for who, pid in (("agent", self._node.process.pid), ("shim", self._node.shims()[0])):
            sample[f"{who} MB"] = memory_mb(pid, "VmRSS")
            sample[f"{who} descriptors"] = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        self._samples.append(sample)
        minutes = (time.monotonic() - self._began) / 60
        figures = ", ".join(f"{name} {value:g}" for name, value in sample.items())
        print(
            f"{minutes:5.1f} min: {figures}, journal {len(self._journal) / 1e6:.2f} MB; "
            f"{sum(self.done.values())} faults, {len(self.problems)} problems",
            flush=True,
        )
        for name, value in sample.items():
            most = MOST_GROWTH_MB if name.endswith("MB") else MOST_MORE_DESCRIPTORS
            if value > self._samples[0][name] + most:
                self.problems.append(f"{name}: {self._samples[0][name]:g} at first, {value:g} now")

    def _does_not_stop(self) -> str:
        try:
            pods = self._node.ask("/pods").decode()
        except OSError as error:
            pods = str(error)
        running = "\n  ".join(self._node.processes())
        return f"the node does not stop; shims {self._node.shims()}, processes\n  {running}\n{pods}"

    def _stop(self) -> None:
        node = self._node
        try:
            if node.end(signal.SIGTERM):
                self.problems.append("it did not end in order")
        except subprocess.TimeoutExpired:
            self.problems.append(self._does_not_stop())
        self._check_journal()
        if (node.state / "journal.jsonl").read_bytes() != self._journal:
            self.problems.append("the last line of the journal is torn")
        self.problems += [f"left: process {process}" for process in node.processes()]
        self.problems += [f"left: shim {pid}" for pid in node.shims()]
        self.problems += [f"left: {file}" for pattern in ("pods/*.json", "data/*") for file in node.state.glob(pattern)]
        if node.cgroups.exists(node.own):
            self.problems.append(f"left: {node.own}")


def _with(container: dict[str, object]) -> dict[str, object]:
    return container if "livenessProbe" in container else {"resources": container}


def main() -> None:
    """Be chaotic, and say what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    # Whatever ends it, it takes its node along.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(1))
    node = ChaosNode(arguments.minutes)
    chaos = Chaos(node, random.Random(arguments.seed))
    if not node.has_disk:
        print("no tmpfs can be mounted here: the disk does not fill up")
    try:
        chaos.run(arguments.minutes)
        if chaos.problems:
            print((node.folder / "said").read_text()[-2000:])
    finally:
        node.close()
    for problem in chaos.problems:
        print(problem)
    print(f"faults: {', '.join(f'{name} {count}' for name, count in chaos.done.most_common())}")
    print(f"{arguments.minutes:g} minutes, seed {arguments.seed}: {len(chaos.problems)} problems")
    sys.exit(bool(chaos.problems))


if __name__ == "__main__":
    main()
