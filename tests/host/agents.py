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
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TypeVar

import msgspec

from host.nodes import PATIENCE, kubelet
from podqos.agent.journal import Entry, decode
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.procfs import Procfs

T = TypeVar("T")
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
        return self.process.wait(300 * PATIENCE)

    def end_with_shim(self) -> None:
        """Kill the agent and what keeps its pods, at once."""
        assert self.process is not None
        keepers = shims(self.folder)
        self.process.kill()
        _kill(keepers)
        self.process.wait(300 * PATIENCE)
        until(self, lambda: not shims(self.folder))

    def put(self, document: dict) -> None:
        """Put a manifest into the directory."""
        partial = self.folder / "partial"
        partial.write_bytes(msgspec.json.encode(document))
        partial.rename(self.folder / "manifests" / f"{document['metadata']['name']}.json")

    def entries(self) -> list[Entry]:
        """Return the journal, in which every line has to be whole but one that is being written."""
        file = self.folder / "state" / "journal.jsonl"
        journal = file.read_bytes() if file.exists() else b""
        return list(decode(journal[: journal.rfind(b"\n") + 1]))

    def processes(self) -> dict[int, str]:
        """Return what runs in the node's cgroups, each with its last argument; before ``exec`` that is the shim's."""
        found = {}
        for pid in self.cgroups.processes(self.own):
            with suppress(OSError):
                line = (Procfs().root / str(pid) / "cmdline").read_bytes()
                found[pid] = line.rstrip(b"\0").rpartition(b"\0")[2].decode()
        return found

    def commands(self) -> Counter[str]:
        """Return how often what runs, by its last argument."""
        return Counter(self.processes().values())

    def close(self) -> None:
        """End everything."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        _kill(shims(self.folder))
        self.cgroups.end([self.own], 60)
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not self.cgroups.exists(self.own)


def shims(folder: Path) -> list[int]:
    """Return the shims of the node in a directory, without children of theirs that are about to be something else."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, IndexError):
                line = (entry / "cmdline").read_bytes()
                if b"shim.py" in line and os.fsencode(folder) in line:
                    parents[int(entry.name)] = int(Procfs().stat(int(entry.name))[1])
    return [pid for pid, parent in parents.items() if parent not in parents]


def until(agent: Agent, condition: Callable[[], T], seconds: float = 300) -> T:
    """Wait until something holds, and return it: what is read again may be different."""
    end = time.monotonic() + seconds * PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, (agent.folder / "said").read_text()
        time.sleep(0.02)
    return found


def until_up(agent: Agent, *commands: str) -> dict[int, str]:
    """Wait until exactly these commands run, each once, and return their processes."""
    wanted = sorted(commands)
    return until(agent, lambda: there if sorted((there := agent.processes()).values()) == wanted else None) or {}


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
