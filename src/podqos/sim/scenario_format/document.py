"""A scenario file in the shape in which it is written (``podqos.dev/v1alpha1``).

The declarations here are the format: names of fields are checked against them, and ``schema`` makes the JSON
Schema of them, docstrings included. What the fields mean for a run is worked out in ``file``.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field

from podqos.errors import InputError
from podqos.eviction.ranking import Policy
from podqos.manifest.examine import Examination
from podqos.manifest.fields import suggestion
from podqos.manifest.kubelet import kubelet_settings
from podqos.manifest.plain import FieldPath, Plain, parse_path
from podqos.model.kubelet_config import API_VERSION as KUBELET_API_VERSION
from podqos.model.kubelet_config import KIND as KUBELET_KIND
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.kubelet_ignored import Ignored
from podqos.model.node import Taint
from podqos.model.quantity import ZERO, Quantity
from podqos.sim.scenario_format.shape_document import Duration, Shape, converted, read_duration, read_shape
from podqos.sim.scenario_format.shape_text import Unit

API_VERSION = "podqos.dev/v1alpha1"
KIND = "Scenario"


class _Part(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Base of all parts: fields are written in camel case, and no others are known."""


class Metadata(_Part, frozen=True):
    """Who the scenario is."""

    name: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Capacity(_Part, frozen=True):
    """What a machine has."""

    cpu: Quantity | None = None
    memory: Quantity | None = None
    swap: Quantity = ZERO
    pids: Quantity | None = None
    """Process ids; absent: 4194304."""


class FilesystemPart(_Part, frozen=True):
    """A filesystem: its size and number of files."""

    capacity: Quantity | None = None
    inodes: Quantity | None = None
    """Absent: one for every 16Ki."""


class Filesystems(_Part, frozen=True):
    """The filesystems of a machine."""

    nodefs: FilesystemPart = FilesystemPart()
    """The kubelet's: logs, emptyDir; and images and writable layers, where these have none of their own."""
    imagefs: FilesystemPart | None = None
    containerfs: FilesystemPart | None = None


class Reclaimable(_Part, frozen=True):
    """What lies on the disk besides all else, and is gained by cleaning up, once."""

    images: Quantity = ZERO
    dead_containers: Quantity = ZERO


class WatermarksPart(_Part, frozen=True):
    """Free memory below which the kernel acts."""

    min: Quantity | None = None
    """Below it the OOM killer comes."""
    low: Quantity | None = None
    """Below it kswapd reclaims; absent: like min."""
    high: Quantity | None = None
    """Until here it reclaims; absent: like low."""


class SystemPart(_Part, frozen=True):
    """What everything outside of pods uses: kubelet, container runtime, daemons, the kernel."""

    memory: Shape = Shape()
    active_file: Shape = Shape()
    inactive_file: Shape = Shape()
    cpu: Shape = Shape()
    pids: Shape = Shape()
    nodefs: Shape = Shape()
    nodefs_inodes: Shape = Shape()
    imagefs: Shape = Shape()


class KubeletPart(Struct, frozen=True):
    """The kubelet's configuration: the path of a file, or a KubeletConfiguration in place."""

    path: str = ""
    config: KubeletConfiguration | None = None
    ignored: Ignored = Ignored()
    """What of a configuration in place changes nothing here."""


class NodePart(_Part, frozen=True):
    """One machine, or several that are equal."""

    name: str = ""
    count: int = 1
    """Of several, the first is called name-0."""
    capacity: Capacity = Capacity()
    filesystems: Filesystems = Filesystems()
    reclaimable: Reclaimable = Reclaimable()
    system: SystemPart = SystemPart()
    kubelet: KubeletPart = KubeletPart()
    watermarks: WatermarksPart | None = None
    """Absent: as a machine of that size boots."""
    cgroup_version: int = 2
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    loop_phase: Duration = Duration(0)
    """When the eviction loop looks for the first time; from then on every 10 s."""
    phase_step: Duration = Duration(0)
    """By how much the loop of each next machine is later."""
    statistics_age: Duration = Duration(0)
    """How old the figures are that the kubelet sees."""
    fast_path: bool = False
    """Whether podqos' own node agent runs there instead of a kubelet: woken by the kernel as soon as memory runs short,
    it keeps the victim from growing and looks again at once."""


class VolumePart(_Part, frozen=True):
    """What is written into a volume."""

    bytes: Shape = Shape()
    inodes: Shape = Shape()


class ExitPart(_Part, frozen=True):
    """That a container ends by itself."""

    after: Duration | None = None
    """Counted from its start."""
    code: int = 0


