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

from msgspec import Struct

from podqos.logs.said import PastedPod, TraceSource, seconds_of
from podqos.model.event import Event
from podqos.model.pod import Container
from podqos.model.pod_fate import ContainerState, ContainerStatus, ContainerTerminated, FatedPod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.questions.autopsy_death import ContainerEnd, Death, EndCause, Manner

SIGNAL_BASE = 128
"""An exit code above this is the number of a signal, as shells and runtimes have it."""
_CRASH_LOOP, _STATUS_UNKNOWN = "CrashLoopBackOff", "ContainerStatusUnknown"
_OOM_REASONS = ("OOMKilled", "OOM Killed")
_SIGKILL, _SIGTERM, _LAST_SIGNAL = 9, 15, 64
_CRASHES = frozenset((3, 4, 5, 6, 7, 8, 11, 31))
"""QUIT, ILL, TRAP, ABRT, BUS, FPE, SEGV, SYS: what a program does to itself."""
_NEAR_SECONDS = 120.0
_SAME_SECONDS = 5.0
_ZONES, _MOST_ZONES = 900.0, 14 * 3600 + 60.0
"""Zones are quarters of an hour apart, and 14 hours at most from that of Kubernetes."""
_ZONE = re.compile(r"(?:Z|UTC|[+-]\d\d:?\d\d)$")
_ID = re.compile(r"[0-9a-f]{12,64}")
_LONG_ID = re.compile(r"[0-9a-f]{64}")
_FIELD_PATH = re.compile(r"\{([^}]{1,253})\}")
_PROBE = re.compile(r"failed (?:liveness|startup) probe", re.IGNORECASE)


NOT_KILLED = frozenset((EndCause.SIGTERM, EndCause.CRASH, EndCause.EXIT, EndCause.UNKNOWN))
"""Nobody killed it, as far as anything says."""


class Ended(Struct, frozen=True):
    """How a container ended, and the death that is the same: its place among those that are known."""

    end: ContainerEnd
    death: int | None = None


def is_evidence(event: Event) -> bool:
    """Whether an event may say why a container ended."""
    return event.reason in {"Killing", "ExceededGracePeriod"}


def bare_id(text: str) -> str:
    """Return a container's id as the name of its cgroup has it: without ``containerd://``."""
    found = _ID.fullmatch(text.rpartition("/")[2])
    return found[0] if found is not None else ""


def containers_by_id(pods: Iterable[FatedPod]) -> dict[str, tuple[FatedPod, str]]:
    """Return the pod and name of each container by its id, those that ended before included."""
    found = {}
    for pod in pods:
        for status in _statuses(pod):
            ids = [status.container_id, *(ended.container_id for _, ended in _terminated(status))]
            found.update({own: (pod, status.name) for each in ids if (own := bare_id(each))})
    return found


def ends_of(pods: Iterable[FatedPod], deaths: Sequence[Death] = (), events: Iterable[Event] = ()) -> Iterator[Ended]:
    """Yield every container that was killed, stopped, or ended otherwise than well, by pods in their order.

    ``deaths`` are kills by the kernel and by programs, and evictions.
    """
    pods, events = list(pods), [event for event in events if is_evidence(event)]
    index = _Index(deaths, pods)
    by_pod: dict[str, list[Event]] = {}
    for event in events:
        by_pod.setdefault(event.about.uid or event.about.name, []).append(event)
    for pod in pods:
        uid = pod.metadata.uid
        own = _Own(pod, deaths, index, by_pod.get(uid) or by_pod.get(pod.metadata.name) or [])
        for status in _statuses(pod):
            yield from own.ends(status)
    yield from _probed(pods, events)


def is_killed(pod: FatedPod) -> bool:
    """Whether a container of a pod was killed, as far as its status says."""
    return any(ended.end.cause not in NOT_KILLED for ended in ends_of([pod]))


def _probed(pods: Iterable[FatedPod], events: Iterable[Event]) -> Iterator[Ended]:
    """Yield the containers that failed a probe, where events are all that is known of their pod."""
    known = {pod.metadata.uid for pod in pods} | {pod.metadata.name for pod in pods if any(_statuses(pod))}
    seen = set()
    for event in events:
        about = event.about
        found = _FIELD_PATH.search(about.field_path)
        pod, container = f"{about.namespace}/{about.name}".removeprefix("/"), found[1] if found is not None else ""
        is_known = about.name in known or (about.uid and about.uid in known) or (pod, container) in seen
        if event.reason == "Killing" and not is_known and _PROBE.search(event.text):
            seen.add((pod, container))
            at, node = event.first_at, event.host
            yield Ended(ContainerEnd(pod, container, EndCause.PROBE, at=at, node=node, is_limit_unknown=True))


def _statuses(pod: FatedPod) -> Iterator[ContainerStatus]:
    status = pod.status
    yield from status.init_container_statuses
    yield from status.container_statuses
    yield from status.ephemeral_container_statuses


