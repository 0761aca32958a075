"""A guard beside a kubelet: how it is, and what it decided against what kernel and kubelet did."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.guard_status import GuardStatus
from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import GuardMode, LocalStorageExceeded, OOMKill, OOMLevel, ThresholdsMet, UnderPressure
from podqos.amounts import amount, counted, listed, mebibytes, span, two_units
from podqos.eviction.signals import SIGNALS, Signal
from podqos.logs.said import EvictionCause, seconds_of
from podqos.model.assumption import Assumption
from podqos.model.time_units import SECOND_US
from podqos.naming import stated_with
from podqos.qos.cgroup_paths import CgroupLevel
from podqos.text.journal import cause
from podqos.text.style import Style, columns, wrapped

if TYPE_CHECKING:
    from podqos.questions.autopsy import Autopsy

LINGER_US = 30 * SECOND_US
"""For so long after pressure has ended a death may still be told of: kubelets report in batches."""
LATE_US = SECOND_US
"""A decision within this time after a death came too late for it."""
_SAME_DEATH_US = {By.KERNEL: 2 * SECOND_US, By.KUBELET: 600 * SECOND_US}
"""What is told of one pod within this time is one death: several processes are killed, and several places tell."""
_MOST_EPISODES = 8
_LEVELS = {
    CgroupLevel.CONTAINER: OOMLevel.CONTAINER,
    CgroupLevel.POD: OOMLevel.POD,
    CgroupLevel.CLASS: OOMLevel.CLASS,
    CgroupLevel.KUBEPODS: OOMLevel.KUBEPODS,
    CgroupLevel.MACHINE: OOMLevel.NODE,
}
_SINCE_BOOT = re.compile(r"\d{1,8}(?:\.\d{1,9})?", re.ASCII)
_OWN_EVICTION_US = 600 * SECOND_US

_when = attrgetter("time_us", "node")


class Verdict(StrEnum):
    """What the guard's decision means for a death."""

    SAME = "Same"
    """The guard would have evicted, or did evict, this pod, before it died."""
    OTHER = "Other"
    """The guard would have evicted another pod before."""
    OWN_LIMIT = "OwnLimit"
    """The pod or its container reached its own limit: no eviction threshold is about that."""
    LATE = "Late"
    """The guard decided only afterwards."""
    UNFORESEEN = "Unforeseen"
    """The guard watched and decided nothing: no threshold was met when it looked."""
    NOT_WATCHING = "NotWatching"
    """No guard watched the node at that time."""


class Death(Struct, frozen=True, gc=False):
    """A pod that kernel or kubelet ended, as told by a log or by the API server."""

    time_us: int
    node: str
    pod: str
    by: By
    level: OOMLevel | None = None


