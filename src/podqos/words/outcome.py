"""The outcome of a run in one sentence: one wording for terminal, picture and page, which must hold for the table."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.sim.summary import RunSummary
from podqos.wording import counted


def headline(summary: RunSummary) -> str:
    """Return the outcome; pods that were neither killed nor evicted, and yet affected, are counted, too."""
    killed = f"The kernel killed {many(summary.oom_kills, 'container')}"
    evicted = f"the kubelet evicted {many(summary.evictions, 'pod')}"
    unaffected = f"{summary.untouched:,} of {counted(summary.pods, 'pod')} {_were(summary.pods)} unaffected"
    return f"{killed}, {evicted}; {', '.join([unaffected, *_affected(summary)])}."


def many(count: int, what: str) -> str:
    """Return a number of things: ``no pods``, ``1 pod``, ``1,000 pods``."""
    return f"no {what}s" if count == 0 else f"{count:,} {what}{'' if count == 1 else 's'}"


def _affected(summary: RunSummary) -> Iterator[str]:
    """Yield how pods were affected where kills and evictions do not tell."""
    others = summary.never_ran + summary.waited + summary.throttled + summary.refused
    if summary.interrupted and (others or not summary.oom_kills + summary.evictions):
        yield f"{summary.interrupted:,} {_were(summary.interrupted)} interrupted"
    if summary.never_ran:
        yield f"{summary.never_ran:,} never ran"
    if summary.waited:
        yield f"{summary.waited:,} waited for a node"
    if summary.throttled:
        yield f"{summary.throttled:,} {_were(summary.throttled)} short of CPU"
    if summary.refused:
        yield f"{summary.refused:,} {_were(summary.refused)} refused processes or disk"


def _were(count: int) -> str:
    return "was" if count == 1 else "were"
