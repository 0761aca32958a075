"""The real machine behind the agent's port: cgroups, a runtime, the state directory.

``carry_out`` starts a command; results that take time are reported later through ``report``. Everything happens on the
node's one thread (``loop``).

A pod that the agent holds (``HoldPod``) is kept from growing (``Cgroups.hold``). If it still tries to grow it is killed
at once; otherwise it has its grace period.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from podqos.agent.port import (
    Command,
    ContainerExited,
    ContainerPlan,
    ContainerStarted,
    CreateCgroup,
    Event,
    FailPod,
    HoldPod,
    KillContainer,
    MemoryNotified,
    PodCleanedUp,
    PodStarted,
    PodStopped,
    PreemptPod,
    RejectPod,
    RemoveCgroup,
    SetCondition,
    StartContainer,
    StartPod,
    StopPod,
    UpdateCgroup,
    WatchMemory,
)
from podqos.agent.shutdown import grace_seconds_of, pod_grace_seconds, stop_seconds
from podqos.errors import HostError
from podqos.eviction.manager import CleanUpNode, EvictPod
from podqos.eviction.signals import CleanUp, NodeCondition, Signal
from podqos.host.linux.cgroupfs import Cgroups
from podqos.host.linux.disk import advance, removing
from podqos.host.linux.notes import words
from podqos.host.linux.watch import KernelMemoryWatch
from podqos.host.node.cgroup_writing import CgroupWriter
from podqos.host.node.container_starts import ContainerStarts
from podqos.host.node.figures import Figures
from podqos.host.node.host_pod import ContainerRun, HostPod
from podqos.host.node.probes import Prober
from podqos.host.runtimes.runtime import (
    ContainerExit,
    ContainerId,
    ExecResult,
    Heard,
    Runtime,
    start_failure,
)
from podqos.host.shell.agent_thread import AgentThread
from podqos.host.storage.pod_run import PodRun
from podqos.host.storage.state import PodState, StateDirectory
from podqos.model.pod import Pod
from podqos.model.stats import Summary
from podqos.qos.cgroup import Cgroup

_CANNOT_START_CODE = 128
_RETRY_SECONDS = 0.02
_LONGEST_RETRY_SECONDS = 1.0
_DISK_ROUND_SECONDS = 10.0
_DISK_SLICE_SECONDS = 0.002
_DISK_PAUSE_SECONDS = 0.01
_REACTIONS_KEPT = 1000
CLASSES = ("burstable", "besteffort")
"""The classes with a cgroup of their own below ``kubepods``."""
_DEAD_RUNS_KEPT = 1  # of each container, as in the kubelet (MaxPerPodContainer)


class Reaction(Struct):
    """The timing of an eviction for memory, in seconds of the monotonic clock."""

    pod: str
    noticed: float | None
    """When the kernel's signal came; None if the regular pass found it."""
    held: float
    terminated: float
    killed: float | None = None
    """When SIGKILL was sent, if it was."""
    stopped: float | None = None


class NodeParts(Struct, frozen=True):
    """What a node has for its pods."""

    cgroups: Cgroups
    runtime: Runtime
    state: StateDirectory
    figures: Figures
    starts: ContainerStarts


