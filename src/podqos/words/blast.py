"""The blast radius in one sentence or two: one wording for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence

from podqos.agent.journal import By
from podqos.model.resources import MEMORY
from podqos.sim.blast import Blast, BlastRadius
from podqos.wording import counted, listed
from podqos.words.durations import rounded
from podqos.words.ranking import amount

_MOST_NAMED = 3


def headline(report: BlastRadius) -> str:
    """Return which pods take others down when they leak, and what the most dangerous of them does."""
    harmful = [leak for leak in report.leaks if leak.others]
    if not report.leaks:
        return "No pod is left to leak."
    if all(leak.is_of_system for leak in report.leaks):
        return _of_system(harmful)
    if not harmful:
        return "No pod takes others down: a leaking pod is always the first to be OOM-killed or evicted."
    return f"{_who(report, harmful)} {_worst(harmful)}"


def _of_system(harmful: Sequence[Blast]) -> str:
    if not harmful:
        return "System daemons that leak take no pod down."
    worst = harmful[0]
    taken, first = counted(worst.pods_taken, "pod"), rounded(worst.others[0].after_seconds)
    return f"System daemons that leak {rate(worst)} take {taken} down, the first after {first}."


def _who(report: BlastRadius, harmful: Sequence[Blast]) -> str:
    pods = list(dict.fromkeys((blast.node, blast.pod) for blast in harmful))
    names = [pod for _, pod in pods[:_MOST_NAMED]]
    more = [f"{len(pods) - _MOST_NAMED:,} more"] if len(pods) > _MOST_NAMED else []
    who = listed([*names, *more])
    if report.pods == 1:
        return f"{who} takes others down when it leaks."
    takes = "takes others down when it leaks" if len(pods) == 1 else "take others down when they leak"
    return f"{len(pods):,} of {counted(report.pods, 'pod')} {takes}: {who}."


def _worst(harmful: Sequence[Blast]) -> str:
    """Return what the most dangerous leak does."""
    leak = harmful[0]
    first = leak.others[0]
    is_alone = len({(blast.node, blast.pod) for blast in harmful}) == 1
    who = f"At {rate(leak)} it" if is_alone else f"Worst: {leak.pod} at {rate(leak)}"
    how = f"{'OOM-killed' if first.by is By.KERNEL else 'evicted'} after {rounded(first.after_seconds)}"
    if leak.pods_taken == 1:
        return f"{who} takes down {first.pod}, {how}."
    return f"{who} takes down {leak.pods_taken:,} pods, first {first.pod}, {how}."


def rate(leak: Blast) -> str:
    """Return how fast a leak grows."""
    return f"{amount(leak.rate_bytes_per_second, MEMORY)}/s"
