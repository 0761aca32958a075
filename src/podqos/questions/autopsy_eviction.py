"""Why a pod was evicted: what is left of the decision put together, made again, and compared with what the kubelet did.

Events, statuses, the kubelet's log and journals of podqos each leave a trace. A message says what the evicted pod's
containers used, those above their request only; what the other pods used at that moment is not left anywhere. So the
ranking (``eviction.ranking``) is made three times: as is likely, with all that is open against the evicted pod, and
with all that is open in its favour. Where it comes first all the same, or never does, the verdict does not depend on
what is not known. What would have spared it is tried by running the kubelet's pass again. Nothing in traces is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import ConditionStatus, LocalStorageExceeded, NotAdmitted, RoomForCritical, UnderPressure
from podqos.eviction.manager import EvictPod
from podqos.eviction.messages import (
    BY_KUBELET,
    CONDITION,
    GUARD_ANNOTATION,
    GUARD_COMPONENT,
    MADE_ROOM,
    MOST_CHARACTERS,
    NODE_SHUT_DOWN,
    REASON,
    EvictionMessage,
    MessageKind,
    read_message,
)
from podqos.eviction.pods import request_of, usage_of
from podqos.eviction.ranking import RankedPod, Ranking, rank
from podqos.eviction.signals import INODES, PIDS, SIGNALS, DiskUse, NodeCondition, Signal
from podqos.logs.said import EvictionCause, EvictionTrace, NodeSign, SignKind, TraceSource, seconds_of
from podqos.model.effective import pod_limits
from podqos.model.event import Event, ObjectReference
from podqos.model.node import Node
from podqos.model.pod import TERMINAL_PHASES, Pod, QOSClass
from podqos.model.pod_fate import FatedPod
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.model.stats import ContainerStats, FsStats, MemoryStats, PodReference, PodStats, ProcessStats
from podqos.orders.counterfactual import Counterfactual, PodChange, Surroundings, controlled_alike, room_beside
from podqos.orders.trials import KubeletMoment, at_threshold, kubelet_counterfactuals
from podqos.qos.classes import qos_class_of
from podqos.questions.autopsy_death import (
    NEXT,
    Death,
    DeathSaving,
    Eviction,
    Manner,
    RankedRow,
    Reason,
    SavedBy,
    UsageSource,
)
from podqos.questions.autopsy_oom import MOST_SHOWN, journal_time
from podqos.questions.autopsy_saved import with_margin

# ---- traces ----------------------------------------------------------------------------------------------------------

_FAILED, _NODE_LOST, _TAINT_MANAGER = "Failed", "NodeLost", "TaintManagerEviction"
_MARKED_SECONDS = 600.0
_NAME_CHARACTERS = 600  # namespace/name has at most 317
_BY_MESSAGE = {
    MessageKind.PRESSURE: EvictionCause.NODE_PRESSURE,
    MessageKind.LOCAL_STORAGE: EvictionCause.LOCAL_STORAGE_LIMIT,
    MessageKind.NOT_ADMITTED: EvictionCause.NOT_ADMITTED,
}
_NO_ROOM = dict.fromkeys(("OutOfmemory", "OutOfephemeral-storage"), EvictionCause.NO_ROOM)
_BY_REASON = {
    **_NO_ROOM,
    "Preempting": EvictionCause.CRITICAL_POD,
    "Terminated": EvictionCause.NODE_SHUTDOWN,
    "NodeShutdown": EvictionCause.NOT_ADMITTED_AT_SHUTDOWN,
}
"""Of a failed pod's status, and of Events."""
_BY_EVENT = {
    **_BY_REASON,
    "Preempted": EvictionCause.PREEMPTED_BY_SCHEDULER,
    "NodeControllerEviction": EvictionCause.NODE_LOST,
}
# What the condition DisruptionTarget says: the kubelet's messages, and the reasons of others.
_BY_KUBELET = {MADE_ROOM: EvictionCause.CRITICAL_POD, NODE_SHUT_DOWN: EvictionCause.NODE_SHUTDOWN}
_BY_CONDITION = {
    "EvictionByEvictionAPI": EvictionCause.EVICTION_API,
    "PreemptionByScheduler": EvictionCause.PREEMPTED_BY_SCHEDULER,
    "DeletionByTaintManager": EvictionCause.TAINT,
    "DeletionByPodGC": EvictionCause.POD_GC,
}
_AT_START = {EvictionCause.NOT_ADMITTED, EvictionCause.NO_ROOM, EvictionCause.NOT_ADMITTED_AT_SHUTDOWN}
_NOT_BY_KUBELET = {
    EvictionCause.EVICTION_API,
    EvictionCause.TAINT,
    EvictionCause.PREEMPTED_BY_SCHEDULER,
    EvictionCause.NODE_LOST,
    EvictionCause.OTHER,
}
_ON_REQUEST = {
    "ScaleDown": "deleting pod for node scale down",
    "EvictedByVPA": "Pod was evicted by VPA Updater",
    REASON: "Evicted pod",
}
"""The words of the cluster autoscaler, of the autoscaler of sizes, and of Karpenter."""
_NOTHING = "\0"
_DESCHEDULED = re.compile(r"pod (?:evicted|eviction)(?: from (\S{1,253}) node)? by sigs\.k8s\.io/descheduler\s{0,8}$")
"""The reasons of its events are the names of its plugins."""


