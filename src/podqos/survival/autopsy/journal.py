"""The kernel's kills in a journal of podqos, as ``autopsy`` tells them; pids are not in a journal."""

from __future__ import annotations

from podqos.agent.journal import Entry
from podqos.agent.reasons import OOMKill, OOMLevel
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.oom_report import Constraint
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.survival.autopsy.autopsy import AutopsyVictim, OOMAutopsy, Reason, Trigger
from podqos.survival.autopsy.eviction_traces import journal_time

_LEVELS = {
    OOMLevel.CONTAINER: CgroupLevel.CONTAINER,
    OOMLevel.POD: CgroupLevel.POD,
    OOMLevel.CLASS: CgroupLevel.CLASS,
    OOMLevel.KUBEPODS: CgroupLevel.KUBEPODS,
    OOMLevel.NODE: CgroupLevel.MACHINE,
}


def journal_kill(entry: Entry, because: OOMKill) -> OOMAutopsy:
    """Return a kill as far as the journal has it."""
    is_machine = because.level is OOMLevel.NODE
    follows = None if because.runner_up_points is None else because.points >= because.runner_up_points
    victim = AutopsyVictim(
        None, entry.container or entry.pod or "", because.oom_score_adj, because.points, because.used_pages * PAGE_BYTES
    )
    return OOMAutopsy(
        at=journal_time(entry),
        host=entry.node,
        scope=_LEVELS[because.level],
        constraint=Constraint.NONE if is_machine else Constraint.MEMCG,
        cgroup=because.domain,
        trigger=Trigger(None, ""),
        victims=(victim,),
        chosen_pid=None,
        victim_cgroup="",
        victim_level=CgroupLevel.CONTAINER,
        follows_rule=follows,
        reason=Reason.NO_TABLE if follows is None else Reason.HIGHEST if follows else Reason.OTHER_IS_HIGHER,
        total_pages=because.total_pages,
        page_bytes=PAGE_BYTES,
        margin_pages=None if because.margin_bytes is None else because.margin_bytes // PAGE_BYTES,
        group=f"{entry.pod} {entry.container}" if because.as_group else "",
        pod=entry.pod or "",
        container=entry.container or "",
    )
