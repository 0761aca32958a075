"""Turns OOM kills of the kernel into journal entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import OOMKill, OOMLevel
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.kmsg import KernelKill
from podqos.host.linux.procfs import PAGE_BYTES, Procfs
from podqos.model.pod import Pod
from podqos.qos.cgroup_paths import CgroupLevel, place_of


class RunningContainer(Protocol):
    """A container that runs."""

    @property
    def name(self) -> str | None:
        """Its name."""

    @property
    def cgroup(self) -> str:
        """Where it is."""

    @property
    def pid(self) -> int | None:
        """Its first process, where that is known."""


class RunningPod(Protocol):
    """A pod that runs."""

    @property
    def pod(self) -> Pod:
        """The pod."""

    @property
    def cgroup(self) -> str:
        """Its own cgroup."""

    @property
    def runs(self) -> Mapping[str, RunningContainer]:
        """Its containers."""


def oom_kill_entry(
    kill: KernelKill, time_us: int, node: str, cgroups: Cgroups, pods: Iterable[RunningPod]
) -> Entry | None:
    """Return the entry of a kill; None if it was not a process of this node."""
    pods = list(pods)
    if not kill.cgroup:
        kill = _completed(kill, cgroups, pods)
    if not kill.cgroup.startswith(f"{cgroups.own}/"):
        return None
    pod, run = _whose(kill.cgroup, pods)
    limit = cgroups.memory_limit(kill.domain) if kill.domain else None
    limit_bytes = limit if limit is not None else Procfs().machine_memory().total_bytes
    total_pages = limit_bytes // PAGE_BYTES
    because = OOMKill(
        level=_level(kill.domain, cgroups.own, pod),
        domain=kill.domain or "/",
        limit_bytes=limit_bytes,
        total_pages=total_pages,
        oom_score_adj=kill.oom_score_adj,
        used_pages=kill.used_pages,
        points=kill.used_pages + kill.oom_score_adj * (total_pages // 1000),
        killed_processes=1,
        as_group=False,
    )
    return Entry(
        time_us,
        node,
        Kind.OOM_KILLED,
        pod.pod.key if pod is not None else None,
        run.name if run is not None else None,
        By.KERNEL,
        because,
    )


def _completed(kill: KernelKill, cgroups: Cgroups, pods: Iterable[RunningPod]) -> KernelKill:
    """Fill in what the kernel did not log: its messages about many kills within seconds are rate limited.

    The process is still known, from its start or from the kernel while it dies. Of the limits above it, the one that is
    used up is assumed to be the one that was hit.
    """
    run = next((run for pod in pods for run in pod.runs.values() if run.pid == kill.pid), None)
    where = Procfs().cgroups(kill.pid)
    path = run.cgroup if run is not None else where.get("memory", where.get("", ""))
    if not path.startswith(f"{cgroups.own}/"):
        return kill
    domain = path
    while domain != cgroups.own and not _is_full(domain, cgroups):
        domain = domain.rpartition("/")[0]
    return replace(kill, cgroup=path, domain=domain if kill.is_of_cgroup else "")


def _is_full(path: str, cgroups: Cgroups) -> bool:
    limit, held = cgroups.memory_limit(path), cgroups.memory(path)
    return limit is not None and held is not None and held.usage_bytes >= limit - limit // 16


def _whose(cgroup: str, pods: Iterable[RunningPod]) -> tuple[RunningPod | None, RunningContainer | None]:
    for pod in pods:
        if cgroup.startswith(f"{pod.cgroup}/"):
            return pod, next((run for run in pod.runs.values() if run.cgroup == cgroup), None)
    return None, None


def _level(domain: str, own: str, pod: RunningPod | None) -> OOMLevel:
    if place_of(domain).level is CgroupLevel.KUBEPODS:
        return OOMLevel.KUBEPODS
    if not domain or not domain.startswith(f"{own}/"):
        return OOMLevel.NODE
    if pod is not None and domain == pod.cgroup:
        return OOMLevel.POD
    if pod is not None and domain.startswith(f"{pod.cgroup}/"):
        return OOMLevel.CONTAINER
    return OOMLevel.CLASS