def _terminated(status: ContainerStatus) -> Iterator[tuple[bool, ContainerTerminated]]:
    """Yield how a container ended: before, and now."""
    states: tuple[tuple[bool, ContainerState | None], ...] = ((True, status.last_state), (False, status.state))
    for is_previous, state in states:
        if state is not None and state.terminated is not None:
            yield is_previous, state.terminated


def _signal(ended: ContainerTerminated) -> int:
    """Return the signal that ended a container; 0: none did."""
    number = ended.signal or (ended.exit_code or 0) - SIGNAL_BASE
    return number if 0 < number <= _LAST_SIGNAL else 0


class _Index:
    """The places of deaths by what statuses may name them by."""

    def __init__(self, deaths: Sequence[Death], pods: Sequence[FatedPod]) -> None:
        self.killed: dict[str, list[int]] = {}
        """Kernel's kills by the ids of containers and pods."""
        self.evicted: dict[str, int] = {}
        self.by_programs: dict[str, int] = {}
        nameless = []
        for place, death in enumerate(deaths):
            if death.manner is Manner.OOM_KILL:
                # Containers that no kubelet started have only a path.
                path = "" if death.oom is None else death.oom.victim_cgroup or death.oom.cgroup
                for own_id in filter(None, {death.container_id, death.pod_uid, *_LONG_ID.findall(path)}):
                    self.killed.setdefault(own_id, []).append(place)
            elif death.manner is Manner.EVICTION and death.pod:
                self.evicted[death.pod_uid or death.pod] = place
            elif death.manner is Manner.EVICTION and death.eviction is not None:
                nameless += [place] * (TraceSource.STATUS in death.eviction.found_in)
            elif death.container_id or death.pod_uid:
                self.by_programs[death.container_id or death.pod_uid] = place
        if len(nameless) == 1 == sum(not pod.key for pod in pods):
            self.evicted[""] = nameless[0]  # one status, without the name of its pod
        ends = [ended for pod in pods for status in _statuses(pod) for _, ended in _terminated(status)]
        self.is_alone = sum(ended.reason in _OOM_REASONS for ended in ends) == 1
        """Whether no more than one container of all was OOM-killed."""