def event_trace(event: Event) -> EvictionTrace | None:
    """Return the eviction that an event tells of; None: it tells of none."""
    about, text = event.about, event.text[:MOST_CHARACTERS]
    if about.kind not in {"", "Pod"} or not (about.name or about.kind):
        return None
    message, moved = None, _DESCHEDULED.match(text)
    if event.reason == REASON and not text.startswith(_ON_REQUEST[REASON]):
        message = read_message(text)
        cause = _cause(message, text)
    elif event.reason == _TAINT_MANAGER and text.startswith("Marking for deletion"):
        cause = EvictionCause.TAINT
    elif text.startswith(_ON_REQUEST.get(event.reason, _NOTHING)) or moved is not None:
        cause = EvictionCause.EVICTION_API
    elif event.reason in _BY_EVENT:
        cause = _BY_EVENT[event.reason]
    else:
        return None
    namespace = about.namespace or event.metadata.namespace
    pod = f"{namespace}/{about.name}" if namespace else about.name
    node = (moved[1] or "") if moved is not None else "" if cause in _NOT_BY_KUBELET else event.host
    return EvictionTrace(
        TraceSource.EVENT,
        pod[:_NAME_CHARACTERS],
        cause,
        event.first_at,
        node,
        about.uid,
        text,
        message,
        is_by_guard=event.component == GUARD_COMPONENT,
    )


def status_trace(pod: FatedPod) -> EvictionTrace | None:
    """Return the eviction that a pod's status tells of; None: it tells of none."""
    status = pod.status
    condition = next((each for each in status.conditions if each.type == CONDITION and each.status == "True"), None)
    by_kubelet = condition.message if condition is not None and condition.reason == BY_KUBELET else None
    message, text = None, status.message or by_kubelet or ""
    if status.phase == _FAILED and status.reason == REASON:
        message = read_message(text)
        cause = _cause(message, text)
    elif status.phase == _FAILED and status.reason in _BY_REASON:
        cause = _BY_REASON[status.reason]
    elif condition is not None and condition.reason in _BY_CONDITION:
        cause = _BY_CONDITION[condition.reason]
    elif by_kubelet is not None:
        # Containers that exit with code 0 on SIGTERM leave the phase Succeeded, without a reason.
        message = read_message(by_kubelet)
        cause = _BY_KUBELET.get(by_kubelet) or _cause(message, by_kubelet)
    elif status.reason == _NODE_LOST:
        cause = EvictionCause.NODE_LOST
    elif condition is not None and not condition.reason:
        cause = EvictionCause.UNKNOWN  # a description has no reasons of conditions
    else:
        return None
    at = "" if condition is None else condition.last_transition_time or ""
    # A pod that was never admitted was rejected when it started; the start of another one is not its end.
    started = status.start_time if cause in _AT_START else ""
    marked = seconds_of(pod.metadata.annotations.get(GUARD_ANNOTATION, "").partition(" ")[0])
    evicted = seconds_of(at)
    # An annotation that its owner has set is older.
    is_marked = marked is not None and (evicted is None or abs(evicted - marked) <= _MARKED_SECONDS)
    return EvictionTrace(
        TraceSource.STATUS,
        pod.key,
        cause,
        at or pod.metadata.deletion_timestamp or max(_ends_of(pod), default="") or started or "",
        pod.spec.node_name,
        pod.metadata.uid,
        text[:MOST_CHARACTERS],
        message,
        is_by_guard=cause is EvictionCause.NODE_PRESSURE and is_marked,
    )


def message_trace(text: str) -> EvictionTrace:
    """Return the eviction that a message by itself tells of."""
    message = read_message(text)
    return EvictionTrace(TraceSource.MESSAGE, "", _cause(message, text), text=text[:MOST_CHARACTERS], message=message)


def _cause(message: EvictionMessage | None, text: str) -> EvictionCause:
    if message is not None:
        return _BY_MESSAGE[message.kind]
    return EvictionCause.OTHER if text.strip() else EvictionCause.UNKNOWN


