"""``podqos node run`` as a process of its own, driven by a test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

import msgspec

from host.nodes import PATIENCE, kubelet
from podqos.agent.journal import Entry, decode
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.procfs import Procfs

_numbers = count()


class Agent:
    """``podqos node run`` as a process of its own."""

    def __init__(self, memory: str = "256Mi", threshold: str = "10Mi") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="podqos-test-"))
        self.own = f"/podqos-test-{os.getpid()}-agent{next(_numbers)}"
        self.cgroups = open_cgroups(self.own)
        (self.folder / "manifests").mkdir()
        (self.folder / "kubelet.json").write_bytes(kubelet(evictionHard={"memory.available": threshold}))
        self.memory = memory
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *switches: str) -> None:
        """Begin to be a node."""
        options = {
            "--manifests": self.folder / "manifests",
            "--config": self.folder / "kubelet.json",
            "--state-dir": self.folder / "state",
            "--cgroup-root": self.own[1:],
            "--memory": self.memory,
        }
        words = [str(word) for option in options.items() for word in option]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "podqos", "node", "run", *words, *switches], stderr=said, env=environment
            )

    def end(self, number: int) -> int:
        """Signal the agent and wait for its end."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(30 * PATIENCE)

    def end_with_shim(self) -> None:
        """Kill the agent and what keeps its pods, at once."""
        assert self.process is not None
        keepers = shims(self.folder)
        self.process.kill()
        for shim in keepers:
            os.kill(shim, signal.SIGKILL)
        self.process.wait(30 * PATIENCE)
        until(self, lambda: not shims(self.folder))

    def put(self, document: dict) -> None:
        """Put a manifest into the directory."""
        partial = self.folder / "partial"
        partial.write_bytes(msgspec.json.encode(document))
        partial.rename(self.folder / "manifests" / f"{document['metadata']['name']}.json")

    def entries(self) -> list[Entry]:
        """Return the journal, in which every line has to be whole."""
        file = self.folder / "state" / "journal.jsonl"
        return list(decode(file.read_bytes())) if file.exists() else []

    def commands(self) -> Counter[str]:
        """Return what runs in the node's cgroups, by its last argument."""
        found: Counter[str] = Counter()
        for pid in self.cgroups.processes(self.own):
            try:
                line = (Procfs().root / str(pid) / "cmdline").read_bytes()
            except OSError:
                continue
            found[line.split(b"\0")[-2].decode() if line else ""] += 1
        return found

    def close(self) -> None:
        """End everything."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for shim in shims(self.folder):
            os.kill(shim, signal.SIGKILL)
        for _ in range(500):
            self.cgroups.kill(self.own)
            if self.cgroups.remove(self.own):
                break
            time.sleep(0.01)
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not self.cgroups.exists(self.own)


def shims(folder: Path) -> list[int]:
    """Return the shims of the node in a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"shim.py" in line and os.fsencode(folder) in line:
                found.append(int(entry.name))
    return found


def until(agent: Agent, condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds * PATIENCE
    while not condition():
        assert time.monotonic() < end, (agent.folder / "said").read_text()
        time.sleep(0.02)