class DemandPart(_Part, frozen=True):
    """What a container uses, if it can."""

    memory: Shape = Shape()
    """Private memory."""
    active_file: Shape = Shape()
    """Page cache in use."""
    inactive_file: Shape = Shape()
    """Page cache out of use."""
    processes: Shape | None = None
    """How many processes share the memory evenly; absent: one."""
    pids: Shape | None = None
    """Processes and threads; absent: like processes."""
    cpu: Shape = Shape()
    rootfs: Shape = Shape()
    """The writable layer."""
    rootfs_inodes: Shape = Shape()
    logs: Shape = Shape()
    logs_inodes: Shape = Shape()
    volumes: dict[str, VolumePart] = {}
    """By name of the volume."""
    exits: ExitPart | None = None


class VariantPart(_Part, frozen=True):
    """The demand of one replica."""

    demand: DemandPart | None = None
    containers: dict[str, DemandPart] = {}


class WorkloadPart(_Part, frozen=True):
    """What pods of the manifests do. Workloads that are not mentioned run, and use nothing."""

    workload: str = ""
    """Name, namespace/name, or Kind/namespace/name of an object in the manifests."""
    replicas: int | None = None
    """Absent: as the manifest says."""
    demand: DemandPart | None = None
    """Of the only container."""
    containers: dict[str, DemandPart] = {}
    """Of several containers, by name."""
    per_replica: tuple[VariantPart, ...] = ()
    """Of each replica its own; they take turns."""
    arrives: Duration = Duration(0)
    deleted: Duration | None = None
    nodes: tuple[str, ...] = ()
    """Bound to these, in turn, without asking the scheduler."""
    spread: bool = False
    """Bound evenly to all nodes without asking the scheduler."""
    recreate: bool | None = None
    """Whether a controller replaces lost pods; absent: as the kind does."""


class EventPart(_Part, frozen=True):
    """Something that happens to the machines."""

    at: Duration = Duration(0)
    node_lost: str = ""
    """Which one is gone, with all that ran on it."""
    node_joins: str = ""
    """Which one that was lost is back, empty."""


class TimingPart(_Part, frozen=True):
    """How long the machinery takes."""

    pleg_period: Duration | None = None
    """How often the kubelet looks for ended containers; absent: 1s."""
    container_start: Duration | None = None
    """From the decision until a container runs, after the beginning of the scenario; absent: 0s."""
    container_stop: Duration | None = None
    """How long a container takes to end when asked; absent: 0s."""
    clean_up: Duration | None = None
    """From the end of a pod until nothing is left of it; absent: 0s."""
    status_update: Duration | None = None
    """How often nodes report; absent: the kubelet's nodeStatusUpdateFrequency."""
    recreate: Duration | None = None
    """From the end of a pod until there is another; absent: 1s."""


class ScenarioSpec(_Part, frozen=True):
    """What runs where, for how long, and what it does."""

    description: str = ""
    duration: Duration | None = None
    seed: int = 0
    kubernetes_version: str = ""
    """Absent: the newest."""
    eviction_policy: Policy | None = None
    """How pods are ranked for eviction; absent: as the Kubernetes version does."""
    namespace: str = "default"
    """Of objects in the manifests that name none."""
    manifests: tuple[str, ...] = ()
    """Files and directories, relative to the scenario."""
    nodes: tuple[NodePart, ...] = ()
    workloads: tuple[WorkloadPart, ...] = ()
    events: tuple[EventPart, ...] = ()
    timing: TimingPart = TimingPart()


class ScenarioDocument(_Part, frozen=True):
    """A simulation: machines, workloads from ordinary manifests, and what these use over time."""

    api_version: str = field(default="", name="apiVersion")
    kind: str = ""
    metadata: Metadata = Metadata()
    spec: ScenarioSpec = ScenarioSpec()


def demands(part: DemandPart | SystemPart) -> Iterator[tuple[str, str, Unit, Shape]]:
    """Yield the demands that a part states: as written, what it is called in ``demand``, the unit, the shape."""
    for name, written in zip(part.__struct_fields__, part.__struct_encode_fields__, strict=True):
        shape = getattr(part, name)
        if isinstance(shape, Shape):
            called = _CALLED.get(name) or (name if name.endswith("_inodes") else f"{name}_bytes")
            yield written, called, Unit.MILLI if name == "cpu" else Unit.WHOLE, shape


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
    """Return an examination that knows how the parts of a scenario are written."""
    return Examination(
        is_live=False,
        fields={Taint: frozenset(Taint.__struct_encode_fields__)},
        readers={Duration: read_duration, Shape: read_shape, KubeletPart: _read_kubelet, VolumePart: _read_volume},
    )


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
    # In its place here, what it is need not be said.
    identity: dict[str, Plain] = {"apiVersion": KUBELET_API_VERSION, "kind": KUBELET_KIND}
    try:
        settings = kubelet_settings(value) or kubelet_settings({**identity, **value})
    except InputError as error:
        examination.report((*path, *parse_path(error.where)), error.what, error.fix)
        return KubeletPart()
    assert settings is not None
    return KubeletPart(config=settings.configuration, ignored=settings.ignored_by("simulation"))


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
