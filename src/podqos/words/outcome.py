"""The outcome of a run in one sentence: one wording for terminal, picture and page, which must hold for the table."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.sim.summary import RunSummary
from podqos.wording import counted
from podqos.words.jobs import jobs_headline
from podqos.words.services import services_headline


def headline(summary: RunSummary) -> str:
    """Return the outcome, the worst first: kills and evictions, or else what became of requests, Jobs and pods.

    Pods that were neither killed nor evicted, and yet affected, are counted, too.
    """
    fatal = f"{many(summary.oom_kills, 'OOM kill')}, {many(summary.evictions, 'eviction')}"
    further = [*filter(None, (services_headline(summary.services), jobs_headline(summary.jobs)))]
    if summary.oom_kills or summary.evictions or (summary.untouched == summary.pods and not further):
        return " ".join([_sentence(f"{fatal}; {_pods(summary)}"), *further])
    return " ".join([*further, _sentence(_pods(summary)), _sentence(fatal)])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def share_words(share: float) -> str:
    """Return a share of what was wanted: ``50 %``, ``0.4 %``; less than all is never 100 %."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "<0.1 %"
    if 0 < percent < 1:
        return f"{percent:.1f} %"
    return f"{round(percent) if share >= 1 else min(99, round(percent))} %"


def _pods(summary: RunSummary) -> str:
    """Return how pods were affected."""
    all_pods = counted(summary.pods, "pod")
    slowed, throttled = 0 if summary.cpu is None else summary.cpu.slowed, summary.throttled
    worst = f"slowed, worst to {share_words(summary.cpu.least_share)}" if slowed and summary.cpu is not None else ""
    if slowed and slowed == throttled == summary.pods - summary.untouched:
        return f"{slowed:,} of {all_pods} {worst}"
    is_said = slowed == throttled and bool(worst)
    short = f"{throttled:,} {worst if is_said else 'short of CPU'}"
    text = ", ".join([f"{summary.untouched:,} of {all_pods} unaffected", *_affected(summary, short)])
    return f"{text}; {slowed:,} {worst}" if worst and not is_said else text


def many(count: int, what: str) -> str:
    """Return a number of things: ``no pods``, ``1 pod``, ``1,000 pods``."""
    return f"no {what}s" if count == 0 else f"{count:,} {what}{'' if count == 1 else 's'}"


def _affected(summary: RunSummary, short: str) -> Iterator[str]:
    """Yield how pods were affected where kills and evictions do not tell; ``short`` is how many were short of CPU."""
    others = summary.never_ran + summary.waited + summary.throttled + summary.refused
    if summary.interrupted and (others or not summary.oom_kills + summary.evictions):
        yield f"{summary.interrupted:,} interrupted"
    if summary.never_ran:
        yield f"{summary.never_ran:,} never ran"
    if summary.waited:
        yield f"{summary.waited:,} waited for a node"
    if summary.throttled:
        yield short
    if summary.refused:
        yield f"{summary.refused:,} denied processes or disk space"
