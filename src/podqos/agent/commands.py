"""The agent's commands to a world, in this order.

Evictions and clean-ups are the eviction manager's own commands (``eviction.commands``), passed on unchanged. A world
carries out a command and reports the result as an event; no command waits for another.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.eviction.commands import CleanUpNode, EvictPod
from podqos.eviction.signals import NodeCondition, Signal
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
