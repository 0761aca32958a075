"""Translates a plan for the runtime: the cgroup that was planned, and the oom score that is allowed."""

from __future__ import annotations

from podqos.errors import HostError
from podqos.host.linux.capabilities import Capabilities
from podqos.host.runtimes.runtime import ContainerStart, Note


def planned_path(container: ContainerStart) -> str:
    """Return the planned cgroup of a container."""
    if container.cgroup.path is None:
        raise HostError(f"container {container.id.name} has no cgroup to run in (cgroupsPerQOS: false)")
    return container.cgroup.path


def granted_score(container: ContainerStart, capabilities: Capabilities, note: Note) -> int:
    """Return the ``oom_score_adj`` that the machine allows; notes a difference from the plan."""
    score, lack = capabilities.oom_score_adj(container.oom_score_adj)
    if lack is not None:
        note(f"{container.id.name}: oom_score_adj: {lack}")
    return score
