"""Who was where in the kubelet's ranking when a pod was evicted, as far as that can be known.

A message says what the evicted pod's containers used, those above their request only. What the other pods used at that
moment is not left anywhere. So the ranking (``eviction.ranking``) is made three times: as is likely, with all that is
open against the evicted pod, and with all that is open in its favour. Where it comes first all the same, or never
does, the verdict does not depend on what is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise, takewhile

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.message_reading import EvictionMessage
from podqos.eviction.ranking import RankedPod, Ranking, rank
from podqos.eviction.signals import INODES, PIDS, SIGNALS, DiskUse, RankKey, Signal
from podqos.eviction.usage import request_of, usage_of
from podqos.model.effective import pod_limits
from podqos.model.pod import Pod, QOSClass
from podqos.model.pod_fate import FatedPod
from podqos.model.resources import MEMORY
from podqos.model.stats import ContainerStats, FsStats, MemoryStats, PodReference, PodStats, ProcessStats
from podqos.qos.classes import qos_class_of

_NO_BOUND = 1 << 62


class EvictionReason(StrEnum):
    """Why an eviction follows from the rule or not, or why that cannot be told."""

    FIRST = "First"
    """It is the first in the ranking, whatever the other pods used."""
    FIRST_IN_LOG = "FirstInLog"
    """It is the first of those that the kubelet's log, or a journal of podqos, ranks and that may be evicted."""
    FIRST_AS_MEASURED = "FirstAsMeasured"
    """It is the first with what the other pods used at another moment."""
    OWN_LIMIT = "OwnLimit"
    """It exceeded a limit of its own; other pods do not matter."""
    OTHER_IS_FIRST = "OtherIsFirst"
    """Another pod comes first, whatever it used."""
    IS_CRITICAL = "IsCritical"
    """It is critical, which the kubelet does not evict."""
    USAGE_DECIDES = "UsageDecides"
    """What the other pods used decides, and that is not known."""
    PODS_UNKNOWN = "PodsUnknown"
    """The other pods of the node are not known."""
    POD_UNKNOWN = "PodUnknown"
    """The pod's own requests and priority are not known."""
    SIGNAL_UNKNOWN = "SignalUnknown"
    """What the node was short of is not said."""
    NO_MESSAGE = "NoMessage"
    """Why it was evicted is not in the text."""
    NOT_RANKED = "NotRanked"
    """No ranking decides about this kind of eviction."""


class UsageSource(StrEnum):
    """Where a figure is from."""

    MESSAGE = "message"
    """The eviction's own message: exact, for what it quotes."""
    MEASURED = "measured"
    """The kubelet, at another moment."""
    ASSUMED = "assumed"
    """Nothing is known; the request stands in."""
    JOURNAL = "journal"


