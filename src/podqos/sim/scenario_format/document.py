"""The format of a scenario file (``podqos.dev/v1alpha1``).

The declarations here are the format: field names are checked against them, and ``schema`` generates the JSON Schema
from them, docstrings included. ``file`` turns the fields into a scenario.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from podqos.admission.policies import AdmissionPlugin
from podqos.errors import InputError
from podqos.eviction.ranking import Policy
from podqos.manifest.examine import Examination
from podqos.manifest.fields import suggestion
from podqos.manifest.kubelet import Notation, kubelet_settings
from podqos.manifest.plain import FieldPath, Plain, parse_path
from podqos.model.kubelet_config import API_VERSION as KUBELET_API_VERSION
from podqos.model.kubelet_config import KIND as KUBELET_KIND
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.kubelet_ignored import Ignored
from podqos.model.node import Taint
from podqos.model.quantity import ZERO, Quantity
from podqos.sim.scenario_format.events import EventPart as OtherEventPart
from podqos.sim.scenario_format.services import ServicePart
from podqos.sim.scenario_format.shape_document import (
    CpuTime,
    Duration,
    Part,
    Shape,
    converted,
    read_cpu_time,
    read_duration,
    read_shape,
)
from podqos.sim.scenario_format.shape_text import Unit

API_VERSION = "podqos.dev/v1alpha1"
KIND = "Scenario"


class Metadata(Part, frozen=True):
    """Name and labels of the scenario."""

    name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class Capacity(Part, frozen=True):
    """The capacity of a machine."""

    cpu: Quantity | None = None
    memory: Quantity | None = None
    swap: Quantity = ZERO
    pids: Quantity | None = None
    """Process ids; absent: 4194304."""
    hugepages_2mi: Quantity = field(default=ZERO, name="hugepages-2Mi")
    """Memory set aside as huge pages of 2Mi when the machine boots: pods request it by this name."""
    hugepages_1gi: Quantity = field(default=ZERO, name="hugepages-1Gi")
    """The same of 1Gi."""


class FilesystemPart(Part, frozen=True):
    """A filesystem: its size and number of files."""

    capacity: Quantity | None = None
    inodes: Quantity | None = None
    """Absent: one for every 16Ki."""


class Filesystems(Part, frozen=True):
    """The filesystems of a machine."""

    nodefs: FilesystemPart = FilesystemPart()
    """The kubelet's: logs, emptyDir; and images and writable layers, unless these have their own filesystem."""
    imagefs: FilesystemPart | None = None
    containerfs: FilesystemPart | None = None


class Reclaimable(Part, frozen=True):
    """What a clean-up frees, once; it is on the disk in addition to everything else."""

    images: Quantity = ZERO
    dead_containers: Quantity = ZERO


class WatermarksPart(Part, frozen=True):
    """Free memory below which the kernel acts."""

    min: Quantity | None = None
    """Below it the OOM killer acts."""
    low: Quantity | None = None
    """Below it kswapd reclaims; absent: like min."""
    high: Quantity | None = None
    """kswapd reclaims up to here; absent: like low."""


class SystemPart(Part, frozen=True):
    """What runs outside of pods: kubelet, container runtime, daemons, the kernel."""

    memory: Shape = Shape()
    active_file: Shape = Shape()
    inactive_file: Shape = Shape()
    cpu: Shape = Shape()
    pids: Shape = Shape()
    nodefs: Shape = Shape()
    nodefs_inodes: Shape = Shape()
    imagefs: Shape = Shape()


class KubeletPart(Struct, frozen=True):
    """The kubelet's configuration: the path of a file, or an inline KubeletConfiguration."""

    path: str = ""
    config: KubeletConfiguration | None = None
    ignored: Ignored = Ignored()
    """Fields of an inline configuration that have no effect here."""
    notation: Notation = Notation.CONFIGURATION
    """How an inline configuration is written."""


