"""Compares two runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind, is_kill
from podqos.agent.reasons import OOMKill, cause_of
from podqos.amounts import counted, listed
from podqos.model.assumption import Assumption
from podqos.model.time_units import SECOND_US
from podqos.runs.view import Kill, RunView, fatal_words, share_words, short_of_cpu
from podqos.sim.summary import RunSummary, WorkloadSummary
from podqos.text.style import Style, columns, wrapped


class Victim(Struct, frozen=True, gc=False, rename="camel"):
    """A pod that was evicted, or a container that was killed."""

    at_seconds: float
    by: By
    pod: str
    container: str | None = None
    """The container that the kernel killed; an eviction ends the whole pod."""
    cause: str | None = None
    """The level that ran out of memory, the signal, or the limit of the pod's own."""
    margin_bytes: int | None = None
    """By how much the kernel's choice was clear."""
    oom_score_adj: int | None = None


class Verdict(StrEnum):
    """How a victim of one journal compares with the other."""

    SAME = "same"
    OTHER_HAND = "other hand"
    """The same pod at the same place, but killed by the other of kernel and kubelet."""
    MOVED = "moved"
    """It is in both, but not at the same place of the order."""
    ONLY_EXPECTED = "only expected"
    ONLY_HAPPENED = "only happened"


class Explanation(StrEnum):
    """Why the two differ, if the journals say."""

    CLOSE_CALL = "the kernel's choice hung on less memory than figures are exact to"
    CLOSE_IN_TIME = "two fell so close together that either can be first"
    OTHER_SCORE = "the machine did not allow the planned oom_score_adj"


class ComparedVictim(Struct, frozen=True, gc=False, rename="camel"):
    """One victim, predicted, real, or both."""

    predicted: Victim | None
    real: Victim | None
    verdict: Verdict
    explanation: Explanation | None = None
    """Why they differ; null where they do not, or nothing says why."""

    @property
    def is_flagged(self) -> bool:
        """Whether they differ and nothing says why."""
        return self.verdict is not Verdict.SAME and self.explanation is None


class Tolerance(Struct, frozen=True, gc=False):
    """The precision of the figures."""

    margin_bytes: int = 8 << 20
    seconds: float = 0.5


class Comparison(Struct, frozen=True, gc=False):
    """The whole comparison."""

    victims: tuple[ComparedVictim, ...]
    """In the order of what was predicted; what was not stands where it happened."""

    @property
    def same_victims(self) -> bool:
        """Whether the same pods died, however often and in whatever order."""
        return not any(victim.predicted is None or victim.real is None for victim in self.victims)

    @property
    def same_order(self) -> bool:
        """Whether they died in the predicted order."""
        return all(victim.verdict in {Verdict.SAME, Verdict.OTHER_HAND} for victim in self.victims)

    @property
    def flagged(self) -> tuple[ComparedVictim, ...]:
        """The differences without an explanation."""
        return tuple(victim for victim in self.victims if victim.is_flagged)


