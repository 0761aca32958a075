"""Why a pod was evicted: what is left of the decision put together, made again, and compared with what the kubelet did.

Traces of one eviction come from several places (``eviction_traces``, ``kubelet_log``). The ranking is made again with
what is known of the node's pods (``eviction_scene``), and tried with changes (``eviction_savings``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.reasons import LocalStorageExceeded, UnderPressure
from podqos.eviction.local_storage import LocalStorageLimit
from podqos.eviction.message_reading import EvictionMessage, QuotedUsage
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import SIGNALS, NodeCondition, Signal
from podqos.model.pod import TERMINAL_PHASES, QOSClass
from podqos.model.pod_fate import FatedPod
from podqos.model.profile import LATEST, Profile
from podqos.qos.classes import qos_class_of
from podqos.survival.autopsy.eviction_savings import EvictionSaving, savings
from podqos.survival.autopsy.eviction_scene import (
    NOTHING_KNOWN,
    AutopsyPod,
    EvictionReason,
    Scene,
    SceneNode,
    UsageSource,
    first_in_log,
)
from podqos.survival.autopsy.eviction_traces import EvictionCause, EvictionTrace, TraceSource, seconds_of

MOST_SHOWN = 10
_APART_SECONDS = 600.0
"""Traces of pods with the same name that are further apart than this are of two pods."""
_MOST_COMPARED = 16
_FALSE = {EvictionReason.OTHER_IS_FIRST, EvictionReason.IS_CRITICAL}


class PodEviction(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One eviction: what was short, who had to go, and whether that follows from the rule."""

    pod: str
    cause: EvictionCause
    follows_rule: bool | None
    reason: EvictionReason
    at: str = ""
    node: str = ""
    uid: str = ""
    found_in: tuple[TraceSource, ...] = ()
    message: str = ""
    """The kubelet's, as it was found."""
    is_by_guard: bool = False
    """Whether ``podqos guard`` evicted it in the kubelet's place, by the kubelet's rule."""
    resource: str = ""
    """memory, ephemeral-storage, inodes or pids."""
    signal: Signal | None = None
    """What the ranking is made for: the likeliest of ``possibleSignals``."""
    possible_signals: tuple[Signal, ...] = ()
    """A message names the resource, which several signals share."""
    threshold: int | None = None
    """Bytes, inodes or processes."""
    available: int | None = None
    containers: tuple[QuotedUsage, ...] = ()
    """Those above their requests, with what they used."""
    limit_kind: LocalStorageLimit | None = None
    limit_name: str = ""
    limit_bytes: int | None = None
    conditions: tuple[NodeCondition, ...] = ()
    """For which it was not admitted."""
    qos_class: QOSClass | None = None
    priority: int | None = None
    candidates: int = 0
    """How many pods of the node are known."""
    ranking: tuple[AutopsyPod, ...] = ()
    runner_up: AutopsyPod | None = None
    """The pod that would have been evicted in its place."""
    rivals: tuple[str, ...] = ()
    """With UsageDecides: the pods that may have come first; if first in the log: the next there, if it is unknown."""
    saved_by: tuple[EvictionSaving, ...] = ()
    """Smallest intervention first; each was tried by running the pass again."""


def gathered(traces: Iterable[EvictionTrace]) -> list[list[EvictionTrace]]:
    """Return the traces of each eviction, in the order of the first.

    A pod is evicted once, and its uid says which it is. A log names pods alone, and one of a StatefulSet comes back
    under its name: then time decides.
    """
    groups: list[_Gathered] = []
    by_uid: dict[str, _Gathered] = {}
    by_name: dict[str, list[_Gathered]] = {}
    for trace in sorted(traces, key=lambda trace: not trace.uid):
        # Of those without a name each is its own.
        named = by_name.get(trace.pod, ()) if trace.pod else ()
        group = by_uid.get(trace.uid) if trace.uid else _nearest(trace, named)
        if group is None:
            group = _Gathered()
            groups.append(group)
            by_name.setdefault(trace.pod, []).append(group)
        group.add(trace)
        if trace.uid:
            by_uid[trace.uid] = group
    return [group.traces for group in groups]


class _Gathered:
    """The traces of an eviction so far, and what is compared of them, so that many cost no more than few."""

    def __init__(self) -> None:
        self.traces: list[EvictionTrace] = []
        self.times: tuple[float, float] | None = None
        """The first and the last."""
        self._told: dict[TraceSource, set[str]] = {}

    def add(self, trace: EvictionTrace) -> None:
        self.traces.append(trace)
        self._told.setdefault(trace.source, set()).add(trace.at)
        at = seconds_of(trace.at)
        if at is not None:
            first, last = self.times or (at, at)
            self.times = min(first, at), max(last, at)

    def is_told_otherwise(self, trace: EvictionTrace) -> bool:
        """Whether the same source tells of it at another time."""
        told = self._told.get(trace.source, ())
        return len(told) > 1 or (len(told) == 1 and trace.at not in told)

    def apart(self, at: float) -> float:
        """Return how far a time is from those of its traces."""
        assert self.times is not None
        first, last = self.times
        return max(first - at, at - last, 0)


