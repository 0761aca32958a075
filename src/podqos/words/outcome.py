"""The outcome of a run in one sentence: one wording for terminal, picture and page, which must hold for the table."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.sim.summary import RunSummary
from podqos.wording import counted
from podqos.words.services import services_headline


def headline(summary: RunSummary) -> str:
    """Return the outcome; pods that were neither killed nor evicted, and yet affected, are counted, too."""
    killed = many(summary.oom_kills, "OOM kill")
    evicted = many(summary.evictions, "eviction")
    unaffected = f"{summary.untouched:,} of {counted(summary.pods, 'pod')} unaffected"
    text = f"{killed}, {evicted}; {', '.join([unaffected, *_affected(summary)])}."
    services = services_headline(summary.services)
    return text[0].upper() + text[1:] + (f" {services}" if services else "")


def many(count: int, what: str) -> str:
    """Return a number of things: ``no pods``, ``1 pod``, ``1,000 pods``."""
    return f"no {what}s" if count == 0 else f"{count:,} {what}{'' if count == 1 else 's'}"


def _affected(summary: RunSummary) -> Iterator[str]:
    """Yield how pods were affected where kills and evictions do not tell."""
    others = summary.never_ran + summary.waited + summary.throttled + summary.refused
    if summary.interrupted and (others or not summary.oom_kills + summary.evictions):
        yield f"{summary.interrupted:,} interrupted"
    if summary.never_ran:
        yield f"{summary.never_ran:,} never ran"
    if summary.waited:
        yield f"{summary.waited:,} waited for a node"
    if summary.throttled:
        yield f"{summary.throttled:,} short of CPU"
    if summary.refused:
        yield f"{summary.refused:,} denied processes or disk space"
