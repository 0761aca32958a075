"""The machines of a scenario file as values; what is invalid is reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podqos.errors import InputError
from podqos.kernel.memory import Watermarks
from podqos.manifest.plain import FieldPath
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import LEAST_NODE_BYTES
from podqos.model.profile import Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY
from podqos.placement.kubelet_start import check_starts
from podqos.sim.scenario.demand import SystemDemand
from podqos.sim.scenario.scenario import (
    DEFAULT_MAX_PIDS,
    DEFAULT_NODEFS_BYTES,
    Filesystem,
    MachineSpec,
    NodeGroup,
)
from podqos.sim.scenario_format.document import FilesystemPart, NodePart, WatermarksPart, demands
from podqos.sim.scenario_format.plausibility import NodeChecks
from podqos.sim.scenario_format.shape_document import CurveSettings, Report, curves

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
            self._report(path, f"{starts}{place}{error.what}", error.fix)
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
