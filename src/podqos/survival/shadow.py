"""What a guard decided, against what kernel and kubelet did: who would have gone first, how long before, and for what.

Everything is read from one stream of journal entries in the order of time: the guard's decisions, and the deaths that
it saw or that logs and the API server tell of (as entries, too). A decision counts for the pressure it was made under:
from the threshold that was met until that is met no more. Metrics hear entries as they are written (``NodeHindsight``),
a report reads them from disk; both come to the same verdicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import (
    GuardMode,
    LocalStorageExceeded,
    OOMKill,
    OOMLevel,
    ThresholdsMet,
    UnderPressure,
)
from podqos.eviction.signals import Signal
from podqos.model.assumption import Assumption
from podqos.model.time_units import SECOND_US

LINGER_US = 30 * SECOND_US
"""For so long after pressure has ended a death may still be told of: kubelets report in batches."""
LATE_US = SECOND_US
"""A decision within this time after a death came too late for it."""
_SAME_DEATH_US = {By.KERNEL: 2 * SECOND_US, By.KUBELET: 600 * SECOND_US}
"""What is told of one pod within this time is one death: several processes are killed, and several places tell."""
_MOST_EPISODES = 8


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


def guard_report(entries: Iterable[Entry | Death], assumptions: tuple[Assumption, ...] = ()) -> GuardReport:
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


def _when(each: GuardedDeath | GuardDecision) -> tuple[int, str]:
    return each.time_us, each.node


def _tally(by: By, deaths: Iterable[GuardedDeath]) -> Tally:
    verdicts = [death.verdict for death in deaths if death.by is by]
    return Tally(by, len(verdicts), {verdict: verdicts.count(verdict) for verdict in Verdict if verdict in verdicts})