def _ends_of(pod: FatedPod) -> list[str]:
    """Return when the containers of a pod ended, those that did."""
    states = [status.state.terminated for status in pod.status.container_statuses if status.state is not None]
    return [state.finished_at or "" for state in states if state is not None]


def journal_traces(entry: Entry) -> Iterator[EvictionTrace | NodeSign]:
    """Yield what an entry of a podqos journal tells of evictions."""
    at, because = journal_time(entry), entry.because
    if isinstance(because, ConditionStatus):
        kind = SignKind.PRESSURE_BEGAN if because.holds else SignKind.PRESSURE_ENDED
        yield NodeSign(kind, at, entry.node, because.condition)
    if entry.pod is None:
        return
    match entry.kind, because:
        case Kind.EVICTED, UnderPressure():
            cause, text = EvictionCause.NODE_PRESSURE, because.message
        case Kind.EVICTED, LocalStorageExceeded():
            cause, text = EvictionCause.LOCAL_STORAGE_LIMIT, because.message
        case Kind.REJECTED, NotAdmitted():
            cause, text = EvictionCause.NOT_ADMITTED, because.message
        case _, RoomForCritical():
            cause, text = EvictionCause.CRITICAL_POD, ""
        case Kind.PREEMPTED, _:
            cause, text = EvictionCause.PREEMPTED_BY_SCHEDULER, ""
        case _:
            return
    yield EvictionTrace(
        TraceSource.JOURNAL,
        entry.pod,
        cause,
        at,
        entry.node,
        text=text,
        message=read_message(text),
        because=because if isinstance(because, UnderPressure | LocalStorageExceeded) else None,
        is_by_guard=entry.by is By.GUARD,
    )


# ---- what nodes went through -----------------------------------------------------------------------------------------

_CONDITION_EVENTS = {
    "NodeHasInsufficientMemory": (SignKind.PRESSURE_BEGAN, NodeCondition.MEMORY_PRESSURE),
    "NodeHasSufficientMemory": (SignKind.PRESSURE_ENDED, NodeCondition.MEMORY_PRESSURE),
    "NodeHasDiskPressure": (SignKind.PRESSURE_BEGAN, NodeCondition.DISK_PRESSURE),
    "NodeHasNoDiskPressure": (SignKind.PRESSURE_ENDED, NodeCondition.DISK_PRESSURE),
    "NodeHasInsufficientPID": (SignKind.PRESSURE_BEGAN, NodeCondition.PID_PRESSURE),
    "NodeHasSufficientPID": (SignKind.PRESSURE_ENDED, NodeCondition.PID_PRESSURE),
}
_RECLAIM = re.compile(r"Attempting to reclaim ([A-Za-z.-]{1,63})")
_SYSTEM_OOM = re.compile(r"System OOM encountered(?:, victim process: (?P<name>.{1,64}), pid: (?P<pid>\d{1,10}))?")
_KILLED = re.compile(r"Kill(?:ed)? process (?P<pid>\d{1,10}) \((?P<name>.{0,64}?)\)")


def event_sign(event: Event) -> NodeSign | None:
    """Return what an event tells of a node; None: it tells of none."""
    about, text, reason = event.about, event.text[:MOST_CHARACTERS], event.reason
    node = about.name if about.kind == "Node" else event.host
    at, times = event.first_at, event.count or event.deprecated_count or 1
    if event.series is not None:
        times = max(times, event.series.count)
    if reason in _CONDITION_EVENTS:
        kind, condition = _CONDITION_EVENTS[reason]
        return NodeSign(kind, at, node, condition, times=times)
    if reason == "EvictionThresholdMet":
        reclaimed = _RECLAIM.search(text)
        return NodeSign(SignKind.THRESHOLD_MET, at, node, resource=reclaimed[1] if reclaimed else "", times=times)
    if reason in {"SystemOOM", "OOMKilling"}:
        found = (_SYSTEM_OOM if reason == "SystemOOM" else _KILLED).search(text)
        name, pid = (found["name"] or "", found["pid"]) if found is not None else ("", None)
        number = None if pid is None else int(pid)
        return NodeSign(SignKind(reason), at, node, process=name, pid=number, times=times)
    if reason == "CgroupOOM":
        return NodeSign(SignKind.CONTAINER_OOM_KILLED, at, node, pod=_pod_of(about), times=times)
    if reason == "NodeNotReady":
        # Pods get one, too, without the name of the node.
        return NodeSign(SignKind.NOT_READY, at, node, pod=_pod_of(about), times=times)
    return NodeSign(SignKind.REBOOTED, at, node, times=times) if reason == "Rebooted" else None


