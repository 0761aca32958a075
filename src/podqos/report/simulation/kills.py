"""The kills of a run: why each happened, where the victim stood in both orders, and what would have saved it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from podqos.agent.journal import By, Entry
from podqos.agent.reasons import Because, OOMKill, OOMLevel, UnderPressure
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.kernel.build import PAGE_BYTES
from podqos.model.snapshot import ContainerUsage, Snapshot
from podqos.model.time_units import SECOND_US
from podqos.report.simulation.counterfactual_words import kubelet_in_time, saving
from podqos.report.simulation.journal_words import is_kill, reasons, subject, verb
from podqos.report.simulation.node_series import ShownNode
from podqos.report.simulation.view import Kill, Saving
from podqos.sim.node.recording import Moment
from podqos.survival.counterfactual import kernel_rescues, kubelet_place, kubelet_rescues
from podqos.survival.orders import OOMDomain
from podqos.survival.outlook import outlook
from podqos.survival.race import Race, winning_threshold_bytes

MOST_KILLS = 200
"""A page with more of them would be read by nobody; the journal has all."""
_MIB = 1 << 20
_INTERVAL_US = MONITORING_INTERVAL_SECONDS * SECOND_US


def kills(entries: Sequence[Entry], nodes: Mapping[str, ShownNode]) -> Iterator[Kill]:
    """Yield the first kills on the nodes that are shown, in the order of the journal."""
    gone: dict[str, _Gone] = {}
    found = (entry for entry in entries if entry.node in nodes and is_kill(entry))
    for entry in islice(found, MOST_KILLS):
        assert entry.pod is not None
        before = gone.setdefault(entry.node, _Gone())
        yield _kill(entry, entry.pod, nodes[entry.node], before.at(entry.time_us))
        before.victims.add((entry.pod, entry.container))


class _Gone:
    """Who has been killed on a node at one time: a moment is recorded once, however many die in it."""

    def __init__(self) -> None:
        self._time_us = -1
        self.victims: set[tuple[str, str | None]] = set()

    def at(self, time_us: int) -> set[tuple[str, str | None]]:
        """Return the victims so far at a time."""
        if time_us != self._time_us:
            self._time_us = time_us
            self.victims = set()
        return self.victims


def _kill(entry: Entry, pod: str, node: ShownNode, gone: set[tuple[str, str | None]]) -> Kill:
    moment = _before(entry, pod, node.record.moments)
    because = entry.because
    kernel_at: int | None = None
    kubelet_at: int | None = None
    savings: tuple[Saving, ...] = ()
    if moment is not None:
        snapshot = _without(node.snapshot(moment), gone)
        uid = node.record.pods[pod].metadata.uid
        ranking = _ranking(because, node)
        kubelet_at = kubelet_place(snapshot, ranking, uid)
        if isinstance(because, OOMKill):
            kernel_at, savings = _kernel(entry, because, snapshot, uid, node)
        elif isinstance(because, UnderPressure):
            savings = tuple(saving(each, By.KUBELET) for each in kubelet_rescues(snapshot, ranking, uid))
    would_evict = because.would_evict if isinstance(because, OOMKill) else None
    return Kill(
        time_us=entry.time_us,
        node=entry.node,
        by=entry.by or By.KUBELET,
        pod=pod,
        qos_class=node.qos_class(pod),
        container=entry.container,
        title=f"{subject(entry)} {verb(entry)}",
        reasons=reasons(entry),
        because=because,
        kernel_place=kernel_at,
        kubelet_place=kubelet_at,
        would_evict=None if would_evict is None else would_evict.pod,
        savings=savings,
    )


def _without(snapshot: Snapshot, gone: set[tuple[str, str | None]]) -> Snapshot:
    """Return a snapshot without containers that died just before."""
    if not gone:
        return snapshot
    pods = []
    for used in snapshot.pods:
        key = used.pod.key
        left = tuple(each for each in used.containers if not {(key, each.name), (key, None)} & gone)
        if left:
            pods.append(replace(used, containers=left))
    return replace(snapshot, pods=tuple(pods))


def _kernel(
    entry: Entry, because: OOMKill, snapshot: Snapshot, uid: str, node: ShownNode
) -> tuple[int | None, tuple[Saving, ...]]:
    settings, victim = node.settings.agent, (uid, entry.container or "")
    domain = OOMDomain(because.total_pages * PAGE_BYTES, because.domain)
    found = kernel_rescues(_at_the_kill(snapshot, victim, because), settings.cgroups, domain, victim, settings.profile)
    if found is None or found.place > 1:
        return None, ()
    savings = [saving(each, By.KERNEL) for each in found.rescues]
    if because.level is OOMLevel.NODE:
        savings += _in_time(entry, because, node)
    return found.place, tuple(savings)


def _at_the_kill(snapshot: Snapshot, victim: tuple[str, str], because: OOMKill) -> Snapshot:
    """Return a snapshot in which the victim holds what the kernel saw; a moment is recorded before a demand jumps."""
    uid, name = victim

    def container(usage: ContainerUsage) -> ContainerUsage:
        if usage.name != name:
            return usage
        return replace(usage, anon_bytes=max(usage.anon_bytes, because.used_pages * PAGE_BYTES * usage.processes))

    pods = (
        replace(used, containers=tuple(map(container, used.containers))) if used.pod.metadata.uid == uid else used
        for used in snapshot.pods
    )
    return replace(snapshot, pods=tuple(pods))


def _in_time(entry: Entry, because: OOMKill, node: ShownNode) -> Iterator[Saving]:
    """Yield the threshold that would have made the kubelet act first, if memory fell steadily before the kill."""
    fall = _fall(node.record.moments, entry.time_us)
    if fall is None or entry.pod is None or not fall[1]:
        return
    start, growth = fall
    settings = node.settings
    left = outlook(node.snapshot(start), settings.agent.cgroups, settings.agent.profile)
    race = Race(
        available_bytes=left.available_bytes,
        until_oom_bytes=left.machine.until_oom_bytes,
        threshold_bytes=0,
        growth_bytes_per_second=growth,
        statistics_age_us=settings.spec.statistics_age_us,
    )
    needed = -(-winning_threshold_bytes(race) // _MIB) * _MIB
    would_evict = None if because.would_evict is None else because.would_evict.pod
    if needed < settings.spec.memory_bytes:
        yield kubelet_in_time(needed, growth, would_evict, entry.pod)


def _fall(moments: Sequence[Moment], time_us: int) -> tuple[Moment, int] | None:
    """Return since when memory fell before a time, hardly longer than the kubelet rests, and its loss per second."""
    at = bisect_left(moments, time_us, key=lambda moment: moment.time_us)
    if at == len(moments) or moments[at].time_us > time_us:
        at -= 1
    last = start = moments[at]
    for moment in reversed(moments[:at]):
        if moment.available_bytes < start.available_bytes or time_us - start.time_us > _INTERVAL_US:
            break
        start = moment
    if start.time_us == last.time_us or start.available_bytes <= last.available_bytes:
        return None
    return start, (start.available_bytes - last.available_bytes) * SECOND_US // (last.time_us - start.time_us)


def _before(entry: Entry, pod: str, moments: Sequence[Moment]) -> Moment | None:
    """Return the last moment, not after a kill, at which the victim still ran."""
    for moment in reversed(moments):
        if moment.time_us <= entry.time_us and pod in moment.pods:
            names = [each.name for each in moment.pods[pod].containers]
            if names and entry.container in {None, *names}:
                return moment
    return None


def _ranking(because: Because | None, node: ShownNode) -> Ranking:
    if isinstance(because, UnderPressure):
        return node.ranking(because.signal, hard=because.hard)
    return node.ranking(Signal.MEMORY, hard=True)
