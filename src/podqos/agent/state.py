"""The agent's configuration (``AgentConfig``), its state (``AgentState``), and the result of one event (``AgentStep``).

The eviction loop is always in exactly one of these phases::

    Resting ──woken, or notified──► Looking ──observed──► Resting         nothing to do
                          ▲   │
                          │   ├─observed──► CleaningUp ──observed──► Resting or Evicting
                          │   └─observed──► Evicting ──stopped, or waited long enough──► AwaitingCleanUp
                          └──────────── the next second after all are cleaned up, at the latest after 30 s;
                                        on the fast path at once

All values are frozen: a state can be kept, compared and gone back to.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.commands import Command, ContainerPlan
from podqos.agent.events import PodBound, PodDeleted
from podqos.agent.journal import Entry
from podqos.agent.pod_plans import PodPlan, PodPlans
from podqos.eviction.commands import EvictPod
from podqos.eviction.manager import ManagerConfig, ManagerState, Pass
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import ResourceList
from podqos.qos.cgroup import Cgroup
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.cgroup_tiers import TierRequests

DEFAULT_MAX_PODS = 110
LONGEST_BACK_OFF_SECONDS = 300


class MemoryNotification(StrEnum):
    """Who receives memory notifications from the kernel (``memory``)."""

    OFF = "off"
    """No one: the loop checks every ten seconds."""
    KUBELET = "kubelet"
    """The kubelet, with ``kernelMemcgNotification`` on cgroup v1."""
    FAST_PATH = "fast path"
    """podqos' own agent, which also keeps a victim from growing and checks again when it is gone."""


class AgentConfig(Struct, frozen=True, kw_only=True):
    """One node: its name, its resources, and its kubelet's settings."""

    node: str
    cgroups: CgroupSettings
    eviction: ManagerConfig
    allocatable: ResourceList
    """What pods may request in total."""
    max_pods: int = DEFAULT_MAX_PODS
    longest_back_off_seconds: int = LONGEST_BACK_OFF_SECONDS
    """``crashLoopBackOff.maxContainerRestartPeriod``: the maximum delay of a container restart."""
    shadow: bool = False
    """Decide and journal evictions, but do not carry them out."""
    held_back: str = ""
    """The reason for that, for the journal."""
    notification: MemoryNotification = MemoryNotification.OFF
    profile: Profile = LATEST
    plans: PodPlans | None = None
    """Cached plans for nodes of this kind."""

    @property
    def known_plans(self) -> PodPlans:
        """The cached plans, or new ones."""
        return self.plans or PodPlans(self.cgroups, self.profile, self.allocatable)

    def plan_of(self, pod: Pod) -> PodPlan:
        """Return what a pod gets."""
        return self.known_plans.of(pod)

    def changed_tiers(self, before: TierRequests, after: TierRequests) -> tuple[Cgroup, ...]:
        """Return the class cgroups that change with the total of requests."""
        return self.known_plans.changed_tiers(before, after)


class Stage(StrEnum):
    """The stage of a pod's life."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Phase(StrEnum):
    """How a pod ended by itself."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Role(StrEnum):
    """The role of a container in its pod."""

    INIT = "init"
    """Must succeed before the next ones start."""
    SIDECAR = "sidecar"
    """An init container that keeps running alongside the others."""
    REGULAR = "regular"
    EPHEMERAL = "ephemeral"


class ContainerStage(StrEnum):
    """The stage of a container's life."""

    WAITING = "waiting"
    """For earlier init containers."""
    STARTING = "starting"
    RUNNING = "running"
    BACKING_OFF = "backing off"
    ENDED = "ended"


class ContainerRecord(Struct, frozen=True, gc=False):
    """A container of a pod that the agent has admitted."""

    plan: ContainerPlan
    role: Role
    stage: ContainerStage = ContainerStage.WAITING
    restarts: int = 0
    back_off_seconds: int = 0
    """The delay of the next restart, counted from the end of the container; 0 before the first."""
    restarted_us: int = 0
    """When the delay was last increased."""
    waited_seconds: int = 0
    """The delay of the last restart."""
    exit_code: int = 0
    """Exit code of its last run."""
    oom_killed: bool = False
    restarted_with_all: bool = False
    """Whether its last restart was that of the whole pod."""
    is_unready: bool = False
    """Whether its probes say that it does not answer, or have yet to say that it does."""
    is_unhealthy: bool = False
    """Whether it is being killed because a liveness or startup probe failed."""
    finished_us: int | None = None
    """When its last run ended."""