class HostWorld:
    """A node that is this machine, or a share of it."""

    def __init__(self, parts: NodeParts, thread: AgentThread, report: Callable[[Event], None]) -> None:
        """``report`` hears what comes of commands later."""
        self.cgroups = cgroups = parts.cgroups
        self.runtime = parts.runtime
        self.state = parts.state
        self.figures = figures = parts.figures
        self.pods: dict[str, HostPod] = {}
        """By uid: running and stopping ones."""
        self.runs: dict[str, PodRun] = {}
        """How to run pods that the agent may start, by uid."""
        self.sources: dict[str, str] = {}
        self.over: dict[str, PodState] = {}
        """Pods that have ended for good or were rejected, by uid."""
        self.gone: list[str] = []
        """Pods that are removed, which has yet to be saved."""
        self.conditions: dict[NodeCondition, bool] = {}
        self.reactions: list[Reaction] = []
        self.reacted: Callable[[Reaction], None] = lambda _reaction: None
        """Called with every eviction for memory once the pod has stopped."""
        self.phase_of: Callable[[str], str | None] = lambda _uid: None
        """The final phase of a pod whose containers have all ended."""
        self.is_hurried = False
        """Whether the current work cannot wait for the disk."""
        self.memory_watch = KernelMemoryWatch(
            cgroups,
            thread.loop,
            {Signal.MEMORY: cgroups.own, Signal.ALLOCATABLE_MEMORY: figures.kubepods},
            lambda: figures.look(self.pods.values()),
            self._memory_crossed,
        )
        self.noticed: float | None = None
        self._reacting: dict[str, Reaction] = {}
        self._loop, self._note, self._report = thread.loop, thread.note, report
        self._starts = parts.starts
        self._writing = CgroupWriter(cgroups, thread.loop, thread.note)
        self._is_blind = False
        """Whether the last figures could not be read."""
        self.prober = Prober(thread.loop, self, thread.note)
        thread.loop.watch(self.runtime.fileno(), self._hear)
        thread.loop.call_every(_DISK_ROUND_SECONDS, self._measure_disks)

    # ---- the port ------------------------------------------------------------------------------------------------

    def summary(self, *, is_urgent: bool = False) -> Summary:
        """Return the figures of node and pods; without those of pods, or none, if they cannot be read."""
        there = [pod for pod in self.pods.values() if not pod.is_stopping or pod.running]
        self.is_hurried |= is_urgent
        read = self.figures.quick if is_urgent else self.figures.full
        self._is_blind = False
        for pods in (there, ()):
            try:
                return read(pods)
            except Exception as error:  # noqa: BLE001 - without an answer the agent would never look again
                self._note(f"statistics cannot be read: {words(error)}")
        self._is_blind = True
        return Summary()

    def carry_out(self, command: Command) -> Sequence[Event]:
        """Carry out a command of the agent; what cannot be done is noted, and is about this command only."""
        try:
            return self._carry_out(command)
        except Exception as error:  # noqa: BLE001 - one pod's fault is not the others'
            pod = getattr(command, "pod", None)
            about = f"{pod.key}: " if isinstance(pod, Pod) else ""
            self._note(f"{about}{type(command).__name__} failed: {words(error)}")
            return self._after_failure(command)

    def _after_failure(self, command: Command) -> Sequence[Event]:
        """Have containers that were not started count as ended; try again to stop a pod or to remove it."""
        match command:
            case StartPod(pod):
                uid = pod.metadata.uid
                ended = (ContainerExited(uid, plan.name, _CANNOT_START_CODE) for plan in command.containers)
                return (PodStarted(uid), *ended)
            case StartContainer(pod, plan):
                uid = pod.metadata.uid
                return ContainerStarted(uid, plan.name), ContainerExited(uid, plan.name, _CANNOT_START_CODE)
            case StopPod() | PreemptPod() | FailPod() | EvictPod() | RemoveCgroup():
                self._loop.call_after(_LONGEST_RETRY_SECONDS, lambda: self._try_again(command))
        return ()

    def _try_again(self, command: Command) -> None:
        for event in self.carry_out(command):
            self._report(event)

    def _carry_out(self, command: Command) -> Sequence[Event]:
        match command:
            case CreateCgroup(cgroup):
                self._writing.undo_hold(cgroup)
                self._writing.write(cgroup)
            case UpdateCgroup(cgroup):
                self._writing.write(cgroup)
            case RemoveCgroup(uid, path):
                self._remove(uid, path)
            case StartPod():
                return self._start_pod(command)
            case StartContainer(pod, plan, restart_count):
                self._start_container(self.pods[pod.metadata.uid], plan, restart_count)
                return (ContainerStarted(pod.metadata.uid, plan.name),)
            case KillContainer(pod, name, grace):
                run = self.pods[pod.metadata.uid].runs.get(name)
                if run is not None:
                    self.restart_container(run.id, grace)
            case StopPod(pod, grace):
                return self._stop(pod, grace)
            case HoldPod(pod):
                self._hold(pod)
            case PreemptPod(pod, grace, message):
                self._fail(pod, "Preempting", message)
                return self._stop(pod, grace)
            case FailPod(pod, grace, reason, message):
                self._fail(pod, reason, message)
                return self._stop(pod, grace)
            case EvictPod():
                return self._evict(command)
            case CleanUpNode(what):
                self._clean_up(what)
            case RejectPod(pod, reason, message):
                self._reject(pod, reason, message)
            case SetCondition(condition, holds):
                self.conditions[condition] = holds
            case WatchMemory():
                # An agent that has no figures knows no levels: the last ones stay.
                asked, seen = (self.memory_watch.asked, None) if self._is_blind else (command, self.figures.last_look())
                if not self.memory_watch.watch(asked, seen):
                    instead = "polled frequently" if command.through_cache else "detected within 10 s"
                    self._note(f"the kernel cannot signal memory thresholds: pressure is {instead}")
            case _:
                raise AssertionError(command)
        return ()

    def settled(self) -> None:
        """End the handling of an event: what comes next is not urgent."""
        self.is_hurried, self.noticed = False, None

    def _memory_crossed(self) -> None:
        self.noticed = time.monotonic()
        self._report(MemoryNotified())

    # ---- adoption ------------------------------------------------------------------------------------------------

    def adopt(
        self, stored: PodState, cgroup: str, plans: Sequence[ContainerPlan], found: Sequence[ContainerId]
    ) -> None:
        """Adopt a pod; ``found`` are its runs that have not ended."""
        pod = HostPod(stored, cgroup, self.state.data(stored.pod.metadata.uid))
        self.pods[pod.uid] = pod
        self.runs[pod.uid] = stored.run
        self.sources[pod.uid] = stored.source
        for plan in plans:
            attempts = [container_id.attempt for container_id in found if container_id.name == plan.name]
            if attempts:
                start = self._starts.resolved(pod, self._starts.planned(pod, plan, max(attempts)))
                pod.runs[plan.name] = run = ContainerRun(start.id, plan, start, None, _now_us())
                self.prober.begin(run, stored.run.container(plan.name))
                if cgroup in self._writing.found_held:
                    self.cgroups.write(run.cgroup, start.cgroup.files)
        if cgroup in self._writing.found_held and (stored.is_stopping or stored.is_over):
            self._hold(stored.pod)
        self._writing.found_held.discard(cgroup)

    def end_loose(self) -> None:
        """Kill processes above the pods, where none belongs: they have left their pod's cgroup."""
        kubepods = self.figures.kubepods
        for path in (self.cgroups.own, kubepods, *(f"{kubepods}/{name}" for name in CLASSES)):
            self.cgroups.end_loose(path)

    # ---- starting ------------------------------------------------------------------------------------------------

    def _start_pod(self, command: StartPod) -> Sequence[Event]:
        uid = command.pod.metadata.uid
        run = self.runs[uid]
        parent = _parent(command.containers[0].cgroup if command.containers else command.sandbox)
        stored = PodState(command.pod, run, self.sources.get(uid, ""), phase="Running", started_us=_now_us())
        pod = self.pods[uid] = HostPod(stored, parent, self.state.data(uid))
        self.state.save(stored)
        for plan in command.containers:
            self._start_container(pod, plan, 0)
        return (PodStarted(uid),)

    def _start_container(self, pod: HostPod, plan: ContainerPlan, attempt: int) -> None:
        """Start a run; one that fails to start counts as ended."""
        before = pod.runs.get(plan.name)
        if before is not None:
            pod.dead.append(before)
            self._drop_dead(pod, plan.name, _DEAD_RUNS_KEPT)
        start = self._starts.planned(pod, plan, attempt)
        run = ContainerRun(start.id, plan, start, None, _now_us())
        pod.runs[plan.name] = run
        try:
            self._starts.check_privilege(start)
            self._starts.make_volumes(pod)
            run.start = self._starts.resolved(pod, start)
            run.pid = self.runtime.start(run.start)
            self.prober.begin(run, pod.state.run.container(plan.name))
        except Exception as error:  # noqa: BLE001 - whatever it is, this container does not start
            message = str(error) if isinstance(error, HostError | OSError) else words(error)
            self._note(f"{pod.pod.key}: {message}")
            failed = ContainerExit(start.id, _CANNOT_START_CODE, reason=start_failure(error), message=message)
            self._loop.call_after(0, lambda: self._ended(failed))

    # ---- ending --------------------------------------------------------------------------------------------------

    def _stop(self, pod: Pod, grace_seconds: int) -> Sequence[Event]:
        host_pod = self.pods.get(pod.metadata.uid)
        if host_pod is None:
            return (PodStopped(pod.metadata.uid),)
        phase = self.phase_of(host_pod.uid)
        host_pod.state = msgspec.structs.replace(host_pod.state, is_stopping=True)
        if phase is not None:
            host_pod.state = msgspec.structs.replace(host_pod.state, phase=phase, ended_us=_now_us())
        self.state.save(host_pod.state, in_a_hurry=self.is_hurried)
        if not host_pod.running:
            return (self._stopped(host_pod.uid),)
        grace_seconds = pod_grace_seconds(grace_seconds)
        host_pod.stop(grace_seconds, self.runtime, self._loop, lambda run: self.kill(host_pod, run))
        return ()

    def _fail(self, pod: Pod, reason: str, message: str) -> None:
        """Note why a pod is ended."""
        host_pod = self.pods.get(pod.metadata.uid)
        if host_pod is not None:
            host_pod.state = msgspec.structs.replace(
                host_pod.state, phase="Failed", reason=reason, message=message, ended_us=_now_us()
            )

    def _evict(self, command: EvictPod) -> Sequence[Event]:
        self._fail(command.pod, "Evicted", command.message)
        events = self._stop(command.pod, command.grace_period_seconds)
        reaction = self._reacting.get(command.pod.metadata.uid)
        if reaction is not None:
            reaction.terminated = time.monotonic()
        return events

    def _hold(self, held: Pod) -> None:
        """Stop a pod from growing; kill it if it tries to."""
        pod = self.pods.get(held.metadata.uid)
        if pod is None:
            return
        pod.held = self.cgroups.hold(pod.cgroup)
        now = time.monotonic()
        self._reacting[pod.uid] = reaction = Reaction(pod.pod.key, self.noticed, now, now)
        self.reactions = [*self.reactions[-_REACTIONS_KEPT:], reaction]
        if pod.held is not None:
            self._loop.watch(pod.held.descriptor, lambda: self.kill(pod), pod.held.events)

    def kill(self, pod: HostPod, only: ContainerRun | None = None) -> None:
        """Kill what is left of a pod, or one of its containers."""
        for run in pod.running:
            if only is None or run is only:
                self.runtime.kill(run.id)
        reaction = self._reacting.get(pod.uid)
        if reaction is not None and reaction.killed is None:
            reaction.killed = time.monotonic()
        self._release(pod)

    def _release(self, pod: HostPod) -> None:
        if pod.held is not None:
            self._loop.unwatch(pod.held.descriptor)
            pod.held.close()
            pod.held = None

    def restart_container(self, name: ContainerId, grace_seconds: int | None) -> None:
        """End one container, such as one whose probe fails; the agent restarts it. None: the pod's grace period."""
        pod = self.pods.get(name.uid)
        run = pod.runs.get(name.name) if pod is not None else None
        if pod is None or run is None or run.id != name or not run.is_running or run.is_terminating:
            return
        after_seconds = stop_seconds(grace_seconds_of(pod.pod) if grace_seconds is None else grace_seconds)
        self._loop.call_after(after_seconds, lambda: self.runtime.kill(name) if run.is_running else None)
        self.runtime.terminate(name)
        run.is_terminating = True

    def _ended(self, ended: ContainerExit) -> None:
        """Handle the end of a run."""
        name, code = ended.id, ended.exit_code
        pod = self.pods.get(name.uid)
        run = pod.runs.get(name.name) if pod is not None else None
        if pod is None or run is None or run.id != name or not run.is_running:
            self.runtime.remove(name)
            return
        self.prober.end(run)
        run.is_running, run.is_ready, run.exit_code, run.ended_us = False, False, code, _now_us()
        run.failure, run.message = ended.reason, ended.message
        run.oom_killed = code != 0 and self.cgroups.oom_kills(run.cgroup) > 0
        self.cgroups.kill(run.cgroup)
        self.cgroups.remove(run.cgroup)
        if not pod.is_stopping:
            self._report(ContainerExited(pod.uid, name.name, code, run.oom_killed, run.ended_us, ended.is_lost))
        elif pod.running:
            pod.terminate_next()
        else:
            self._report(self._stopped(pod.uid))

    def _stopped(self, uid: str) -> PodStopped:
        pod = self.pods.get(uid)
        if pod is not None:
            pod.is_stopping = True
            pod.stopped()
            self._release(pod)
            reaction = self._reacting.pop(uid, None)
            if reaction is not None:
                reaction.stopped = time.monotonic()
                self.reacted(reaction)
        return PodStopped(uid)

    def _remove(self, uid: str, path: str) -> None:
        """Remove everything of a stopped pod."""
        pod = self.pods.get(uid)
        if pod is not None:
            for run in (*pod.dead, *pod.runs.values()):
                self.runtime.remove(run.id)
            self.runtime.remove_pod(uid)
        self.end_loose()
        work, pause = removing(self.state.data(uid)), _RETRY_SECONDS

        def go_on() -> None:
            """Remove the cgroup, retrying while the kernel keeps it, then the pod's files, a little at a time."""
            nonlocal pause
            if not self.cgroups.remove(path):
                self.cgroups.kill(path)
                self._loop.call_after(pause, go_on)
                pause = min(2 * pause, _LONGEST_RETRY_SECONDS)
            elif not advance(work, _DISK_SLICE_SECONDS):
                self._loop.call_after(_DISK_PAUSE_SECONDS, go_on)
            else:
                self._report(self._removed(uid))

        self._loop.call_after(0, go_on)

    def _removed(self, uid: str) -> PodCleanedUp:
        pod = self.pods.pop(uid, None)
        self.runs.pop(uid, None)
        self.sources.pop(uid, None)
        self.gone.append(uid)
        if pod is not None and pod.state.is_over:
            self.over[uid] = msgspec.structs.replace(pod.state, containers=pod.ends(), is_gone=True)
        elif pod is not None:
            self.state.remove_logs(pod.pod)
        return PodCleanedUp(uid)

    # ---- the rest ------------------------------------------------------------------------------------------------

    def _reject(self, pod: Pod, reason: str, message: str) -> None:
        uid = pod.metadata.uid
        stored = PodState(
            pod, self.runs.pop(uid), self.sources.pop(uid, ""), phase="Failed", reason=reason, message=message,
            ended_us=_now_us(), is_gone=True,
        )  # fmt: skip
        self.over[uid] = stored
        self.state.save(stored)

    def _clean_up(self, what: CleanUp) -> None:
        if what is CleanUp.IMAGES:
            return  # there are none
        for pod in self.pods.values():
            for name in {run.id.name for run in pod.dead}:
                self._drop_dead(pod, name, 0)

    def _drop_dead(self, pod: HostPod, name: str, keep: int) -> None:
        dead = [run for run in pod.dead if run.id.name == name]
        for run in dead[: len(dead) - keep]:
            self.runtime.remove(run.id)
            run.start.log.unlink(missing_ok=True)
            shutil.rmtree(run.start.folder, ignore_errors=True)
            pod.dead.remove(run)

    def _hear(self) -> None:
        for each in self.runtime.heard():
            try:
                self._handle(each)
            except Exception as error:  # noqa: BLE001 - the others still count
                self._note(f"{each}: {words(error)}")

    def _handle(self, heard: Heard) -> None:
        match heard:
            case ContainerExit():
                self._ended(heard)
            case ExecResult(token, code):
                self.prober.answered(token, code == 0)

    def _measure_disks(self) -> None:
        self.figures.disk.begin(self.figures.folders(self.pods.values()))
        self._go_on_measuring()

    def _go_on_measuring(self) -> None:
        self.figures.disk.go_on(_DISK_SLICE_SECONDS)
        if not self.figures.disk.is_done:
            self._loop.call_after(_DISK_PAUSE_SECONDS, self._go_on_measuring)


def _parent(cgroup: Cgroup) -> str:
    if cgroup.path is None:
        raise HostError("QoS cgroups are required (cgroupsPerQOS: true)")
    return cgroup.path.rpartition("/")[0]


def _now_us() -> int:
    return time.time_ns() // 1000