class Rehearsal(Struct, frozen=True, rename="camel"):
    """The whole output of ``podqos rehearse -o json``. Fields are added, never renamed or removed."""

    scenario: str
    scale: str
    same_victims: bool
    same_order: bool
    flagged: int
    """Differences that nothing explains."""
    victims: tuple[ComparedVictim, ...]
    left_out: tuple[str, ...]
    """Parts of the scenario without a real counterpart."""
    notes: tuple[str, ...]
    """What the machine did not allow."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "Rehearsal"
    assumptions: tuple[Assumption, ...] = ()
    """What was assumed because it was not stated, and that the rules of a version are approximate."""


def compare(predicted: Iterable[Entry], real: Iterable[Entry], tolerance: Tolerance | None = None) -> Comparison:
    """Match the victims of two journals."""
    tolerance = tolerance or Tolerance()
    first, second = victims(predicted), victims(real)
    rows = matched(first, second)
    return Comparison(tuple(replace(row, explanation=_explanation(row, first, second, tolerance)) for row in rows))


def victims(entries: Iterable[Entry]) -> tuple[Victim, ...]:
    """Return the evicted and killed, in the order of the journal."""
    return tuple(filter(None, map(_victim, entries)))


def _victim(entry: Entry) -> Victim | None:
    if not is_kill(entry) or entry.pod is None:
        return None
    because = entry.because
    by = By.KERNEL if entry.kind is Kind.OOM_KILLED else By.KUBELET
    victim = Victim(entry.time_us / SECOND_US, by, entry.pod, entry.container, cause_of(because))
    if isinstance(because, OOMKill):
        return replace(victim, margin_bytes=because.margin_bytes, oom_score_adj=because.oom_score_adj)
    return victim


def matched(first: Sequence[Victim], second: Sequence[Victim]) -> Iterator[ComparedVictim]:
    """Pair victims: in order where that is possible, the rest by pod."""
    matcher = SequenceMatcher(None, [victim.pod for victim in first], [each.pod for each in second], autojunk=False)
    left: list[Victim] = []
    right: list[Victim] = []
    rows: list[tuple[float, ComparedVictim]] = []
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for one, other in zip(first[i1:i2], second[j1:j2], strict=True):
                verdict = Verdict.SAME if one.by is other.by else Verdict.OTHER_HAND
                rows.append((one.at_seconds, ComparedVictim(one, other, verdict)))
        else:
            left += first[i1:i2]
            right += second[j1:j2]
    for one in left:
        found = next((victim for victim in right if victim.pod == one.pod), None)
        if found is not None:
            right.remove(found)
        verdict = Verdict.ONLY_EXPECTED if found is None else Verdict.MOVED
        rows.append((one.at_seconds, ComparedVictim(one, found, verdict)))
    rows += [(rest.at_seconds, ComparedVictim(None, rest, Verdict.ONLY_HAPPENED)) for rest in right]
    return (row for _, row in sorted(rows, key=lambda row: row[0]))


def _explanation(
    row: ComparedVictim, first: Sequence[Victim], second: Sequence[Victim], tolerance: Tolerance
) -> Explanation | None:
    one, other = row.predicted, row.real
    if row.verdict is Verdict.SAME:
        return None
    scores = {victim.oom_score_adj for victim in (one, other) if victim is not None} - {None}
    if len(scores) > 1:
        return Explanation.OTHER_SCORE
    if any(_is_close(victim, tolerance) for victim in (one, other)):
        return Explanation.CLOSE_CALL
    if row.verdict is Verdict.MOVED and (
        _has_neighbour(one, first, tolerance) or _has_neighbour(other, second, tolerance)
    ):
        return Explanation.CLOSE_IN_TIME
    return None


def _is_close(victim: Victim | None, tolerance: Tolerance) -> bool:
    return victim is not None and victim.margin_bytes is not None and victim.margin_bytes <= tolerance.margin_bytes


def _has_neighbour(victim: Victim | None, journal: Sequence[Victim], tolerance: Tolerance) -> bool:
    return victim is not None and any(
        other is not victim
        and other.pod != victim.pod
        and abs(other.at_seconds - victim.at_seconds) <= tolerance.seconds
        for other in journal
    )


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


def compare_runs(before: RunView, after: RunView) -> CompareView:
    """Compare two runs."""
    victims = [[_compare_victim(kill) for kill in run.kills] for run in (before, after)]
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


def _compare_victim(kill: Kill) -> Victim:
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


_VERDICTS = {
    Verdict.SAME: "same",
    Verdict.OTHER_HAND: "same pod, other killer",
    Verdict.MOVED: "different place in the order",
    Verdict.ONLY_EXPECTED: "did not happen",
    Verdict.ONLY_HAPPENED: "was not predicted",
}

_EXPLANATIONS = {
    Explanation.CLOSE_CALL: "the kernel's choice depended on less memory than the figures' precision",
    Explanation.CLOSE_IN_TIME: "two were so close in time that either could be first",
    Explanation.OTHER_SCORE: "this machine did not allow the planned oom_score_adj",
}


def table(report: Rehearsal, style: Style) -> list[str]:
    """Return the verdict, and both journals side by side."""
    lines = [_verdict(report, style), "", style.strong(f"{report.scenario}, {report.scale} of its memory")]
    rows = [
        (
            *_cells(victim.predicted),
            *_cells(victim.real),
            _VERDICTS[victim.verdict] + (f": {_EXPLANATIONS[victim.explanation]}" if victim.explanation else ""),
        )
        for victim in report.victims
    ]
    if rows:
        lines += columns(("PREDICTED", "BY", "VICTIM", "REAL", "BY", "VICTIM", ""), rows, style, "  ")
    if report.left_out or report.notes:
        lines.append("")
    if report.left_out:
        lines.append(f"Not rehearsed: {', '.join(report.left_out)}.")
    for note in report.notes:
        lines += wrapped(style.faint(note), style, "  ")
    return lines


def _cells(victim: Victim | None) -> tuple[str, str, str]:
    return ("–", "", "") if victim is None else (f"{victim.at_seconds:.2f} s", str(victim.by), victim.pod)


def _verdict(report: Rehearsal, style: Style) -> str:
    if not report.victims:
        return "No pod was predicted to die, and none did."
    if report.same_victims and report.same_order:
        return "The kernel did as predicted: the same victims in the same order."
    if not report.flagged:
        return "Some outcomes differ; every difference is explained."
    what = "difference" if report.flagged == 1 else "differences"
    return style.alarm(f"{report.flagged} unexplained {what}.")
