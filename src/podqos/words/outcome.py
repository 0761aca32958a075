"""The outcome of a run in one sentence: one wording for terminal, picture and page, which must hold for the table."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.sim.summary import RunSummary, WorkloadSummary
from podqos.wording import counted
from podqos.words.jobs import jobs_headline
from podqos.words.services import services_headline


def headline(summary: RunSummary) -> str:
    """Return the outcome, the worst first: kills and evictions, or else what became of requests, Jobs and pods.

    Pods that were neither killed nor evicted, and yet affected, are counted, too: CPU shortage is an outcome.
    """
    fatal = fatal_words(summary)
    further = [*filter(None, (services_headline(summary.services), jobs_headline(summary.jobs)))]
    if summary.oom_kills or summary.evictions or (summary.untouched == summary.pods and not further):
        return " ".join([_sentence(f"{fatal}; {_pods(summary)}"), *further])
    return " ".join([*further, _sentence(_pods(summary)), _sentence(fatal)])


def fatal_words(summary: RunSummary, joint: str = ", ") -> str:
    """Return how many OOM kills and evictions there were: ``2 OOM kills, no evictions``."""
    return f"{many(summary.oom_kills, 'OOM kill')}{joint}{many(summary.evictions, 'eviction')}"


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
    """Return how pods were affected: each is counted once, and again if it was short of CPU as well."""
    parts = (f"{summary.untouched:,} of {counted(summary.pods, 'pod')} unaffected", *_affected(summary))
    return "; ".join(filter(None, (", ".join(parts), short_of_cpu_words(summary))))


def affected_words(summary: RunSummary) -> str:
    """Return how pods were affected, without those that were not; empty if none was."""
    return "; ".join(filter(None, (", ".join(_affected(summary)), short_of_cpu_words(summary))))


def short_of_cpu(summary: RunSummary) -> int:
    """Return how many pods were short of CPU at some time, whatever else happened to them.

    A pod is short of CPU while one of its containers gets less CPU than it wants, by a thousandth of a core or more,
    because of a CPU limit (it is throttled) or of contention.
    """
    return summary.throttled if summary.cpu is None else max(summary.throttled, summary.cpu.slowed)


def short_of_cpu_words(summary: RunSummary) -> str:
    """Return how many pods were short of CPU, and the worst of them; empty if none was."""
    pods = short_of_cpu(summary)
    if not pods:
        return ""
    worst = min(
        (workload for workload in summary.workloads if workload.cpu is not None and workload.cpu.slowed),
        key=lambda workload: (_least_share(workload), workload.workload),
        default=None,
    )
    words = f"{pods:,} short of CPU{' at some time' if pods > summary.throttled else ''}"
    if worst is None:
        return words
    return f"{words} (worst: {worst.workload}, down to {share_words(_least_share(worst))} of the CPU it wanted)"


def _least_share(workload: WorkloadSummary) -> float:
    return 1.0 if workload.cpu is None else workload.cpu.least_share


def many(count: int, what: str) -> str:
    """Return a number of things: ``no pods``, ``1 pod``, ``1,000 pods``."""
    return f"no {what}s" if count == 0 else f"{count:,} {what}{'' if count == 1 else 's'}"


def _affected(summary: RunSummary) -> Iterator[str]:
    """Yield how pods were affected, other than by CPU, where kills and evictions do not tell."""
    others = summary.never_ran + summary.waited + summary.throttled + summary.refused
    if summary.interrupted and (others or not summary.oom_kills + summary.evictions):
        yield f"{summary.interrupted:,} interrupted"
    if summary.never_ran:
        yield f"{summary.never_ran:,} never ran"
    if summary.waited:
        yield f"{summary.waited:,} waited for a node"
    if summary.refused:
        yield f"{summary.refused:,} denied processes or disk space"