class GuardDecision(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A pod that the guard chose."""

    time_us: int
    node: str
    pod: str
    enforced: bool
    """Whether it was evicted; else it was only said."""
    because: UnderPressure | LocalStorageExceeded

    @property
    def signal(self) -> Signal | None:
        """What ran short; None where the pod exceeded a limit of its own."""
        return self.because.signal if isinstance(self.because, UnderPressure) else None


class GuardedDeath(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A pod that kernel or kubelet ended, and what the guard had decided by then."""

    time_us: int
    node: str
    pod: str
    by: By
    verdict: Verdict
    level: OOMLevel | None = None
    """Which level ran out of memory, where the kernel killed and that is known."""
    decision: GuardDecision | None = None
    """The decision that would have come first; with ``Late`` the one that came too late."""

    @property
    def margin_us(self) -> int | None:
        """How long before the death the decision was; negative where it was late."""
        return None if self.decision is None else self.time_us - self.decision.time_us


class GuardedNode(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A node with a guard, as far as its journal goes."""

    node: str
    first_us: int
    last_us: int
    enforces: bool
    """As of the last entry."""


class Tally(Struct, frozen=True, gc=False, rename="camel"):
    """How many pods one of the two ended, by what the guard had decided."""

    by: By
    pods: int
    verdicts: dict[Verdict, int]


class GuardReport(Struct, frozen=True, rename="camel"):
    """The guard against kernel and kubelet: the whole output of ``podqos guard report -o json``."""

    nodes: tuple[GuardedNode, ...]
    tallies: tuple[Tally, ...]
    deaths: tuple[GuardedDeath, ...]
    """In the order of time."""
    unneeded: tuple[GuardDecision, ...] = ()
    """The first decision under each pressure that passed without a death."""
    evicted: tuple[GuardDecision, ...] = ()
    """What the guard did evict."""
    api_version: str = "podqos.dev/v1alpha1"
    kind: str = "GuardReport"
    assumptions: tuple[Assumption, ...] = ()


class _Episode:
    """Pressure, what the guard decided under it, and who died of it."""

    def __init__(self) -> None:
        self.decisions: dict[str, GuardDecision] = {}
        """By pod: the first of each, in order."""
        self.dead: set[str] = set()
        self.ended_us: int | None = None

    def takes(self, time_us: int) -> bool:
        return self.ended_us is None or time_us <= self.ended_us + LINGER_US

    def first_decision(self, pod: str, time_us: int) -> GuardDecision | None:
        """Return what the guard would have done first: the pod itself if all it chose before are dead."""
        before = (decision for decision in self.decisions.values() if decision.time_us <= time_us)
        return next((decision for decision in before if decision.pod == pod or decision.pod not in self.dead), None)


class NodeHindsight:
    """Judges the deaths of one node; entries come in the order of time, except for a few that are told late."""

    def __init__(self) -> None:
        self._is_watched = False
        self._episodes: list[_Episode] = []
        self._waiting: list[GuardedDeath] = []
        """Unforeseen so far: a decision may still be on its way."""
        self._last_death: dict[tuple[str, By], int] = {}

    def heard(self, entry: Entry | Death) -> Iterator[GuardedDeath | GuardDecision]:
        """Take an entry; yield deaths that are judged with it, and decisions that turn out to be for nothing."""
        yield from self._settled(entry.time_us)
        if isinstance(entry, Death):
            yield from self._died(entry)
            return
        match entry.kind, entry.because, entry.by:
            case Kind.WATCHING, GuardMode(ended=ended), _:
                self._is_watched = not ended
            case Kind.OBSERVED, ThresholdsMet(met=met), _:
                self._is_watched = True
                self._pressure({figures.signal for figures in met}, entry.time_us)
            case (
                Kind.WOULD_EVICT | Kind.EVICTED
            ) as kind, UnderPressure() | LocalStorageExceeded() as because, By.GUARD:
                self._is_watched = True
                enforced = kind is Kind.EVICTED
                decision = GuardDecision(entry.time_us, entry.node, entry.pod or "", enforced, because)
                yield from self._decided(decision)
            case (Kind.OOM_KILLED, because, By.KERNEL as by) | (Kind.EVICTED, because, By.KUBELET as by):
                if entry.pod is not None:
                    level = because.level if isinstance(because, OOMKill) else None
                    yield from self._died(Death(entry.time_us, entry.node, entry.pod, by, level))

    def end(self) -> Iterator[GuardedDeath | GuardDecision]:
        """Yield what is left to be judged: nothing comes any more."""
        yield from self._waiting
        self._waiting = []
        for episode in self._episodes:
            if episode.ended_us is not None:
                yield from _for_nothing(episode)
        self._episodes = []

    def _pressure(self, signals: set[Signal], time_us: int) -> None:
        episode = self._open()
        if episode is not None and not any(decision.signal in signals for decision in episode.decisions.values()):
            episode.ended_us = time_us

    def _decided(self, decision: GuardDecision) -> Iterator[GuardedDeath]:
        late = [death for death in self._waiting if decision.time_us - death.time_us <= LATE_US]
        for death in late:
            self._waiting.remove(death)
            yield replace(death, verdict=Verdict.LATE, decision=decision)
        episode = self._open()
        if episode is None:
            episode = _Episode()
            episode.dead = {death.pod for death in late}
            self._episodes = [*self._episodes[1 - _MOST_EPISODES :], episode]
        episode.decisions.setdefault(decision.pod, decision)
        if decision.signal is None:
            episode.ended_us = decision.time_us  # nothing says when a limit of a pod's own is kept again

    def _open(self) -> _Episode | None:
        last = self._episodes[-1] if self._episodes else None
        return last if last is not None and last.ended_us is None else None

    def _died(self, told: Death) -> Iterator[GuardedDeath]:
        pod, time_us, by, level = told.pod, told.time_us, told.by, told.level
        before_us = self._last_death.pop((pod, by), None)
        self._last_death[pod, by] = time_us
        if before_us is not None and abs(time_us - before_us) <= _SAME_DEATH_US[by]:
            return
        if len(self._last_death) > 1000:
            del self._last_death[next(iter(self._last_death))]
        death = GuardedDeath(time_us, told.node, pod, by, Verdict.UNFORESEEN, level)
        for episode in reversed(self._episodes):
            decision = episode.first_decision(pod, time_us) if episode.takes(time_us) else None
            if decision is None:
                continue
            if decision.pod != pod and level in {OOMLevel.CONTAINER, OOMLevel.POD}:
                break
            episode.dead.add(pod)
            yield replace(death, verdict=Verdict.SAME if decision.pod == pod else Verdict.OTHER, decision=decision)
            return
        if level in {OOMLevel.CONTAINER, OOMLevel.POD}:
            yield replace(death, verdict=Verdict.OWN_LIMIT)
        elif not self._is_watched:
            yield replace(death, verdict=Verdict.NOT_WATCHING)
        else:
            self._waiting.append(death)

    def _settled(self, now_us: int) -> Iterator[GuardedDeath | GuardDecision]:
        due = [death for death in self._waiting if now_us - death.time_us > LATE_US]
        for death in due:
            self._waiting.remove(death)
            yield death
        over = [episode for episode in self._episodes if not episode.takes(now_us)]
        for episode in over:
            self._episodes.remove(episode)
            yield from _for_nothing(episode)


def _for_nothing(episode: _Episode) -> Iterator[GuardDecision]:
    """Yield the decision that began it, if no pod died, and the guard did not evict one either."""
    first = next(iter(episode.decisions.values()), None)
    if first is not None and not episode.dead and not any(decision.enforced for decision in episode.decisions.values()):
        yield first


def guard_report(
    journals: Sequence[Callable[[], Iterable[Entry]]],
    told: Autopsy,
    names: Mapping[str, str],
    *,
    now_us: int,
    boot_us: int,
    assumptions: Iterable[Assumption] = (),
) -> GuardReport:
    """Compare the guard's decisions in journals with the deaths recorded there, in logs and by the API server.

    ``names`` are pods by uid, for kills in pods that the rest does not know; ``boot_us`` is when this machine started,
    for logs that count from then. What happened before a journal begins is left out.
    """
    begins: dict[str, int] = {}
    own: dict[str, list[int]] = {}
    for entry in (entry for journal in journals for entry in journal()):
        begins.setdefault(entry.node, entry.time_us)
        if entry.kind is Kind.EVICTED and entry.by is By.GUARD and entry.pod is not None:
            own.setdefault(entry.pod, []).append(entry.time_us)
    deaths = _Deaths(told, names, begins, own, now_us=now_us, boot_us=boot_us)
    found: list[Entry | Death] = sorted(deaths.all(), key=_when)
    streams: list[Iterable[Entry | Death]] = [*(journal() for journal in journals), found]
    return judged(merge(*streams, key=_when), (*assumptions, *deaths.assumptions()))


def judged(entries: Iterable[Entry | Death], assumptions: tuple[Assumption, ...] = ()) -> GuardReport:
    """Return a report of journals that are merged with what logs and the API server tell, in the order of time."""
    by_node: dict[str, NodeHindsight] = {}
    found: list[GuardedDeath | GuardDecision] = []
    evicted: list[GuardDecision] = []
    nodes: dict[str, GuardedNode] = {}
    for entry in entries:
        hindsight = by_node.setdefault(entry.node, NodeHindsight())
        found += hindsight.heard(entry)
        if isinstance(entry, Death):
            continue
        seen = nodes.get(entry.node)
        enforces = entry.because.enforce if isinstance(entry.because, GuardMode) else bool(seen and seen.enforces)
        first_us = entry.time_us if seen is None else seen.first_us
        nodes[entry.node] = GuardedNode(entry.node, first_us, entry.time_us, enforces)
        if entry.kind is Kind.EVICTED and entry.by is By.GUARD and entry.pod is not None:
            assert isinstance(entry.because, UnderPressure | LocalStorageExceeded)
            evicted.append(GuardDecision(entry.time_us, entry.node, entry.pod, True, entry.because))
    for hindsight in by_node.values():
        found += hindsight.end()
    deaths = sorted((each for each in found if isinstance(each, GuardedDeath)), key=_when)
    unneeded = sorted((each for each in found if isinstance(each, GuardDecision)), key=_when)
    tallies = tuple(_tally(by, deaths) for by in (By.KERNEL, By.KUBELET))
    return GuardReport(
        tuple(sorted(nodes.values(), key=lambda node: node.node)),
        tallies,
        tuple(deaths),
        tuple(unneeded),
        tuple(evicted),
        assumptions=assumptions,
    )


def _tally(by: By, deaths: Iterable[GuardedDeath]) -> Tally:
    verdicts = [death.verdict for death in deaths if death.by is by]
    return Tally(by, len(verdicts), {verdict: verdicts.count(verdict) for verdict in Verdict if verdict in verdicts})


API = "API server"


_SWITCHES = {
    "shadow": f"shadow: it decides and logs, but evicts nothing ({stated_with('enforce')})",
    "stop file": "evicts nothing: the stop file exists",
    "node annotation": "evicts nothing: the node has the annotation podqos.dev/guard: off",
    "rate limit": "evicts nothing: the rate limit is reached",
    "cool-down": "evicts nothing for a moment: cooling down after an eviction",
}


def status_facts(status: GuardStatus, now_us: int) -> list[tuple[str, str]]:
    """Return what a guard is about, knows and may do, each under its name."""
    up_us = status.updated_us - status.started_us
    share = status.cpu_seconds / max(1, up_us) * SECOND_US
    on = [*(["the stop file"] * status.stop_file), *(["the node's annotation"] * status.node_annotation)]
    return [
        ("guard", f"node {status.node}, podqos {status.version}, pid {status.pid}, up {two_units(up_us)}"),
        ("mode", mode(status)),
        ("kill switch", f"on: {' and '.join(on)}" if on else "off"),
        ("watches", f"{status.kubepods} (cgroup {status.cgroup})"),
        ("settings", status.kubelet_settings or "the kubelet's own answer (/configz)"),
        ("pods", _pods(status)),
        (API, _api(status, now_us)),
        ("evictions", _evictions(status)),
        ("rate limit", _limit(status, now_us)),
        ("protection", f"not protected: {'; '.join(status.unprotected)}" if status.unprotected else "complete"),
        ("uses", f"{100 * share:.2f} % of a core since it started, {mebibytes(status.rss_bytes)} of memory"),
    ]


def mode(status: GuardStatus) -> str:
    """Return whether a guard evicts, and what keeps it from that."""
    return _SWITCHES.get(status.held_back, f"evicts nothing: {status.held_back}") if status.held_back else "enforces"


def is_away(status: GuardStatus) -> bool:
    """Whether a guard knows less than it should: of no pod yet, or only what it knew before."""
    return status.api.synced_us is None or bool(status.api.trouble)


def _pods(status: GuardStatus) -> str:
    why = Counter(pod.why for pod in status.excluded)
    spared = [f"{count} excluded: {reason}" for reason, count in sorted(why.items())]
    parts = [f"{status.known} known", f"{status.candidates} may be evicted", *spared]
    if status.unknown_cgroups:
        parts.append(f"{counted(status.unknown_cgroups, 'cgroup')} of pods unknown to the API server, left alone")
    return "; ".join(parts)


def _api(status: GuardStatus, now_us: int) -> str:
    api = status.api
    if api.synced_us is None:
        return f"no pods known yet{f': {api.trouble}' if api.trouble else ''}"
    age = two_units(now_us - api.synced_us)
    whose = " by an earlier guard" if api.from_disk else ""
    if api.trouble:
        return f"away: {api.trouble}; using state saved{whose} {age} ago"
    return f"from disk{whose}, {age} old" if api.from_disk else f"watching; last change {age} ago"


def _evictions(status: GuardStatus) -> str:
    taken = sorted(status.reactions_us)
    if not taken:
        return f"{status.evictions} since it started"
    median, slowest = span(taken[len(taken) // 2]), span(taken[min(len(taken) - 1, len(taken) * 99 // 100)])
    return f"{status.evictions} since it started; crossing to kill: median {median}, p99 {slowest}"


def _limit(status: GuardStatus, now_us: int) -> str:
    limit = status.limit
    if limit is None:
        return "none"
    until_us = limit.cool_down_until_us or 0
    rest = f"; cool-down for {span(until_us - now_us)} more" if until_us > now_us else ""
    return f"{limit.recent} of {limit.most} evictions within {two_units(limit.within_us)}{rest}"


_DID = {By.KERNEL: "The kernel killed", By.KUBELET: "The kubelet evicted"}
_VERDICTS = {
    Verdict.OTHER: "for {n} the guard would have evicted another pod first",
    Verdict.SAME: "for {n} the guard had chosen the same pod",
    Verdict.LATE: "for {n} the guard was too late",
    Verdict.UNFORESEEN: "{n} died with no threshold crossed",
    Verdict.OWN_LIMIT: "{n} reached {their} own limit",
    Verdict.NOT_WATCHING: "{n} died while no guard watched",
}


def report_lines(report: GuardReport, style: Style) -> list[str]:
    """Return the report."""
    lines = [
        f"node {node.node}, {'enforces' if node.enforces else 'shadow'}, {at(node.first_us)} to {at(node.last_us)} UTC"
        for node in report.nodes
    ] or ["the journal is empty"]
    lines += ["", *wrapped(" ".join(_sentences(report)), style, "", "")]
    if report.deaths:
        rows = [_row(death) for death in report.deaths]
        lines += ["", *columns(("AT (UTC)", "BY", "POD", "THE GUARD", "BEFORE", "FIGURES"), rows, style)]
    if report.unneeded:
        rows = [(at(decision.time_us), decision.pod, _figures(decision)) for decision in report.unneeded]
        lines += ["", style.strong("False alarms: pressure passed without a death")]
        lines += columns(("AT (UTC)", "POD", "FIGURES"), rows, style)
    return lines


def _sentences(report: GuardReport) -> Iterator[str]:
    for tally in report.tallies:
        if tally.pods:
            yield _told(tally)
    if not report.deaths:
        yield "No OOM kills and no evictions by the kubelet in this time."
    margins = sorted(death.margin_us or 0 for death in report.deaths if death.verdict in {Verdict.SAME, Verdict.OTHER})
    if margins:
        first, median, last = (span(margins[place]) for place in (0, len(margins) // 2, -1))
        many = f", median {median}" if len(margins) > 2 else ""
        yield f"It was {first} ahead{many}." if first == last else f"It was {first} to {last} ahead{many}."
    if report.evicted:
        yield f"The guard itself evicted {counted(len(report.evicted), 'pod')}."
    if report.unneeded:
        alarms = counted(len(report.unneeded), "false alarm")
        yield f"{alarms}: it chose a pod, but the pressure passed without a death."


def _told(tally: Tally) -> str:
    parts = [
        words.format(n=count, their="its" if count == 1 else "their")
        for verdict, words in _VERDICTS.items()
        if (count := tally.verdicts.get(verdict, 0))
    ]
    return f"{_DID[tally.by]} {counted(tally.pods, 'pod')}: {listed(parts)}."


def _row(death: GuardedDeath) -> tuple[str, ...]:
    decision = death.decision
    margin = death.margin_us
    before = "–" if margin is None else f"−{span(-margin)}" if margin < 0 else span(margin)
    figures = _figures(decision) if decision is not None else _level(death)
    return at(death.time_us), death.by.value, death.pod, _choice(death), before, figures


def _choice(death: GuardedDeath) -> str:
    decision = death.decision
    match death.verdict:
        case Verdict.SAME | Verdict.OTHER | Verdict.LATE if decision is not None:
            who = "the same" if decision.pod == death.pod else decision.pod
            did = "evicted" if decision.enforced else "would evict"
            return f"{did} {who}{', too late' if death.verdict is Verdict.LATE else ''}"
        case Verdict.OWN_LIMIT:
            return "its own limit"
        case Verdict.NOT_WATCHING:
            return "not watching"
        case _:
            return "no threshold crossed"


def _level(death: GuardedDeath) -> str:
    levels = {
        OOMLevel.CONTAINER: "container's limit",
        OOMLevel.POD: "pod's limit",
        OOMLevel.CLASS: "limit of its class",
        OOMLevel.KUBEPODS: "limit of all pods",
        OOMLevel.NODE: "machine's memory",
    }
    return "–" if death.level is None else levels[death.level]


def _figures(decision: GuardDecision) -> str:
    kind = Kind.EVICTED if decision.enforced else Kind.WOULD_EVICT
    return cause(Entry(decision.time_us, decision.node, kind, decision.pod, None, By.GUARD, decision.because))


def at(time_us: int) -> str:
    """Return a time of a journal."""
    text = datetime.fromtimestamp(time_us / SECOND_US, UTC).isoformat(sep=" ", timespec="milliseconds")
    return text.removesuffix("+00:00")


def csv_rows(report: GuardReport) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
    """Return the deaths as a table for programs."""
    head = ("time_us", "node", "by", "pod", "verdict", "guard_pod", "margin_us", "enforced")
    rows = (
        (
            death.time_us, death.node, death.by.value, death.pod, death.verdict.value,
            death.decision.pod if death.decision else "", death.margin_us,
            death.decision.enforced if death.decision else "",
        )
        for death in report.deaths
    )  # fmt: skip
    return head, rows


def status_lines(status: GuardStatus, now_us: int, style: Style) -> list[str]:
    """Return the status of a guard."""
    lines = [
        f"{style.strong(name.ljust(12))}{style.alarm(text) if name == API and is_away(status) else text}"
        for name, text in status_facts(status, now_us)
    ]
    if status.is_stale(now_us):
        gone = f"This guard has stopped or is stuck: its last update was {two_units(now_us - status.updated_us)} ago."
        lines = [style.alarm(gone), *lines]
    if status.signals:
        lines += ["", *_thresholds(status, style)]
    for each in (note for note in status.notes if note not in status.unprotected):
        lines += wrapped(each, style, "  ", "! ")
    return lines


def _thresholds(status: GuardStatus, style: Style) -> Iterator[str]:
    rows = []
    for signal in status.signals:
        resource = SIGNALS[signal.signal].resource
        left = signal.available - signal.threshold
        room = amount(left, resource) if left >= 0 else style.alarm(f"−{amount(-left, resource)}")
        shown = [amount(number, resource) for number in (signal.threshold, signal.available)]
        rows.append(
            (signal.signal.value, "hard" if signal.hard else "soft", *shown, room, amount(signal.capacity, resource))
        )
    return iter(columns(("SIGNAL", "KIND", "THRESHOLD", "AVAILABLE", "HEADROOM", "CAPACITY"), rows, style))


class _Deaths:
    """The deaths that logs and the API server report, and what had to be assumed about them."""

    def __init__(
        self,
        told: Autopsy,
        names: Mapping[str, str],
        nodes: Mapping[str, int],
        own: Mapping[str, list[int]],
        *,
        now_us: int,
        boot_us: int,
    ) -> None:
        self._told, self._names, self._nodes, self._own = told, names, nodes, own
        self._now_us, self._boot_us = now_us, boot_us
        self._undated = self._elsewhere = self._earlier = self._since_boot = 0
        self._nameless: set[str] = set()

    def all(self) -> Iterator[Death]:
        """Yield them."""
        for found in self._told.deaths:
            eviction, uid = found.eviction, found.pod_uid
            if found.oom is not None:
                pod = found.pod or self._names.get(uid, "") or (f"pod {uid}" if uid else "")
                # A process of no pod is no matter of the guard's.
                level = _LEVELS.get(found.oom.scope)
                kill = self._death(found.when, found.where, pod, By.KERNEL, level) if pod else None
                if kill is not None:
                    if not found.pod and uid not in self._names:
                        self._nameless.add(pod)
                    yield kill
            elif eviction is not None and eviction.cause is EvictionCause.NODE_PRESSURE and not eviction.is_by_guard:
                evicted = self._death(found.when, found.where, found.pod, By.KUBELET)
                if evicted is not None and not self._is_own(evicted):
                    yield evicted

    def assumptions(self) -> Iterator[Assumption]:
        """Yield what was assumed or left out."""
        if self._since_boot:
            how = "a log with dates, such as journalctl -k -o short-iso-precise or dmesg --time-format iso"
            yield Assumption("boot time of the machine that wrote the kernel log", "that of this machine", how)
        if self._undated:
            yield Assumption(f"{self._undated} deaths without a date", "left out", "a log with dates")
        if self._elsewhere:
            yield Assumption(
                f"{self._elsewhere} deaths on nodes without a journal", "left out", stated_with("journal", "FILE")
            )
        if self._earlier:
            yield Assumption(
                f"{self._earlier} deaths before the journal begins", "left out", stated_with("journal", "FILE")
            )
        if self._nameless:
            how = f"{stated_with('files', 'FILE')} with the pods, {stated_with('snapshot')} or {stated_with('context')}"
            yield Assumption(
                f"names of {len(self._nameless)} killed pods", "not known, none is the guard's choice", how
            )

    def _death(self, at: str, host: str, pod: str, by: By, level: OOMLevel | None = None) -> Death | None:
        """Return a death on a node with a journal, after the journal begins."""
        node, time_us = self._node(host), self._time_us(at)
        if node is None or time_us is None:
            return None
        if time_us < self._nodes[node]:
            self._earlier += 1
            return None
        return Death(time_us, node, pod, by, level)

    def _is_own(self, death: Death) -> bool:
        """Whether the guard itself evicted a pod: its status looks like the kubelet's."""
        return any(-SECOND_US <= death.time_us - each <= _OWN_EVICTION_US for each in self._own.get(death.pod, ()))

    def _node(self, name: str) -> str | None:
        if name in self._nodes:
            return name
        short = [node for node in self._nodes if name and node.partition(".")[0] == name.partition(".")[0]]
        if len(short) == 1 or len(self._nodes) == 1:
            return (short or [*self._nodes])[0]
        self._elsewhere += 1
        return None

    def _time_us(self, at: str) -> int | None:
        """Return a time in the journal's terms. A time in whole seconds counts as the end of that second."""
        if _SINCE_BOOT.fullmatch(at):
            self._since_boot += 1
            seconds: float | None = self._boot_us / SECOND_US + float(at)
        else:
            seconds = seconds_of(at, self._now_us / SECOND_US)
        if seconds is None:
            self._undated += 1
            return None
        time_us = int(seconds * SECOND_US)
        return time_us if time_us % SECOND_US else time_us + SECOND_US - 1
