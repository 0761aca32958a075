"""The smallest world: pods with fixed figures on a node with fixed capacities, and outcomes that take a while."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import count

from podqos.agent.driver import Driver
from podqos.agent.journal import Entry
from podqos.agent.port import (
    Command,
    ContainerExited,
    ContainerStarted,
    CreateCgroup,
    Event,
    FailPod,
    HoldPod,
    KillContainer,
    MemoryLevel,
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
    Woken,
)
from podqos.agent.state import AgentConfig
from podqos.eviction.manager import CleanUpNode, EvictPod
from podqos.eviction.signals import CleanUp
from podqos.model.pod import Pod
from podqos.model.stats import (
    ContainerStats,
    FsStats,
    MemoryStats,
    NodeStats,
    PodReference,
    PodStats,
    Summary,
)
from podqos.model.time_units import SECOND_US

MI = 1 << 20


class MemoryWorld:
    """A node of so much memory and disk, in MiB."""

    def __init__(self, memory_mi: int = 1000, disk_mi: int = 1000) -> None:
        self.now_us = 0
        self.memory_mi = memory_mi
        self.disk_mi = disk_mi
        self.uses_mi: dict[str, int] = {}
        """Memory by name of the pod, whether it runs or not."""
        self.dead_containers_mi = 0
        self.unused_images_mi = 0
        self.start_seconds = 0.0
        self.stop_seconds = 0.0
        self.kill_seconds = 0.0
        self.ends_at_grace = True
        """Whether a pod that takes longer is ended, as it should be."""
        self.clean_up_seconds = 0.0
        self.running: dict[str, Pod] = {}
        self.cgroups: dict[str, dict[str, str | None]] = {}
        self.rejected: dict[str, str] = {}
        self.conditions: dict[str, bool] = {}
        self.commands: list[Command] = []
        self.held: set[str] = set()
        self.levels: tuple[MemoryLevel, ...] = ()
        self._later: list[tuple[int, int, Event]] = []
        self._sequence = count()

    # ---- the port ------------------------------------------------------------------------------------------------

    def summary(self, *, is_urgent: bool = False) -> Summary:  # noqa: ARG002 - no figure takes time
        """Take the figures."""
        disk = FsStats(
            available_bytes=(self.disk_mi - self.dead_containers_mi - self.unused_images_mi) * MI,
            capacity_bytes=self.disk_mi * MI,
        )
        memory = MemoryStats(available_bytes=self._available, working_set_bytes=self.memory_mi * MI - self._available)
        return Summary(NodeStats("n", memory=memory, fs=disk), tuple(map(self._stats, self.running.values())))

    def carry_out(self, command: Command) -> Sequence[Event]:
        """Do what is asked."""
        self.commands.append(command)
        match command:
            case CreateCgroup(cgroup) | UpdateCgroup(cgroup):
                assert isinstance(command, CreateCgroup) == (cgroup.path not in self.cgroups), cgroup.path
                self.cgroups[cgroup.path or ""] = {file.name: file.text for file in cgroup.files}
            case RemoveCgroup(uid, path):
                del self.cgroups[path]
                return self._outcome(PodCleanedUp(uid), self.clean_up_seconds)
            case StartPod(pod):
                self.running[pod.metadata.uid] = pod
                return (PodStarted(pod.metadata.uid),)
            case StartContainer(pod, plan):
                return self._outcome(ContainerStarted(pod.metadata.uid, plan.name), self.start_seconds)
            case KillContainer(pod, name):
                return self._outcome(ContainerExited(pod.metadata.uid, name, 143), self.kill_seconds)
            case StopPod(pod, grace) | EvictPod(pod, grace) | PreemptPod(pod, grace) | FailPod(pod, grace):
                return self._stop(pod, grace)
            case HoldPod(pod):
                self.held.add(pod.metadata.uid)
            case WatchMemory(levels):
                self.levels = levels
                if any(level.tell_if_below and self._available < level.below_bytes for level in levels):
                    return (MemoryNotified(),)
            case CleanUpNode(CleanUp.CONTAINERS):
                self.dead_containers_mi = 0
            case CleanUpNode(CleanUp.IMAGES):
                self.unused_images_mi = 0
            case RejectPod(pod, reason):
                self.rejected[pod.metadata.uid] = reason
            case SetCondition(condition, holds):
                self.conditions[condition] = holds
        return ()

    # ---- time ----------------------------------------------------------------------------------------------------

    def settle(self, seconds: float) -> list[Event]:
        """Let time pass; return what was reported meanwhile."""
        until_us = self.now_us + int(seconds * SECOND_US)
        happened = []
        while self._later and self._later[0][0] <= until_us:
            self.now_us, _, event = heappop(self._later)
            happened.append(self._happen(event))
        self.now_us = until_us
        return happened

    def exit(self, name: str, container: str, exit_code: int, *, oom_killed: bool = False) -> ContainerExited:
        """Let a container of the pod of this name end."""
        (uid,) = (uid for uid, pod in self.running.items() if pod.metadata.name == name)
        return ContainerExited(uid, container, exit_code, oom_killed)

    def grow(self, name: str, more_mi: int) -> list[Event]:
        """Let a pod take more memory; return what the world says to that."""
        (uid,) = (uid for uid, pod in self.running.items() if pod.metadata.name == name)
        if uid in self.held:
            return [self._happen(PodStopped(uid))]
        before = self._available
        self.uses_mi[name] += more_mi
        crossed = any(self._available < level.below_bytes <= before for level in self.levels)
        return [MemoryNotified()] if crossed else []

    @property
    def _available(self) -> int:
        return (self.memory_mi - sum(self.uses_mi.get(pod.metadata.name, 0) for pod in self.running.values())) * MI

    def next_event_us(self) -> int | None:
        """When something is reported next."""
        return self._later[0][0] if self._later else None

    def _outcome(self, event: Event, after_seconds: float) -> Sequence[Event]:
        if not after_seconds:
            return (self._happen(event),)
        heappush(self._later, (self.now_us + int(after_seconds * SECOND_US), next(self._sequence), event))
        return ()

    def _happen(self, event: Event) -> Event:
        if isinstance(event, PodStopped):
            self.running.pop(event.uid, None)
            self._later = sorted(later for later in self._later if later[2] != event)
        return event

    def _stop(self, pod: Pod, grace_seconds: int) -> Sequence[Event]:
        seconds = min(self.stop_seconds, grace_seconds) if self.ends_at_grace else self.stop_seconds
        return self._outcome(PodStopped(pod.metadata.uid), seconds)

    def _stats(self, pod: Pod) -> PodStats:
        memory = MemoryStats(working_set_bytes=self.uses_mi.get(pod.metadata.name, 0) * MI)
        reference = PodReference(pod.metadata.name, pod.metadata.namespace, pod.metadata.uid)
        return PodStats(reference, (ContainerStats(pod.spec.containers[0].name, memory),), memory)


class Run:
    """An agent in such a world, with a clock."""

    def __init__(self, config: AgentConfig, world: MemoryWorld | None = None) -> None:
        self.world = world or MemoryWorld()
        self.journal: list[Entry] = []
        self.driver = Driver(config, self.world, self.journal.append)
        self.driver.start(self.world.now_us)

    def tell(self, event: Event) -> None:
        """Let the agent hear of something now."""
        self.driver.deliver(self.world.now_us, event)

    def exit(self, name: str, exit_code: int = 1, container: str = "main", *, oom_killed: bool = False) -> None:
        """Let a container end now."""
        self.tell(self.world.exit(name, container, exit_code, oom_killed=oom_killed))

    def until(self, seconds: float) -> None:
        """Let time pass until so many seconds after the start, with everything that happens meanwhile."""
        until_us = int(seconds * SECOND_US)
        while True:
            times = [at for at in (self.driver.wake_us, self.world.next_event_us()) if at is not None]
            now_us = min(times, default=until_us + 1)
            if now_us > until_us:
                break
            for event in self.world.settle(max(0, now_us - self.world.now_us) / SECOND_US):
                self.tell(event)
            if self.driver.wake_us == now_us:
                self.tell(Woken())
        self.world.now_us = until_us

    def lines(self, *kinds: str) -> list[tuple[float, str, str | None]]:
        """Return time in seconds, kind and pod of the entries, of these kinds or of all."""
        return [
            (entry.time_us / SECOND_US, entry.kind.value, entry.pod)
            for entry in self.journal
            if not kinds or entry.kind in kinds
        ]
