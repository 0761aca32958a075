"""A whole node on a share of this machine, driven by a test."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import msgspec

from podqos.agent.journal import Entry, decode
from podqos.agent.port import MemoryNotified
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.node.host_pod import HostPod
from podqos.host.node.node import Node
from podqos.host.node.settings import HostSettings, read_kubelet_file
from podqos.host.runtimes.process import ProcessRuntime

MI = 1 << 20
PYTHON = [sys.executable, "-I", "-S", "-c"]
PATIENCE = float(os.environ.get("PODQOS_TEST_PATIENCE") or 1)
"""How many times longer than usual things may take; an emulated machine needs that."""
_numbers = count()

# Takes so many MiB, says so, and stays.
GROW = (
    "import sys, time, os; kept = bytearray(int(sys.argv[1]) << 20)\n"
    "for at in range(0, len(kept), 4096): kept[at] = 1\n"
    "print('grown', flush=True); time.sleep(1000)"
)


def kubelet(**fields: object) -> bytes:
    """Return a configuration file."""
    document = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **fields}
    return msgspec.json.encode(document)


def pod_document(name: str, *command: str, spec: dict[str, object] | None = None, **container: object) -> dict:
    """Return the manifest of a pod of one container."""
    main = {"name": "main", "image": "none", "command": list(command), **container}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [main], **(spec or {})},
    }


class NodeStage:
    """A node, its directory, and the time it lives in."""

    parent: str | None = None

    def __init__(self, configuration: bytes, memory_bytes: int | None, **settings: object) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="podqos-test-", dir=self.parent))
        self.manifests = self.folder / "manifests"
        self.manifests.mkdir()
        self.said: list[str] = []
        file = read_kubelet_file("kubelet", configuration)
        self.settings = HostSettings(
            node="n",
            manifests=self.manifests,
            state_dir=self.folder / "state",
            memory_bytes=memory_bytes,
            configuration=file.configuration,
            logs=file.logs,
            **{"cgroup_root": f"podqos-test-{os.getpid()}-n{next(_numbers)}", **settings},
        )
        self.node = self._made()

    def _made(self) -> Node:
        settings = self.settings
        return Node(
            settings,
            lambda node: ProcessRuntime(settings.state_dir, node.cgroups, node.capabilities, node.note),
            self.said.append,
        )

    def lose_agent(self) -> None:
        """Go on with another node, to which the first one has left no word."""
        self.node.world.memory_watch.close()
        self.node.runtime.close(end=False)
        self.node._release()
        self.node = self._made()
        self.node.start()

    def put(self, *documents: dict) -> None:
        """Put manifests into the directory, all at once, one file each."""
        for document in documents:
            name = document["metadata"]["name"]
            partial = self.folder / "partial"
            partial.write_bytes(msgspec.json.encode(document))
            partial.rename(self.manifests / f"{name}.json")

    def until(self, condition: Callable[[], object], seconds: float = 300) -> None:
        """Let the node live until something holds."""
        end = time.monotonic() + seconds * PATIENCE
        while not condition():
            assert time.monotonic() < end, "\n".join(["it did not come to that", *map(str, self.entries()), *self.said])
            self.node.loop.step(0.05)

    def entries(self, *kinds: str) -> list[Entry]:
        """Return the journal so far, or what is of these kinds."""
        found = decode((self.settings.state_dir / "journal.jsonl").read_bytes())
        return [entry for entry in found if not kinds or entry.kind in kinds]

    def lines(self, *kinds: str) -> list[tuple[str, str]]:
        """Return kind and pod of the entries."""
        return [(entry.kind.value, (entry.pod or "").removeprefix("default/")) for entry in self.entries(*kinds)]

    def pod(self, name: str) -> HostPod | None:
        """Return a pod that runs."""
        found = (pod for pod in self.node.world.pods.values() if pod.pod.metadata.name == name)
        return next(found, None)

    def is_up(self, *names: str) -> bool:
        """Whether pods run."""
        return all((pod := self.pod(name)) is not None and pod.running for name in names)

    def log(self, name: str) -> str:
        """Return what the main container of a pod has written, over all its runs."""
        files = sorted((self.settings.state_dir / "logs").glob(f"default_{name}_*/main/*.log"))
        return "".join(file.read_text() for file in files)

    def look(self) -> None:
        """Let the agent look at the node now, with all figures as fresh as they can be."""
        self.node.world.summary()
        self.node.deliver(MemoryNotified())

    def close(self) -> None:
        """End everything, whatever state it is in, and look that nothing is left."""
        cgroups = open_cgroups(self.settings.own)
        try:
            cgroups.kill(self.settings.own)
            self.node.runtime.close(end=True)
            self.node._release()
        finally:
            cgroups.end([self.settings.own], 60)
            shutil.rmtree(self.folder, ignore_errors=True)
        assert not cgroups.exists(self.settings.own)


@contextmanager
def running_node(
    configuration: bytes | None = None,
    memory_bytes: int | None = 256 * MI,
    **settings: object,
) -> Iterator[NodeStage]:
    """Start a node and end it afterwards; this process, which was the agent, is then as it was."""
    nice, switch_seconds = os.getpriority(os.PRIO_PROCESS, 0), sys.getswitchinterval()
    stage = NodeStage(configuration or kubelet(), memory_bytes, **settings)
    try:
        stage.node.start()
        yield stage
    finally:
        stage.close()
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        sys.setswitchinterval(switch_seconds)
        gc.unfreeze()
        gc.enable()
