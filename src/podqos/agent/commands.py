"""What the agent asks a world to do, in this order.

Evictions and clean-ups are the eviction manager's own commands (``eviction.commands``), passed on as they are. A
world carries out a command and reports the result as an event; no command waits for another.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.eviction.commands import CleanUpNode, EvictPod
from podqos.eviction.signals import NodeCondition, Signal
from podqos.model.pod import Pod
from podqos.qos.cgroup import Cgroup


class CreateCgroup(Struct, frozen=True, gc=False):
    """Make a cgroup of the kubelet's and write its files."""

    cgroup: Cgroup


class UpdateCgroup(Struct, frozen=True, gc=False):
    """Write the files of a cgroup that is there already."""

    cgroup: Cgroup


class RemoveCgroup(Struct, frozen=True, gc=False):
    """Remove the cgroup of a stopped pod."""

    uid: str
    path: str


class ContainerPlan(Struct, frozen=True, gc=False):
    """How one container is to run."""

    name: str
    cgroup: Cgroup
    oom_score_adj: int


class StartPod(Struct, frozen=True, gc=False):
    """Run a pod's first containers, each in a cgroup of its own; the answer is ``PodStarted``."""

    pod: Pod
    sandbox: Cgroup
    containers: tuple[ContainerPlan, ...]
    """All of them, unless init containers have to end before the others."""


class StartContainer(Struct, frozen=True, gc=False):
    """Run one more container of a pod that runs: its turn has come, or it ended and is due again.

    The answer is ``ContainerStarted``. A container that ended left its cgroup behind empty or not at all; the one of
    the plan is made anew if need be.
    """

    pod: Pod
    plan: ContainerPlan
    restart_count: int


class StopPod(Struct, frozen=True, gc=False):
    """End a pod that was deleted, or of which nothing is left to run.

    The answer is ``PodStopped``, at the latest after the grace period.
    """

    pod: Pod
    grace_period_seconds: int


class PreemptPod(Struct, frozen=True, gc=False):
    """End a pod to make room for a critical one: it becomes ``Failed`` with reason ``Preempting``.

    The answer is ``PodStopped``, at the latest after the grace period.
    """

    pod: Pod
    grace_period_seconds: int
    message: str = "Preempted in order to admit critical pod"


class HoldPod(Struct, frozen=True, gc=False):
    """Stop a pod from growing, and kill it as soon as it tries to; ``EvictPod`` follows. There is no answer to it."""

    pod: Pod


class RejectPod(Struct, frozen=True, gc=False):
    """Do not run a pod: it becomes ``Failed`` with this reason and message."""

    pod: Pod
    reason: str
    message: str


class SetCondition(Struct, frozen=True, gc=False):
    """Report a condition of the node."""

    condition: NodeCondition
    holds: bool


class LookAtNode(Struct, frozen=True, gc=False):
    """Take the figures of node and pods; the answer is ``Observed``."""

    is_urgent: bool = False
    """Whether only memory has to be fresh, because there is no time for more."""


class MemoryLevel(Struct, frozen=True, gc=False):
    """An amount of memory that may run out."""

    signal: Signal
    below_bytes: int
    """The level is crossed when less than this is available."""
    tell_if_below: bool = False
    """Whether to tell also if that is so already; the kernel itself tells of crossings only."""


class WatchMemory(Struct, frozen=True, gc=False):
    """Tell (``MemoryNotified``) when memory crosses one of these levels; those asked for before count no more."""

    levels: tuple[MemoryLevel, ...] = ()
    through_cache: bool = False
    """Whether to see what page cache hides from a level of usage; otherwise the kernel alone tells, as a kubelet."""


Command = (
    CreateCgroup
    | UpdateCgroup
    | RemoveCgroup
    | StartPod
    | StartContainer
    | StopPod
    | PreemptPod
    | HoldPod
    | EvictPod
    | CleanUpNode
    | RejectPod
    | SetCondition
    | LookAtNode
    | WatchMemory
)
