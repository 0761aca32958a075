"""Events that a world reports to the agent: requests from outside, and results of the agent's commands.

An event says that something has happened; the agent decides what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from podqos.agent.reasons import ProbeFailure
from podqos.eviction.observation import Observation
from podqos.model.pod import Pod


class PodBound(Struct, frozen=True, gc=False):
    """A pod, as stored by the API server, was bound to this node."""

    pod: Pod


class Remembered(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known about a container from before a restart of the agent."""

    stage: str = ""
    """A ``ContainerStage``; empty if unknown."""
    restarts: int = 0
    back_off_seconds: int = 0
    restarted_us: int = 0
    waited_seconds: int = 0
    exit_code: int = 0
    oom_killed: bool = False
    due_us: int = 0
    """When a delayed restart is due."""


class PodAdopted(Struct, frozen=True, gc=False):
    """A pod was already running when the agent restarted."""

    pod: Pod
    containers: Mapping[str, Remembered] = {}
    """By name."""
    started_us: int | None = None
    """Since when it has been on the node; None if its deadline is none of the agent's business."""


class PodDeleted(Struct, frozen=True, gc=False):
    """A pod was deleted."""

    uid: str
    grace_period_seconds: int | None = None
    """None: the pod's own."""


class PodStarted(Struct, frozen=True, gc=False):
    """The first containers of a pod run."""

    uid: str


class ContainerStarted(Struct, frozen=True, gc=False):
    """The answer to ``StartContainer``."""

    uid: str
    container: str


class ContainerExited(Struct, frozen=True, gc=False):
    """A container ended without being asked to."""

    uid: str
    container: str
    exit_code: int
    oom_killed: bool = False
    finished_us: int | None = None
    """When it ended, if known to be earlier than now."""
    is_lost: bool = False
    """It ended together with its runtime: it is restarted immediately, and its back-off is unchanged."""


class ProbeFailed(Struct, frozen=True, gc=False):
    """A liveness or startup probe failed as often in a row as its threshold allows: the container is killed."""

    uid: str
    container: str
    because: ProbeFailure


class ReadinessChanged(Struct, frozen=True, gc=False):
    """A container became ready, or no longer is: its probes say so, or have yet to say so."""

    uid: str
    container: str
    ready: bool
    because: ProbeFailure | None = None
    """The failures that took it out of service; None if it has just started, or answers again."""
    is_news: bool = True
    """Whether the journal reports it: not if a container that has just started passes its first probes."""


class PodStopped(Struct, frozen=True, gc=False):
    """No container of a pod runs any more: it was stopped, or has ended."""

    uid: str


class PodCleanedUp(Struct, frozen=True, gc=False):
    """Nothing is left of a stopped pod: containers, volumes and cgroups are removed."""

    uid: str


class Observed(Struct, frozen=True, gc=False):
    """The answer to ``LookAtNode``."""

    observation: Observation


class MemoryNotified(Struct, frozen=True, gc=False):
    """The kernel reports that memory has crossed a level (``WatchMemory``); not every world has such a signal.

    It may be a false alarm, because the kernel counts page cache, too. The agent checks at once instead of at its next
    pass.
    """


class Woken(Struct, frozen=True, gc=False):
    """The time that the agent asked for (``wake_us``) has come. If it is too early, nothing happens."""


Event = (
    PodBound
    | PodAdopted
    | PodDeleted
    | PodStarted
    | ContainerStarted
    | ContainerExited
    | ProbeFailed
    | ReadinessChanged
    | PodStopped
    | PodCleanedUp
    | Observed
    | MemoryNotified
    | Woken
)
