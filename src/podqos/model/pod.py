"""Pods and workloads, in the shape of the Kubernetes API (core/v1), as frozen values.

Only the fields that some decision reads are here; what is not declared is skipped while decoding and costs
nothing. Attribute names are the API's in snake case.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct, field

from podqos.model.jobs import CronJobSpec, JobSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import NO_RESOURCES, ResourceList, ResourceRequirements
from podqos.model.scheduling import Affinity, ContainerPort, PodSchedulingGate, TopologySpreadConstraint
from podqos.model.selector import LabelSelector

# Priority from which a pod counts as critical (pkg/apis/scheduling/types.go: SystemCriticalPriority).
SYSTEM_CRITICAL_PRIORITY = 2_000_000_000
SYSTEM_NODE_CRITICAL = "system-node-critical"

_CONFIG_SOURCE = "kubernetes.io/config.source"
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"

DEFAULT_NAMESPACE = "default"
"""The namespace of objects without one (k8s.io/apimachinery: metav1.NamespaceDefault)."""

TERMINAL_PHASES = ("Succeeded", "Failed")
"""Phases of pods that never run again (pkg/api/v1/pod/util.go: IsPodPhaseTerminal)."""


class QOSClass(StrEnum):
    """The three quality-of-service classes, as in ``status.qosClass``."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


CLASS_RANK = {QOSClass.BEST_EFFORT: 0, QOSClass.BURSTABLE: 1, QOSClass.GUARANTEED: 2}
"""The classes in order, the strictest promise last."""


class Present(Struct, frozen=True, gc=False):
    """A part of a pod of which only the presence matters here."""


class OwnedResources(Struct, frozen=True, gc=False):
    """The requests that a manager set."""

    requests: dict[str, Present] = field(default={}, name="f:requests")


class OwnedContainer(Struct, frozen=True, gc=False):
    """The fields of a container that a manager set."""

    resources: OwnedResources = field(default=OwnedResources(), name="f:resources")


class OwnedSpec(Struct, frozen=True, gc=False):
    """The fields of a pod's spec that a manager set; containers are called ``k:{"name":"app"}``."""

    containers: dict[str, OwnedContainer] = field(default={}, name="f:containers")
    init_containers: dict[str, OwnedContainer] = field(default={}, name="f:initContainers")
    resources: OwnedResources = field(default=OwnedResources(), name="f:resources")

    def owns_memory_request(self, container: str) -> bool:
        """Whether a memory request is among them that the OOM score of a container depends on: its own or the pod's."""
        key = f'k:{{"name":"{container}"}}'
        own = (self.containers.get(key), self.init_containers.get(key))
        owned = (self.resources, *(of_kind.resources for of_kind in own if of_kind is not None))
        return any("f:memory" in resources.requests for resources in owned)


class FieldsV1(Struct, frozen=True, gc=False):
    """Which fields a manager set, as far as decisions need it."""

    spec: OwnedSpec = field(default=OwnedSpec(), name="f:spec")


class ManagedFields(Struct, frozen=True, gc=False, rename="camel"):
    """The API server's record of who set which fields: it shows resizes in place."""

    manager: str = ""
    subresource: str = ""
    time: str | None = None
    fields_v1: FieldsV1 | None = field(default=None, name="fieldsV1")