def _pod_of(about: ObjectReference) -> str:
    return "" if about.kind == "Node" else f"{about.namespace}/{about.name}".removeprefix("/")


def condition_signs(node: Node) -> Iterator[NodeSign]:
    """Yield the pressure that a node is under, and that it is not ready."""
    for condition in node.status.conditions:
        if condition.type == "Ready" and condition.status in {"False", "Unknown"}:
            yield NodeSign(SignKind.NOT_READY, condition.last_transition_time or "", node.name)
        if condition.status == "True" and condition.type in {*NodeCondition}:
            yield NodeSign(SignKind.PRESSURE_BEGAN, condition.last_transition_time or "", node.name, condition.type)


# ---- traces of one eviction ------------------------------------------------------------------------------------------

_APART_SECONDS = 600.0
"""Traces of pods with the same name that are further apart than this are of two pods."""
_MOST_COMPARED = 16
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
_BY = {
    EvictionCause.EVICTION_API: "user",
    EvictionCause.PREEMPTED_BY_SCHEDULER: "scheduler",
    EvictionCause.TAINT: "control plane",
    EvictionCause.POD_GC: "control plane",
    EvictionCause.NODE_LOST: "control plane",
    EvictionCause.OTHER: "another",
    EvictionCause.UNKNOWN: "unknown",
}
GUARD = "podqos guard"


def gathered(traces: Iterable[EvictionTrace]) -> list[list[EvictionTrace]]:
    """Return the traces of each eviction, in the order of the first.

    A pod is evicted once, and its uid says which it is. A log names pods alone, and one of a StatefulSet comes back
    under its name: then time decides.
    """
    groups: list[list[EvictionTrace]] = []
    by_uid: dict[str, list[EvictionTrace]] = {}
    by_name: dict[str, list[list[EvictionTrace]]] = {}
    for trace in sorted(traces, key=lambda trace: not trace.uid):
        # Of those without a name each is its own.
        named = by_name.get(trace.pod, []) if trace.pod else []
        group = by_uid.get(trace.uid) if trace.uid else _nearest(trace, named)
        if group is None:
            group = []
            groups.append(group)
            by_name.setdefault(trace.pod, []).append(group)
        group.append(trace)
        if trace.uid:
            by_uid[trace.uid] = group
    return groups


def _nearest(trace: EvictionTrace, groups: Sequence[list[EvictionTrace]]) -> list[EvictionTrace] | None:
    """Return the eviction that a trace without a uid is of: one of the last, where a pod came back very often."""
    for group in groups[-_MOST_COMPARED:]:
        known = [seconds for each in group[:_MOST_COMPARED] if (seconds := seconds_of(each.at)) is not None]
        at = seconds_of(trace.at, known[0] if known else None)
        if at is None or not known:
            # The same source does not tell of one eviction at two times.
            if all(each.source is not trace.source or each.at == trace.at for each in group):
                return group
        elif min(abs(at - each) for each in known) <= _APART_SECONDS:
            return group
    return None


def _told(traces: Sequence[EvictionTrace]) -> Death:
    """Return what the traces say together."""
    # A log that says no more than that a pod was evicted is the weakest witness.
    causes = {trace.cause for trace in traces if trace.message or trace.source is not TraceSource.KUBELET_LOG}
    other = next((trace.cause for trace in traces if trace.cause not in _UNSPECIFIC), traces[0].cause)
    cause = next((cause for cause in _SPECIFIC if cause in causes), other)
    message = _best_message(traces) or EvictionMessage(MessageKind.PRESSURE)
    ordered = sorted(traces, key=lambda trace: _BY_TIME.index(trace.source))
    stated = next((trace.signal for trace in traces if trace.signal in {*Signal}), "")
    signal = Signal(stated) if stated else next(iter(message.signals), None)
    excess = next((trace.because for trace in traces if isinstance(trace.because, LocalStorageExceeded)), None)
    is_by_guard = any(trace.is_by_guard for trace in traces)
    return Death(
        Manner.EVICTION,
        GUARD if is_by_guard else _BY.get(cause, "kubelet"),
        when=next((trace.at for trace in ordered if trace.at), ""),
        where=next((trace.node for trace in ordered if trace.node), ""),
        pod=traces[0].pod,
        pod_uid=next((trace.uid for trace in traces if trace.uid), ""),
        unit="pod",
        eviction=Eviction(
            cause,
            found_in=tuple(dict.fromkeys(trace.source for trace in ordered)),
            message=max((trace.text for trace in traces), key=len).strip(),
            is_by_guard=is_by_guard,
            resource=message.resource,
            signal=signal,
            possible_signals=(signal,) if stated and signal is not None else message.signals,
            threshold=message.threshold,
            available=message.available,
            containers=message.containers,
            limit_kind=message.limit_kind if excess is None else excess.limit_kind,
            limit_name=message.limit_name if excess is None else excess.name,
            limit_bytes=message.limit if excess is None else excess.limit_bytes,
            conditions=message.conditions,
        ),
    )


