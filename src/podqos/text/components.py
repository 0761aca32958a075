"""The processes of a node that belong to no pod: their scores, and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom import Process, badness, shown_oom_score
from podqos.qos.oom import component_scores
from podqos.text.style import Style, columns

_SET_BY = {
    "kubelet": "oomScoreAdj in its configuration",
    "kube-proxy": "oomScoreAdj in its configuration",
    "container runtime": "OOMScoreAdjust in its systemd unit",
    "pod sandbox": "the container runtime",
}
_EXEMPT = "The kernel never kills at oom_score_adj -1000. Among the rest it kills the highest badness, however low."


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


def component_table(components: Sequence[ComponentReport], style: Style) -> list[str]:
    """Return a line per process of the node itself, and which processes the kernel never kills."""
    rows = [(each.name, str(each.oom_score_adj), str(each.oom_score_idle), each.set_by) for each in components]
    return [*columns(("NODE COMPONENT", "ADJ", "IDLE SCORE", "SET BY"), rows, style), _EXEMPT]
