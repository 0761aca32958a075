"""A scenario, ready to run: nodes, workloads, events. Values only, no text and no files.

What many nodes or pods have in common exists once: ten thousand equal nodes are one ``NodeGroup``, the replicas of a
workload share one pod and, where they behave alike, one demand. ``scenario_format`` reads scenarios from text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from podqos.controllers.rollout_spec import RolloutSpec
from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.ranking import Policy
from podqos.kernel.memory import Watermarks
from podqos.model.autoscaling import HorizontalPodAutoscaler
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.jobs import CronJobSpec, JobSpec
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Taint
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.service import Service
from podqos.model.time_units import SECOND_US
from podqos.sim.scenario.demand import IDLE, ContainerDemand, SystemDemand
from podqos.sim.scenario.happenings import Happening
from podqos.sim.scenario.service import ServiceDemand

LOOP_INTERVAL_US = MONITORING_INTERVAL_SECONDS * SECOND_US

# The default kernel.pid_max of 64-bit Linux.
DEFAULT_MAX_PIDS = 4_194_304
DEFAULT_NODEFS_BYTES = 100 * 2**30

DEFAULT_START_US = 946_684_800 * SECOND_US
"""2000-01-01T00:00:00Z, a Saturday."""


class Filesystem(Struct, frozen=True, gc=False):
    """A filesystem of a node. Demands say how much of it is in use."""

    capacity_bytes: int
    inodes: int


class MachineSpec(Struct, frozen=True, kw_only=True):
    """One machine and its kubelet."""

    name: str
    memory_bytes: int
    cpu_milli: int
    swap_bytes: int = 0
    max_pids: int = DEFAULT_MAX_PIDS
    cgroup_version: Literal[1, 2] = 2
    watermarks: Watermarks | None = None
    """Where the kernel begins to reclaim and to kill; None is as a machine of this size boots."""
    nodefs: Filesystem
    imagefs: Filesystem | None = None
    """Where images have a filesystem of their own; writable layers are there, too, unless ``containerfs`` is given."""
    containerfs: Filesystem | None = None
    unused_image_bytes: int = 0
    """Unused images, on top of everything else on the disk: what removing them frees, once."""
    dead_container_bytes: int = 0
    """What dead containers left, on top of everything else on the disk: what removing them frees, once."""
    system: SystemDemand = SystemDemand()
    config: KubeletConfiguration = KubeletConfiguration()
    placement_config: KubeletConfiguration | None = None
    """The settings that say what pods may request, where placement is held: those from before a change."""
    hugepages: Mapping[str, int] = {}
    """By resource (``hugepages-2Mi``): bytes of memory set aside for them."""
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    loop_phase_us: int = 0
    """When the kubelet's eviction loop runs first; from then on every ten seconds. Before it no pod is evicted."""
    statistics_age_us: int = 0
    """How old the figures are that the kubelet decides on."""
    fast_path: bool = False
    """Whether podqos' own node agent runs there, with its fast path, instead of a kubelet."""


class NodeGroup(Struct, frozen=True):
    """Equal machines. A single one has the name of the spec, of several the first is ``name-0``."""

    spec: MachineSpec
    count: int = 1
    phase_step_us: int = 0
    """By how much each next node's eviction loop runs later than the one before, within the same ten seconds."""

    def name_of(self, index: int) -> str:
        """Return the name of a node of the group."""
        return self.spec.name if self.count == 1 else f"{self.spec.name}-{index}"

    def loop_phase_us(self, index: int) -> int:
        """Return when the eviction loop of a node of the group runs first."""
        rounds, phase_us = divmod(self.spec.loop_phase_us, LOOP_INTERVAL_US)
        return rounds * LOOP_INTERVAL_US + (phase_us + index * self.phase_step_us) % LOOP_INTERVAL_US


class ScenarioWorkload(Struct, frozen=True, kw_only=True):
    """Pods that come from one object."""

    kind: str
    """Deployment, Job, Pod, DaemonSet, …"""
    namespace: str
    name: str
    pod: Pod
    """As the API server stores it. Replicas differ from it in name and uid only."""
    replicas: int = 1
    """A DaemonSet has one on every node that it tolerates instead."""
    demands: Sequence[Mapping[str, ContainerDemand]] = ({},)
    """By container. The replicas take turns: number i has ``demands[i % len(demands)]``. A replacement has the demand
    of the pod it replaces; a container without an entry is idle."""
    arrives_us: int = 0
    """At 0 it is there from the start: bound, started and running."""
    deleted_us: int | None = None
    nodes: tuple[str, ...] = ()
    """Nodes it is bound to without asking the scheduler, in turn: replica i runs on ``nodes[i % len(nodes)]``."""
    spread: bool = False
    """Bound without asking the scheduler, evenly over all nodes: replica i runs on node i modulo their number."""
    job: JobSpec | None = None
    """Of a Job, or of the Jobs of a CronJob: the spec as the API server stores it."""
    cron: CronJobSpec | None = None
    """Of a CronJob: it has pods when its schedule says so."""
    active: bool = False
    """Whether a CronJob has an active Job when it arrives. That Job has its name."""
    recreate: bool = True
    """Whether a controller replaces pods that were evicted, failed or were lost with their node."""
    rollout: RolloutSpec | None = None
    """How its controller creates, updates and scales its pods; None is by default."""

    def demand_of(self, replica: int, container: str) -> ContainerDemand:
        """Return what a container of a replica wants."""
        return self.demands[replica % len(self.demands)].get(container, IDLE)

    @property
    def service(self) -> ServiceDemand | None:
        """What its pods answer; all replicas have the same."""
        return next((demand.service for demand in self.demands[0].values() if demand.service is not None), None)

    def with_service(self, service: ServiceDemand) -> ScenarioWorkload:
        """Return it with another service in place of its own."""
        return replace(
            self,
            demands=tuple(
                {
                    name: demand if demand.service is None else replace(demand, service=service)
                    for name, demand in demands.items()
                }
                for demands in self.demands
            ),
        )

    @property
    def identity(self) -> str:
        """Its kind, namespace and name."""
        return f"{self.kind}/{self.namespace}/{self.name}"


