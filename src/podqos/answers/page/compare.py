"""Two runs side by side: who died in which, and how workloads fared.

The shape is stable: fields are added, never renamed or removed; ``docs/schema/page.json`` follows these classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from podqos.answers.run_view import Kill, RunView
from podqos.model.time_units import SECOND_US
from podqos.sim.summary import RunSummary, WorkloadSummary
from podqos.survival.comparison import Verdict, Victim, matched
from podqos.wording import counted, listed
from podqos.words.outcome import fatal_words, share_words, short_of_cpu

_MOST_NAMED = 3


class ComparedDeath(Struct, frozen=True, rename="camel"):
    """A victim of one run, or of both; numbers are places in the runs' lists of kills, from zero."""

    pod: str
    verdict: Verdict
    """``same``, ``other hand`` (kernel instead of kubelet, or the reverse), ``moved`` (another place in the order),
    ``only expected`` (only before) or ``only happened`` (only after)."""
    before: int | None
    after: int | None
    runs_in_both: bool = True
    """False: in the other run there was no room for it, so that it could not die."""


class ComparedWorkload(Struct, frozen=True, rename="camel"):
    """How a workload fared in both."""

    workload: str
    before: WorkloadSummary | None
    after: WorkloadSummary | None
    is_different: bool


class CompareView(Struct, frozen=True, rename="camel"):
    """Two runs, and where they differ."""

    before_name: str
    after_name: str
    headline: str
    before: RunSummary
    after: RunSummary
    deaths: tuple[ComparedDeath, ...]
    """In the order of time of the run before; what is only after stands where it happened."""
    workloads: tuple[ComparedWorkload, ...]
    """Those that differ first."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "CompareView"


def compare(before: RunView, after: RunView) -> CompareView:
    """Compare two runs."""
    victims = [[_victim(kill) for kill in run.kills] for run in (before, after)]
    places = [{id(victim): number for number, victim in enumerate(of)} for of in victims]
    known = [{pod.key: pod.workload for pod in run.pods} for run in (before, after)]
    fared = [{workload.workload: workload for workload in run.summary.workloads} for run in (before, after)]
    deaths = tuple(
        ComparedDeath(
            pod=(pod := (row.predicted or row.real).pod),  # type: ignore[union-attr] # one of them is there
            verdict=row.verdict,
            before=None if row.predicted is None else places[0][id(row.predicted)],
            after=None if row.real is None else places[1][id(row.real)],
            runs_in_both=_runs_in_both(pod, known, fared),
        )
        for row in matched(*victims)
    )
    workloads = [
        ComparedWorkload(name, fared[0].get(name), fared[1].get(name), fared[0].get(name) != fared[1].get(name))
        for name in dict.fromkeys((*fared[0], *fared[1]))
    ]
    return CompareView(
        before_name=before.name,
        after_name=after.name,
        headline=_headline(before.summary, after.summary, deaths) + _fewer(workloads),
        before=before.summary,
        after=after.summary,
        deaths=deaths,
        workloads=tuple(sorted(workloads, key=lambda workload: not workload.is_different)),
    )


def _runs_in_both(pod: str, known: Sequence[Mapping[str, str]], fared: Sequence[Mapping[str, WorkloadSummary]]) -> bool:
    """Whether no run lacks a pod and has fewer of its workload: a replacement is there only where a pod had died."""
    workload = next((own[pod] for own in known if pod in own), "")
    counts = [_running(of.get(workload)) for of in fared]
    return all(pod in own or count == max(counts) for own, count in zip(known, counts, strict=True))


def _victim(kill: Kill) -> Victim:
    return Victim(kill.time_us / SECOND_US, kill.by, kill.pod, kill.container)


def _headline(before: RunSummary, after: RunSummary, deaths: tuple[ComparedDeath, ...]) -> str:
    """Return what differs: OOM kills and evictions first, then pods that were affected otherwise."""
    sentences = [_fatal(before, after, deaths)]
    if _unaffected(before) != _unaffected(after):
        sentences.append(f"{_unaffected(after)} pods unaffected instead of {_unaffected(before)}.")
    return " ".join(filter(None, (*sentences, _short_of_cpu(before, after))))


def _fatal(before: RunSummary, after: RunSummary, deaths: tuple[ComparedDeath, ...]) -> str:
    old, new = _deaths(before), _deaths(after)
    was, now_is = fatal_words(before, " and "), fatal_words(after, " and ")
    if all(death.verdict is Verdict.SAME for death in deaths) and old == new:
        return f"Both runs: {now_is}."
    fared = [{workload.workload: _deaths(workload) for workload in run.workloads} for run in (before, after)]
    turned = [(fared[0].get(name, 0), fared[1].get(name, 0), name) for name in {**fared[0], **fared[1]}]
    turned = sorted((each for each in turned if each[0] != each[1]), key=lambda each: -abs(each[0] - each[1]))
    others = [f"{name} {then} instead of {now}" for now, then, name in turned[:_MOST_NAMED]]
    more = [f"{counted(len(turned) - _MOST_NAMED, 'more workload')}"] if len(turned) > _MOST_NAMED else []
    words = listed([*others, *more])
    if was == now_is:
        return f"Both runs: {now_is}, but {words or 'at other times or from another cause'}."
    return f"{now_is[:1].upper()}{now_is[1:]} instead of {was}{f': {words}' if words else ''}."


def _short_of_cpu(before: RunSummary, after: RunSummary) -> str:
    """Return how the shortage of CPU differs; empty where it does not."""
    old, new = short_of_cpu(before), short_of_cpu(after)
    was, now_is = (share_words(1.0 if run.cpu is None else run.cpu.least_share) for run in (before, after))
    if old != new:
        return f"{f'{new:,}' if new else 'No'} {'pod' if new == 1 else 'pods'} short of CPU instead of {old:,}."
    if was == now_is:
        return ""
    return f"{counted(new, 'pod')} short of CPU in both, down to {now_is} instead of {was} of the CPU wanted."


def _fewer(workloads: list[ComparedWorkload]) -> str:
    """Return of which workloads fewer pods run after than before: those cannot die, and nothing was gained for them."""
    counts = [(workload, _running(workload.before), _running(workload.after)) for workload in workloads]
    fewer = [f"{workload.workload} {now} instead of {then}" for workload, then, now in counts if now < then]
    more = [counted(len(fewer) - _MOST_NAMED, "more workload")] if len(fewer) > _MOST_NAMED else []
    return f" Fewer pods run: {listed([*fewer[:_MOST_NAMED], *more])}." if fewer else ""


def _running(summary: WorkloadSummary | None) -> int:
    """Return how many of its pods ran at all."""
    return 0 if summary is None else summary.pods - summary.never_ran


def _unaffected(summary: RunSummary) -> str:
    return f"{summary.untouched:,} of {summary.pods:,}"


def _deaths(of: RunSummary | WorkloadSummary) -> int:
    return of.oom_kills + of.evictions
