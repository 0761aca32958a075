"""What is left of the kubelet's decisions: Events, the status of pods, conditions of nodes, journals of podqos.

Each leaves a trace of one eviction (``EvictionTrace``), or of what a node went through (``NodeSign``). What a kubelet's
log leaves is in ``kubelet_log``; traces become evictions in ``eviction_autopsy``. Nothing in them is trusted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.reasons import ConditionStatus, LocalStorageExceeded, NotAdmitted, RoomForCritical, UnderPressure
from podqos.eviction.message_reading import MOST_CHARACTERS, EvictionMessage, MessageKind, read_message
from podqos.eviction.messages import (
    BY_KUBELET,
    CONDITION,
    GUARD_ANNOTATION,
    GUARD_COMPONENT,
    MADE_ROOM,
    NODE_SHUT_DOWN,
    REASON,
)
from podqos.eviction.signals import NodeCondition
from podqos.model.event import Event, ObjectReference
from podqos.model.node import Node
from podqos.model.pod_fate import FatedPod
from podqos.model.time_units import SECOND_US

FAILED = "Failed"
_NAME_CHARACTERS = 600  # namespace/name has at most 317


class EvictionCause(StrEnum):
    """Why a pod had to go, or could not begin."""

    NODE_PRESSURE = "NodePressure"
    """The node was short of something; the kubelet ranked its pods, and this one was first."""
    LOCAL_STORAGE_LIMIT = "LocalStorageLimit"
    """The pod exceeded a limit of its own."""
    NOT_ADMITTED = "NotAdmitted"
    """It never ran: the node was short of something when it came."""
    NO_ROOM = "NoRoom"
    """It never ran: its requests did not fit into what the node had left when it came."""
    CRITICAL_POD = "CriticalPod"
    """The kubelet made room for a critical pod."""
    NODE_SHUTDOWN = "NodeShutdown"
    """The node was shutting down."""
    NOT_ADMITTED_AT_SHUTDOWN = "NotAdmittedAtShutdown"
    """It never ran: the node was shutting down when it came."""
    EVICTION_API = "EvictionAPI"
    """Someone asked for it: kubectl drain, an autoscaler."""
    PREEMPTED_BY_SCHEDULER = "PreemptedByScheduler"
    """The scheduler made room for a pod of higher priority."""
    TAINT = "Taint"
    """The node has a taint that the pod does not tolerate."""
    POD_GC = "PodGC"
    """Its node is gone."""
    NODE_LOST = "NodeLost"
    """Its node no longer reported, and it was deleted."""
    OTHER = "Other"
    """Something else calls it an eviction: the message says what."""
    UNKNOWN = "Unknown"
    """It was evicted, or deleted on purpose; the reason is not in the text."""


_BY_MESSAGE = {
    MessageKind.PRESSURE: EvictionCause.NODE_PRESSURE,
    MessageKind.LOCAL_STORAGE: EvictionCause.LOCAL_STORAGE_LIMIT,
    MessageKind.NOT_ADMITTED: EvictionCause.NOT_ADMITTED,
}
_NO_ROOM = dict.fromkeys(("OutOfmemory", "OutOfephemeral-storage"), EvictionCause.NO_ROOM)
# Reasons in the status of a pod that failed; "Shutdown" up to 1.21.
_BY_STATUS = {
    **_NO_ROOM,
    "Preempting": EvictionCause.CRITICAL_POD,
    "Terminated": EvictionCause.NODE_SHUTDOWN,
    "Shutdown": EvictionCause.NODE_SHUTDOWN,
    "NodeShutdown": EvictionCause.NOT_ADMITTED_AT_SHUTDOWN,
}
# What the condition DisruptionTarget says: the kubelet's messages, and the reasons of others.
_BY_KUBELET = {MADE_ROOM: EvictionCause.CRITICAL_POD, NODE_SHUT_DOWN: EvictionCause.NODE_SHUTDOWN}
_BY_CONDITION = {
    "EvictionByEvictionAPI": EvictionCause.EVICTION_API,
    "PreemptionByScheduler": EvictionCause.PREEMPTED_BY_SCHEDULER,
    "DeletionByTaintManager": EvictionCause.TAINT,
    "DeletionByPodGC": EvictionCause.POD_GC,
}
_BY_EVENT = {
    **_NO_ROOM,
    "Preempting": EvictionCause.CRITICAL_POD,
    "Terminated": EvictionCause.NODE_SHUTDOWN,
    "NodeShutdown": EvictionCause.NOT_ADMITTED_AT_SHUTDOWN,
    "Preempted": EvictionCause.PREEMPTED_BY_SCHEDULER,
    "NodeControllerEviction": EvictionCause.NODE_LOST,
}
_AT_START = {EvictionCause.NOT_ADMITTED, EvictionCause.NO_ROOM, EvictionCause.NOT_ADMITTED_AT_SHUTDOWN}
_NODE_LOST = "NodeLost"
_NOT_BY_KUBELET = {
    EvictionCause.EVICTION_API,
    EvictionCause.TAINT,
    EvictionCause.PREEMPTED_BY_SCHEDULER,
    EvictionCause.NODE_LOST,
    EvictionCause.OTHER,
}
_MARKED_SECONDS = 600.0
_TAINT_MANAGER, _MARKING = "TaintManagerEviction", "Marking for deletion"
_ON_REQUEST = {
    "ScaleDown": "deleting pod for node scale down",
    "EvictedByVPA": "Pod was evicted by VPA Updater",
    REASON: "Evicted pod",
}
"""The words of the cluster autoscaler, of the autoscaler of sizes, and of Karpenter."""
_NOTHING = "\0"
_DESCHEDULED = re.compile(r"pod (?:evicted|eviction)(?: from (\S{1,253}) node)? by sigs\.k8s\.io/descheduler\s{0,8}$")
"""The reasons of its events are the names of its plugins."""


class TraceSource(StrEnum):
    """Where a trace was found."""

    EVENT = "event"
    STATUS = "status"
    KUBELET_LOG = "kubeletLog"
    JOURNAL = "journal"
    MESSAGE = "message"
    """The message by itself: it does not name the pod."""


class EvictionTrace(Struct, frozen=True, gc=False):
    """What one place says about the eviction of a pod."""

    source: TraceSource
    pod: str
    """namespace/name; the name alone, or nothing, where a text says no more."""
    cause: EvictionCause
    at: str = ""
    node: str = ""
    uid: str = ""
    text: str = ""
    """The message as it was found."""
    message: EvictionMessage | None = None
    signal: str = ""
    """Where it is said: a message names the resource alone."""
    ranked: tuple[str, ...] = ()
    """All pods in the order of eviction, as the log has them."""
    because: UnderPressure | LocalStorageExceeded | None = None
    """What the journal of a podqos node says, which decided itself."""
    is_by_guard: bool = False
    """Whether ``podqos guard`` evicted it, by the kubelet's rule."""


