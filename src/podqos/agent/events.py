"""Events that a world reports to the agent: requests from outside, and results of the agent's commands.

An event says that something has happened; the agent decides what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from podqos.eviction.observation import Observation
from podqos.model.pod import Pod


class PodBound(Struct, frozen=True, gc=False):
    """A pod, as the API server stored it, is to run on this node."""

    pod: Pod


class Remembered(Struct, frozen=True, gc=False, omit_defaults=True):
    """What is known of a container from before the agent was started again."""

    stage: str = ""
    """As ``ContainerStage`` has it; empty if nothing is known."""
    restarts: int = 0
    back_off_seconds: int = 0
    restarted_us: int = 0
    waited_seconds: int = 0
    exit_code: int = 0
    oom_killed: bool = False
    due_us: int = 0
    """When a restart that was put off is due."""


class PodAdopted(Struct, frozen=True, gc=False):
    """A pod of before runs already: the agent was started again and found it."""

    pod: Pod
    containers: Mapping[str, Remembered] = {}
    """By name."""


class PodDeleted(Struct, frozen=True, gc=False):
    """A pod is to be deleted."""

    uid: str


class PodStarted(Struct, frozen=True, gc=False):
    """The first containers of a pod run."""

    uid: str


class ContainerStarted(Struct, frozen=True, gc=False):
    """The answer to ``StartContainer``."""

    uid: str
    container: str


class ContainerExited(Struct, frozen=True, gc=False):
    """A container has ended that was not asked to stop."""

    uid: str
    container: str
    exit_code: int
    oom_killed: bool = False
    finished_us: int | None = None
    """When it ended, where that is known to be earlier than now."""
    is_lost: bool = False
    """It ended because what kept it did: it is restarted at once, and its back-off stays as it is."""


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
    """The kernel says that memory has crossed a level (``WatchMemory``); a world need not have such a signal.

    It may come for nothing: the kernel counts page cache, too. The agent looks at once instead of at its next pass.
    """


class Woken(Struct, frozen=True, gc=False):
    """The time has come that the agent asked for (``wake_us``). Too early it does nothing."""


Event = (
    PodBound
    | PodAdopted
    | PodDeleted
    | PodStarted
    | ContainerStarted
    | ContainerExited
    | PodStopped
    | PodCleanedUp
    | Observed
    | MemoryNotified
    | Woken
)
