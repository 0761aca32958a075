"""What a finding means for survival, in words. It renders data of the finding."""

from __future__ import annotations

from podqos.advice.checks.finding import Consequence, Effect, Fact, Finding, PodStanding
from podqos.model.pod import QOSClass


def consequence(finding: Finding) -> str:
    """Return the consequence of a finding in a sentence."""
    return worded(finding.consequence, finding.facts)


def worded(found: Consequence, facts: Fact, *, names_container: bool = True) -> str:
    """Return a consequence in a sentence, with or without the container whose score is the highest.

    Pods that are safe when memory runs short have another reason to worry, which is that of the facts.
    """
    if found.effect is Effect.NODE:
        return "the kernel chooses by size and oom_score_adj, not by priority"
    if found.effect is Effect.DISK:
        if found.now is not None and found.now.is_spared:
            return _OTHERS_FOR_DISK
        return _NO_DISK if found.disk_request == "0" else _DISK.format(request=found.disk_request)
    if found.effect is Effect.NOT_CREATED:
        return "no pods are created or scheduled, and pods that die are not replaced"
    if found.effect is Effect.LIMIT:
        return facts.harm() or "the container is OOM-killed at its own memory limit, even on an empty node"
    if found.effect is Effect.FEWER:
        return "some of its pods are not created, and pods that die may not be replaced"
    if found.effect is Effect.NONE:
        return facts.harm()
    if found.now is None:
        return ""
    compared = _compared(found)
    if not compared and _is_evicted_last(found.now):
        harm = facts.harm()
        if harm or (found.effect is not Effect.STANDING and _is_safe(found.now)):
            return harm
    standing = _standing(found.now, found.repaired, facts.without(), names_container=names_container)
    return f"{compared}; {standing}" if compared else standing


AT_THE_LIMITS = "when every pod is at its memory limit"
"""What is assumed about usage: ``AssumedUsage.LIMITS``."""


def _compared(found: Consequence) -> str:
    """Name the pods that outlive the subject, if there are any."""
    evicted, killed = found.evicted_before, found.killed_before
    if evicted == killed:
        clauses = [] if evicted is None else [f"both the kubelet and the kernel pick it before {evicted}"]
    else:
        clauses = [f"the kubelet evicts it before {evicted}"] if evicted is not None else []
        clauses += [f"the kernel kills it before {killed}"] if killed is not None else []
    if not clauses:
        return ""
    cause = "because of this, " if found.repaired is not None else ""
    return f"{cause}{' and '.join(clauses)} {AT_THE_LIMITS}"


def _is_evicted_last(now: PodStanding) -> bool:
    return now.is_spared or now.qos_class is QOSClass.GUARANTEED


def _is_safe(now: PodStanding) -> bool:
    """Whether a pod is among the last to go when memory runs short, whichever of the two chooses."""
    return now.oom_score_adj < 0 and _is_evicted_last(now)


def _standing(now: PodStanding, repaired: PodStanding | None, without: str, *, names_container: bool) -> str:
    container = f" ({now.container})" if names_container else ""
    text = f"{now.qos_class}, oom_score_adj {now.oom_score_adj}{container}, {when_evicted(now)}"
    if repaired is None or repaired == now:
        return text
    after = f"{repaired.qos_class}, oom_score_adj {repaired.oom_score_adj}"
    return f"{text}; {without}, {after}"


def when_evicted(now: PodStanding) -> str:
    """Return when the kubelet evicts a pod."""
    return _NEVER if now.is_spared else _EVICTED[now.qos_class]


_NEVER = "never evicted, but the kernel kills by score"
_EVICTED = {
    QOSClass.BEST_EFFORT: "eligible for eviction as soon as memory runs short",
    QOSClass.BURSTABLE: "evicted once it uses more than it requests",
    QOSClass.GUARANTEED: "evicted last, because it can't exceed its requests",
}


_NO_DISK = "it is among the first to be evicted when the disk fills up, because it requests no ephemeral-storage"
_OTHERS_FOR_DISK = "when it fills the disk, other pods are evicted in its place: it is never evicted itself"
_DISK = "evicted first when the disk fills up, once it uses more than the {request} of ephemeral-storage it requests"
