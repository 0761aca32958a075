"""A node whose kubelet is another program: the agent's third world (``agent.driver``).

Statistics come from the kernel. Pods are those that the API server knows and that have a cgroup below ``kubepods``.
Only two of the agent's commands are carried out: watch memory, and evict a pod. Cgroups, containers and clean-ups are
the kubelet's business.

Whatever the agent decides, a pod is checked once more before it is touched (``_refusal``): it must be known by its uid,
have its own cgroup that names this uid, and not be one of those that are never evicted.
"""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct

from podqos.agent.port import Command, Event, PodCleanedUp, PodStopped, PreemptPod, RemoveCgroup, StopPod, WatchMemory
from podqos.agent.reasons import Because, UnderPressure
from podqos.eviction.manager import EvictPod, ReclaimTarget
from podqos.eviction.signals import Observation, Signal, observe
from podqos.guard.eviction import GuardVictim
from podqos.guard.figures import GuardFigures, WatchedPod
from podqos.guard.known_pods import GuardedPod, never_evicted
from podqos.guard.tree import PodCgroup, pod_at
from podqos.host.linux.cgroupfs import Cgroups, KernelSignal
from podqos.host.linux.notes import words
from podqos.host.linux.watch import KernelMemoryWatch
from podqos.host.shell.agent_thread import AgentThread
from podqos.model.pod import Pod
from podqos.model.stats import Summary
from podqos.qos.cgroup_paths import CgroupLevel, cgroup_uid, place_of
from podqos.qos.cgroup_settings import CgroupVersion

_MACHINE = "/"
_FALLING_BYTES = 1 << 20


class Acts(Protocol):
    """Carries out evictions (``acting``)."""

    def evict(self, victim: GuardVictim, pod: PodCgroup, known_ids: Iterable[str]) -> None:
        """Freeze the pod, report it to the server, kill its containers."""

    def evict_through_api(self, victim: GuardVictim, grace_seconds: int) -> None:
        """Let the server evict it by its own rules."""


class GuardReaction(Struct):
    """The timing of an eviction, in the journal's time; None if unknown, or if it did not happen."""

    pod: str
    decided_us: int
    noticed_us: int | None = None
    held_us: int | None = None
    killed_us: int | None = None
    gone_us: int | None = None
    answered_us: int | None = None
    major_faults: int | None = None
    """Of the guard's thread, from the decision to the kill."""


class Restrained:
    """The kernel's notifications, as far as they leave no trace in the kubelet's cgroups.

    cgroup v1 notifies the process that asks, and forgets the level with it. v2 has no equivalent: the level would be
    ``memory.high``, which throttles pods. There, memory is polled as often as the fastest growth requires. Neither
    notifies about the whole machine.
    """

    def __init__(self, cgroups: Cgroups) -> None:
        self._cgroups = cgroups

    def watch_memory(self, path: str, level_bytes: int) -> KernelSignal | None:
        """Let the kernel notify where that has no side effects."""
        if self._cgroups.version is CgroupVersion.V2 or path != self._cgroups.own:
            return None
        return self._cgroups.watch_memory(path, level_bytes)

    def unwatch_memory(self, path: str) -> None:
        """Do nothing: there is nothing to clean up."""


