"""What the agent asks a world for (commands), and what a world tells it (events).

A world carries out commands in their order and reports results as events; no command waits for another. Evictions and
clean-ups are the eviction manager's own commands (``eviction.manager``), passed on unchanged. An event says that
something has happened: a request from outside, or the result of a command; the agent decides what to do about it.
``driver`` has the contract.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from podqos.agent.reasons import ProbeFailure
from podqos.eviction.manager import CleanUpNode, EvictPod
from podqos.eviction.signals import NodeCondition, Observation, Signal
from podqos.model.pod import Pod
from podqos.qos.cgroup import Cgroup


class CreateCgroup(Struct, frozen=True, gc=False):
    """Create one of the kubelet's cgroups and write its files."""

    cgroup: Cgroup


class UpdateCgroup(Struct, frozen=True, gc=False):
    """Write the files of an existing cgroup."""

    cgroup: Cgroup


class RemoveCgroup(Struct, frozen=True, gc=False):
    """Remove the cgroup of a stopped pod."""

    uid: str
    path: str


class ContainerPlan(Struct, frozen=True, gc=False):
    """How to run one container."""

    name: str
    cgroup: Cgroup
    oom_score_adj: int


class StartPod(Struct, frozen=True, gc=False):
    """Start a pod's first containers, each in its own cgroup; the answer is ``PodStarted``."""

    pod: Pod
    sandbox: Cgroup
    containers: tuple[ContainerPlan, ...]
    """All of them, unless init containers must finish first."""


class StartContainer(Struct, frozen=True, gc=False):
    """Start one more container of a running pod: its turn has come, or it is restarted.

    The answer is ``ContainerStarted``. A container that ended leaves an empty cgroup or none; the planned one is
    created again if needed.
    """

    pod: Pod
    plan: ContainerPlan
    restart_count: int


class KillContainer(Struct, frozen=True, gc=False):
    """Stop one container of a running pod; the answer is ``ContainerExited``.

    Without a grace period its ``preStop`` hook is skipped, and it still has the kubelet's least (``shutdown``).
    """

    pod: Pod
    container: str
    grace_period_seconds: int = 0
    """How long it has to stop by itself."""


class StopPod(Struct, frozen=True, gc=False):
    """Stop a pod that was deleted or has nothing left to run.

    The answer is ``PodStopped``, at the latest after the grace period.
    """

    pod: Pod
    grace_period_seconds: int


class PreemptPod(Struct, frozen=True, gc=False):
    """Stop a pod to make room for a critical one: it becomes ``Failed`` with reason ``Preempting``.

    The answer is ``PodStopped``, at the latest after the grace period.
    """

    pod: Pod
    grace_period_seconds: int
    message: str = "Preempted in order to admit critical pod"


class FailPod(Struct, frozen=True, gc=False):
    """Stop a pod that has been active for too long: it becomes ``Failed`` with reason ``DeadlineExceeded``.

    The answer is ``PodStopped``, at the latest after the grace period.
    """

    pod: Pod
    grace_period_seconds: int
    reason: str = "DeadlineExceeded"
    message: str = "Pod was active on the node longer than the specified deadline"


class HoldPod(Struct, frozen=True, gc=False):
    """Stop a pod from growing, and kill it as soon as it tries to; ``EvictPod`` follows. It has no answer."""

    pod: Pod


class RejectPod(Struct, frozen=True, gc=False):
    """Do not run a pod: it becomes ``Failed`` with this reason and message."""

    pod: Pod
    reason: str
    message: str


class SetCondition(Struct, frozen=True, gc=False):
    """Report a node condition."""

    condition: NodeCondition
    holds: bool


class LookAtNode(Struct, frozen=True, gc=False):
    """Read the statistics of node and pods; the answer is ``Observed``."""

    is_urgent: bool = False
    """Whether only memory must be fresh, because there is no time for more."""


class MemoryLevel(Struct, frozen=True, gc=False):
    """A level of available memory."""

    signal: Signal
    below_bytes: int
    """The level is crossed when less than this is available."""
    tell_if_below: bool = False
    """Whether to notify also if the level is already crossed; the kernel itself only reports crossings."""


class WatchMemory(Struct, frozen=True, gc=False):
    """Notify (``MemoryNotified``) when memory crosses one of these levels; they replace earlier ones."""

    levels: tuple[MemoryLevel, ...] = ()
    through_cache: bool = False
    """Whether to detect what page cache hides from a usage level; otherwise only the kernel notifies."""


Command = (
    CreateCgroup
    | UpdateCgroup
    | RemoveCgroup
    | StartPod
    | StartContainer
    | KillContainer
    | StopPod
    | PreemptPod
    | FailPod
    | HoldPod
    | EvictPod
    | CleanUpNode
    | RejectPod
    | SetCondition
    | LookAtNode
    | WatchMemory
)


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