def _best_message(traces: Sequence[EvictionTrace]) -> EvictionMessage | None:
    """Return the message that says most: a status may be cut, a log may lack the usage."""
    return max(
        (trace.message for trace in traces if trace.message is not None),
        key=lambda message: (
            message.limit_kind is not None,
            message.limit is not None,
            len(message.containers),
            message.available is not None,
        ),
        default=None,
    )


# ---- the decision, made again ----------------------------------------------------------------------------------------

_NO_BOUND = 1 << 62


class SceneNode(Struct, frozen=True):
    """What is known of the node of an eviction."""

    name: str = ""
    pods: tuple[FatedPod, ...] = ()
    """All of it, those that ended included."""
    stats: Mapping[str, PodStats] = {}
    """By uid: what its kubelet measured, at another moment."""
    capacity: Mapping[Signal, int] = {}
    allocatable: Mapping[str, int] | None = None


NOTHING_KNOWN = SceneNode()


def examine_eviction(
    traces: Sequence[EvictionTrace],
    known: SceneNode = NOTHING_KNOWN,
    *,
    gone: frozenset[str] = frozenset(),
    most_shown: int = MOST_SHOWN,
    profile: Profile = LATEST,
) -> Death:
    """Return one eviction from its traces; ``gone`` are the uids of pods that were evicted before."""
    death = _told(traces)
    death = replace(death, where=known.name or death.where)  # a log may have another name for it
    found = death.eviction
    assert found is not None
    pod = next((pod for pod in known.pods if _is(pod, death)), None)
    if pod is not None:
        death = replace(
            death,
            pod_uid=death.pod_uid or pod.metadata.uid,
            where=death.where or pod.spec.node_name,
            qos_class=pod.status.qos_class or qos_class_of(pod, profile),
            priority=pod.spec.priority or 0,
        )
    if found.cause is EvictionCause.LOCAL_STORAGE_LIMIT:
        return replace(death, follows_rule=True, reason=Reason.OWN_LIMIT)
    if found.cause is EvictionCause.UNKNOWN:
        return replace(death, reason=Reason.NO_MESSAGE)
    if found.cause is not EvictionCause.NODE_PRESSURE:
        return death
    because = next((trace.because for trace in traces if isinstance(trace.because, UnderPressure)), None)
    if because is not None:
        return _of_journal(death, found, because)
    logged = max((trace.ranked for trace in traces), key=len)
    others = [other for other in known.pods if not _is(other, death) and _was_active(other, death, gone)]
    if found.signal is not None and pod is not None and others:
        rivals = [_with_uid(other) for other in others]
        ranking = Ranking(found.signal, profile=profile)
        scene = Scene(_with_uid(pod), rivals, ranking, message=_best_message(traces), known=known, logged=logged)
        return scene.judged(death, found, most_shown)
    after = tuple(each for each in logged if each != death.pod)
    if death.pod and logged[:1] == (death.pod,):
        found = replace(found, rivals=after[:1])
        return replace(death, follows_rule=True, reason=Reason.FIRST_IN_LOG, eviction=found)
    if found.signal is None:
        return replace(death, reason=Reason.SIGNAL_UNKNOWN)
    return replace(death, reason=Reason.POD_UNKNOWN if pod is None else Reason.PODS_UNKNOWN)


def _with_uid(pod: FatedPod) -> FatedPod:
    """Return a pod that can be told apart: manifests have no uids."""
    return pod if pod.metadata.uid else replace(pod, metadata=replace(pod.metadata, uid=pod.key))


def _is(pod: FatedPod, death: Death) -> bool:
    uid = pod.metadata.uid
    return uid == death.pod_uid if death.pod_uid and uid else pod.key == death.pod != ""


def _was_active(pod: FatedPod, death: Death, gone: frozenset[str]) -> bool:
    """Whether a pod ran on the node when another was evicted, as far as times say."""
    if (death.where and pod.spec.node_name not in {"", death.where}) or pod.metadata.uid in gone:
        return False
    at = seconds_of(death.when)
    began = seconds_of(pod.status.start_time or pod.metadata.creation_timestamp or "")
    if at is not None and began is not None and began > at:
        return False
    if pod.status.phase not in TERMINAL_PHASES:
        return pod.status.phase != "Pending" or bool(pod.status.start_time)
    disrupted = [each.last_transition_time or "" for each in pod.status.conditions if each.type == CONDITION]
    ended = [seconds for time in [*disrupted, *_ends_of(pod)] if (seconds := seconds_of(time)) is not None]
    return at is not None and max(ended, default=at) > at