def _nearest(trace: EvictionTrace, groups: Sequence[_Gathered]) -> _Gathered | None:
    """Return the eviction that a trace without a uid is of: one of the last, where a pod came back very often."""
    apart = []
    for group in groups[-_MOST_COMPARED:]:
        at = seconds_of(trace.at, group.times[0] if group.times else None)
        if at is None or group.times is None:
            if not group.is_told_otherwise(trace):
                return group
            continue
        apart.append((group.apart(at), group))
    nearest = min(apart, key=lambda each: each[0], default=None)
    return nearest[1] if nearest is not None and nearest[0] <= _APART_SECONDS else None


_SPECIFIC = (
    EvictionCause.LOCAL_STORAGE_LIMIT,
    EvictionCause.NODE_PRESSURE,
    EvictionCause.NOT_ADMITTED,
    EvictionCause.NO_ROOM,
    EvictionCause.CRITICAL_POD,
    EvictionCause.NODE_SHUTDOWN,
    EvictionCause.NOT_ADMITTED_AT_SHUTDOWN,
)
_UNSPECIFIC = (EvictionCause.UNKNOWN, EvictionCause.OTHER)
_BY_TIME = (TraceSource.EVENT, TraceSource.JOURNAL, TraceSource.STATUS, TraceSource.KUBELET_LOG, TraceSource.MESSAGE)


def examine_eviction(
    traces: Sequence[EvictionTrace],
    known: SceneNode = NOTHING_KNOWN,
    *,
    gone: frozenset[str] = frozenset(),
    most_shown: int = MOST_SHOWN,
    profile: Profile = LATEST,
) -> PodEviction:
    """Return one eviction from its traces; ``gone`` are the uids of pods that were evicted before."""
    found = _told(traces)
    if known.name:
        found = replace(found, node=known.name)  # a log may have another name for it
    pod = next((pod for pod in known.pods if _is(pod, found)), None)
    if pod is not None:
        found = replace(
            found,
            uid=found.uid or pod.metadata.uid,
            node=found.node or pod.spec.node_name,
            qos_class=pod.status.qos_class or qos_class_of(pod, profile),
            priority=pod.spec.priority or 0,
        )
    if found.cause is EvictionCause.LOCAL_STORAGE_LIMIT:
        return replace(found, follows_rule=True, reason=EvictionReason.OWN_LIMIT)
    if found.cause is EvictionCause.UNKNOWN:
        return replace(found, reason=EvictionReason.NO_MESSAGE)
    if found.cause is not EvictionCause.NODE_PRESSURE:
        return found
    because = next((trace.because for trace in traces if isinstance(trace.because, UnderPressure)), None)
    if because is not None:
        return _of_journal(found, because)
    logged = max((trace.ranked for trace in traces), key=len)
    others = [pod for pod in known.pods if not _is(pod, found) and _was_active(pod, found, gone)]
    if found.signal is None or pod is None or not others:
        return _by_log(found, logged, is_known=pod is not None)
    ranking = Ranking(found.signal, profile=profile)
    rivals = [_with_uid(other) for other in others]
    scene = Scene(_with_uid(pod), rivals, ranking, message=best_message(traces), known=known, logged=logged)
    return _by_rule(found, scene, most_shown)


def _by_log(found: PodEviction, logged: tuple[str, ...], *, is_known: bool) -> PodEviction:
    """Return an eviction that cannot be ranked; the kubelet's log may have done it."""
    after = tuple(each for each in logged if each != found.pod)
    if first_in_log(logged) == found.pod:
        return replace(found, follows_rule=True, reason=EvictionReason.FIRST_IN_LOG, rivals=after[:1])
    if found.signal is None:
        return replace(found, reason=EvictionReason.SIGNAL_UNKNOWN)
    return replace(found, reason=EvictionReason.PODS_UNKNOWN if is_known else EvictionReason.POD_UNKNOWN)


def _by_rule(found: PodEviction, scene: Scene, most_shown: int) -> PodEviction:
    reason, rivals = scene.verdict()
    rows = scene.rows()
    own = next(row for row, ranked_pod in zip(rows, scene.order, strict=True) if ranked_pod.pod is scene.pod)
    others = [row for row in rows if row is not own and not row.spared]
    named = scene.next_in_log
    is_unknown = bool(named) and all(row.pod != named for row in rows)
    shown = rows[:most_shown] if own.place <= most_shown else [*rows[: max(0, most_shown - 1)], own]
    return replace(
        found,
        follows_rule=None if reason is EvictionReason.USAGE_DECIDES else reason not in _FALSE,
        reason=reason,
        candidates=len(rows),
        ranking=tuple(shown),
        runner_up=None if is_unknown else next(iter(others), None),
        rivals=(named,) if is_unknown and not rivals else rivals,
        saved_by=savings(scene, found.threshold, found.available),
    )