class NodePart(Part, frozen=True):
    """One machine, or several equal ones."""

    name: str = ""
    count: int = 1
    """Several are named name-0, name-1, …"""
    capacity: Capacity = Capacity()
    filesystems: Filesystems = Filesystems()
    reclaimable: Reclaimable = Reclaimable()
    system: SystemPart = SystemPart()
    kubelet: KubeletPart = KubeletPart()
    watermarks: WatermarksPart | None = None
    """Absent: the kernel's defaults for a machine of that size."""
    cgroup_version: int = 2
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    loop_phase: Duration = Duration(0)
    """When the eviction loop runs first; from then on every 10 s. Before it the kubelet evicts no pod."""
    phase_step: Duration = Duration(0)
    """How much later the loop of each next machine runs, within the same 10 s."""
    statistics_age: Duration = Duration(0)
    """How old the figures are that the kubelet sees."""
    fast_path: bool = False
    """Whether podqos' own node agent runs there instead of a kubelet: notified by the kernel as soon as memory runs
    short, it stops the victim's growth and looks again at once."""


class VolumePart(Part, frozen=True):
    """What is written into a volume."""

    bytes: Shape = Shape()
    inodes: Shape = Shape()


class ExitPart(Part, frozen=True):
    """The exit of a container on its own."""

    after: Duration | None = None
    """After its start; not with work."""
    code: int = 0


class DemandPart(Part, frozen=True):
    """What a container wants to use."""

    memory: Shape = Shape()
    """Private memory."""
    active_file: Shape = Shape()
    """Active page cache."""
    inactive_file: Shape = Shape()
    """Inactive page cache."""
    processes: Shape | None = None
    """How many processes share the memory evenly; absent: 1."""
    pids: Shape | None = None
    """Processes and threads; absent: like processes."""
    cpu: Shape = Shape()
    """Cores; with work: how many it can use at once, absent: 1."""
    work: CpuTime | None = None
    """CPU time, such as 60 cpu-s: the container exits when it has got that much. Restarted, it begins anew."""
    rootfs: Shape = Shape()
    """The writable layer."""
    rootfs_inodes: Shape = Shape()
    logs: Shape = Shape()
    logs_inodes: Shape = Shape()
    volumes: dict[str, VolumePart] = field(default_factory=dict)
    """By name of the volume."""
    exits: ExitPart | None = None
    service: ServicePart | None = None
    """Requests that it answers, for the whole workload; not with cpu."""
    probe_cost: CpuTime | None = None
    """The CPU time of the answer to a probe, which is late if the container is short of CPU; absent: 10 cpu-ms."""
    pre_stop: Duration | None = None
    """How long the container's preStop hook takes; absent: the seconds of a sleep, and no time for other hooks."""


class VariantPart(Part, frozen=True):
    """The demand of one replica."""

    demand: DemandPart | None = None
    containers: dict[str, DemandPart] = field(default_factory=dict)


class WorkloadPart(Part, frozen=True):
    """What the pods of a workload do. Workloads that are not listed run and use nothing."""

    workload: str = ""
    """Name, namespace/name, or Kind/namespace/name of an object in the manifests."""
    replicas: int | None = None
    """Absent: as in the manifest."""
    demand: DemandPart | None = None
    """Of a pod with one container."""
    containers: dict[str, DemandPart] = field(default_factory=dict)
    """Of several containers, by name."""
    per_replica: tuple[VariantPart, ...] = ()
    """One per replica; they take turns."""
    arrives: Duration = Duration(0)
    deleted: Duration | None = None
    nodes: tuple[str, ...] = ()
    """Bound to these nodes in turn, without the scheduler."""
    spread: bool = False
    """Bound evenly to all nodes, without the scheduler."""
    recreate: bool | None = None
    """Whether a controller replaces lost pods; absent: depends on the kind."""
    active: bool = False
    """Whether a CronJob has an active Job when it arrives."""


class ResourcesPart(Part, frozen=True):
    """Requests and limits of a container."""

    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)


