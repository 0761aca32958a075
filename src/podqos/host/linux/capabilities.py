"""Detects what this machine allows the node to do, with one line for each restriction.

No restriction is silent: it is printed at the start and kept in the node's status, and where the kernel keeps another
value than planned, both are named.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.cgroupfs import Cgroups, why_no_signals
from podqos.host.linux.cgroupfs_v1 import CgroupsV1
from podqos.host.linux.cgroupfs_v2 import CgroupsV2
from podqos.host.linux.procfs import Procfs, read_text
from podqos.qos.cgroup_settings import CgroupVersion

_CAP_SYS_ADMIN, _CAP_SYS_RESOURCE = 21, 24


class Mounts(Struct, frozen=True):
    """Where cgroups are mounted."""

    v1: dict[str, Path]
    """By controller."""
    v2: Path | None


class Capabilities(Struct, frozen=True, kw_only=True):
    """What the machine allows."""

    is_root: bool
    can_lower_oom_score: bool
    """CAP_SYS_RESOURCE: without it ``oom_score_adj`` cannot be lowered."""
    own_oom_score_adj: int = 0
    """The ``oom_score_adj`` of new processes."""
    can_mount: bool
    """CAP_SYS_ADMIN: volumes can be mounted at their mountPath."""
    version: CgroupVersion
    is_hybrid: bool
    controllers: tuple[str, ...]
    has_cgroup_kill: bool
    has_pressure: bool
    has_systemd: bool

    def oom_score_adj(self, wanted: int) -> tuple[int, str | None]:
        """Return the adjustment a process can get, and a message where it differs from the wanted one."""
        own = self.own_oom_score_adj
        if self.can_lower_oom_score or wanted >= own:
            return wanted, None
        return own, f"wanted {_signed(wanted)}, kept {_signed(own)}: CAP_SYS_RESOURCE is missing"

    def lines(self) -> list[str]:
        """Return one line for each restriction, with its effect."""
        said = []
        if not self.is_root:
            said.append("not root: cgroups and volumes work only where delegated to this user")
        if not self.can_lower_oom_score:
            said.append("CAP_SYS_RESOURCE is missing: negative oom_score_adj (Guaranteed −997) cannot be set")
        if not self.can_mount:
            said.append("CAP_SYS_ADMIN is missing: volumes are only at $PODQOS_VOLUME_…, not at mountPath")
        for name, loss in _CONTROLLER_LOSSES.items():
            if name not in self.controllers:
                said.append(f"no {name} controller: {loss}")
        if self.is_hybrid:
            said.append(f"hybrid cgroup layout: using the controllers of {self.version}")
        if not self.has_cgroup_kill:
            said.append("no cgroup.kill: processes are killed one by one, each verified to be in its cgroup")
        if not self.has_pressure:
            said.append("no pressure stall information (psi=1 on the kernel's command line)")
        return said


class HostMachine(Struct, frozen=True):
    """The machine a node runs on; tests make up their own."""

    procfs: Procfs
    capabilities: Capabilities
    cgroups: Cgroups


_CONTROLLER_LOSSES = {
    "cpu": "CPU requests and limits are not enforced",
    "pids": "pod pid limits are not enforced, and processes are not counted per pod",
}


def find_mounts(procfs: Procfs) -> Mounts:
    """Find where cgroups are mounted; the first mount of each controller counts."""
    text = read_text(procfs.root / "self" / "mounts")
    v1: dict[str, Path] = {}
    v2 = None
    for line in (text or "").splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup2" and v2 is None:
            v2 = Path(where)
        elif kind == "cgroup":
            for option in options.split(","):
                v1.setdefault(option, Path(where))
    return Mounts(v1, v2)


def open_cgroups(own: str, procfs: Procfs | None = None) -> Cgroups:
    """Return the cgroups of this machine: of the version that has the memory controller."""
    procfs = procfs or Procfs()
    mounts = find_mounts(procfs)
    if "memory" in mounts.v1:
        return CgroupsV1(mounts.v1, own, procfs, mounts.v2)
    if mounts.v2 is not None:
        return CgroupsV2(mounts.v2, own, procfs)
    raise HostError("no cgroups are mounted: the node cannot confine or measure pods")


def open_machine(own: str) -> HostMachine:
    """Return this machine, for a node with this cgroup; raises ``HostError`` where its pods could not be killed."""
    if why_not := why_no_signals():
        raise HostError(why_not)
    procfs = Procfs()
    return HostMachine(procfs, detect(procfs), open_cgroups(own, procfs))


def detect(procfs: Procfs | None = None) -> Capabilities:
    """Detect what the machine allows this process."""
    procfs = procfs or Procfs()
    mounts = find_mounts(procfs)
    held = procfs.capabilities()
    is_v1 = "memory" in mounts.v1
    controllers: tuple[str, ...]
    if is_v1:
        controllers = tuple(name for name in ("memory", "cpu", "cpuacct", "pids", "freezer") if name in mounts.v1)
    else:
        controllers = tuple((read_text((mounts.v2 or Path()) / "cgroup.controllers") or "").split())
    return Capabilities(
        is_root=os.geteuid() == 0,
        can_lower_oom_score=bool(held >> _CAP_SYS_RESOURCE & 1),
        own_oom_score_adj=procfs.oom_score_adj(os.getpid()) or 0,
        can_mount=bool(held >> _CAP_SYS_ADMIN & 1),
        version=CgroupVersion.V1 if is_v1 else CgroupVersion.V2,
        is_hybrid=bool(mounts.v1) and mounts.v2 is not None,
        controllers=controllers,
        has_cgroup_kill=not is_v1 and _has_cgroup_kill(mounts.v2),
        has_pressure=read_text(procfs.root / "pressure" / "memory") is not None,
        has_systemd=Path("/run/systemd/system").is_dir(),
    )


def _has_cgroup_kill(root: Path | None) -> bool:
    """Whether the kernel has ``cgroup.kill``: only cgroups below the root have the file."""
    if root is None:
        return False
    if any(root.glob("*/cgroup.kill")):
        return True
    major, minor, *_ = os.uname().release.split("-")[0].split(".")
    return (int(major), int(minor)) >= (5, 14)


def _signed(number: int) -> str:
    return str(number).replace("-", "−")