def _of_journal(death: Death, found: Eviction, because: UnderPressure) -> Death:
    """Return the eviction of a podqos node, which wrote down what it decided on."""
    own = RankedRow(
        death.pod,
        mark="evicted",
        used=because.usage,
        priority=because.priority,
        usage_from=UsageSource.JOURNAL,
        request=because.request,
        over_request=because.over_request,
        before_next_by=because.before_next_by,
    )
    return replace(
        death,
        follows_rule=True,
        reason=Reason.FIRST_IN_LOG,
        candidates=because.candidates,
        priority=because.priority,
        ranking=(own,),
        eviction=replace(
            found,
            resource=SIGNALS[because.signal].resource,
            signal=because.signal,
            possible_signals=(because.signal,),
            threshold=because.threshold,
            available=because.available,
            rivals=() if because.next_pod is None else (because.next_pod,),
        ),
    )


class Bounds(Struct, frozen=True, gc=False):
    """What a pod used: at least, likely, at most."""

    least: int
    likely: int
    most: int
    source: UsageSource


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
        self.known = known
        self._row = SIGNALS[ranking.signal]
        quoted = () if message is None else message.containers
        self._quoted = {container.name: container.used or 0 for container in quoted}
        self.own = self._own_bounds(message)
        self.bounds = {other.metadata.uid: self._bounds_of(other) for other in others}
        # Where requests stand in for usage many rank the same: the log's order counts, then who may have used more.
        self._places = {name: place for place, name in enumerate(logged)}
        last = len(self._places)
        self.others = tuple(
            sorted(
                others,
                key=lambda other: (
                    self._places.get(other.key, last),
                    self.bounds[other.metadata.uid].most <= self.bounds[other.metadata.uid].likely,
                ),
            )
        )
        self.bounds[pod.metadata.uid] = self.own
        self.order = self._ranked((pod, *self.others), {uid: bound.likely for uid, bound in self.bounds.items()})
        critical = {other.key for other in self.others if other.is_critical}
        self.logged = [name for name in logged if name not in critical]
        """Those that may be evicted."""
        if pod.key in self._places:  # the log knew what they used
            self.order = tuple(sorted(self.order, key=lambda each: self._places.get(each.pod.key, last)))

    def stats(self, pods: Iterable[Pod]) -> dict[str, PodStats]:
        """Return what pods used, as is likely, by uid."""
        return {pod.metadata.uid: self._stats(pod, self.bounds[pod.metadata.uid].likely) for pod in pods}

    @property
    def unknown_next(self) -> str:
        """The pod that the log has after this one, if it is none of those that are known."""
        if self.pod.key not in self._places:
            return ""
        named = next((name for name in self.logged if name != self.pod.key), "")
        return "" if any(other.key == named for other in self.others) else named

    def _verdict(self) -> tuple[Reason, tuple[str, ...]]:
        """Return why the eviction follows from the rule or not, and which pods may have come first."""
        pod, uid, bounds = self.pod, self.pod.metadata.uid, self.bounds
        if pod.is_critical:
            return Reason.IS_CRITICAL, ()
        against = {each: own.least if each == uid else own.most for each, own in bounds.items()}
        # Of equals the first of the node's list goes first, and that list is not known: it counts against the verdict.
        before = takewhile(lambda each: each.pod is not pod, self._ranked((*self.others, pod), against))
        rivals = [each.pod for each in before if each.spared is None]
        if not rivals:
            return Reason.FIRST, ()
        in_favour = {each: own.most if each == uid else own.least for each, own in bounds.items()}
        best = next(each for each in self._ranked((pod, *self.others), in_favour) if each.spared is None)
        if best.pod is not pod:
            return Reason.OTHER_IS_FIRST, (best.pod.key,)
        if next(iter(self.logged), "") == pod.key:
            return Reason.FIRST_IN_LOG, ()
        is_measured = all(bounds[rival.metadata.uid].source is UsageSource.MEASURED for rival in rivals)
        first = next((each.pod for each in self.order if each.spared is None), None)
        names = tuple(rival.key for rival in rivals)
        if is_measured and self.own.source is UsageSource.MESSAGE and first is pod:
            return Reason.FIRST_AS_MEASURED, names
        return Reason.USAGE_DECIDES, names

    def judged(self, death: Death, found: Eviction, most_shown: int) -> Death:
        """Return the eviction with the ranking as is likely, and what would have spared the pod."""
        reason, rivals = self._verdict()
        others = [each for each in self.order if each.spared is None and each.pod is not self.pod]
        runner_up = None if self.unknown_next else next(iter(others), None)
        rows = [self._ranked_row(each, is_next=each is runner_up) for each in self.order]
        own = next(place for place, each in enumerate(self.order) if each.pod is self.pod)
        shown = rows[:most_shown] if own < most_shown else [*rows[: max(0, most_shown - 1)], rows[own]]
        is_false = reason in {Reason.OTHER_IS_FIRST, Reason.IS_CRITICAL}
        named = self.unknown_next
        return replace(
            death,
            follows_rule=None if reason is Reason.USAGE_DECIDES else not is_false,
            reason=reason,
            candidates=len(rows),
            ranking=tuple(shown),
            saved_by=savings(self, found.threshold, found.available),
            eviction=replace(
                found,
                runner_up=next((row for row in rows if row.standing), None),
                rivals=(named,) if named and not rivals else rivals,
            ),
        )

    def _ranked_row(self, each: RankedPod, *, is_next: bool) -> RankedRow:
        own, place = self.bounds[each.pod.metadata.uid], self._places.get(each.pod.key)
        marks = ["evicted"] * (each.pod is self.pod) + [each.spared or ""] * bool(each.spared)
        return RankedRow(
            each.pod.key,
            mark=", ".join(marks),
            used=own.likely,
            standing=NEXT if is_next else "",
            priority=each.priority,
            request=each.request.value,
            over_request=each.over_request,
            usage_from=own.source,
            is_at_least=own.source is UsageSource.MESSAGE and own.least != own.most,
            qos_class=each.pod.status.qos_class or qos_class_of(each.pod, self.ranking.profile),
            before_next_by=each.before_next_by,
            log_place=None if place is None else place + 1,
        )

    def _ranked(self, pods: Sequence[Pod], usage: Mapping[str, int]) -> tuple[RankedPod, ...]:
        stats = {pod.metadata.uid: self._stats(pod, usage[pod.metadata.uid]) for pod in pods}
        return rank(pods, stats, self.ranking)

    def _stats(self, pod: Pod, used: int) -> PodStats:
        """Return statistics with which a pod uses so much of what the signal is about."""
        resource = self._row.resource
        reference = PodReference(pod.metadata.name, pod.metadata.namespace, pod.metadata.uid)
        first = pod.spec.containers[0].name if pod.spec.containers else ""
        shares = self._quoted if pod is self.pod and sum(self._quoted.values()) == used else {first: used}
        if resource == MEMORY:
            containers = [ContainerStats(name, MemoryStats(working_set_bytes=held)) for name, held in shares.items()]
            return PodStats(reference, tuple(containers), MemoryStats(working_set_bytes=used))
        if resource == PIDS:
            return PodStats(reference, process_stats=ProcessStats(used))
        in_layer, nothing = DiskUse.ROOTFS in self._row.disk_use[self.ranking.layout], FsStats()
        containers = []
        for name, held in shares.items():
            fs = FsStats(inodes_used=held) if resource == INODES else FsStats(used_bytes=held)
            containers.append(
                ContainerStats(name, rootfs=fs if in_layer else nothing, logs=nothing if in_layer else fs)
            )
        return PodStats(reference, tuple(containers))

    def _own_bounds(self, message: EvictionMessage | None) -> Bounds:
        """Return what the evicted pod used, by its message: containers within their requests are not quoted."""
        pod, resource = self.pod, self._row.resource
        if message is None or resource in {INODES, PIDS} or message.resource != resource:
            return Bounds(0, self._request(pod), self._most(pod), UsageSource.ASSUMED)
        if message.pod is not None and message.pod.used is not None:
            return Bounds(message.pod.used, message.pod.used, message.pod.used, UsageSource.MESSAGE)
        quoted = {container.name: container.used for container in message.containers if container.used is not None}
        silent = [container for container in pod.running_containers if container.name not in quoted]
        requests = (container.resources.requests.get(resource) for container in silent)
        within = sum(amount.value for amount in requests if amount is not None)
        if not quoted and message.available is None:
            # A message without usage: either nothing was over its request, or there were no statistics.
            return Bounds(0, within, self._most(pod), UsageSource.ASSUMED)
        least = sum(quoted.values())
        return Bounds(least, least, least + within, UsageSource.MESSAGE)

    def _bounds_of(self, pod: Pod) -> Bounds:
        stats = self.known.stats.get(pod.metadata.uid)
        if stats is not None:
            used = usage_of(pod, stats, self._row.resource, self._row.disk_use[self.ranking.layout])
            return Bounds(0, used, self._most(pod), UsageSource.MEASURED)
        return Bounds(0, self._request(pod), self._most(pod), UsageSource.ASSUMED)

    def _request(self, pod: Pod) -> int:
        resource = self._row.resource
        return 0 if resource == PIDS else request_of(pod, resource, self.ranking.profile).value

    def _most(self, pod: Pod) -> int:
        """Return what a pod can use at most: its limits, where every container has one."""
        resource = self._row.resource
        if resource in {INODES, PIDS}:
            return _NO_BOUND
        own = pod.spec.resources.limits.get(resource) if pod.spec.resources is not None else None
        has_all = all(resource in container.resources.limits for container in pod.running_containers)
        limit = own or (pod_limits(pod).get(resource) if has_all else None)
        return _NO_BOUND if limit is None else limit.value