class AutopsyPod(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A pod in the ranking."""

    pod: str
    place: int
    priority: int
    usage: int
    """Bytes, inodes or processes."""
    usage_from: UsageSource
    request: int
    over_request: bool
    is_at_least: bool = False
    """Whether it may have used more: a message leaves out containers within their requests."""
    qos_class: QOSClass | None = None
    spared: str = ""
    """Why the kubelet passes it over: critical."""
    before_next_by: RankKey | None = None
    log_place: int | None = None
    """Its place in the ranking of the kubelet's log."""


class SceneNode(Struct, frozen=True):
    """What is known of the node of an eviction."""

    name: str = ""
    pods: tuple[FatedPod, ...] = ()
    """All of it, those that ended included."""
    stats: Mapping[str, PodStats] = {}
    """By uid: what its kubelet measured, at another moment."""
    capacity: Mapping[Signal, int] = {}
    allocatable: Mapping[str, int] | None = None
    messages: Mapping[str, EvictionMessage] = {}
    """By uid, or name where none is known: what the kubelet said when it evicted a pod, at another moment."""


NOTHING_KNOWN = SceneNode()


class Bounds(Struct, frozen=True, gc=False):
    """What a pod used: at least, likely, at most."""

    least: int
    likely: int
    most: int
    source: UsageSource

    @property
    def is_exact(self) -> bool:
        """Whether there is no doubt."""
        return self.least == self.most

    @property
    def is_at_most(self) -> bool:
        """Whether it cannot have been more than is likely."""
        return self.most <= self.likely


class Scene:
    """The evicted pod, the others of its node, and what each used as far as that is known. Every pod has a uid.

    ``logged`` are pods in the order that the kubelet's log has.
    """

    def __init__(
        self,
        pod: Pod,
        others: Sequence[Pod],
        ranking: Ranking,
        *,
        message: EvictionMessage | None,
        known: SceneNode,
        logged: tuple[str, ...] = (),
    ) -> None:
        self.pod = pod
        self.ranking = ranking
        self.logged = logged
        self.known = known
        self._quoted = (
            {} if message is None else {container.name: container.used or 0 for container in message.containers}
        )
        self.own = _own_bounds(pod, message, ranking)
        self.grown: set[str] = set()
        """Pods by key of which only the most that they can have used is known."""
        self.bounds = {
            other.metadata.uid: self._before_growth(other, _bounds_of(other, known, ranking)) for other in others
        }
        # Where requests stand in for usage many rank the same: the log's order counts, then who may have used more.
        places = {name: place for place, name in enumerate(logged)}
        self.others = tuple(
            sorted(
                others,
                key=lambda other: (places.get(other.key, len(places)), self.bounds[other.metadata.uid].is_at_most),
            )
        )
        self.bounds[pod.metadata.uid] = self.own
        order = self._ranked((pod, *self.others), {uid: bound.likely for uid, bound in self.bounds.items()})
        self.order = _as_logged(order, places) if pod.key in places else order

    @property
    def next_in_log(self) -> str:
        """The pod that the kubelet's log has after this one; empty where it has none."""
        if self.pod.key not in self.logged:
            return ""
        spared = (other.key for other in self.others if other.is_critical)
        return first_in_log(self.logged, (self.pod.key, *spared)) or ""

    def _before_growth(self, other: Pod, bounds: Bounds) -> Bounds:
        """Return what a pod used that was evicted later: as it was not the first to be evicted, it has grown since."""
        if self.own.source is not UsageSource.MESSAGE or _said_later(other, self.known, self.ranking) is None:
            return bounds
        resource, profile = SIGNALS[self.ranking.signal].resource, self.ranking.profile
        own, request = (request_of(each, resource, profile).value for each in (self.pod, other))
        most = max(0, request + self.own.likely - own - 1)
        if bounds.likely <= most:
            return bounds
        self.grown.add(other.key)
        return replace(bounds, likely=most, source=UsageSource.ASSUMED)

    def stats(self, pods: Iterable[Pod]) -> dict[str, PodStats]:
        """Return what pods used, as is likely, by uid."""
        return {pod.metadata.uid: self._stats(pod, self.bounds[pod.metadata.uid].likely) for pod in pods}

    def verdict(self) -> tuple[EvictionReason, tuple[str, ...]]:
        """Return why the eviction follows from the rule or not, and which pods may have come first."""
        pod, uid, bounds = self.pod, self.pod.metadata.uid, self.bounds
        if pod.is_critical:
            return EvictionReason.IS_CRITICAL, ()
        against = {each: own.least if each == uid else own.most for each, own in bounds.items()}
        # Of equals the first of the node's list goes first, and that list is not known: it counts against the verdict.
        before = takewhile(lambda ranked_pod: ranked_pod.pod is not pod, self._ranked((*self.others, pod), against))
        rivals = [ranked_pod.pod for ranked_pod in before if ranked_pod.spared is None]
        if not rivals:
            return EvictionReason.FIRST, ()
        in_favour = {each: own.most if each == uid else own.least for each, own in bounds.items()}
        best = self._ranked((pod, *self.others), in_favour)
        if _first(best) != uid:
            return EvictionReason.OTHER_IS_FIRST, tuple(
                ranked_pod.pod.key for ranked_pod in best if ranked_pod.spared is None
            )[:1]
        if first_in_log(self.logged, (other.key for other in self.others if other.is_critical)) == pod.key:
            return EvictionReason.FIRST_IN_LOG, ()
        is_measured = all(bounds[rival.metadata.uid].source is UsageSource.MEASURED for rival in rivals)
        names = tuple(rival.key for rival in rivals)
        if is_measured and self.own.source is UsageSource.MESSAGE and _first(self.order) == uid:
            return EvictionReason.FIRST_AS_MEASURED, names
        return EvictionReason.USAGE_DECIDES, names

    def rows(self) -> list[AutopsyPod]:
        """Return the ranking as is likely."""
        places = {name: place for place, name in enumerate(self.logged, start=1)}
        return [self._row(place, ranked_pod, places) for place, ranked_pod in enumerate(self.order, start=1)]

    def _row(self, place: int, each: RankedPod, logged: Mapping[str, int]) -> AutopsyPod:
        own = self.bounds[each.pod.metadata.uid]
        return AutopsyPod(
            pod=each.pod.key,
            place=place,
            priority=each.priority,
            usage=own.likely,
            usage_from=own.source,
            request=each.request.value,
            over_request=each.over_request,
            is_at_least=own.source is UsageSource.MESSAGE and not own.is_exact,
            qos_class=each.pod.status.qos_class or qos_class_of(each.pod, self.ranking.profile),
            spared=each.spared or "",
            before_next_by=each.before_next_by,
            log_place=logged.get(each.pod.key),
        )

    def _ranked(self, pods: Sequence[Pod], usage: Mapping[str, int]) -> tuple[RankedPod, ...]:
        stats = {pod.metadata.uid: self._stats(pod, usage[pod.metadata.uid]) for pod in pods}
        return rank(pods, stats, self.ranking)

    def _stats(self, pod: Pod, used: int) -> PodStats:
        """Return statistics with which a pod uses so much of what the signal is about."""
        row = SIGNALS[self.ranking.signal]
        reference = PodReference(pod.metadata.name, pod.metadata.namespace, pod.metadata.uid)
        first = pod.spec.containers[0].name if pod.spec.containers else ""
        shares = self._quoted if pod is self.pod and sum(self._quoted.values()) == used else {first: used}
        if row.resource == MEMORY:
            containers = [ContainerStats(name, MemoryStats(working_set_bytes=held)) for name, held in shares.items()]
            return PodStats(reference, tuple(containers), MemoryStats(working_set_bytes=used))
        if row.resource == PIDS:
            return PodStats(reference, process_stats=ProcessStats(used))
        in_layer = DiskUse.ROOTFS in row.disk_use[self.ranking.layout]
        held_in = [
            (name, FsStats(inodes_used=held) if row.resource == INODES else FsStats(used_bytes=held))
            for name, held in shares.items()
        ]
        nothing = FsStats()
        containers = [
            ContainerStats(name, rootfs=fs if in_layer else nothing, logs=nothing if in_layer else fs)
            for name, fs in held_in
        ]
        return PodStats(reference, tuple(containers))


def first_in_log(logged: Sequence[str], critical: Iterable[str] = ()) -> str | None:
    """Return the first pod of a log's ranking that may be evicted."""
    spared = {*critical}
    return next((each for each in logged if each not in spared), None)


def _as_logged(order: Sequence[RankedPod], places: Mapping[str, int]) -> tuple[RankedPod, ...]:
    """Return a ranking in the log's order, which knew what the pods used; those that it lacks come last."""
    logged = sorted(order, key=lambda ranked_pod: places.get(ranked_pod.pod.key, len(places)))
    following = dict(pairwise(ranked_pod.pod.metadata.uid for ranked_pod in order))
    after = [*(ranked_pod.pod.metadata.uid for ranked_pod in logged[1:]), None]
    return tuple(
        ranked_pod if following.get(ranked_pod.pod.metadata.uid) == uid else replace(ranked_pod, before_next_by=None)
        for ranked_pod, uid in zip(logged, after, strict=True)
    )


def _first(order: Sequence[RankedPod]) -> str:
    return next((ranked_pod.pod.metadata.uid for ranked_pod in order if ranked_pod.spared is None), "")


def _own_bounds(pod: Pod, message: EvictionMessage | None, ranking: Ranking) -> Bounds:
    """Return what the evicted pod used, by its message: containers within their requests are not quoted."""
    resource = SIGNALS[ranking.signal].resource
    if message is None or resource in {INODES, PIDS} or message.resource != resource:
        return Bounds(0, request_of(pod, resource, ranking.profile).value, _most(pod, ranking), UsageSource.ASSUMED)
    if message.pod is not None and message.pod.used is not None:
        return Bounds(message.pod.used, message.pod.used, message.pod.used, UsageSource.MESSAGE)
    quoted = {container.name: container.used for container in message.containers if container.used is not None}
    least = sum(quoted.values())
    silent = [container for container in pod.running_containers if container.name not in quoted]
    within = sum(
        amount.value for container in silent if (amount := container.resources.requests.get(resource)) is not None
    )
    if not quoted and message.available is None:
        # An old message without usage: either nothing was over its request, or there were no statistics.
        return Bounds(0, within, _most(pod, ranking), UsageSource.ASSUMED)
    return Bounds(least, least, least + within, UsageSource.MESSAGE)


def _said_later(pod: Pod, known: SceneNode, ranking: Ranking) -> Bounds | None:
    """Return what a pod used when it was evicted later; None: it was not, or nothing says what it used."""
    message = known.messages.get(pod.metadata.uid) or known.messages.get(pod.key)
    if message is None or message.resource != SIGNALS[ranking.signal].resource:
        return None
    said = _own_bounds(pod, message, ranking)
    return said if said.source is UsageSource.MESSAGE else None


def _bounds_of(pod: Pod, known: SceneNode, ranking: Ranking) -> Bounds:
    row = SIGNALS[ranking.signal]
    said = _said_later(pod, known, ranking)
    if said is not None:
        return Bounds(0, said.likely, _most(pod, ranking), UsageSource.MEASURED)
    stats = known.stats.get(pod.metadata.uid)
    if stats is not None:
        used = usage_of(pod, stats, row.resource, row.disk_use[ranking.layout])
        return Bounds(0, used, _most(pod, ranking), UsageSource.MEASURED)
    own = request_of(pod, row.resource, ranking.profile).value if row.resource != PIDS else 0
    return Bounds(0, own, _most(pod, ranking), UsageSource.ASSUMED)


def _most(pod: Pod, ranking: Ranking) -> int:
    """Return what a pod can use at most: its limits, where every container has one."""
    resource = SIGNALS[ranking.signal].resource
    if resource in {INODES, PIDS}:
        return _NO_BOUND
    own = pod.spec.resources.limits.get(resource) if pod.spec.resources is not None else None
    if own is not None:
        return own.value
    has_all = all(resource in container.resources.limits for container in pod.running_containers)
    limit = pod_limits(pod).get(resource) if has_all else None
    return _NO_BOUND if limit is None else limit.value
