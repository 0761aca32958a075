"""What is to be run, as values: nodes, workloads and what they want, what happens at stated times.

A demand is what would be used without limits. The simulation finds out how much of it is granted.
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
from podqos.sim.engine.curve import ZERO, Clock, Curve, constant


class ServiceDemand(Struct, frozen=True, gc=False, kw_only=True):
    """What the pods of a workload serve together. The CPU they want follows from it."""

    requests_milli: Curve = ZERO
    """Requests per second, in thousandths, for the whole workload."""
    cost_us: int
    """The CPU time of one request."""
    workers: int
    """How many requests a pod answers at a time."""
    queue: int
    """How many more wait in a pod; further ones are refused."""
    timeout_us: int | None = None
    """After which an answer is too late for its client; None: never."""


ONE = constant(1)


class VolumeDemand(Struct, frozen=True, gc=False):
    """What is written into one volume."""

    used_bytes: Curve = ZERO
    inodes: Curve = ZERO


class ContainerDemand(Struct, frozen=True, gc=False, kw_only=True):
    """What one container wants. Each curve has its own clock."""

    anon_bytes: Curve = ZERO
    """Private memory, spread evenly over ``processes``."""
    active_file_bytes: Curve = ZERO
    """Page cache in use: counted by the kubelet, though the kernel can reclaim it."""
    inactive_file_bytes: Curve = ZERO
    """Page cache out of use."""
    processes: Curve = ONE
    """How many processes share the memory. Never less than one while the container runs."""
    pids: Curve | None = None
    """Processes and threads together, each of which takes a process id; None is as many as ``processes``."""
    cpu_milli: Curve = ZERO
    rootfs_bytes: Curve = ZERO
    """The writable layer."""
    rootfs_inodes: Curve = ZERO
    logs_bytes: Curve = ZERO
    logs_inodes: Curve = ZERO
    volumes: Mapping[str, VolumeDemand] = {}
    """By name of the pod's volume. A ``medium: Memory`` volume takes memory, any other emptyDir disk."""
    exits_after_us: int | None = None
    """How long after its start the container ends by itself; None is never."""
    exit_code: int = 0
    service: ServiceDemand | None = None
    """Requests that it answers; its CPU demand follows from them."""
    probe_cost_us: int | None = None
    """The CPU time of the answer to a probe; None is what the model says."""
    pre_stop_us: int | None = None
    """How long its ``preStop`` hook takes; None is what the hook says: a ``sleep`` its seconds, others nothing."""
    work_us: int | None = None
    """How much CPU time it has to get until it ends by itself; None: that does not end it. A container that is started
    again begins anew."""

    def settles_us(self, start_us: int) -> int | None:
        """Return how long after its start it no longer changes: at once if it is constant, None if it always does.

        A model: that long an init container runs that does not state when it ends.
        """
        curves = [getattr(self, name) for name in self.__struct_fields__]
        curves += [curve for volume in self.volumes.values() for curve in (volume.used_bytes, volume.inodes)]
        after_us = 0
        for curve in curves:
            if not isinstance(curve, Curve) or curve.is_constant:
                continue
            if curve.period_us is not None:
                return None
            last_us, _ = curve.knots[-1]
            after_us = max(after_us, last_us if curve.clock is Clock.CONTAINER else last_us - start_us)
        return after_us

    @property
    def ends(self) -> bool:
        """Whether it ends by itself."""
        return self.exits_after_us is not None or self.work_us is not None

    @property
    def pids_wanted(self) -> Curve:
        """How many process ids it takes."""
        return self.processes if self.pids is None else self.pids


IDLE = ContainerDemand()
"""One process that uses nothing."""


class SystemDemand(Struct, frozen=True, gc=False, kw_only=True):
    """What everything outside of pods uses: kubelet, container runtime, daemons, the kernel. Its clock is SCENARIO."""

    anon_bytes: Curve = ZERO
    """Memory that cannot be reclaimed. Its processes have the scores of system daemons and are never chosen first."""
    active_file_bytes: Curve = ZERO
    inactive_file_bytes: Curve = ZERO
    cpu_milli: Curve = ZERO
    pids: Curve = ZERO
    nodefs_bytes: Curve = ZERO
    nodefs_inodes: Curve = ZERO
    imagefs_bytes: Curve = ZERO
    """Images in use, where images have a filesystem of their own; else they are part of nodefs."""


class NodeLost(Struct, frozen=True, gc=False, tag=True):
    """A machine is lost, with everything that ran on it."""

    at_us: int
    node: str


class NodeAdded(Struct, frozen=True, gc=False, tag=True):
    """A machine joins, for the first time or again; pods that are still bound to it start anew."""

    at_us: int
    node: str


class Cordoned(Struct, frozen=True, gc=False, tag=True):
    """A machine takes no more pods, or takes them again."""

    at_us: int
    node: str
    takes_pods: bool = False


class Drained(Struct, frozen=True, gc=False, tag=True):
    """A machine is cordoned, and its pods are evicted through the API."""

    at_us: int
    node: str


class NodeDeleted(Struct, frozen=True, gc=False, tag=True):
    """The Node object of a lost machine is deleted: nothing is left of its pods after a while."""

    at_us: int
    node: str


class OutOfService(Struct, frozen=True, gc=False, tag=True):
    """A lost machine is marked out of service: its pods are deleted, and nobody waits for a kubelet to confirm it."""

    at_us: int
    node: str


Happening = NodeLost | NodeAdded | Cordoned | Drained | NodeDeleted | OutOfService


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


WorkloadChange = WorkloadRollout | WorkloadScale


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
    changes: tuple[str, ...] = ()
    """What was set to another value than the file has, as in ``phase=2s``. The description is that of the file."""

    @property
    def has_actors(self) -> bool:
        """Whether something changes workloads by what it measures."""
        return bool(self.autoscalers)

    @property
    def bends(self) -> int:
        """About how many bends of memory and CPU there are to follow: by the first demand of each workload."""
        bends = 0
        for workload in self.workloads:
            for demand in workload.demands[0].values():
                for curve in (demand.anon_bytes, demand.cpu_milli):
                    turns = 1 if curve.period_us is None else self.duration_us // curve.period_us + 1
                    bends += workload.replicas * (len(curve.knots) - 1) * turns
        return bends

    @property
    def has_services(self) -> bool:
        """Whether any workload answers requests."""
        return any(workload.service is not None for workload in self.workloads)

    @property
    def actor_names(self) -> Iterator[str]:
        """The autoscalers, each as ``Kind namespace/name``."""
        for autoscaler in self.autoscalers:
            yield f"HorizontalPodAutoscaler {autoscaler.metadata.namespace}/{autoscaler.metadata.name}"

    @property
    def node_names(self) -> Sequence[str]:
        """The nodes, in order."""
        return [group.name_of(index) for group in self.nodes for index in range(group.count)]