class WorkloadRollout(Struct, frozen=True):
    """A workload gets another template: that of a new revision, or of an earlier one."""

    at_us: int
    workload: str
    """Its ``identity``."""
    template: ScenarioWorkload | None
    """With the pod and the demand of the revision; None is as it arrived."""
    number: int
    """Which template it is, in the order of their first rollout; 1 is that with which it arrived."""
    revision: int
    """Its number in the history from now on: a rollback counts, too."""
    rolled_back: bool = False
    replicas: int | None = None
    """The wanted number of pods, where the manifest changes that as well."""


class WorkloadScale(Struct, frozen=True):
    """A user wants another number of pods."""

    at_us: int
    workload: str
    """Its ``identity``."""
    replicas: int


class WorkloadSuspend(Struct, frozen=True):
    """A user suspends a Job or CronJob, or resumes it."""

    at_us: int
    workload: str
    """Its ``identity``."""
    suspended: bool


WorkloadChange = WorkloadRollout | WorkloadScale | WorkloadSuspend


class Options(Struct, frozen=True, kw_only=True):
    """Delays of kubelet, runtime and controllers."""

    pleg_period_us: int = 1 * SECOND_US
    """How often the kubelet looks for containers that have ended."""
    container_start_us: int = 0
    """From the decision to start a container until it runs. What arrives at 0 runs already when the scenario begins."""
    clean_up_us: int = 0
    """From the end of a pod's containers until nothing of it is left on the node."""
    container_stop_us: int = 0
    """How long a container takes to end when it is asked to; at most its grace period."""
    status_update_us: int | None = None
    """How often a node reports its conditions; None is what its kubelet's configuration says (10 s)."""
    recreate_us: int = 1 * SECOND_US
    """From the end of a pod until its controller has made another."""
    metrics_resolution_us: int = 15 * SECOND_US
    """How often metrics-server measures the usage of pods, for autoscalers."""
    metrics_delay_us: int = 0
    """From a measurement until autoscalers see it."""

    slows_at_memory_high: bool = True
    """Whether the kernel slows containers above ``memory.high``. Not where a growth is what a pod gets, whatever the
    kernel does to it: in forecasts and leaks."""
    image_pull_us: int = 0
    """How long it takes to pull an image that a node does not have. It has those of the pods it starts with."""

    def start_delay_us(self, decided_us: int) -> int:
        """Return how long the start of a container takes that is decided at a time."""
        return self.container_start_us if decided_us else 0


class Scenario(Struct, frozen=True, kw_only=True):
    """Everything that a run needs."""

    name: str
    description: str = ""
    seed: int = 0
    duration_us: int
    start_us: int = DEFAULT_START_US
    """The time of day and year at which it begins, in microseconds since 1970: CronJobs run by it."""
    nodes: tuple[NodeGroup, ...]
    workloads: tuple[ScenarioWorkload, ...]
    """In the order in which they were written, which is that of arrival at the same time."""
    happenings: tuple[Happening, ...] = ()
    workload_changes: tuple[WorkloadChange, ...] = ()
    """Rollouts, rollbacks and scalings, in the order of the file."""
    budgets: tuple[PodDisruptionBudget, ...] = ()
    """What the scheduler heeds when it preempts. What the cluster says they allow does not count: it is found anew."""
    namespaces: Mapping[str, Mapping[str, str]] = {}
    """Labels of namespaces by name, by which the affinity of pods may select them."""
    services: tuple[Service, ...] = ()
    """Those whose pods are spread by default."""
    autoscalers: tuple[HorizontalPodAutoscaler, ...] = ()
    """Each with a workload of the scenario as its target, of which there is one per workload."""
    profile: Profile = LATEST
    policy: Policy | None = None
    """How pods are ranked for eviction; None is as the Kubernetes version does."""
    options: Options = Options()
    only: tuple[str, ...] | None = None
    """In a shard (``sim.shards``): the nodes that are simulated, in the order of ``nodes``. There no pod may ask the
    scheduler."""
    changes: tuple[str, ...] = ()
    """What was set to another value than the file has, as in ``phase=2s``. The description is that of the file."""

    @property
    def has_actors(self) -> bool:
        """Whether something changes workloads by what it measures."""
        return bool(self.autoscalers)

    @property
    def actor_names(self) -> Iterator[str]:
        """The autoscalers, each as ``Kind namespace/name``."""
        for autoscaler in self.autoscalers:
            yield f"HorizontalPodAutoscaler {autoscaler.metadata.namespace}/{autoscaler.metadata.name}"

    @property
    def node_names(self) -> Sequence[str]:
        """The nodes that are simulated."""
        if self.only is not None:
            return self.only
        return [group.name_of(index) for group in self.nodes for index in range(group.count)]
