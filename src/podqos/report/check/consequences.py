"""What follows from a finding for survival, in words. Everything said is data of the finding."""

from __future__ import annotations

from podqos.advice.checks.finding import Consequence, Effect, Finding, PodStanding
from podqos.model.pod import QOSClass


def consequence(finding: Finding) -> str:
    """Return what follows for survival."""
    told = finding.consequence
    if told.effect is Effect.NODE:
        return _of_a_node(told)
    if told.effect is Effect.DISK:
        return _NO_DISK if told.disk_request == "0" else _DISK.format(request=told.disk_request)
    if told.effect is Effect.NOT_CREATED:
        return "no pod is created or placed: what dies is not replaced"
    if told.now is None:
        return ""
    compared = _compared(told)
    if not compared:
        return _standing(told.now, told.repaired)
    return f"{compared}; {_standing(told.now, told.repaired)}"


def _compared(told: Consequence) -> str:
    """Say who outlives the subject, if anybody does."""
    clauses = []
    if told.evicted_before is not None:
        clauses.append(f"the kubelet evicts it before {told.evicted_before}")
    if told.killed_before is not None:
        whom = "it" if told.killed_before == told.evicted_before else told.killed_before
        clauses.append(f"the kernel kills it before {whom}" if whom != "it" else "the kernel kills it before, too")
    if not clauses:
        return ""
    who = "because of this, " if told.repaired is not None else ""
    return f"{who}when memory runs short and all use what they may, {' and '.join(clauses)}"


def _standing(now: PodStanding, repaired: PodStanding | None) -> str:
    evicted = "never evicted" if now.is_spared else _EVICTED[now.qos_class]
    text = f"{now.qos_class}, oom_score_adj {now.oom_score_adj} ({now.container}), {evicted}"
    if repaired is None or repaired == now:
        return text
    after = f"{repaired.qos_class}, oom_score_adj {repaired.oom_score_adj}"
    return f"{text}; otherwise {after}"


_EVICTED = {
    QOSClass.BEST_EFFORT: "evicted as soon as memory runs short",
    QOSClass.BURSTABLE: "evicted once it uses more than it requests",
    QOSClass.GUARANTEED: "evicted last, as it cannot use more than it requests",
}


_NO_DISK = "when the disk runs full, it is among the first to be evicted, as it requests no ephemeral-storage"
_DISK = "when the disk runs full, evicted first once it uses more than the {request} of ephemeral-storage it requests"


def _of_a_node(told: Consequence) -> str:
    if told.first_killed is None:
        return "when memory runs short, the kernel chooses who dies, by size and oom_score_adj"
    if told.first_killed == told.first_evicted:
        return f"whoever acts first takes {told.first_killed}"
    return (
        f"when memory runs short and all use what they may, the kernel kills {told.first_killed} first, "
        f"where the kubelet would evict {told.first_evicted}"
    )
