"""A share of the real machine for tests: a cgroup and a state directory of its own, gone afterwards in any case."""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import count
from pathlib import Path

import pytest

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities, detect, open_cgroups
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.loop import Loop
from podqos.host.linux.notes import OnceNotes
from podqos.host.linux.undisturbed import journal_clock
from podqos.host.node.container_starts import ContainerStarts
from podqos.host.node.figures import Figures
from podqos.host.node.world import HostWorld, NodeParts
from podqos.host.runtimes.process import ProcessRuntime
from podqos.host.shell.agent_thread import AgentThread
from podqos.host.storage.pod_run import ContainerRunSpec, PodRun
from podqos.host.storage.state import StateDirectory
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings

MI = 1 << 20
_numbers = count()


def why_not() -> str | None:
    """Return what this machine lacks to be a node; None if it can be one."""
    if os.geteuid() != 0:
        return "not root"
    name = f"/podqos-probe-{os.getpid()}"
    try:
        cgroups = open_cgroups(name)
        cgroups.create(name)
        failed = cgroups.set_memory_limit(name, 64 * MI)
        cgroups.remove(name)
    except HostError as error:
        return str(error)
    return None if failed is None else str(failed)


needs_node = pytest.mark.skipif(why_not() is not None, reason=f"this machine cannot be a node: {why_not()}")


class Share:
    """A cgroup and a directory on this machine."""

    def __init__(self, memory_bytes: int = 512 * MI) -> None:
        self.own = f"/podqos-test-{os.getpid()}-{next(_numbers)}"
        self.folder = Path(tempfile.mkdtemp(prefix="podqos-test-"))
        self.memory_bytes = memory_bytes
        self.capabilities: Capabilities = detect()
        self.cgroups: Cgroups = open_cgroups(self.own)
        self.cgroups.create(self.own)
        self.cgroups.set_memory_limit(self.own, memory_bytes)
        self.settings = CgroupSettings(
            node_memory_bytes=memory_bytes,
            cgroup_version=self.cgroups.version,
            cgroup_driver=CgroupDriver.CGROUPFS,
            cgroup_root=self.own,
        )

    def close(self) -> None:
        """End everything in the cgroup, and remove it and the directory."""
        self.cgroups.end([self.own], 60)
        assert not self.cgroups.exists(self.own)
        shutil.rmtree(self.folder, ignore_errors=True)


class Machine:
    """A world on a share, with the loop that moves it."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.loop = Loop()
        self.events: list[object] = []
        self.notes: list[str] = []
        self.state = StateDirectory(share.folder, self.notes.append)
        self.runtime = ProcessRuntime(share.folder, share.cgroups, share.capabilities, self.notes.append)
        self.figures = Figures(
            "n",
            cgroups=share.cgroups,
            state=self.state,
            capacity_bytes=share.memory_bytes,
            kubepods=f"{share.own}/kubepods",
        )
        thread = AgentThread(self.loop, OnceNotes(self.notes.append, "the node"), journal_clock())
        starts = ContainerStarts("n", self.state, thread.note)
        parts = NodeParts(share.cgroups, self.runtime, self.state, self.figures, starts)
        self.world = HostWorld(parts, thread, self.events.append)

    def pod(self, name: str, *command: str, **fields: object) -> Pod:
        """Return a pod of one container, which the world knows how to run."""
        uid = f"uid-{name}-{next(_numbers)}"
        spec = PodSpec((Container("main"),), **fields)
        pod = Pod(ObjectMeta(name=name, namespace="default", uid=uid), spec)
        self.world.runs[uid] = PodRun(containers=(ContainerRunSpec("main", command=command),))
        return pod

    def settle(self, seconds: float) -> list[object]:
        """Let time pass; stop early once something was reported and nothing more comes."""
        before = len(self.events)
        for _ in range(max(1, int(seconds * 20))):
            self.loop.run_for(0.05)
            if len(self.events) == before and self.events:
                break
            before = len(self.events)
        heard, self.events[:] = list(self.events), []
        return heard

    def close(self) -> None:
        """End what runs, and the shim."""
        for pod in list(self.world.pods.values()):
            self.world.kill(pod)
        self.share.cgroups.kill(self.share.own)
        self.runtime.close(end=True)
        self.loop.close()
        self.state.close()