class SignKind(StrEnum):
    """What a node went through."""

    SYSTEM_OOM = "SystemOOM"
    """The kubelet saw the machine run out of memory; before 1.21 also a cgroup, on kernels since 5.0."""
    OOM_KILLING = "OOMKilling"
    """The node problem detector saw a kill."""
    UNIT_OOM_KILLED = "UnitOOMKilled"
    """systemd saw the kernel kill a process of a unit."""
    CONTAINER_OOM_KILLED = "ContainerOOMKilled"
    """The container runtime saw the kernel kill a process of a container."""
    OOMD_KILLED_NOTHING = "OomdKilledNothing"
    """systemd-oomd looked for a cgroup to kill, or failed to kill one."""
    EARLYOOM_TRIGGERED = "EarlyoomTriggered"
    """earlyoom made the kernel's OOM killer act (sysrq f): its option -k."""
    INIT_OOM_KILLED = "InitOOMKilled"
    """The kernel killed the runtime's own process before a container started: its limit is too low for that."""
    THRESHOLD_MET = "EvictionThresholdMet"
    PRESSURE_BEGAN = "PressureBegan"
    PRESSURE_ENDED = "PressureEnded"
    RECLAIMED = "Reclaimed"
    """Cleaning up was enough: no pod was evicted."""
    NOTHING_TO_EVICT = "NothingToEvict"
    CLEAN_UP_TIMED_OUT = "CleanUpTimedOut"
    """An evicted pod was not gone in time, and the next one was looked for."""
    REBOOTED = "Rebooted"
    NOT_READY = "NotReady"
    """Its kubelet no longer reported, or reported that it cannot run pods."""


OOM_SIGNS = (
    SignKind.SYSTEM_OOM,
    SignKind.OOM_KILLING,
    SignKind.UNIT_OOM_KILLED,
    SignKind.CONTAINER_OOM_KILLED,
    SignKind.INIT_OOM_KILLED,
)
"""What tells of a kill by the kernel."""