class _Own(Struct, frozen=True):
    """What is known of one pod."""

    pod: FatedPod
    deaths: Sequence[Death]
    index: _Index
    events: Sequence[Event]

    @property
    def eviction(self) -> int | None:
        """The eviction of the pod."""
        evicted, uid = self.index.evicted, self.pod.metadata.uid
        return evicted[uid] if uid in evicted else evicted.get(self.pod.key)

    def ends(self, status: ContainerStatus) -> Iterator[Ended]:
        """Yield how one container ended."""
        waiting = None if status.state is None else status.state.waiting
        if waiting is not None and waiting.reason == _CRASH_LOOP and not any(_terminated(status)):
            nothing = ContainerTerminated(reason=_CRASH_LOOP, exit_code=None)
            yield Ended(self._end(status, nothing, EndCause.UNKNOWN, is_previous=True))
        named = set()
        for is_previous, ended in _terminated(status):
            kill = self._kill(status, ended)
            named.add(kill)
            cause = self._cause(status, ended, kill, is_previous=is_previous)
            if cause is None:
                continue
            death = kill
            if cause is EndCause.PROGRAM:
                death = self._program_kill(ended)
            elif cause is EndCause.EVICTION:
                death = self.eviction
            yield Ended(self._end(status, ended, cause, is_previous=is_previous), death)
        running, identity = None if status.state is None else status.state.running, bare_id(status.container_id)
        for place in self.index.killed.get(identity, ()) if running is not None and identity else ():
            if place not in named:  # it was another process than its first
                at = self.deaths[place].when
                alive = ContainerTerminated(finished_at=at, exit_code=None, container_id=status.container_id)
                yield Ended(self._end(status, alive, EndCause.KERNEL_OF_CHILD, is_previous=False), place)

    def _end(
        self, status: ContainerStatus, ended: ContainerTerminated, cause: EndCause, *, is_previous: bool
    ) -> ContainerEnd:
        pod = self.pod
        limit, stated = _memory_limits(pod, status)
        return ContainerEnd(
            pod.key,
            status.name,
            cause,
            at=ended.finished_at or "",
            node=pod.spec.node_name,
            reason=ended.reason,
            exit_code=ended.exit_code,
            restarts=status.restart_count,
            container_id=bare_id(ended.container_id),
            is_from_runtime=isinstance(pod, PastedPod) and pod.is_from_runtime,
            is_previous=is_previous,
            memory_limit_bytes=None if limit is None else limit.value,
            stated_limit_bytes=None if limit == stated or stated is None else stated.value,
            is_limit_unknown=limit is None and not any(each.name == status.name for each in _containers(pod)),
        )

    def _cause(
        self, status: ContainerStatus, ended: ContainerTerminated, kill: int | None, *, is_previous: bool
    ) -> EndCause | None:
        """Return who killed or stopped a container, or that nobody did; None: it ended well, or nothing says how."""
        signal = _signal(ended)
        if ended.reason in _OOM_REASONS or kill is not None:
            is_whole = signal == _SIGKILL or ended.exit_code is None
            return EndCause.KERNEL if is_whole else EndCause.KERNEL_OF_CHILD
        if self.eviction is not None and not is_previous and (signal == _SIGKILL or ended.reason == _STATUS_UNKNOWN):
            return EndCause.EVICTION
        if ended.reason == _STATUS_UNKNOWN:
            return EndCause.NODE_LOST
        if signal == _SIGKILL and self._program_kill(ended) is not None:
            return EndCause.PROGRAM
        near = [event for event in self.events if _is_about(event, status.name, ended)]
        probes = [event for event in near if _PROBE.search(event.text)]
        if signal in {_SIGKILL, _SIGTERM}:
            if probes:
                return EndCause.PROBE
            if signal == _SIGTERM:
                return EndCause.SIGTERM
            is_stopped = self.pod.is_being_deleted and not is_previous
            return EndCause.GRACE_PERIOD if near or is_stopped else EndCause.SIGKILL
        # A program may answer SIGTERM with any code. Without times, the probe must account for every restart.
        restarts = max(status.restart_count, 1)
        is_probe = any(seconds_of(event.first_at) is not None or (event.count or 1) >= restarts for event in probes)
        if is_probe and is_previous:
            return EndCause.PROBE
        if signal in _CRASHES:
            return EndCause.CRASH
        return EndCause.EXIT if ended.exit_code or (is_previous and ended.exit_code is not None) else None

    def _kill(self, status: ContainerStatus, ended: ContainerTerminated) -> int | None:
        """Return the kernel's kill that ended a container: by its id, else by its pod and the time."""
        identity, killed = bare_id(ended.container_id), self.index.killed
        if identity and identity in killed:
            return killed[identity][-1]
        uid, at = self.pod.metadata.uid, seconds_of(ended.finished_at or "")
        if at is None or ended.reason not in _OOM_REASONS:
            return None
        if not uid:
            return None if identity else self._only_kill(status, at)
        of_pod = [
            place
            for place in killed.get(uid, ())
            if not (identity and self.deaths[place].container_id not in {"", identity})
        ]
        times = {place: seconds_of(self.deaths[place].when, at) for place in of_pod}
        for place, seconds in times.items():
            if seconds is not None and abs(seconds - at) <= _NEAR_SECONDS:
                return place
        # Of dmesg without dates: the status shows the last end. Which container it was must not be open.
        undated = [place for place, seconds in times.items() if seconds is None]
        return undated[-1] if undated and self.index.is_alone else None

    def _only_kill(self, status: ContainerStatus, at: float) -> int | None:
        """Return the one kill that may be the end of a container; a description has neither uid nor id of what ended.

        By its time; where the log has none, or one of an unknown zone, by the limit and the class that the report
        shows, if no other container of the text may be meant.
        """
        limit, _ = _memory_limits(self.pod, status)
        fitting: dict[str, int] = {}
        for place, kill in enumerate(self.deaths):
            is_known = kill.manner is Manner.OOM_KILL and (kill.container_id or kill.pod_uid)
            if not is_known or not _is_on_node(kill.where, self.pod.spec.node_name):
                continue
            reached = None if kill.oom is None else kill.oom.limit_bytes
            pairs = ((reached, limit and limit.value), (kill.qos_class, self.pod.status.qos_class))
            known = [one == other for one, other in pairs if one is not None and other is not None]
            seconds = seconds_of(kill.when, at)
            is_near = seconds is not None and abs(seconds - at) <= _SAME_SECONDS
            is_undated = seconds is None or (not _ZONE.search(kill.when) and _is_zones_apart(seconds - at))
            if is_near or (is_undated and self.index.is_alone and known and all(known)):
                fitting[kill.pod_uid or kill.container_id] = place  # the status shows the last end
        return next(iter(fitting.values())) if len(fitting) == 1 else None

    def _program_kill(self, ended: ContainerTerminated) -> int | None:
        """Return the kill by a program that ended a container: by its id, else by its pod, at about that time."""
        by_programs: Mapping[str, int] = self.index.by_programs
        place = by_programs.get(bare_id(ended.container_id) or "-", by_programs.get(self.pod.metadata.uid or "-"))
        if place is None:
            return None
        at = seconds_of(ended.finished_at or "")
        killed_at = seconds_of(self.deaths[place].when, at)
        is_near = at is None or killed_at is None or abs(killed_at - at) <= _NEAR_SECONDS
        return place if is_near else None


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


def _is_on_node(host: str, node: str) -> bool:
    """Whether a log's host may be a node: clouds name nodes by host and domain."""
    return not (host and node) or host.partition(".")[0].lower() == node.partition(".")[0].lower()


def _is_zones_apart(seconds: float) -> bool:
    """Whether two moments are the same in two zones, as far as their minutes tell."""
    return abs(seconds) <= _MOST_ZONES and abs((seconds + _ZONES / 2) % _ZONES - _ZONES / 2) <= _SAME_SECONDS


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
