"""Nodes of a scenario file, and what of all its amounts looks like a mistake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from podqos.errors import InputError
from podqos.kernel.memory import Watermarks
from podqos.manifest.fields import suggestion
from podqos.manifest.plain import FieldPath
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import LEAST_NODE_BYTES, MOST_NODE_BYTES
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.naming import NamingText
from podqos.placement.allocatable import check_starts
from podqos.sim.scenario.scenario import (
    DEFAULT_MAX_PIDS,
    DEFAULT_NODEFS_BYTES,
    Filesystem,
    MachineSpec,
    NodeGroup,
    SystemDemand,
)
from podqos.sim.scenario_format.document import FilesystemPart, NodePart, WatermarksPart, demands
from podqos.sim.scenario_format.events import EventPart
from podqos.sim.scenario_format.shape_document import CurveSettings, Report, curves

# The largest pid_max of 64-bit Linux (include/linux/threads.h, PID_MAX_LIMIT), which is also the default here.
MOST_PIDS = DEFAULT_MAX_PIDS
# More than the kernel can be configured for (NR_CPUS).
_MOST_CORES = 100_000
_MOST_DISK_BYTES = 1 << 60
_UNIT = "check the unit"
_USUAL_DISK = Quantity.of_units(DEFAULT_NODEFS_BYTES, "BinarySI")
# staging/src/k8s.io/api/core/v1/types.go, TaintEffect.
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MOST_EXIT_CODE = 255


class NodeChecks:
    """The checks of one node."""

    def __init__(self, part: NodePart, path: FieldPath, report: Report) -> None:
        self._part = part
        self._path = path
        self._report = report

    def run(self) -> None:
        """Report what such a node cannot have."""
        capacity = self._part.capacity
        memory = capacity.memory
        if memory is not None and 0 < memory.value < LEAST_NODE_BYTES:
            self._about(f"{memory} is too little memory for a node", "such as 64Gi", "capacity", "memory")
        self._at_most(memory, MOST_NODE_BYTES, "4Pi", "capacity", "memory")
        self._at_most(capacity.cpu, _MOST_CORES, f"{_MOST_CORES:,} cores", "capacity", "cpu")
        self._not_negative(capacity.swap, "capacity", "swap")
        self._at_most(capacity.swap, MOST_NODE_BYTES, "4Pi", "capacity", "swap")
        pids = capacity.pids
        if pids is not None and not (_is_whole(pids) and 1 <= pids.value <= MOST_PIDS):
            what = f"must be a whole number between 1 and {MOST_PIDS:,}"
            self._about(what, "leave it out for the default", "capacity", "pids")
        self._disks()
        self._watermarks()
        self._taints()

    def starts_with(self, system: SystemDemand) -> None:
        """Report what everything outside of pods cannot use when the scenario starts; it may grow beyond that."""
        part = self._part
        files = part.filesystems
        at_start = {
            "memory": (system.anon_bytes, part.capacity.memory, "the node's memory"),
            "pids": (system.pids, part.capacity.pids or Quantity.of_units(MOST_PIDS), "the node's process ids"),
            "nodefs": (system.nodefs_bytes, files.nodefs.capacity or _USUAL_DISK, "the capacity of nodefs"),
            "nodefsInodes": (system.nodefs_inodes, files.nodefs.inodes, "the inodes of nodefs"),
            "imagefs": (
                system.imagefs_bytes,
                None if files.imagefs is None else files.imagefs.capacity,
                "the capacity of imagefs",
            ),
        }
        for field, (curve, most, of_what) in at_start.items():
            if most is not None and most.sign > 0 and curve.at(0) > most.value:
                self._about(f"starts above {of_what} ({most})", "it must fit in the node", "system", field)

    def _about(self, what: str, fix: str, *field: str | int) -> None:
        self._report((*self._path, *field), what, fix)

    def _at_most(self, amount: Quantity | None, most: int, called: str, *field: str | int) -> None:
        if amount is not None and amount > Quantity.of_units(most):
            self._about("is more than any node has", f"{_UNIT}: at most {called}", *field)

    def _not_negative(self, amount: Quantity | None, *field: str | int) -> None:
        if amount is not None and amount.sign < 0:
            self._about(f"{amount} is below zero", "write 0 or more", *field)

    def _disks(self) -> None:
        files = self._part.filesystems
        for name in ("nodefs", "imagefs", "containerfs"):
            disk: FilesystemPart | None = getattr(files, name)
            if disk is None:
                continue
            if disk.capacity is not None and disk.capacity.sign <= 0:
                self._about("must be positive", "such as 100Gi", "filesystems", name, "capacity")
            self._at_most(disk.capacity, _MOST_DISK_BYTES, "1Ei", "filesystems", name, "capacity")
            if disk.inodes is not None and (disk.inodes.sign < 0 or not _is_whole(disk.inodes)):
                what = "must be a whole number, 0 or more"
                self._about(what, "leave it out for one inode every 16Ki", "filesystems", name, "inodes")
        reclaimable = self._part.reclaimable
        self._not_negative(reclaimable.images, "reclaimable", "images")
        self._not_negative(reclaimable.dead_containers, "reclaimable", "deadContainers")
        holder = files.nodefs if files.imagefs is None else files.imagefs
        capacity = holder.capacity or _USUAL_DISK
        if capacity.sign > 0 and reclaimable.images > capacity:
            name = "nodefs" if files.imagefs is None else "imagefs"
            what = f"{reclaimable.images} of unused images on a {name} of {capacity}"
            self._about(what, "it must be less than the filesystem", "reclaimable", "images")

    def _watermarks(self) -> None:
        part, memory = self._part.watermarks, self._part.capacity.memory
        if part is None or memory is None or memory.sign <= 0:
            return
        for name in ("min", "low", "high"):
            amount: Quantity | None = getattr(part, name)
            if amount is not None and amount >= memory:
                what = f"{amount} is not below the node's memory ({memory})"
                self._about(what, "such as 64Mi; without watermarks the kernel's defaults apply", "watermarks", name)
                return

    def _taints(self) -> None:
        """Check taints as the API server does (pkg/apis/core/validation, validateNodeTaints)."""
        earlier = set()
        for index, taint in enumerate(self._part.taints):
            if not taint.key:
                self._about("Required value", "such as dedicated", "taints", index, "key")
            if taint.effect not in _EFFECTS:
                what = f'unknown effect "{taint.effect}"' if taint.effect else "Required value"
                fix = suggestion(taint.effect, _EFFECTS) if taint.effect else f"one of {', '.join(_EFFECTS)}"
                self._about(what, fix, "taints", index, "effect")
            if (taint.key, taint.effect) in earlier:
                self._about("has the key and effect of an earlier taint", "remove one", "taints", index)
            earlier.add((taint.key, taint.effect))


def check_events(events: Sequence[EventPart], duration_us: int, report: Report) -> None:
    """Report events after the end, nodes that are lost while they are gone, or join while they are there.

    A node whose first event is that it joins is absent until then.
    """
    for index, event in enumerate(events):
        if event.at > duration_us:
            report(("spec", "events", index, "at"), "is after the end of the scenario", "lengthen spec.duration")
    is_there: dict[str, bool] = {}
    for index, event in sorted(enumerate(events), key=lambda pair: pair[1].at):
        for node, field, joins in _changes(event):
            if is_there.get(node, not joins) is joins:
                what = f'"{node}" is already {"there" if joins else "lost"} at this time'
                fix = "remove it, or let the node " + ("be lost first" if joins else "join first")
                report(("spec", "events", index, field), what, fix)
            is_there[node] = joins
        for node, field in ((event.node_deleted, "nodeDeleted"), (event.out_of_service, "outOfService")):
            if node and is_there.get(node, True):
                what, fix = f'"{node}" is there at this time', "let it be lost first: nodeLost"
                report(("spec", "events", index, field), what, fix)


def _changes(event: EventPart) -> Iterator[tuple[str, str, bool]]:
    """Yield the node that is lost or joins, the field that says so, and whether it joins."""
    for field, name, joins in (("nodeLost", event.node_lost, False), ("nodeJoins", event.node_joins, True)):
        if name:
            yield name, field, joins


def is_exit_code(code: int) -> bool:
    """Whether a process can end with this code."""
    return 0 <= code <= _MOST_EXIT_CODE


def _is_whole(amount: Quantity) -> bool:
    return amount == Quantity.of_units(amount.value)


MOST_NODES = 100_000
# The default of mkfs.ext4.
BYTES_PER_INODE = 16 * 2**10


class NodeReader:
    """Makes node groups of the nodes in a file."""

    def __init__(
        self,
        setting: CurveSettings,
        kubelets: Mapping[str, KubeletConfiguration],
        profile: Profile,
        warn: Report,
    ) -> None:
        self._setting = setting
        self._kubelets = kubelets
        self._profile = profile
        self._report = setting.report
        self._warn = warn

    def groups(self, parts: Sequence[NodePart]) -> tuple[NodeGroup, ...]:
        """Return the groups in their order."""
        groups = tuple(self._group(part, ("spec", "nodes", index)) for index, part in enumerate(parts))
        nodes = sum(group.count for group in groups)
        if nodes > MOST_NODES:  # before any of them is looked at
            self._report(("spec", "nodes"), f"{nodes:,} nodes", f"at most {MOST_NODES:,} are simulated")
            return ()
        seen: dict[str, int] = {}
        for index, group in enumerate(groups):
            for number in range(group.count):
                name = group.name_of(number)
                if seen.setdefault(name, index) != index:
                    self._report(("spec", "nodes", index, "name"), f'duplicate node "{name}"', "rename one")
                    break
        return groups

    def _group(self, part: NodePart, path: FieldPath) -> NodeGroup:
        if not part.name:
            self._report((*path, "name"), "Required value", "such as worker")
        if not 1 <= part.count <= MOST_NODES:
            self._report((*path, "count"), f"must lie between 1 and {MOST_NODES:,}", "remove the node instead")
        if part.cgroup_version not in {1, 2}:
            self._report((*path, "cgroupVersion"), "must be 1 or 2", "2 is the default")
        files = part.filesystems
        checks = NodeChecks(part, path, self._report)
        checks.run()
        spec = MachineSpec(
            name=part.name,
            memory_bytes=self._required(part.capacity.memory, (*path, "capacity", "memory"), "64Gi").value,
            cpu_milli=self._required(part.capacity.cpu, (*path, "capacity", "cpu"), "16").milli_value,
            swap_bytes=part.capacity.swap.value,
            max_pids=DEFAULT_MAX_PIDS if part.capacity.pids is None else part.capacity.pids.value,
            cgroup_version=1 if part.cgroup_version == 1 else 2,
            watermarks=self._watermarks(part.watermarks, (*path, "watermarks")),
            nodefs=_filesystem(files.nodefs),
            imagefs=None if files.imagefs is None else _filesystem(files.imagefs),
            containerfs=None if files.containerfs is None else _filesystem(files.containerfs),
            unused_image_bytes=part.reclaimable.images.value,
            dead_container_bytes=part.reclaimable.dead_containers.value,
            system=self._system(part, (*path, "system")),
            config=self._kubelet(part, (*path, "kubelet")),
            hugepages=self._hugepages(part, (*path, "capacity")),
            labels=part.labels,
            taints=part.taints,
            loop_phase_us=int(part.loop_phase),
            statistics_age_us=int(part.statistics_age),
            fast_path=part.fast_path,
        )
        checks.starts_with(spec.system)
        return NodeGroup(spec, min(max(1, part.count), MOST_NODES), int(part.phase_step))

    def _required(self, amount: Quantity | None, path: FieldPath, example: str) -> Quantity:
        if amount is None or amount.sign <= 0:
            what = "Required value" if amount is None else "must be positive"
            self._report(path, what, f"such as {example}")
            return Quantity.of_units(1)
        return amount

    def _hugepages(self, part: NodePart, path: FieldPath) -> dict[str, int]:
        capacity = part.capacity
        sizes = {"hugepages-2Mi": (capacity.hugepages_2mi, 2 << 20), "hugepages-1Gi": (capacity.hugepages_1gi, 1 << 30)}
        for name, (amount, size) in sizes.items():
            if amount.sign < 0 or amount.value % size:
                self._report((*path, name), "must be whole huge pages", f"such as {name.partition('-')[2]}")
        pages = {name: amount.value for name, (amount, _) in sizes.items() if amount.sign > 0}
        if capacity.memory is not None and sum(pages.values()) >= capacity.memory.value:
            self._report(path, "huge pages take all memory", "they are part of it: less of them, or more memory")
        return pages

    def _watermarks(self, part: WatermarksPart | None, path: FieldPath) -> Watermarks | None:
        if part is None:
            return None
        lowest = self._required(part.min, (*path, "min"), "64Mi")
        low = lowest if part.low is None else part.low
        high = low if part.high is None else part.high
        if not lowest <= low <= high:
            self._report(path, "min, low and high must increase", "the kernel sets low above min and high above low")
        return Watermarks(lowest.value, low.value, high.value, low.value, high.value)

    def _system(self, node: NodePart, path: FieldPath) -> SystemDemand:
        made = {
            name: curves(shape, unit, self._setting, node.name, (*path, written))[0]
            for written, name, unit, shape in demands(node.system)
        }
        return SystemDemand(**made)

    def _kubelet(self, part: NodePart, path: FieldPath) -> KubeletConfiguration:
        kubelet = part.kubelet
        config = kubelet.config or self._kubelets.get(kubelet.path) or KubeletConfiguration()
        memory = part.capacity.memory
        if memory is not None and memory.value < LEAST_NODE_BYTES:
            return config  # reported already
        disk = Quantity.of_units(_filesystem(part.filesystems.nodefs).capacity_bytes)
        sizes = {CPU: part.capacity.cpu, MEMORY: memory, EPHEMERAL_STORAGE: disk}
        capacity = {name: size for name, size in sizes.items() if size is not None and size.sign > 0}
        try:
            check_starts(config, capacity, profile=self._profile)
        except InputError as error:
            place = f"{error.where}: " if error.where else ""
            starts = "" if "does not start" in f"{error.what} {error.fix}" else "the kubelet would not start: "
            # The file states the node: no option of the running command does.
            fix = error.fix.spelled(lambda _: None) if isinstance(error.fix, NamingText) else error.fix
            self._report(path, f"{starts}{place}{error.what}", fix)
        if config.fail_swap_on and part.capacity.swap.sign > 0:
            what = "the node has swap, and failSwapOn is true: the kubelet would not start; simulated as if it did"
            self._warn(path, what, "write failSwapOn: false")
        if config.kernel_memcg_notification and part.cgroup_version != 1 and not part.fast_path:
            what = "kernelMemcgNotification does nothing on cgroup v2: the kubelet's notifier there never fires"
            self._warn(path, what, "cgroupVersion: 1, or fastPath: true for podqos' own node agent")
        return config


def _filesystem(part: FilesystemPart) -> Filesystem:
    capacity = DEFAULT_NODEFS_BYTES if part.capacity is None else part.capacity.value
    return Filesystem(capacity, capacity // BYTES_PER_INODE if part.inodes is None else part.inodes.value)
