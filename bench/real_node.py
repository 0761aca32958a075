"""``podqos node run`` as a process of its own, for benchmarks: its directory, its journal, an end that leaves nothing.

Whatever goes wrong, ``RealNode`` as a context ends the agent, the shim and every pod, and removes their cgroups.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from podqos.agent.journal import Entry, decode
from podqos.host.linux.capabilities import open_cgroups

MI = 1 << 20
NODE = (sys.executable, "-m", "podqos")
PYTHON = (sys.executable, "-I", "-S", "-c")
# Takes so many MiB, says so, and stays.
HOLD = (
    "import sys, time, mmap; kept = mmap.mmap(-1, int(sys.argv[1]) << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n"
    "kept.madvise(23)\n"  # MADV_POPULATE_WRITE
    "print('grown', flush=True); time.sleep(100000)"
)


def pod_document(
    name: str, *command: str, spec: dict[str, object] | None = None, **container: object
) -> dict[str, object]:
    """Return the manifest of a pod of one container."""
    main = {"name": "main", "image": "none", "command": list(command), **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [main], **(spec or {})},
    }


def resources(request: str, limit: str | None = None, cpu: str = "100m") -> dict[str, object]:
    """Return requests and limits; the same of both makes a pod Guaranteed."""
    requests = {"memory": request, "cpu": cpu}
    if limit is None:
        return {"requests": requests}
    return {"requests": requests, "limits": {"memory": limit, "cpu": cpu} if limit == request else {"memory": limit}}


class RealNode:
    """A node on a share of this machine."""

    def __init__(self, memory: str, *options: str, program: Sequence[str] = NODE, **configuration: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="podqos-bench-"))
        self.manifests = self.folder / "manifests"
        self.manifests.mkdir()
        self.state = self.folder / "state"
        self.own = f"/podqos-bench-{os.getpid()}-{self.folder.name[-8:]}"
        self.cgroups = open_cgroups(self.own)
        document = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **configuration}
        self.config = self.folder / "kubelet.json"
        self.config.write_bytes(msgspec.json.encode(document))
        self.process: subprocess.Popen[bytes] | None = None
        self._command = [
            *program, "node", "run", "--memory", memory,
            "--manifests", str(self.manifests), "--config", str(self.config), "--state-dir", str(self.state),
            "--cgroup-root", self.own[1:], *options,
        ]  # fmt: skip
        self._read_bytes = 0

    def __enter__(self) -> Self:
        """Start the node; everything of it is gone when the context is left."""
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End everything."""
        if error is not None:
            print((self.folder / "said").read_text()[-3000:], file=sys.stderr)
        self.close()

    def start(self) -> None:
        """Begin to be a node."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen(self._command, stderr=said, env=environment)

    def end(self, number: int, seconds: float = 60) -> int:
        """Signal the agent and wait for its end."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(seconds)

    def put(self, document: dict[str, object]) -> None:
        """Put a manifest into the directory."""
        metadata = document["metadata"]
        assert isinstance(metadata, dict)
        partial = self.folder / "partial"
        partial.write_bytes(msgspec.json.encode(document))
        partial.rename(self.manifests / f"{metadata['name']}.json")

    def take_away(self, name: str) -> None:
        """Remove a manifest."""
        (self.manifests / f"{name}.json").unlink(missing_ok=True)

    def journal(self) -> list[Entry]:
        """Return all of the journal."""
        file = self.state / "journal.jsonl"
        return list(decode(file.read_bytes())) if file.exists() else []

    def news(self) -> list[Entry]:
        """Return what was written to the journal since last asked; whole lines only."""
        try:
            with (self.state / "journal.jsonl").open("rb") as file:
                file.seek(self._read_bytes)
                data = file.read()
        except FileNotFoundError:
            return []
        data = data[: data.rfind(b"\n") + 1]
        self._read_bytes += len(data)
        return list(decode(data))

    def until(self, condition: Callable[[], object], seconds: float = 30, pause: float = 0.02) -> None:
        """Wait until something holds."""
        end = time.monotonic() + seconds
        while not condition():
            if self.process is not None and self.process.poll() is not None:
                raise AssertionError(f"the node has ended: {self.process.returncode}")
            if time.monotonic() > end:
                tail = "\n".join(map(str, self.journal()[-10:]))
                raise AssertionError(f"it did not come to that within {seconds} s\n{tail}")
            time.sleep(pause)

    def wait_for_log(self, pod: str, text: str) -> None:
        """Wait until a pod has written something."""
        pattern = f"default_{pod}_*/main/*.log"
        self.until(lambda: any(text in file.read_text() for file in (self.state / "logs").glob(pattern)))

    def shims(self) -> list[int]:
        """Return the processes that keep this node's pods."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    line = (entry / "cmdline").read_bytes()
                except OSError:
                    continue
                if b"shim.py" in line and os.fsencode(self.folder) in line:
                    found.append(int(entry.name))
        return found

    def close(self) -> None:
        """End everything, whatever state it is in."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for shim in self.shims():
            os.kill(shim, signal.SIGKILL)
        for _ in range(1000):
            self.cgroups.kill(self.own)
            if self.cgroups.remove(self.own):
                break
            time.sleep(0.01)
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.cgroups.exists(self.own):
            raise AssertionError(f"{self.own} could not be removed")
