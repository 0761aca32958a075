"""The agent's configuration (``AgentConfig``), its state (``AgentState``), and the result of one event (``AgentStep``).

The eviction loop is always in exactly one of these phases::

    Resting ──woken, or notified──► Looking ──observed──► Resting         nothing to do
                          ▲   │
                          │   ├─observed──► CleaningUp ──observed──► Resting or Evicting
                          │   └─observed──► Evicting ──stopped, or waited long enough──► AwaitingCleanUp
                          └──────────── the next second after all are cleaned up, at the latest after 30 s;
                                        on the fast path at once

All values are frozen: a state can be kept, compared and gone back to.

``PodPlans`` keeps what pods get on a node, by their spec: replicas only differ in their names. ``Turn`` handles one
event, and is the only place where state changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent.journal import By, Entry, Kind
from podqos.agent.port import Command, ContainerPlan, PodBound, PodDeleted
from podqos.agent.reasons import Because, Promised
from podqos.eviction.manager import EvictPod, ManagerConfig, ManagerState, Pass
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import ResourceList
from podqos.placement.pods import counted
from podqos.qos.cgroup import Cgroup, CgroupContent, cgroup_contents, tier_cgroups
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.cgroup_tiers import TierRequests, tier_requests
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import OOMScore, oom_scores

_MOST_KEPT = 10_000


class PodPlan(Struct, frozen=True):
    """What all pods with a spec get."""

    pod: Pod
    """One of them: while it is referenced, no other spec can have its id in memory."""
    qos_class: QOSClass
    requests: Mapping[str, int]
    """Millicores for CPU, whole units for everything else."""
    tier: TierRequests
    """What it adds to the cgroup of its class."""
    contents: tuple[CgroupContent, ...]
    scores: tuple[OOMScore, ...]
    promised: Promised


class PodPlans:
    """The plans for one kind of node."""

    def __init__(self, cgroups: CgroupSettings, profile: Profile, allocatable: ResourceList) -> None:
        self._cgroups = cgroups
        self._profile = profile
        self.allocatable: Mapping[str, int] = counted(allocatable)
        """What pods may request in total, in the units of ``PodPlan.requests``."""
        self._pods: dict[tuple[int, int, int], PodPlan] = {}
        self._tiers: dict[TierRequests, tuple[Cgroup, ...]] = {}
        self._changed: dict[tuple[TierRequests, TierRequests], tuple[Cgroup, ...]] = {}

    def of(self, pod: Pod) -> PodPlan:
        """Return what a pod gets."""
        # Everything about a pod that matters here; labels and names do not.
        key = id(pod.spec), id(pod.metadata.annotations), id(pod.status)
        plan = self._pods.get(key)
        if plan is None:
            if len(self._pods) >= _MOST_KEPT:
                self._pods.clear()
            plan = self._pods[key] = self._plan(pod)
        return plan

    def changed_tiers(self, before: TierRequests, after: TierRequests) -> tuple[Cgroup, ...]:
        """Return the class cgroups that change with the total of requests."""
        known = self._changed.get((before, after))
        if known is None:
            if len(self._changed) >= _MOST_KEPT:
                self._changed.clear()
            old, new = self._tiers_of(before), self._tiers_of(after)
            known = self._changed[before, after] = tuple(cgroup for cgroup in new if cgroup not in old)
        return known

    def _tiers_of(self, requests: TierRequests) -> tuple[Cgroup, ...]:
        known = self._tiers.get(requests)
        if known is None:
            if len(self._tiers) >= _MOST_KEPT:
                self._tiers.clear()
            known = self._tiers[requests] = tier_cgroups(requests, self._cgroups, self._profile)
        return known

    def _plan(self, pod: Pod) -> PodPlan:
        cgroups, profile = self._cgroups, self._profile
        qos_class = qos_class_of(pod, profile)
        scores = oom_scores(pod, qos_class, cgroups.node_memory_bytes, profile)
        return PodPlan(
            pod,
            qos_class,
            counted(pod_requests(pod, pod_level=profile.pod_level_resources)),
            tier_requests((pod,), profile),
            cgroup_contents(pod, qos_class, cgroups, profile),
            scores,
            Promised(qos_class, {score.container: score.value for score in scores}),
        )


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


class Turn:
    """What the agent knows and has decided so far while handling one event."""

    __slots__ = ("_commands", "_entries", "config", "now_us", "state")

    def __init__(self, config: AgentConfig, state: AgentState, now_us: int) -> None:
        self.config = config
        self.state = state
        self.now_us = now_us
        self._commands: list[Command] = []
        self._entries: list[Entry] = []

    def change(self, **fields: object) -> None:
        """Change the agent's state."""
        self.state = replace(self.state, **fields)

    def put(self, record: PodRecord) -> None:
        """Store a pod's new state."""
        self.change(pods={**self.state.pods, record.pod.metadata.uid: record})

    def ask(self, *commands: Command) -> None:
        """Issue a command to the world."""
        self._commands += commands

    def note(
        self,
        kind: Kind,
        *,
        pod: str | None = None,
        container: str | None = None,
        because: Because | None = None,
        by: By | None = By.KUBELET,
    ) -> None:
        """Write a journal entry; ``by`` is None for what happened by itself."""
        self._entries.append(Entry(self.now_us, self.config.node, kind, pod, container, by, because))

    def step(self) -> AgentStep:
        """Return the result of the event."""
        return AgentStep(self.state, tuple(self._commands), tuple(self._entries))