def _with_uid(pod: FatedPod) -> FatedPod:
    """Return a pod that can be told apart: manifests have no uids."""
    return pod if pod.metadata.uid else replace(pod, metadata=replace(pod.metadata, uid=pod.key))


def _is(pod: FatedPod, found: PodEviction) -> bool:
    return pod.metadata.uid == found.uid if found.uid and pod.metadata.uid else pod.key == found.pod != ""


def best_message(traces: Sequence[EvictionTrace]) -> EvictionMessage | None:
    """Return the message among the traces of an eviction that says most."""
    messages = [trace.message for trace in traces if trace.message is not None]
    # A status may be cut, a log may lack the usage: the one that says most counts.
    return max(
        messages,
        key=lambda message: (
            message.limit_kind is not None,
            message.limit is not None,
            len(message.containers),
            message.available is not None,
        ),
        default=None,
    )


def _told(traces: Sequence[EvictionTrace]) -> PodEviction:
    """Return what the traces say together."""
    # A log that says no more than that a pod was evicted is the weakest witness.
    causes = {trace.cause for trace in traces if trace.message or trace.source is not TraceSource.KUBELET_LOG}
    message = best_message(traces)
    ordered = sorted(traces, key=lambda trace: _BY_TIME.index(trace.source))
    stated = next((trace.signal for trace in traces if trace.signal in {*Signal}), "")
    possible = () if message is None else message.signals
    signal = Signal(stated) if stated else next(iter(possible), None)
    excess = next((trace.because for trace in traces if isinstance(trace.because, LocalStorageExceeded)), None)
    limit = None if message is None else message.limit
    return PodEviction(
        pod=traces[0].pod,
        cause=next((cause for cause in _SPECIFIC if cause in causes), _other_cause(traces)),
        follows_rule=None,
        reason=EvictionReason.NOT_RANKED,
        at=next((trace.at for trace in ordered if trace.at), ""),
        node=next((trace.node for trace in ordered if trace.node), ""),
        uid=next((trace.uid for trace in traces if trace.uid), ""),
        found_in=tuple(dict.fromkeys(trace.source for trace in ordered)),
        message=max((trace.text for trace in traces), key=len).strip(),
        is_by_guard=any(trace.is_by_guard for trace in traces),
        resource="" if message is None else message.resource,
        signal=signal,
        possible_signals=(signal,) if stated and signal is not None else possible,
        threshold=None if message is None else message.threshold,
        available=None if message is None else message.available,
        containers=() if message is None else message.containers,
        limit_kind=excess.limit_kind if excess is not None else None if message is None else message.limit_kind,
        limit_name=excess.name if excess is not None else "" if message is None else message.limit_name,
        limit_bytes=excess.limit_bytes if excess is not None else limit,
        conditions=() if message is None else message.conditions,
    )


def _other_cause(traces: Sequence[EvictionTrace]) -> EvictionCause:
    return next((trace.cause for trace in traces if trace.cause not in _UNSPECIFIC), traces[0].cause)


def _was_active(pod: FatedPod, found: PodEviction, gone: frozenset[str]) -> bool:
    """Whether a pod ran on the node when another was evicted, as far as times say."""
    if found.node and pod.spec.node_name not in {"", found.node}:
        return False
    if pod.metadata.uid in gone:
        return False
    at = seconds_of(found.at)
    began = seconds_of(pod.status.start_time or pod.metadata.creation_timestamp or "")
    if at is not None and began is not None and began > at:
        return False
    if pod.status.phase not in TERMINAL_PHASES:
        return pod.status.phase != "Pending" or bool(pod.status.start_time)
    ended = _ended_at(pod)
    return at is not None and ended is not None and ended > at


def _ended_at(pod: FatedPod) -> float | None:
    times = [
        condition.last_transition_time or ""
        for condition in pod.status.conditions
        if condition.type == "DisruptionTarget"
    ]
    states = [status.state for status in pod.status.container_statuses]
    times += [
        state.terminated.finished_at or "" for state in states if state is not None and state.terminated is not None
    ]
    return max((seconds for time in times if (seconds := seconds_of(time)) is not None), default=None)


def _of_journal(found: PodEviction, because: UnderPressure) -> PodEviction:
    """Return the eviction of a podqos node, which wrote down what it decided on."""
    own = AutopsyPod(
        pod=found.pod,
        place=len(because.spared) + 1,
        priority=because.priority,
        usage=because.usage,
        usage_from=UsageSource.JOURNAL,
        request=because.request,
        over_request=because.over_request,
        before_next_by=because.before_next_by,
    )
    return replace(
        found,
        follows_rule=True,
        reason=EvictionReason.FIRST_IN_LOG,
        resource=SIGNALS[because.signal].resource,
        signal=because.signal,
        possible_signals=(because.signal,),
        threshold=because.threshold,
        available=because.available,
        candidates=because.candidates,
        priority=because.priority,
        ranking=(own,),
        rivals=() if because.next_pod is None else (because.next_pod,),
    )
