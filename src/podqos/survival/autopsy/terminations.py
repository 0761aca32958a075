"""How containers ended: OOMKilled, exit 137, 143 and ContainerStatusUnknown, and those that nobody killed, told apart.

A status says little: ``OOMKilled`` is what the runtime saw of its cgroup, 137 is any SIGKILL. The kernel's report, the
kubelet's events and the end of the pod say whose it was.

Sources: Kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go, pkg/kubelet/kubelet_pods.go; containerd
internal/cri/server/events.go (OOMKilled is set by an event of the cgroup, whichever process died); KEP on
singleProcessOOMKill: since 1.28 a container on cgroup v2 dies as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from podqos.model.event import Event
from podqos.model.pod import Container, QOSClass
from podqos.model.pod_fate import ContainerState, ContainerStatus, ContainerTerminated, FatedPod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.survival.autopsy.eviction_autopsy import PodEviction
from podqos.survival.autopsy.eviction_traces import TraceSource, seconds_of
from podqos.survival.autopsy.userspace_kill import UserspaceKill

OOM_KILLED = "OOMKilled"
_CRASH_LOOP = "CrashLoopBackOff"
_COMPLETED = "Completed"
_OOM_REASONS = (OOM_KILLED, "OOM Killed")
"""Now, and up to 1.0."""
STATUS_UNKNOWN = "ContainerStatusUnknown"
SIGKILL = 9
SIGTERM = 15
EXIT_BY_SIGKILL = 137
_BY_SIGNAL = 128
"""An exit code above this is the number of a signal, as shells and runtimes have it."""
_LAST_SIGNAL = 64
_CRASHES = frozenset((3, 4, 5, 6, 7, 8, 11, 31))
"""QUIT, ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS: what a program does to itself."""
_NEAR_SECONDS = 120.0
_SAME_SECONDS = 5.0
_ZONES, _MOST_ZONES = 900.0, 14 * 3600 + 60.0
"""Zones are quarters of an hour apart, and 14 hours at most from that of Kubernetes."""
_ZONE = re.compile(r"(?:Z|UTC|[+-]\d\d:?\d\d)$")
_ID = re.compile(r"[0-9a-f]{12,64}")
_FIELD_PATH = re.compile(r"\{([^}]{1,253})\}")
_PROBE = re.compile(r"failed (?:liveness|startup) probe|is unhealthy, it will be killed and re-created", re.IGNORECASE)
"""Now, and up to 1.11."""


class Kill(Protocol):
    """A kill of the kernel's, as far as containers are told by it."""

    @property
    def at(self) -> str:
        """When."""

    @property
    def host(self) -> str:
        """On which machine."""

    @property
    def container_id(self) -> str:
        """In which container."""

    @property
    def pod_uid(self) -> str:
        """In which pod."""

    @property
    def group(self) -> str:
        """The cgroup that died as one."""

    @property
    def qos_class(self) -> QOSClass | None:
        """Of its pod."""

    @property
    def limit_bytes(self) -> int | None:
        """The container's memory limit, if that was reached."""


class TerminationCause(StrEnum):
    """Who killed a container, or what killed something in it."""

    KERNEL = "Kernel"
    """The kernel, for want of memory: its report is among ``kills``."""
    KERNEL_UNREPORTED = "KernelUnreported"
    """The kernel, for want of memory: the runtime says so, and no report of it is in the logs."""
    KERNEL_OF_CHILD = "KernelOfChild"
    """The kernel killed another process of the container; its first one survived that, or ended by itself after it."""
    USERSPACE_KILLER = "UserspaceKiller"
    """A program killed it before the kernel had to: see ``userspaceKills``."""
    EVICTION = "Eviction"
    """The kubelet ended it with its pod: see ``evictions``."""
    PROBE = "Probe"
    """It failed its liveness or startup probe, and the kubelet stopped it."""
    GRACE_PERIOD = "GracePeriod"
    """It was told to stop, and did not within its grace period."""
    NODE_LOST = "NodeLost"
    """The kubelet no longer found it: the node restarted, or it was removed behind the kubelet's back."""
    SIGKILL = "Sigkill"
    """It was killed, and nothing is left that says by whom."""
    SIGTERM = "Sigterm"
    """It was asked to stop, and did."""
    CRASH = "Crash"
    """Nobody killed it: a signal that a program brings upon itself, such as SIGSEGV."""
    EXIT = "Exit"
    """Nobody killed it: it exited by itself."""
    UNKNOWN = "Unknown"
    """It ends again and again, and nothing says how: all that a table shows of it is CrashLoopBackOff."""


