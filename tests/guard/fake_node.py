"""A kubelet's node made of files: cgroups of version 2 and a procfs, whose figures are what a test says."""

from __future__ import annotations

from pathlib import Path

from podqos.guard.known_pods import GuardedPod
from podqos.host.linux.cgroupfs_v2 import CgroupsV2
from podqos.host.linux.procfs import Procfs
from podqos.manifest.decode import model_decoder

MIB = 1 << 20
NODE = "node-1"


class FakeNode:
    """Its kubepods may hold 1000 MiB; the machine has plenty."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "cgroup"
        self.proc = folder / "proc"
        (self.proc / "self").mkdir(parents=True)
        (self.proc / "sys" / "kernel").mkdir(parents=True)
        for name, text in (
            ("self/mounts", f"cgroup2 {self.root} cgroup2 rw 0 0\n"),
            ("self/status", "CapEff:\t0\n"),
            ("self/cgroup", "0::/\n"),
            ("meminfo", "MemTotal: 16777216 kB\nMemFree: 8388608 kB\nInactive(file): 0 kB\nMemAvailable: 8388608 kB\n"),
            ("loadavg", "0.00 0.00 0.00 1/100 1\n"),
            ("sys/kernel/pid_max", "32768\n"),
            ("sys/kernel/threads-max", "32768\n"),
        ):
            (self.proc / name).write_text(text)
        self.root.mkdir()
        (self.root / "cgroup.controllers").write_text("memory cpu pids\n")
        self.procfs = Procfs(self.proc)
        self.cgroup("/kubepods", 0, limit=1000 * MIB)
        (self.root / "kubepods" / "cgroup.kill").touch()
        self.cgroup("/kubepods/besteffort", 0)
        self.cgroup("/kubepods/burstable", 0)
        self.cgroups = CgroupsV2(self.root, "/kubepods", self.procfs)

    def cgroup(self, path: str, used: int, limit: int | None = None) -> str:
        folder = self.root / path[1:]
        folder.mkdir(exist_ok=True)
        (folder / "memory.current").write_text(f"{used}\n")
        (folder / "memory.stat").write_text(f"anon {used}\ninactive_file 0\n")
        (folder / "memory.max").write_text("max\n" if limit is None else f"{limit}\n")
        (folder / "pids.current").write_text("1\n")
        return path

    def run(self, uid: str, used: int, qos: str = "besteffort") -> str:
        """Have a pod run, and use so much."""
        return self.cgroup(f"/kubepods/{qos}/pod{uid}", used)

    def uses(self, used: int) -> None:
        """Let all pods together use so much."""
        self.cgroup("/kubepods", used, limit=1000 * MIB)


def pod(name: str, uid: str = "", **fields: object) -> dict:
    """Return a pod as the API server has it."""
    spec = {"nodeName": NODE, "priority": 0, "containers": [{"name": "main", "image": "x"}]}
    spec |= fields.pop("spec", {})  # type: ignore[arg-type]
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "generation": 3}
    metadata |= fields.pop("metadata", {})  # type: ignore[arg-type]
    status = {"phase": "Running", **fields.pop("status", {})}  # type: ignore[dict-item]
    return {"metadata": metadata, "spec": spec, "status": status}


def guarded(name: str, uid: str = "", **fields: object) -> GuardedPod:
    """Return a pod as the guard knows it."""
    import json

    return model_decoder(GuardedPod).decode(json.dumps(pod(name, uid, **fields)).encode())