class PodRecord(Struct, frozen=True, gc=False):
    """A pod that the agent has admitted."""

    pod: Pod
    stage: Stage
    requests: Mapping[str, int]
    """Millicores for CPU, whole units for everything else."""
    tier: TierRequests
    """What it adds to the cgroup of its class."""
    cgroup_path: str | None
    """None if the kubelet creates no pod cgroups."""
    containers: tuple[ContainerRecord, ...] = ()
    """In starting order: init containers and sidecars, regular, ephemeral."""
    phase: Phase | None = None
    """Set when it ended by itself."""
    is_preempted: bool = False
    """Whether it is stopped to make room for a critical pod."""
    is_overdue: bool = False
    """Whether it is stopped because it has been active for its ``activeDeadlineSeconds``."""
    is_restarting: bool = False
    """Whether its containers are being killed for a restart of the whole pod."""

    def container(self, name: str) -> ContainerRecord | None:
        """Return one of its containers; None if it has none of that name."""
        return next((container for container in self.containers if container.plan.name == name), None)

    def with_container(self, changed: ContainerRecord) -> PodRecord:
        """Return the record with another state of one container."""
        name = changed.plan.name
        containers = (changed if container.plan.name == name else container for container in self.containers)
        return replace(self, containers=tuple(containers))

    @property
    def is_active(self) -> bool:
        """Whether it still holds its requests, and could be evicted."""
        return self.stage is not Stage.STOPPED

    @property
    def is_pending(self) -> bool:
        """Whether its phase is Pending: not all of its regular containers have been started yet.

        Source: Kubernetes v1.36 pkg/kubelet/kubelet_pods.go (getPhase).
        """
        return any(
            container.role is Role.REGULAR
            and container.stage in {ContainerStage.WAITING, ContainerStage.STARTING}
            and not container.restarts
            for container in self.containers
        )

    @property
    def is_ready(self) -> bool:
        """Whether it runs with all its containers, and their probes succeed: the condition ``ContainersReady``."""
        return self.stage is Stage.RUNNING and all(
            container.stage is ContainerStage.RUNNING and not container.is_unready
            for container in self.containers
            if container.role in {Role.REGULAR, Role.SIDECAR}
        )


class Resting(Struct, frozen=True, gc=False):
    """Until the next pass."""

    wake_us: int


class Looking(Struct, frozen=True, gc=False):
    """Statistics were requested."""

    wake_us: None = None
    resume_us: int | None = None
    """The time of the next regular pass, which a notified kubelet does not postpone."""


class CleaningUp(Struct, frozen=True, gc=False):
    """The node is being cleaned up and will be checked again."""

    first_phase: Pass
    wake_us: None = None
    resume_us: int | None = None


class Evicting(Struct, frozen=True, gc=False):
    """A pod is being evicted; the next one follows when it has stopped, or when that takes too long."""

    current: EvictPod
    waiting: tuple[EvictPod, ...]
    evicted: tuple[str, ...]
    """The uids of this pass, including the current one."""
    wake_us: int
    resume_us: int | None = None


class AwaitingCleanUp(Struct, frozen=True, gc=False):
    """All have stopped; their remains are being removed."""

    remaining: tuple[str, ...]
    since_us: int
    wake_us: int


Loop = Resting | Looking | CleaningUp | Evicting | AwaitingCleanUp


class Restart(Struct, frozen=True, gc=False, order=True):
    """A container that is due for a restart, in order of time."""

    wake_us: int
    uid: str
    container: str


class Deadline(Struct, frozen=True, gc=False, order=True):
    """When a pod has been active for its ``activeDeadlineSeconds``, in order of time."""

    wake_us: int
    uid: str


class Preempting(Struct, frozen=True, gc=False):
    """A critical pod waits for others to make room, one after the other. The kubelet handles no other pod meanwhile."""

    pod: Pod
    lacking: Mapping[str, int]
    victims: tuple[str, ...]
    """The uids of the pods to preempt; the first is being stopped."""
    wake_us: int
    """The end of the wait for it."""
    unheard: tuple[PodBound | PodDeleted, ...] = ()


class AgentState(Struct, frozen=True, gc=False):
    """The state of an agent."""

    pods: Mapping[str, PodRecord] = {}
    """By uid, in order of admission."""
    requested: Mapping[str, int] = {}
    """The total requests of active pods."""
    tiers: TierRequests = TierRequests()
    """The same by class."""
    manager: ManagerState = ManagerState()
    loop: Loop = Resting(0)
    restarts: tuple[Restart, ...] = ()
    """Delayed restarts, next first."""
    preempting: Preempting | None = None
    watched_us: int | None = None
    """When a kubelet last set its notification levels."""
    deadlines: tuple[Deadline, ...] = ()
    """Of pods that are there, or were; next first."""

    @property
    def wake_us(self) -> int | None:
        """When the agent wants to be woken next, by the eviction loop or otherwise."""
        own, other = self.loop.wake_us, self.wake_besides_us
        return own if other is None or (own is not None and own < other) else other

    @property
    def wake_besides_us(self) -> int | None:
        """When it wants to be woken for anything but the eviction loop.

        For restarts and a long preemption; deadlines wait until that is over.
        """
        restart_us = self.restarts[0].wake_us if self.restarts else None
        if self.preempting is None:
            if not self.deadlines:
                return restart_us
            deadline_us = self.deadlines[0].wake_us
            return deadline_us if restart_us is None else min(restart_us, deadline_us)
        return self.preempting.wake_us if restart_us is None else min(restart_us, self.preempting.wake_us)

    @property
    def active_pods(self) -> tuple[Pod, ...]:
        """The pods that the eviction manager considers, in order of admission."""
        return tuple(record.pod for record in self.pods.values() if record.is_active)


class AgentStep(Struct, frozen=True, gc=False):
    """The result of one event."""

    state: AgentState
    commands: tuple[Command, ...] = ()
    entries: tuple[Entry, ...] = ()