class NodeSign(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Something that a node went through."""

    kind: SignKind
    at: str = ""
    node: str = ""
    condition: str = ""
    """Of PressureBegan and PressureEnded: MemoryPressure, DiskPressure or PIDPressure."""
    resource: str = ""
    pid: int | None = None
    process: str = ""
    """Who was killed, where that is said."""
    kill: int | None = None
    """The kill that it is about: its place among ``kills``, from 0."""
    pod: str = ""
    times: int = 1
    unit: str = ""
    """systemd's, of UnitOOMKilled."""
    container_id: str = ""
    """Of ContainerOOMKilled, and of SystemOOM where that is said."""
    is_machines: bool = False
    """Of SystemOOM: whether the kubelet is known to be one that does not take a cgroup's OOM for the machine's."""


_CONDITION_EVENTS = {
    "NodeHasInsufficientMemory": (SignKind.PRESSURE_BEGAN, NodeCondition.MEMORY_PRESSURE),
    "NodeHasSufficientMemory": (SignKind.PRESSURE_ENDED, NodeCondition.MEMORY_PRESSURE),
    "NodeHasDiskPressure": (SignKind.PRESSURE_BEGAN, NodeCondition.DISK_PRESSURE),
    "NodeHasNoDiskPressure": (SignKind.PRESSURE_ENDED, NodeCondition.DISK_PRESSURE),
    "NodeHasInsufficientPID": (SignKind.PRESSURE_BEGAN, NodeCondition.PID_PRESSURE),
    "NodeHasSufficientPID": (SignKind.PRESSURE_ENDED, NodeCondition.PID_PRESSURE),
}
_RECLAIM = re.compile(r"Attempting to reclaim ([A-Za-z.-]{1,63})")
_SYSTEM_OOM = re.compile(r"System OOM encountered(?:, victim process: (.{1,64}), pid: (\d{1,10}))?")
_KILLED = re.compile(r"Kill(?:ed)? process (\d{1,10}) \((.{0,64}?)\)")


def event_trace(event: Event) -> EvictionTrace | None:
    """Return the eviction that an event tells of; None: it tells of none."""
    about, text = event.about, event.text[:MOST_CHARACTERS]
    if about.kind not in {"", "Pod"} or not (about.name or about.kind):
        return None
    message = None
    if event.reason == REASON and not text.startswith(_ON_REQUEST[REASON]):
        message = read_message(text)
        cause = _cause(message, text)
    elif event.reason == _TAINT_MANAGER and text.startswith(_MARKING):
        cause = EvictionCause.TAINT
    elif text.startswith(_ON_REQUEST.get(event.reason, _NOTHING)) or _DESCHEDULED.match(text):
        cause = EvictionCause.EVICTION_API
    elif event.reason in _BY_EVENT:
        cause = _BY_EVENT[event.reason]
    else:
        return None
    namespace = about.namespace or event.metadata.namespace
    pod = f"{namespace}/{about.name}" if namespace else about.name
    by_kubelet = cause not in _NOT_BY_KUBELET
    moved = _DESCHEDULED.match(text)
    node = (moved[1] or "") if moved is not None else event.host if by_kubelet else ""
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
    condition = next(
        (condition for condition in status.conditions if condition.type == CONDITION and condition.status == "True"),
        None,
    )
    by_kubelet = condition.message if condition is not None and condition.reason == BY_KUBELET else None
    message, text = None, status.message or by_kubelet or ""
    if status.phase == FAILED and status.reason == REASON:
        message = read_message(text)
        cause = _cause(message, text)
    elif status.phase == FAILED and status.reason in _BY_STATUS:
        cause = _BY_STATUS[status.reason]
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
    return EvictionTrace(
        TraceSource.STATUS,
        pod.key,
        cause,
        at or pod.metadata.deletion_timestamp or _ended(pod) or started,
        pod.spec.node_name,
        pod.metadata.uid,
        text[:MOST_CHARACTERS],
        message,
        is_by_guard=cause is EvictionCause.NODE_PRESSURE and _is_marked(pod, at),
    )


def _is_marked(pod: FatedPod, at: str) -> bool:
    """Whether the guard has marked a pod for this eviction; an annotation that its owner has set is older."""
    marked = seconds_of(pod.metadata.annotations.get(GUARD_ANNOTATION, "").partition(" ")[0])
    evicted = seconds_of(at)
    return marked is not None and (evicted is None or abs(evicted - marked) <= _MARKED_SECONDS)


def _cause(message: EvictionMessage | None, text: str) -> EvictionCause:
    if message is not None:
        return _BY_MESSAGE[message.kind]
    return EvictionCause.OTHER if text.strip() else EvictionCause.UNKNOWN


def message_trace(text: str) -> EvictionTrace:
    """Return the eviction that a message by itself tells of."""
    message = read_message(text)
    return EvictionTrace(TraceSource.MESSAGE, "", _cause(message, text), text=text[:MOST_CHARACTERS], message=message)


def _ended(pod: FatedPod) -> str:
    """Return when the last container of a pod ended; empty where that is not known."""
    states = [status.state.terminated for status in pod.status.container_statuses if status.state is not None]
    return max((state.finished_at or "" for state in states if state is not None), default="")


def journal_traces(entries: Iterable[Entry]) -> Iterator[EvictionTrace | NodeSign]:
    """Yield what a journal of podqos tells of evictions; its kills are ``autopsy_journal``'s."""
    for entry in entries:
        at, because = journal_time(entry), entry.because
        if isinstance(because, ConditionStatus):
            kind = SignKind.PRESSURE_BEGAN if because.holds else SignKind.PRESSURE_ENDED
            yield NodeSign(kind, at, entry.node, because.condition)
        if entry.pod is None:
            continue
        by_guard = entry.by is By.GUARD
        trace = EvictionTrace(TraceSource.JOURNAL, entry.pod, EvictionCause.OTHER, at, entry.node, is_by_guard=by_guard)
        match entry.kind, because:
            case Kind.EVICTED, UnderPressure():
                yield _told(trace, EvictionCause.NODE_PRESSURE, because.message, because)
            case Kind.EVICTED, LocalStorageExceeded():
                yield _told(trace, EvictionCause.LOCAL_STORAGE_LIMIT, because.message, because)
            case Kind.REJECTED, NotAdmitted():
                yield _told(trace, EvictionCause.NOT_ADMITTED, because.message)
            case _, RoomForCritical():
                yield _told(trace, EvictionCause.CRITICAL_POD)
            case Kind.PREEMPTED, _:
                yield _told(trace, EvictionCause.PREEMPTED_BY_SCHEDULER)
            case _:
                pass


def _told(
    trace: EvictionTrace,
    cause: EvictionCause,
    text: str = "",
    because: UnderPressure | LocalStorageExceeded | None = None,
) -> EvictionTrace:
    return EvictionTrace(
        trace.source,
        trace.pod,
        cause,
        trace.at,
        trace.node,
        text=text,
        message=read_message(text),
        because=because,
        is_by_guard=trace.is_by_guard,
    )


def journal_time(entry: Entry) -> str:
    """Return when something of a journal happened: seconds, since 1970 or since a simulation began."""
    return f"{entry.time_us // SECOND_US}.{entry.time_us % SECOND_US:06d}"


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
    if reason == "SystemOOM":
        found = _SYSTEM_OOM.search(text)
        process, pid = (found[1], found[2]) if found is not None else (None, None)
        return NodeSign(
            SignKind.SYSTEM_OOM, at, node, process=process or "", pid=None if pid is None else int(pid), times=times
        )
    if reason == "OOMKilling":
        found = _KILLED.search(text)
        pid, process = (int(found[1]), found[2]) if found is not None else (None, "")
        return NodeSign(SignKind.OOM_KILLING, at, node, process=process, pid=pid, times=times)
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


_SECONDS = re.compile(r"\d{9,11}(?:\.\d{1,9})?", re.ASCII)
_DATED = re.compile(r"(?:[A-Z][a-z]{2} )?([A-Z][a-z]{2}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4})", re.ASCII)
_YEARLESS = re.compile(r"([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)", re.ASCII)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@lru_cache(maxsize=4096)
def seconds_of(at: str, near: float | None = None) -> float | None:
    """Return a time as seconds since 1970; None where it does not say that much.

    Logs leave out the year: it is that of a time that is ``near``, where one is known.
    """
    if _SECONDS.fullmatch(at):
        return float(at)
    dated = _DATED.fullmatch(at)
    if dated is not None and dated[1] in MONTHS:
        at = f"{dated[4]}-{MONTHS.index(dated[1]) + 1:02}-{int(dated[2]):02}T{dated[3]}"
    found_day = _YEARLESS.match(at)
    if found_day is not None and near is not None and found_day[1] in MONTHS:
        year = datetime.fromtimestamp(near, UTC).year
        at = f"{year:04}-{MONTHS.index(found_day[1]) + 1:02}-{int(found_day[2]):02}T{found_day[3]}"
    try:
        found = datetime.fromisoformat(
            at[:40].replace(",", ".").replace(" +", "+").replace(" -", "-")
        )  # Go has a space
    except ValueError:
        return None
    if found.year <= 1:
        return None  # Go's for none at all
    try:
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
    except (OverflowError, ValueError):
        return None