class GuardWorld:
    """A kubelet's node."""

    def __init__(
        self,
        node: str,
        cgroups: Cgroups,
        figures: GuardFigures,
        thread: AgentThread,
        on_crossing: Callable[[], None],
    ) -> None:
        self.node, self.cgroups, self.figures = node, cgroups, figures
        self.pods: dict[str, WatchedPod] = {}
        """The pods that the agent has adopted, by uid."""
        self.known: Mapping[str, GuardedPod] = {}
        """The pods that the API server knows, by uid."""
        self.acting: Acts | None = None
        self.observed = Observation({}, {})
        """The basis of the agent's last decision."""
        self.because: Because | None = None
        """The reason of the agent's last decision."""
        self.reactions: dict[str, GuardReaction] = {}
        """Evictions in progress, by uid."""
        self.evicted: set[str] = set()
        """The uids of evicted pods: they are over, whatever the server still says."""
        self.noticed_us: int | None = None
        self._note, self._now_us = thread.note, thread.now_us
        self._least_available: int | None = None
        self._is_blind = False
        self.memory_watch = KernelMemoryWatch(
            Restrained(cgroups),
            thread.loop,
            {Signal.MEMORY: _MACHINE, Signal.ALLOCATABLE_MEMORY: cgroups.own},
            lambda: figures.look(self.pods.values()),
            on_crossing,
            glance=figures.at_least,
        )

    # ---- the port ------------------------------------------------------------------------------------------------

    def summary(self, *, is_urgent: bool = False) -> Summary:
        """Return the statistics of node and pods; empty if they cannot be read."""
        there = tuple(self.pods.values())
        try:
            summary = self.figures.quick(there) if is_urgent else self.figures.full(there)
            self._is_blind = False
        except Exception as error:  # noqa: BLE001 - without an answer the agent would never look again
            self._note(f"statistics cannot be read: {words(error)}")
            summary, self._is_blind = Summary(), True
        self.observed = observe(summary)
        self._least_available = None
        return summary

    def carry_out(self, command: Command) -> Sequence[Event]:
        """Carry out the guard's part of the commands."""
        match command:
            case EvictPod():
                return self._evict(command)
            case WatchMemory():
                # An agent without statistics knows no levels: keep the last ones.
                is_blind = self._is_blind
                asked, seen = (self.memory_watch.asked, None) if is_blind else (command, self.figures.last_look())
                self.memory_watch.watch(asked, seen)
            case StopPod(pod) | PreemptPod(pod):
                return (PodStopped(pod.metadata.uid),)
            case RemoveCgroup(uid):
                return (PodCleanedUp(uid),)
            case _:
                pass
        return ()

    # ---- evicting ------------------------------------------------------------------------------------------------

    def is_falling(self) -> bool:
        """Whether memory keeps falling although a victim is frozen."""
        signals = self.figures.look(self.pods.values()).signals
        asked = {level.signal for level in self.memory_watch.asked.levels}
        available = min((seen.available_bytes for signal, seen in signals.items() if signal in asked), default=0)
        before, self._least_available = self._least_available, available
        return before is not None and available < before - _FALLING_BYTES

    def _evict(self, command: EvictPod) -> Sequence[Event]:
        uid, decided_us = command.pod.metadata.uid, self._now_us()
        watched, why = self.pods.get(uid), self._refusal(command.pod)
        if why or watched is None or self.acting is None:
            self._note(f"{command.pod.key} is not evicted: {why or 'the guard is not ready'}")
            return (PodStopped(uid),)
        reaction = self.reactions[uid] = GuardReaction(command.pod.key, decided_us, self.noticed_us)
        self.evicted.add(uid)
        because = command.because
        threshold = str(because.threshold.signal) if isinstance(because, ReclaimTarget) else ""
        explained = {**command.annotations, **_explanation(self.because)}
        victim = self.victim(watched.pod, command.message, threshold, explained)
        before = _major_faults()
        try:
            if isinstance(because, ReclaimTarget) and not because.threshold.is_hard:
                self.acting.evict_through_api(victim, command.grace_period_seconds)
            else:
                tree = pod_at(self.cgroups, cgroup_uid(watched.pod), watched.cgroup)
                self.acting.evict(victim, tree, watched.pod.container_names)
        except Exception as error:  # noqa: BLE001 - the agent goes on with the next pod
            del self.reactions[uid]
            self._note(f"{command.pod.key} cannot be evicted: {words(error)}")
            return (PodStopped(uid),)
        reaction.major_faults = _major_faults() - before
        return ()

    def victim(
        self, pod: GuardedPod, message: str, threshold: str = "", annotations: Mapping[str, str] | None = None
    ) -> GuardVictim:
        """Return a pod as it is reported to the server."""
        return GuardVictim(
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            uid=pod.metadata.uid,
            message=message,
            decided_at=datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z"),
            generation=pod.metadata.generation,
            threshold=threshold,
            node=self.node,
            annotations=dict(annotations or {}),
        )

    def _refusal(self, pod: Pod) -> str:
        """Return why a pod must not be touched, whatever was decided; empty if it may be evicted."""
        uid = pod.metadata.uid
        watched, known = self.pods.get(uid), self.known.get(uid)
        if watched is None or known is None:
            return "no known pod has this uid"
        why = never_evicted(known, self.node) or never_evicted(watched.pod, self.node)
        if why:
            return why
        if known.key != pod.key:
            return "a pod of another name has its uid"
        own, place = self.cgroups.own, place_of(watched.cgroup)
        if not watched.cgroup.startswith(f"{own}/") or ".." in watched.cgroup.split("/"):
            return f"its cgroup is not below {own}"
        return "" if place.level is CgroupLevel.POD and place.pod_uid == uid else "its cgroup belongs to another pod"


def _explanation(because: Because | None) -> dict[str, str]:
    """Return what an Event says in addition to the kubelet's words."""
    if not isinstance(because, UnderPressure):
        return {}
    told = {"threshold": str(because.signal), "candidates": str(because.candidates), "next": because.next_pod}
    told["before-next-by"] = None if because.before_next_by is None else str(because.before_next_by)
    return {f"podqos.dev/{name}": text for name, text in told.items() if text is not None}


def _major_faults() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_majflt