# ---- what would have spared it ---------------------------------------------------------------------------------------

_CHANGES = {
    PodChange.LESS: SavedBy.USAGE,
    PodChange.REQUEST: SavedBy.REQUEST,
    PodChange.GUARANTEED: SavedBy.CLASS,
    PodChange.PRIORITY: SavedBy.PRIORITY,
    PodChange.LIMIT: SavedBy.LIMIT,
}


def savings(scene: Scene, threshold: int | None, available: int | None) -> tuple[DeathSaving, ...]:
    """Return what would have spared the pod, each tried; nothing where it is not evicted with the likely figures.

    Without the amounts of a message the node is one unit below its threshold.
    """
    if scene.own.source is not UsageSource.MESSAGE:
        return ()
    is_known = threshold is not None and available is not None and 0 < available < threshold
    met = threshold or 2
    left = available if is_known and available is not None else met - 1
    alike = controlled_alike(scene.pod, scene.others)
    # The pass is repeated with the pods that change, and the first of all others: a place in the ranking is a pod's
    # own, so that no other can be evicted before that one.
    own = {scene.pod.metadata.uid, *alike}
    first = [each.pod for each in scene.order if each.spared is None and each.pod.metadata.uid not in own][:1]
    pods = (scene.pod, *(other for other in scene.others if other.metadata.uid in alike), *first)
    room = None
    if scene.known.allocatable is not None:
        beside = [other for other in scene.others if other not in pods]
        room = room_beside(beside, scene.known.allocatable, scene.ranking.profile)
    moment = _moment(scene, pods, met, left)
    tried = kubelet_counterfactuals(moment, scene.pod.metadata.uid, Surroundings(room, alike))
    found = [_saving(counterfactual, scene) for counterfactual in tried if counterfactual.saves]
    if tried and is_known:
        lacking = met - left
        if not _evicts(_moment(scene, pods, left, left)):
            found.append(DeathSaving(SavedBy.THRESHOLD, more=lacking, amount=left))
        is_memory = SIGNALS[scene.ranking.signal].resource == MEMORY
        if is_memory and not _evicts(_moment(scene, pods, met, met)):
            advised = with_margin(lacking, 0)
            is_tried = not _evicts(_moment(scene, pods, met, left + advised))
            found.append(DeathSaving(SavedBy.NODE_SIZE, more=lacking, advised=advised if is_tried else None))
    return tuple(found)