class RolloutPart(Part, frozen=True):
    """A new revision of a Deployment, StatefulSet or DaemonSet. What is absent stays as it was."""

    workload: str = ""
    """Name, namespace/name, or Kind/namespace/name of an object in the manifests."""
    manifest: str = ""
    """A file with the changed object, of the same kind, namespace and name; relative to the scenario."""
    image: str = ""
    """Of a pod with one container."""
    resources: ResourcesPart | None = None
    """Of a pod with one container."""
    demand: DemandPart | None = None
    """What the new revision wants, of a pod with one container."""
    containers: dict[str, DemandPart] = field(default_factory=dict)
    """The same of several containers, by name."""
    per_replica: tuple[VariantPart, ...] = ()
    """One per replica; they take turns."""


class RollbackPart(Part, frozen=True):
    """Back to an earlier revision, as kubectl rollout undo does."""

    workload: str = ""
    """Name, namespace/name, or Kind/namespace/name of an object in the manifests."""
    to_revision: int = 0
    """0 is the previous one. A rollback becomes a revision of its own."""


class ScalePart(Part, frozen=True):
    """Another number of pods, as kubectl scale wants it."""

    workload: str = ""
    """Name, namespace/name, or Kind/namespace/name of an object in the manifests."""
    replicas: int | None = None


class EventPart(OtherEventPart, frozen=True):
    """An event that happens to a machine or to a workload."""

    rollout: RolloutPart | None = None
    rollback: RollbackPart | None = None
    scale: ScalePart | None = None


class TimingPart(Part, frozen=True):
    """Delays of kubelet, runtime and controllers."""

    pleg_period: Duration | None = None
    """How often the kubelet looks for exited containers; absent: 1s."""
    container_start: Duration | None = None
    """From the decision until a container runs, except at the start of the scenario; absent: 0s."""
    container_stop: Duration | None = None
    """How long a container takes to stop; absent: 0s."""
    clean_up: Duration | None = None
    """From the end of a pod until it is cleaned up; absent: 0s."""
    status_update: Duration | None = None
    """How often nodes report; absent: the kubelet's nodeStatusUpdateFrequency."""
    recreate: Duration | None = None
    """From the end of a pod until its replacement exists; absent: 1s."""
    image_pull: Duration | None = None
    """How long it takes to pull an image that a node does not have; absent: 0s."""
    metrics_resolution: Duration | None = None
    """How often metrics-server measures pods, for autoscalers; absent: 15s."""
    metrics_delay: Duration | None = None
    """From a measurement until autoscalers see it; absent: 0s."""


class ScenarioSpec(Part, frozen=True):
    """Machines, workloads, their demands, and the duration."""

    description: str = ""
    duration: Duration | None = None
    start: str = ""
    """The time at which it begins, such as 2026-11-15T23:55:00Z, for CronJobs; absent: 2000-01-01T00:00:00Z."""
    seed: int = 0
    kubernetes_version: str = ""
    """Absent: the newest."""
    eviction_policy: Policy | None = None
    """How pods are ranked for eviction; absent: as in the Kubernetes version."""
    enable_admission_plugins: tuple[AdmissionPlugin, ...] = ()
    """Of the API server, enabled besides the default ones."""
    namespace: str = "default"
    """For objects in the manifests without one."""
    manifests: tuple[str, ...] = ()
    """Files and directories, relative to the scenario."""
    nodes: tuple[NodePart, ...] = ()
    workloads: tuple[WorkloadPart, ...] = ()
    events: tuple[EventPart, ...] = ()
    timing: TimingPart = TimingPart()


class ScenarioDocument(Part, frozen=True):
    """A simulation: machines, workloads from ordinary manifests, and their usage over time."""

    api_version: str = field(default="", name="apiVersion")
    kind: str = ""
    metadata: Metadata = Metadata()
    spec: ScenarioSpec = ScenarioSpec()