class OwnerReference(Struct, frozen=True, gc=False, rename="camel"):
    """An owner of an object; its controller created it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool = False


class ObjectMeta(Struct, frozen=True, gc=False, rename="camel"):
    """The metadata of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    generate_name: str = ""
    resource_version: str = ""
    generation: int = 0
    """Of a pod: how often its spec has changed, counted from 1; 0 where it is not known."""
    creation_timestamp: str | None = None
    managed_fields: tuple[ManagedFields, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    deletion_timestamp: str = ""
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def namespace_or_default(self) -> str:
        """The namespace it is in, or would be created in."""
        return self.namespace or DEFAULT_NAMESPACE

    @property
    def is_live(self) -> bool:
        """Whether the object was read from an API server, which has already checked it."""
        return bool(self.uid or self.resource_version or self.creation_timestamp or self.managed_fields)


class ExitCodes(Struct, frozen=True, gc=False):
    """The exit codes of a restart rule."""

    operator: str = ""
    """In or NotIn."""
    values: tuple[int, ...] = ()


RESTART_ALL_CONTAINERS = "RestartAllContainers"
"""The action of a restart rule that starts the whole pod again."""


class RestartRule(Struct, frozen=True, gc=False, rename="camel"):
    """What to do when a container ends with certain exit codes."""

    action: str = ""
    exit_codes: ExitCodes | None = None


class ResizePolicy(Struct, frozen=True, gc=False, rename="camel"):
    """Whether a container is restarted when one of its resources is resized in place."""

    resource_name: str = ""
    restart_policy: str = ""


class SleepAction(Struct, frozen=True, gc=False):
    """A hook that waits."""

    seconds: int = 0


class LifecycleHandler(Struct, frozen=True, gc=False):
    """What a hook does. Of a command or a request only the presence matters here."""

    sleep: SleepAction | None = None


class Lifecycle(Struct, frozen=True, gc=False, rename="camel"):
    """What happens when a container starts and stops."""

    post_start: Present | None = None
    pre_stop: LifecycleHandler | None = None


class Probe(Struct, frozen=True, gc=False, rename="camel"):
    """How often the kubelet probes a container, and what it makes of the answers; 0 stands for the API's default.

    Source: Kubernetes v1.36 pkg/apis/core/v1/defaults.go (SetDefaults_Probe).
    """

    initial_delay_seconds: int = 0
    period_seconds: int = 0
    timeout_seconds: int = 0
    success_threshold: int = 0
    failure_threshold: int = 0
    termination_grace_period_seconds: int | None = None

    @property
    def defaulted(self) -> Probe:
        """As the API server stores it; numbers below zero, which it rejects, count as absent."""
        grace = self.termination_grace_period_seconds
        return Probe(
            max(0, self.initial_delay_seconds),
            self.period_seconds if self.period_seconds > 0 else 10,
            self.timeout_seconds if self.timeout_seconds > 0 else 1,
            self.success_threshold if self.success_threshold > 0 else 1,
            self.failure_threshold if self.failure_threshold > 0 else 3,
            grace if grace is None or grace > 0 else None,
        )


class Container(Struct, frozen=True, gc=False, rename="camel"):
    """A container of any kind; which kind is decided by the list it is in."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = NO_RESOURCES
    image_pull_policy: str | None = None
    restart_policy: str | None = None
    ports: tuple[ContainerPort, ...] = ()
    restart_policy_rules: tuple[RestartRule, ...] = ()
    resize_policy: tuple[ResizePolicy, ...] = ()
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    startup_probe: Probe | None = None
    lifecycle: Lifecycle | None = None
    target_container_name: str = ""
    """For an ephemeral container: the container whose processes it sees."""

    def restarts_for(self, resource: str) -> bool:
        """Whether a resize of the resource restarts the container."""
        return any(
            policy.resource_name == resource and policy.restart_policy == "RestartContainer"
            for policy in self.resize_policy
        )

    @property
    def is_sidecar(self) -> bool:
        """Whether an init container keeps running next to the others (KEP-753)."""
        return self.restart_policy == "Always"


class Toleration(Struct, frozen=True, gc=False, rename="camel"):
    """A taint that the pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Whether the pod tolerates the taint: fields that the toleration leaves out match everything.

        Source: staging/src/k8s.io/api/core/v1/toleration.go. Any operator but ``Exists`` and ``Equal`` matches nothing.
        """
        if self.effect not in {"", effect} or self.key not in {"", key}:
            return False
        return self.operator == "Exists" or (self.operator in {"", "Equal"} and self.value == value)


class EmptyDir(Struct, frozen=True, gc=False, rename="camel"):
    """A directory that lives as long as the pod."""

    medium: str = ""
    size_limit: Quantity | None = None


class ImageVolume(Struct, frozen=True, gc=False):
    """An image that is mounted as a volume."""

    reference: str = ""


class Volume(Struct, frozen=True, gc=False, rename="camel"):
    """A volume. Only sources on the node's own disk are distinguished."""

    name: str = ""
    empty_dir: EmptyDir | None = None
    host_path: Present | None = None
    git_repo: Present | None = None
    config_map: Present | None = None
    image: ImageVolume | None = None

    @property
    def is_local(self) -> bool:
        """Whether what it holds counts as the pod's use of the node's disk.

        Sources: pkg/kubelet/eviction/helpers.go (localVolumeNames), pkg/volume/util/util.go (IsLocalEphemeralVolume).
        """
        on_disk = self.empty_dir is not None and self.empty_dir.medium == ""
        return on_disk or not (self.host_path is None and self.git_repo is None and self.config_map is None)

    @property
    def is_in_memory(self) -> bool:
        """Whether what it holds is memory (tmpfs)."""
        return self.empty_dir is not None and self.empty_dir.medium == "Memory"


class PodResourceClaim(Struct, frozen=True, gc=False):
    """A claim for a device, which containers refer to by name."""

    name: str = ""


class PodOS(Struct, frozen=True, gc=False):
    """The operating system a pod is made for."""

    name: str = ""


class PodSpec(Struct, frozen=True, gc=False, rename="camel"):
    """The spec of a pod."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    ephemeral_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    """Pod-level resources. Absent and empty differ: even ``{}`` overrides the containers' resources."""
    resource_claims: tuple[PodResourceClaim, ...] = ()
    volumes: tuple[Volume, ...] = ()
    overhead: ResourceList | None = None
    """What the pod costs beyond its containers. Absent and empty differ: only a RuntimeClass may set it."""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    restart_policy: str = ""
    host_network: bool = False
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    os: PodOS | None = None


class WhyIdle(Struct, frozen=True, gc=False):
    """Why a container has no process: what it waits for, or how it ended."""

    reason: str = ""


class ContainerRunning(Struct, frozen=True, gc=False, rename="camel"):
    """A container that runs."""

    started_at: str | None = None


class RunState(Struct, frozen=True, gc=False):
    """Whether a container has a process, and since when; neither of the first two where it runs."""

    waiting: WhyIdle | None = None
    terminated: WhyIdle | None = None
    running: ContainerRunning | None = None


class RunStatus(Struct, frozen=True, gc=False, rename="camel"):
    """The status of a container, as far as decisions need it."""

    name: str = ""
    state: RunState | None = None
    resources: ResourceRequirements | None = None
    """What its cgroup has, since 1.33; while a resize is not done, it differs from the spec."""
    allocated_resources: ResourceList = {}
    """The requests that its kubelet counts: those of the spec once the kubelet accepts a resize."""
    restart_count: int = 0


class PodCondition(Struct, frozen=True, gc=False, rename="camel"):
    """Something that holds for a pod or not, such as DisruptionTarget."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = None
    message: str = ""


POD_RESIZE_IN_PROGRESS = "PodResizeInProgress"
"""The condition of a pod whose kubelet is resizing it."""
POD_RESIZE_PENDING = "PodResizePending"
"""The condition of a pod whose kubelet has not accepted a resize."""
RESIZE_CONDITIONS = (POD_RESIZE_PENDING, POD_RESIZE_IN_PROGRESS)
"""The conditions of a pod whose resize is not done."""
INFEASIBLE = "Infeasible"
"""Its reason where the kubelet never will."""


class PodStatus(Struct, frozen=True, gc=False, rename="camel"):
    """The status of a pod."""

    phase: str = ""
    qos_class: QOSClass | None = None
    start_time: str = ""
    container_statuses: tuple[RunStatus, ...] = ()
    init_container_statuses: tuple[RunStatus, ...] = ()
    conditions: tuple[PodCondition, ...] = ()
    resources: ResourceRequirements | None = None
    """Pod-level resources as its cgroup has them, since 1.36."""
    allocated_resources: ResourceList = {}
    """Requests of the whole pod as its kubelet counts them, since 1.36."""

    @property
    def is_resize_infeasible(self) -> bool:
        """Whether the kubelet rejected a resize for good (component-helpers/resource: IsPodResizeInfeasible)."""
        pending = next((condition for condition in self.conditions if condition.type == POD_RESIZE_PENDING), None)
        return pending is not None and pending.reason == INFEASIBLE

    @property
    def idle(self) -> dict[str, str | None]:
        """Why containers have no process, by name; None for those that run. Containers without a status are missing."""
        found: dict[str, str | None] = {}
        for run_status in (*self.init_container_statuses, *self.container_statuses):
            if run_status.state is not None:
                why = run_status.state.waiting or run_status.state.terminated
                found[run_status.name] = None if why is None else why.reason
        return found


class Pod(Struct, frozen=True, gc=False, rename="camel"):
    """A pod, or the pod that a template describes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
    is_partial: bool = False
    """Whether its controller adds containers that no manifest states: it isn't known to become Guaranteed."""

    @property
    def is_windows(self) -> bool:
        """Whether the pod runs on Windows, which has neither oom scores nor cgroups."""
        return self.spec.os is not None and self.spec.os.name == "windows"

    @property
    def key(self) -> str:
        """``namespace/name``, the pod's name in journals and reports."""
        return f"{self.metadata.namespace_or_default}/{self.metadata.name or self.metadata.generate_name}"

    @property
    def is_static(self) -> bool:
        """Whether the kubelet got the pod from a file or URL instead of the API server."""
        source = self.metadata.annotations.get(_CONFIG_SOURCE)
        return source is not None and source != "api"

    @property
    def is_mirror(self) -> bool:
        """Whether the pod is a mirror pod, the API server's copy of a static pod."""
        return MIRROR_ANNOTATION in self.metadata.annotations

    @property
    def is_critical(self) -> bool:
        """Whether the node must not evict the pod (pkg/kubelet/types/pod_update.go: IsCriticalPod)."""
        priority = self.spec.priority
        return self.is_static or self.is_mirror or (priority is not None and priority >= SYSTEM_CRITICAL_PRIORITY)

    @property
    def is_node_critical(self) -> bool:
        """Whether the pod also gets the lowest oom score: critical *and* of class system-node-critical."""
        return self.spec.priority_class_name == SYSTEM_NODE_CRITICAL and self.is_critical

    @property
    def running_containers(self) -> tuple[Container, ...]:
        """The containers that run side by side once the pod is up: the regular ones and the sidecars."""
        spec = self.spec
        if not spec.init_containers:
            return spec.containers
        return (*spec.containers, *(container for container in spec.init_containers if container.is_sidecar))


class Workload(Struct, frozen=True, gc=False):
    """A pod, or an object with a pod template, as found in a manifest."""

    kind: str
    metadata: ObjectMeta
    pod: Pod
    pod_path: str = ""
    """Field path from the object to the pod: empty for a Pod, ``spec.template`` for a Deployment."""
    replicas: int | None = None
    """How many pods run at a time, if the object says so: for a Job, its parallelism."""
    fields: tuple[tuple[str, str], ...] = ()
    """Where fields of the pod are in an object without a template: the pod's path, the object's; the first counts."""
    added: tuple[str, ...] = ()
    """The names of containers that the object's controller adds: nothing in the object is about them."""
    selector: LabelSelector | None = None
    """The selector of an object with a template, if its kind requires one."""
    job: JobSpec | None = None
    """Of a Job, or of the Jobs of a CronJob."""
    cron: CronJobSpec | None = None
    """Of a CronJob."""

    def at(self, path: str) -> str:
        """Return the path of a pod's field in the object: of a Deployment, ``spec.template`` and the field."""
        return field_at(path, self.pod_path, self.fields)

    @property
    def is_live(self) -> bool:
        """Whether the object was read from an API server."""
        return self.metadata.is_live

    @property
    def is_stored(self) -> bool:
        """Whether the pod itself was read from an API server, whose policies have had their say; a template was not."""
        return self.metadata.is_live and not self.pod_path


def field_at(path: str, pod_path: str, fields: tuple[tuple[str, str], ...]) -> str:
    """Return the path of a pod's field in the object that holds the pod."""
    for own, real in fields:
        if path == own or (path.startswith(own) and path[len(own)] in ".["):
            return real + path[len(own) :]
    return f"{pod_path}.{path}" if pod_path else path
