"""The processes of a node that belong to no pod, with the oom scores they always have."""

from __future__ import annotations

from msgspec import Struct

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import Process, badness, shown_oom_score
from podqos.qos.oom import component_scores

_SET_BY = {
    "kubelet": "oomScoreAdj in its configuration",
    "kube-proxy": "oomScoreAdj in its configuration",
    "container runtime": "OOMScoreAdjust in its systemd unit",
    "pod sandbox": "the container runtime",
}


class ComponentReport(Struct, frozen=True, rename="camel"):
    """A process of the node itself."""

    name: str
    oom_score_adj: int
    oom_score_idle: int
    """What ``/proc/PID/oom_score`` shows on that node while it is idle."""
    set_by: str


def components(kubelet_oom_score_adj: int, machine_bytes: int) -> tuple[ComponentReport, ...]:
    """Return them for a machine with this much RAM and swap."""
    return tuple(
        ComponentReport(score.component, score.value, idle_score(score.value, machine_bytes), _SET_BY[score.component])
        for score in component_scores(kubelet_oom_score_adj)
    )


def idle_score(oom_score_adj: int, machine_bytes: int) -> int:
    """Return what ``/proc/PID/oom_score`` shows for an idle process."""
    total_pages = machine_bytes // PAGE_BYTES
    idle = Process(pid=2, cgroup="/", rss_pages=0, oom_score_adj=oom_score_adj)
    return shown_oom_score(badness(idle, total_pages), total_pages)