def demands(part: DemandPart | SystemPart) -> Iterator[tuple[str, str, Unit, Shape]]:
    """Yield the demands of a part: the field as written, its name in ``demand``, the unit, the shape."""
    for name, written in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True):
        shape = getattr(part, name)
        if isinstance(shape, Shape):
            called = _CALLED.get(name) or (name if name.endswith("_inodes") else f"{name}_bytes")
            yield written, called, _unit(name), shape


def _unit(name: str) -> Unit:
    if name == "cpu":
        return Unit.MILLI
    return Unit.COUNT if name in {"processes", "pids"} or name.endswith("inodes") else Unit.WHOLE


_CALLED = {"memory": "anon_bytes", "cpu": "cpu_milli", "processes": "processes", "pids": "pids"}


def read_document(value: dict[str, Plain], examination: Examination) -> ScenarioDocument | None:
    """Return a document, or None after reporting everything wrong with it."""
    known = len(examination.findings)
    _check_identity(value, examination)
    cleaned = examination.clean(value, ScenarioDocument, ())
    if len(examination.findings) > known:
        return None
    return converted(cleaned, ScenarioDocument)


def examination() -> Examination:
    """Return an examination that can read the parts of a scenario."""
    return Examination(
        is_live=False,
        refused=_REFUSED,
        fields={Taint: frozenset(Taint.__struct_encode_fields__)},
        readers={
            Duration: read_duration,
            CpuTime: read_cpu_time,
            Shape: read_shape,
            KubeletPart: _read_kubelet,
            VolumePart: _read_volume,
        },
    )


_NO_RESTART = "no kubelet restarts during a run", "state its settings at nodes[].kubelet"
_NO_OPTIONS = "a drain has no options", "it leaves pods of DaemonSets and evicts all others as their budgets allow"
_REFUSED = {
    "resize": ("a run resizes no pods in place", "podqos admit says what one does"),
    "hugePages": ("a run knows no use of huge pages", "capacity and requests of hugepages-2Mi count"),
    **dict.fromkeys(("ignoreDaemonSets", "deleteEmptyDirData", "disableEviction"), _NO_OPTIONS),
    "images": ("a run knows no images", "timing.imagePull is how long any takes that a node does not have"),
    "kubeletRestart": _NO_RESTART,
    "kubeletConfig": _NO_RESTART,
    "clusterAutoscaler": ("a run has no cluster autoscaler", "events with nodeJoins add nodes"),
}
"""By name: fields that people look for."""


def _check_identity(value: dict[str, Plain], examination: Examination) -> None:
    for name, right in (("apiVersion", API_VERSION), ("kind", KIND)):
        if value.get(name) != right:
            what = f"must be {right}" if name in value else "Required value"
            examination.report((name,), what, f"write {name}: {right}")


def _read_kubelet(examination: Examination, value: Plain, path: FieldPath) -> KubeletPart:
    if isinstance(value, str):
        return KubeletPart(value)
    if not isinstance(value, dict):
        examination.report(path, "must be a file or a KubeletConfiguration", "name the file, or write its fields below")
        return KubeletPart()
    # Inline it needs no apiVersion and kind.
    identity: dict[str, Plain] = {"apiVersion": KUBELET_API_VERSION, "kind": KUBELET_KIND}
    try:
        settings = kubelet_settings(value) or kubelet_settings({**identity, **value})
    except InputError as error:
        examination.report((*path, *parse_path(error.where)), error.what, error.fix)
        return KubeletPart()
    assert settings is not None
    return KubeletPart("", settings.configuration, settings.ignored_by("simulation"), settings.notation)


def _read_volume(examination: Examination, value: Plain, path: FieldPath) -> VolumePart:
    """Read a volume: a mapping with bytes and inodes, or the shape of its bytes alone."""
    names = VolumePart.__struct_encode_fields__
    if not isinstance(value, dict) or not any(name in value for name in names):
        return VolumePart(read_shape(examination, value, path))
    for name in value:
        if name not in names:
            examination.report((*path, name), f'unknown field "{name}"', suggestion(name, names))
    read = {name: read_shape(examination, value[name], (*path, name)) for name in names if name in value}
    return VolumePart(**read)