def _moment(scene: Scene, pods: tuple[Pod, ...], threshold: int, available: int) -> KubeletMoment:
    used = sum(bound.likely for bound in scene.bounds.values())
    capacity = max(scene.known.capacity.get(scene.ranking.signal, 0), threshold, available + used)
    return at_threshold(pods, scene.stats(pods), replace(scene.ranking, hard=True), capacity, (threshold, available))


def _evicts(moment: KubeletMoment) -> bool:
    return any(isinstance(command, EvictPod) for command in moment.decide().commands)


def _saving(each: Counterfactual, scene: Scene) -> DeathSaving:
    amount, more, profile = each.amount, None, scene.ranking.profile
    if each.change is PodChange.LESS and amount is not None:
        amount, more = scene.own.likely - amount, amount
    elif each.change is PodChange.REQUEST and each.pod is not None:
        before, after = (request_of(pod, each.resource, profile).value for pod in (scene.pod, each.pod))
        more = after - before
    instead, named = each.decision.instead or "", scene.unknown_next
    rivals = [other for other in scene.others if other.key == instead]
    is_assumed = any(scene.bounds[other.metadata.uid].source is UsageSource.ASSUMED for other in rivals)
    return DeathSaving(
        _CHANGES[each.change],
        more=more,
        amount=amount,
        container=each.container or "",
        qos_class=QOSClass.GUARANTEED if each.change is PodChange.GUARANTEED else None,
        instead=named if instead and named else instead,
        is_assumed=is_assumed or bool(instead and named),
    )
