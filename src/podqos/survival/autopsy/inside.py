"""Inside a pod or container whose limit was reached: which processes hold its memory, and what they did themselves.

Only its own processes were candidates there: requests, class and priority of the pod had no part in it.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct

from podqos.model.pod import QOSClass
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import BEST_EFFORT_OOM_SCORE_ADJ, oom_scores
from podqos.survival.autopsy.candidates import Candidates
from podqos.survival.autopsy.facts import KilledNode

OWN_LIMIT = (CgroupLevel.CONTAINER, CgroupLevel.POD, CgroupLevel.SYSTEM, CgroupLevel.CGROUP)
"""Levels whose memory belongs to one pod or daemon."""
_POD = (CgroupLevel.CONTAINER, CgroupLevel.POD)
_MOST_LARGEST = 3
_MOST_SCORES = 5
_OF_OTHERS = range(-999, -996)
"""What kubelets and runtimes give themselves, sandboxes and Guaranteed pods, by their versions; a process that a
runtime starts in a container may keep it for a while, or for good."""
_OF_RUNTIME = "runc:["


class LargeProcess(Struct, frozen=True, rename="camel", gc=False):
    """A process that holds much of the memory."""

    pid: int
    name: str
    rss_bytes: int
    swap_bytes: int = 0


class OwnScore(Struct, frozen=True, rename="camel", gc=False):
    """A process whose oom_score_adj is not what the kubelet gave its container: it, or a parent, set it."""

    pid: int
    name: str
    oom_score_adj: int
    container_oom_score_adj: int | None = None
    """Its container's, where that is known."""


class InsideLimit(Struct, frozen=True, rename="camel", gc=False):
    """What the table says about the processes below the limit that was reached."""

    processes: int
    largest: tuple[LargeProcess, ...] = ()
    """By memory, the largest first."""
    own_scores: tuple[OwnScore, ...] = ()
    own_scores_left_out: int = 0
    survivors: int | None = None
    """Processes that live on, because memory.oom.group is not set; None where that is not known."""


def inside_of(node: KilledNode, candidates: Candidates) -> InsideLimit | None:
    """Return what is known of the processes below a limit; None where it is not one pod's or daemon's, or no table."""
    if node.is_machine or node.ran_out.level not in OWN_LIMIT or not candidates.tasks:
        return None
    size, rss = node.page_bytes, candidates.rss_pages
    least = min(sorted(rss)[-_MOST_LARGEST:])
    large = [task for task in candidates.tasks if task.rss_pages >= least]
    large.sort(key=lambda task: (-task.rss_pages, task.pid))
    largest = tuple(
        LargeProcess(task.pid, task.name, task.rss_pages * size, (task.swap_pages or 0) * size)
        for task in large[:_MOST_LARGEST]
    )
    scores = _own_scores(node, candidates)
    return InsideLimit(len(rss), largest, scores[:_MOST_SCORES], max(0, len(scores) - _MOST_SCORES), _survivors(node))


def _survivors(node: KilledNode) -> int | None:
    """Return how many were spared; the line of a group kill precedes what the reaper says of its victims."""
    report = node.report
    is_v2 = "swap" in report.counters
    if not is_v2 or report.is_cut or report.group is not None or node.ran_out.level not in _POD:
        return None
    if not any(victim.is_reaped for victim in report.victims.values()):
        return None
    return len(report.tasks) - len(report.tasks.keys() & report.victims.keys()) or None


def _own_scores(node: KilledNode, candidates: Candidates) -> tuple[OwnScore, ...]:
    if node.ran_out.level not in _POD:
        return ()
    given, container = _given_scores(node)
    if not given:
        return ()
    unusual = {score for score in {*candidates.scores} if score not in given and score not in _OF_OTHERS}
    tasks = [task for task in candidates.tasks if task.oom_score_adj in unusual] if unusual else []
    tasks.sort(key=lambda task: task.pid)
    return tuple(
        OwnScore(task.pid, task.name, task.oom_score_adj, container)
        for task in tasks
        if not task.name.startswith(_OF_RUNTIME)
    )


def _given_scores(node: KilledNode) -> tuple[Collection[int], int | None]:
    """Return the scores that the kubelet gives the containers there, and the container's where there is one alone."""
    profile, capacity, pod = node.facts.profile, node.capacity_bytes, node.pod
    lowest = profile.guaranteed_oom_score_adj
    place = node.ran_out
    if pod is not None and capacity is not None:
        given = {score.value for score in oom_scores(pod, qos_class_of(pod, profile), capacity, profile)}
        if given:
            return given, next(iter(given)) if len(given) == 1 else None
    if place.qos_class is QOSClass.GUARANTEED:
        return {lowest}, lowest
    if place.qos_class is QOSClass.BEST_EFFORT:
        return {BEST_EFFORT_OOM_SCORE_ADJ}, BEST_EFFORT_OOM_SCORE_ADJ
    burstable = range(1000 + min(_OF_OTHERS), BEST_EFFORT_OOM_SCORE_ADJ)
    first = next(iter(node.report.tasks.values())).oom_score_adj  # the container's own first process
    if place.level is CgroupLevel.CONTAINER and first in burstable:
        return {first}, first
    return burstable, None
