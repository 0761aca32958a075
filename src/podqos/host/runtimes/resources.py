"""Translates a plan for runtimes: resources for those that create cgroups themselves, and the allowed oom score."""

from __future__ import annotations

from msgspec import Struct

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.runtimes.runtime import ContainerStart, Note
from podqos.qos.cgroup import Cgroup


class Resources(Struct, frozen=True, gc=False):
    """Resources to request; None for the kernel's default. On v2 only memory: the rest is written as files."""

    cpu_shares: int | None
    cpu_quota_us: int | None
    cpu_period_us: int | None
    memory_bytes: int | None
    pids: int | None


def resources(cgroup: Cgroup) -> Resources:
    """Derive the resources from the files of a plan."""

    def number(*names: str) -> int | None:
        texts = (cgroup.text(name) for name in names)
        return next((int(text) for text in texts if text is not None and text.lstrip("-").isdecimal()), None)

    return Resources(
        cpu_shares=number("cpu.shares"),
        cpu_quota_us=number("cpu.cfs_quota_us"),
        cpu_period_us=number("cpu.cfs_period_us"),
        memory_bytes=number("memory.limit_in_bytes", "memory.max"),
        pids=number("pids.max"),
    )


def main_cgroup(cgroups: Cgroups, pid: int) -> str | None:
    """Return the cgroup of a container's main process, which must be below the node; None if it is gone."""
    path = cgroups.of_process(pid)
    return path if path.startswith(f"{cgroups.own}/") else None


def planned_path(container: ContainerStart) -> str:
    """Return the planned cgroup of a container."""
    if container.cgroup.path is None:
        raise HostError(f"container {container.id.name} has no cgroup to run in (cgroupsPerQOS: false)")
    return container.cgroup.path


def pod_cgroup(container: ContainerStart) -> str:
    """Return the cgroup of a container's pod."""
    return planned_path(container).rpartition("/")[0]


def granted_score(container: ContainerStart, capabilities: Capabilities, note: Note) -> int:
    """Return the ``oom_score_adj`` that the machine allows; notes a difference from the plan."""
    score, lack = capabilities.oom_score_adj(container.oom_score_adj)
    if lack is not None:
        note(f"{container.id.name}: oom_score_adj: {lack}")
    return score