class ContainerTermination(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A container that ended, or of which a process was killed."""

    pod: str
    container: str
    cause: TerminationCause
    at: str = ""
    node: str = ""
    reason: str = ""
    """As its status has it: OOMKilled, Error, ContainerStatusUnknown."""
    exit_code: int | None = None
    """None: it runs, or the text does not say."""
    restarts: int = 0
    container_id: str = ""
    kill: int | None = None
    """The kernel's kill: its place among ``kills``, from 0."""
    eviction: int | None = None
    """Likewise among ``evictions``."""
    userspace_kill: int | None = None
    """Likewise among ``userspaceKills``."""
    is_from_runtime: bool = False
    """Whether the container runtime shows it, and not the status of a pod."""
    killer: str = ""
    """With UserspaceKiller: which program."""
    is_group_kill: bool = False
    """The kernel killed all of the container at once (memory.oom.group)."""
    is_previous: bool = False
    """Whether it runs again, or waits to."""
    memory_limit_bytes: int | None = None
    """The limit in force, by its status or else its manifest; null where there is none, or ``isLimitUnknown``."""
    stated_limit_bytes: int | None = None
    """The limit its manifest states, where that is not the one in force: a resize was not done."""
    is_limit_unknown: bool = False
    """Whether nothing says if it has a limit."""


class Evidence(Struct, frozen=True):
    """What is known besides the statuses of pods."""

    kills: Sequence[Kill] = ()
    evictions: Sequence[PodEviction] = ()
    events: Sequence[Event] = ()
    userspace_kills: Sequence[UserspaceKill] = ()


def is_evidence(event: Event) -> bool:
    """Whether an event may say why a container ended."""
    return event.reason in {"Killing", "ExceededGracePeriod"}


def container_id(text: str) -> str:
    """Return a container's id as the name of its cgroup has it: without ``containerd://``."""
    found = _ID.fullmatch(text.rpartition("/")[2])
    return found[0] if found is not None else ""


def containers_by_id(pods: Iterable[FatedPod]) -> dict[str, tuple[FatedPod, str]]:
    """Return the pod and name of each container by its id, those that ended before included."""
    found = {}
    for pod in pods:
        for status in _statuses(pod):
            ids = [status.container_id]
            ids += [terminated.container_id for _, terminated in _terminated(status)]
            found.update({own: (pod, status.name) for id_ in ids if (own := container_id(id_))})
    return found


def terminations(pods: Iterable[FatedPod], evidence: Evidence) -> Iterator[ContainerTermination]:
    """Yield every container that was killed or stopped, by pods in their order."""
    pods = list(pods)
    for own, status in _own(pods, evidence):
        yield from _of_container(own, status)
    yield from _probed(pods, evidence.events)


def _probed(pods: Iterable[FatedPod], events: Iterable[Event]) -> Iterator[ContainerTermination]:
    """Yield the containers that failed a probe, where events are all that is known of their pod."""
    uids = {pod.metadata.uid for pod in pods}
    names = {pod.metadata.name for pod in pods if any(_statuses(pod))}
    seen = set()
    for event in events:
        about = event.about
        if event.reason != "Killing" or about.name in names or (about.uid and about.uid in uids):
            continue
        found = _FIELD_PATH.search(about.field_path)
        container = found[1] if found is not None else ""
        pod = f"{about.namespace}/{about.name}".removeprefix("/")
        if _PROBE.search(event.text) and (pod, container) not in seen:
            seen.add((pod, container))
            yield ContainerTermination(
                pod=pod,
                container=container,
                cause=TerminationCause.PROBE,
                at=event.first_at,
                node=event.host,
                is_limit_unknown=True,
            )


def exits(pods: Iterable[FatedPod], evidence: Evidence) -> Iterator[ContainerTermination]:
    """Yield every container that nobody killed as far as anything says, and that did not end well or was restarted."""
    for own, status in _own(pods, evidence):
        if _is_restarting(status) and not any(_terminated(status)):
            nothing = ContainerTerminated(reason=_CRASH_LOOP, exit_code=None)
            yield _termination(own, status, nothing, TerminationCause.UNKNOWN, is_previous=True)
        for is_previous, ended in _terminated(status):
            if (ended.exit_code or is_previous or ended.signal) and _cause_of(own, status, ended) is None:
                is_crash = _signal(ended) in _CRASHES
                cause = TerminationCause.CRASH if is_crash else TerminationCause.EXIT
                if is_crash or ended.exit_code is not None:
                    yield _termination(own, status, ended, cause, is_previous=is_previous)


def tells_of_end(pod: FatedPod) -> bool:
    """Whether a pod's status tells of the end of a container, other than that it ended well."""
    return any(
        _is_restarting(status)
        or any(
            is_previous or ended.exit_code != 0 or ended.signal or ended.reason != _COMPLETED
            for is_previous, ended in _terminated(status)
        )
        for status in _statuses(pod)
    )


def _own(pods: Iterable[FatedPod], evidence: Evidence) -> Iterator[tuple[_Own, ContainerStatus]]:
    """Yield the status of every container, with what is known of its pod."""
    killed: dict[str, list[int]] = {}
    for number, kill in enumerate(evidence.kills):
        for own_id in filter(None, {kill.container_id, kill.pod_uid}):
            killed.setdefault(own_id, []).append(number)
    evicted = {
        eviction.uid or eviction.pod: number for number, eviction in enumerate(evidence.evictions) if eviction.pod
    }
    pods = list(pods)
    nameless = [number for number, eviction in enumerate(evidence.evictions) if not eviction.pod]
    if len(nameless) == 1 == sum(not pod.key for pod in pods) and TraceSource.STATUS in (
        evidence.evictions[nameless[0]].found_in
    ):
        evicted[""] = nameless[0]  # one status, without the name of its pod
    by_programs: dict[str, int] = {}
    for number, killed_by_program in enumerate(evidence.userspace_kills):
        by_programs[killed_by_program.container_id or killed_by_program.pod_uid] = number
    by_programs.pop("", None)
    events: dict[str, list[Event]] = {}
    for event in evidence.events:
        if is_evidence(event):
            events.setdefault(event.about.uid or event.about.name, []).append(event)
    ends = (ended for pod in pods for status in _statuses(pod) for _, ended in _terminated(status))
    killed_containers = sum(ended.reason in _OOM_REASONS for ended in ends)
    for pod in pods:
        statuses = [
            status
            for status in _statuses(pod)
            if status.container_id or any(_terminated(status)) or _is_restarting(status)
        ]
        if not statuses:
            continue
        uid = pod.metadata.uid
        own = _Own(
            pod,
            evidence.kills,
            killed,
            evicted.get(uid) if uid in evicted else evicted.get(pod.key),
            events.get(uid) or events.get(pod.metadata.name) or [],
            evidence.userspace_kills,
            by_programs,
            killed_containers == 1,
        )
        for status in statuses:
            yield own, status


class _Own(Struct, frozen=True):
    """What is known of one pod."""

    pod: FatedPod
    kills: Sequence[Kill]
    killed: Mapping[str, list[int]]
    eviction: int | None
    events: Sequence[Event]
    userspace_kills: Sequence[UserspaceKill] = ()
    by_programs: Mapping[str, int] = {}
    is_alone: bool = False
    """Whether no other container of all was OOM-killed."""


def _statuses(pod: FatedPod) -> Iterator[ContainerStatus]:
    status = pod.status
    yield from status.init_container_statuses
    yield from status.container_statuses
    yield from status.ephemeral_container_statuses


def _is_restarting(status: ContainerStatus) -> bool:
    waiting = None if status.state is None else status.state.waiting
    return waiting is not None and waiting.reason == _CRASH_LOOP


def _terminated(status: ContainerStatus) -> Iterator[tuple[bool, ContainerTerminated]]:
    """Yield how a container ended: before, and now."""
    states: tuple[tuple[bool, ContainerState | None], ...] = ((True, status.last_state), (False, status.state))
    for is_previous, state in states:
        if state is not None and state.terminated is not None:
            yield is_previous, state.terminated


def _of_container(own: _Own, status: ContainerStatus) -> Iterator[ContainerTermination]:
    named = set()
    for is_previous, ended in _terminated(status):
        cause = _cause_of(own, status, ended)
        if cause is not None:
            named.add(_kill_of(own, status, ended))
            yield _termination(own, status, ended, cause, is_previous=is_previous)
    yield from _survived(own, status, named)


def _termination(
    own: _Own, status: ContainerStatus, ended: ContainerTerminated, cause: TerminationCause, *, is_previous: bool
) -> ContainerTermination:
    pod, kill = own.pod, _kill_of(own, status, ended)
    limit, stated = _memory_limits(pod, status)
    by_program = _program_kill_of(own, ended) if cause is TerminationCause.USERSPACE_KILLER else None
    return ContainerTermination(
        pod=pod.key,
        container=status.name,
        cause=cause,
        at=ended.finished_at or "",
        node=pod.spec.node_name,
        reason=ended.reason,
        exit_code=ended.exit_code,
        restarts=status.restart_count,
        container_id=container_id(ended.container_id),
        kill=kill,
        eviction=own.eviction if cause is TerminationCause.EVICTION else None,
        userspace_kill=by_program,
        killer="" if by_program is None else own.userspace_kills[by_program].killer,
        is_group_kill=kill is not None and bool(own.kills[kill].group),
        is_previous=is_previous,
        memory_limit_bytes=None if limit is None else limit.value,
        stated_limit_bytes=None if limit == stated or stated is None else stated.value,
        is_limit_unknown=limit is None and not any(container.name == status.name for container in _containers(pod)),
    )


def _signal(ended: ContainerTerminated) -> int:
    """Return the signal that ended a container; 0: none did."""
    if ended.signal:
        return ended.signal
    number = (ended.exit_code or 0) - _BY_SIGNAL
    return number if 0 < number <= _LAST_SIGNAL else 0


def _containers(pod: FatedPod) -> tuple[Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers)


def _memory_limits(pod: FatedPod, status: ContainerStatus) -> tuple[Quantity | None, Quantity | None]:
    """Return the memory limit in force at a container, or at its pod where that has one alone, and the stated one.

    While a resize is not done they differ. The status knows which was in force, since 1.33, and of pods since 1.36.
    """
    own = next((container.resources for container in _containers(pod) if container.name == status.name), None)
    stated = None if own is None else own.limits.get(MEMORY)
    in_force = stated if status.resources is None else status.resources.limits.get(MEMORY)
    if stated is None and in_force is None and pod.spec.resources is not None:
        stated = pod.spec.resources.limits.get(MEMORY)
        in_force = stated if pod.status.resources is None else pod.status.resources.limits.get(MEMORY)
    return in_force or None, stated or None


def _survived(own: _Own, status: ContainerStatus, named: set[int | None]) -> Iterator[ContainerTermination]:
    """Yield the kills in a container that still runs: it was another process than its first."""
    running = None if status.state is None else status.state.running
    if running is None:
        return
    identity = container_id(status.container_id)
    for number in own.killed.get(identity, ()) if identity else ():
        if number not in named:
            yield ContainerTermination(
                pod=own.pod.key,
                container=status.name,
                cause=TerminationCause.KERNEL_OF_CHILD,
                at=own.kills[number].at,
                node=own.pod.spec.node_name,
                restarts=status.restart_count,
                container_id=identity,
                kill=number,
            )


def _kill_of(own: _Own, status: ContainerStatus, ended: ContainerTerminated) -> int | None:
    """Return the kill that ended a container: by its id, else by its pod and the time."""
    identity = container_id(ended.container_id)
    by_id = own.killed.get(identity, []) if identity else []
    if by_id:
        return by_id[-1]
    uid, at = own.pod.metadata.uid, seconds_of(ended.finished_at or "")
    if at is None or ended.reason not in _OOM_REASONS:
        return None
    if not uid:
        return None if identity else _only_kill(own, status, at)
    of_pod = [
        number
        for number in own.killed.get(uid, ())
        if not (identity and own.kills[number].container_id not in {"", identity})
    ]
    for number in of_pod:
        seconds = seconds_of(own.kills[number].at, at)
        if seconds is not None and abs(seconds - at) <= _NEAR_SECONDS:
            return number
    # Of dmesg without dates: the status shows the last end. Which container it was must not be open.
    undated = [number for number in of_pod if seconds_of(own.kills[number].at, at) is None]
    return undated[-1] if undated and own.is_alone else None


def _program_kill_of(own: _Own, ended: ContainerTerminated) -> int | None:
    """Return the kill by a program that ended a container: by its id, else by its pod, at about that time."""
    identity = container_id(ended.container_id)
    number = own.by_programs.get(identity) if identity else None
    if number is None:
        number = own.by_programs.get(own.pod.metadata.uid or "")
    if number is None:
        return None
    at = seconds_of(ended.finished_at or "")
    killed_at = seconds_of(own.userspace_kills[number].at, at)
    is_near = at is None or killed_at is None or abs(killed_at - at) <= _NEAR_SECONDS
    return number if is_near else None


def _only_kill(own: _Own, status: ContainerStatus, at: float) -> int | None:
    """Return the one kill that may be the end of a container; a description has neither uid nor id of what ended.

    By its time; where the log has none, or one of an unknown zone, by the limit and the class that the report shows,
    if no other container of the text may be meant.
    """
    limit, _ = _memory_limits(own.pod, status)
    fitting: dict[str, int] = {}
    for number, kill in enumerate(own.kills):
        if not (kill.container_id or kill.pod_uid) or not _is_on_node(kill.host, own.pod.spec.node_name):
            continue
        pairs = ((kill.limit_bytes, limit and limit.value), (kill.qos_class, own.pod.status.qos_class))
        known = [one == other for one, other in pairs if one is not None and other is not None]
        seconds = seconds_of(kill.at, at)
        is_near = seconds is not None and abs(seconds - at) <= _SAME_SECONDS
        is_undated = seconds is None or (not _ZONE.search(kill.at) and _is_zones_apart(seconds - at))
        if is_near or (is_undated and own.is_alone and known and all(known)):
            fitting[kill.pod_uid or kill.container_id] = number  # the status shows the last end
    return next(iter(fitting.values())) if len(fitting) == 1 else None


def _is_on_node(host: str, node: str) -> bool:
    """Whether a log's host may be a node: clouds name nodes by host and domain."""
    return not (host and node) or host.partition(".")[0].lower() == node.partition(".")[0].lower()


def _is_zones_apart(seconds: float) -> bool:
    """Whether two moments are the same in two zones, as far as their minutes tell."""
    return abs(seconds) <= _MOST_ZONES and abs((seconds + _ZONES / 2) % _ZONES - _ZONES / 2) <= _SAME_SECONDS


def _cause_of(own: _Own, status: ContainerStatus, ended: ContainerTerminated) -> TerminationCause | None:
    """Return who killed or stopped a container; None: nobody did, as far as anything says."""
    kill, signal = _kill_of(own, status, ended), _signal(ended)
    is_previous = status.last_state is not None and status.last_state.terminated is ended
    if ended.reason in _OOM_REASONS or kill is not None:
        if signal != SIGKILL and ended.exit_code is not None:
            return TerminationCause.KERNEL_OF_CHILD
        return TerminationCause.KERNEL if kill is not None else TerminationCause.KERNEL_UNREPORTED
    if own.eviction is not None and not is_previous:
        is_killed = signal == SIGKILL or ended.reason == STATUS_UNKNOWN
        return TerminationCause.EVICTION if is_killed else None
    if ended.reason == STATUS_UNKNOWN:
        return TerminationCause.NODE_LOST
    if signal == SIGKILL and _program_kill_of(own, ended) is not None:
        return TerminationCause.USERSPACE_KILLER
    near = [event for event in own.events if _is_about(event, status.name, ended)]
    probes = [event for event in near if _PROBE.search(event.text)]
    if signal in {SIGKILL, SIGTERM}:
        if probes:
            return TerminationCause.PROBE
        if signal == SIGTERM:
            return TerminationCause.SIGTERM
        is_stopped = own.pod.is_being_deleted and not is_previous
        return TerminationCause.GRACE_PERIOD if near or is_stopped else TerminationCause.SIGKILL
    # A program may answer SIGTERM with any code. Without times, the probe must account for every restart.
    restarts = max(status.restart_count, 1)
    is_probe = any(_has_time(event) or (event.count or 1) >= restarts for event in probes)
    return TerminationCause.PROBE if is_probe and is_previous else None


def _has_time(event: Event) -> bool:
    return seconds_of(event.first_at) is not None


def _is_about(event: Event, name: str, ended: ContainerTerminated) -> bool:
    """Whether an event is about the end of a container: it names the container, and came shortly before."""
    found = _FIELD_PATH.search(event.about.field_path)
    if found is not None and found[1] != name:
        return False
    ended_at = seconds_of(ended.finished_at or "")
    times = [event.first_at, event.last_timestamp or "", event.deprecated_last_timestamp or ""]
    known = [seconds for time in times if (seconds := seconds_of(time)) is not None]
    if ended_at is None or not known:
        return True
    return any(-_NEAR_SECONDS * 5 <= each - ended_at <= _NEAR_SECONDS for each in known)
