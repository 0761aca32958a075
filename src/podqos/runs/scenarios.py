"""A cluster as it is now, as a scenario; what a generated scenario holds, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.amounts import counted
from podqos.errors import InputError
from podqos.model.assumption import Assumption
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import TAINT_UNSCHEDULABLE, Node, Taint
from podqos.model.owners import controllers
from podqos.model.pod import TERMINAL_PHASES, Container, ObjectMeta, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, ResourceList, ResourceRequirements
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage
from podqos.model.stats import ContainerStats, FsStats, PodStats, Summary, VolumeStats
from podqos.model.time_units import MINUTE_US
from podqos.naming import stated_with
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.orders.usage import assumed_usage, node_of
from podqos.placement.node_rules import CONDITION_TAINTS
from podqos.questions.node import NodeState, cluster_state, node_named
from podqos.sim.scenario_format.recorded_usage import Replayed
from podqos.sim.scenario_format.writing import (
    Part,
    manifest,
    manifests_text,
    node_part,
    plain,
    pod_manifest,
    scenario_text,
    seconds_text,
)

# Their pods are bound to a node for good: those of a DaemonSet, and those that a kubelet has from its own files.
_STAYS = ("DaemonSet", "Node")
_OF_NODES = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NANOS_PER_MILLI = 1_000_000
_SHOWN = 3
_MOST_BITS = 63


class UsageSource(StrEnum):
    """Who says what a pod uses."""

    KUBELET = "measured by their kubelets"
    METRICS = "from metrics.k8s.io, all of it treated as private memory"
    REQUESTS = "their requests, because there are no measurements"


class ClusterScenario(Struct, frozen=True):
    """A scenario, and what it rests on."""

    files: Mapping[str, str]
    """By path: their text. The first is the scenario."""
    nodes: int
    pods: int
    sources: Mapping[UsageSource, int]
    """How many pods use what whom says."""
    assumptions: tuple[Assumption, ...]


def cluster_scenario(
    cluster: ClusterSnapshot, name: str, *, node: str | None = None, duration_us: int = 60 * MINUTE_US
) -> ClusterScenario:
    """Return a cluster, or one node of it, as a scenario that goes on from now."""
    return _ScenarioMaker(cluster, node).scenario(name, duration_us)


class _ScenarioMaker:
    """A scenario in the making."""

    def __init__(self, cluster: ClusterSnapshot, node: str | None) -> None:
        self._cluster = cluster
        self._nodes = [cluster.nodes[node_named(cluster, node)]] if node else list(cluster.nodes.values())
        self._sources: Counter[UsageSource] = Counter()
        self._assumptions: dict[Assumption, None] = dict.fromkeys(cluster.assumptions)
        self._unmeasured: list[str] = []
        self._not_ready: list[str] = []
        self._unsettled = 0
        self._devices: set[str] = set()
        self._pods = [
            pod
            for pod in (found.workload.pod for found in cluster.objects.workloads)
            if pod.status.phase not in TERMINAL_PHASES
            and (node is None or pod.spec.node_name == node)
            and not pod.spec.scheduling_gates  # these wait for someone, not for room
        ]

    def scenario(self, name: str, duration_us: int) -> ClusterScenario:
        if not self._nodes:
            raise InputError("the cluster has no nodes", where=self._cluster.source, fix="take the snapshot again")
        if not self._pods:
            raise InputError(
                "no pod runs there", where=self._cluster.source, fix="choose another node, or leave it out"
            )
        busy = {pod.spec.node_name for pod in self._pods}
        nodes: list[Part] = []
        used: dict[str, PodUsage] = {}
        for node in self._nodes:
            state = cluster_state(self._cluster, node.name) if node.name in busy else None
            if state is not None:
                used.update((pod.pod.key, pod) for pod in state.snapshot.pods)
            nodes.append(self._node(node, state))
        # Of two pods the older came first.
        pods = sorted(self._pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.key))
        workloads = [self._workload(pod, used.get(pod.key)) for pod in pods]
        self._assume("usage of", self._unmeasured, "their requests", "a kubelet or metrics server that responds")
        self._assume(
            "nodes that are not ready:",
            self._not_ready,
            "run",
            f"podqos simulate {stated_with('what_if', 'nodeLost@NODE=0s')}",
        )
        path = f"{name}/pods.yaml"
        profile = self._cluster.profile
        spec: Part = {
            "description": self._description(),
            "duration": seconds_text(duration_us),
            "kubernetesVersion": profile.version_text,
            "manifests": [path],
            "nodes": nodes,
            "workloads": workloads,
        }
        manifests = [*map(self._manifest, pods), *self._budgets()]
        there = "already assigned, and always available for replacements"
        self._assume("devices:", sorted(self._devices), there, "a scenario's nodes have no devices")
        return ClusterScenario(
            {f"{name}.yaml": scenario_text(name, spec), path: manifests_text(manifests)},
            len(nodes),
            len(pods),
            dict(self._sources),
            tuple(self._assumptions),
        )

    def _assume(self, about: str, names: list[str], value: str, state_with: str) -> None:
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            what = f"{about} {', '.join(names[:_SHOWN])}{more}"
            self._assumptions[Assumption(what, value, state_with)] = None

    def _description(self) -> str:
        taken = self._cluster.header.taken_at
        said = [f"{counted(len(self._pods), 'pod')} of {self._cluster.source} at {taken or 'an unknown time'}."]
        said += [f"Usage of {counted(count, 'pod')}: {source}." for source, count in sorted(self._sources.items())]
        if self._unsettled:
            defaults = "default settings (allocatable memory as their nodes state)"
            said.append(f"Kubelets with {defaults}, because their own are unknown: {self._unsettled}.")
        return " ".join(said)

    # ---- nodes -------------------------------------------------------------------------------------------------------

    def _node(self, node: Node, state: NodeState | None) -> Part:
        summary = self._cluster.summary(node.name)
        machine = node_of(summary) if state is None and summary is not None else None
        if state is not None:
            machine = state.snapshot.node
        made = node_part(node.name, _tainted(node), node.status.capacity)
        capacity = {CPU: str(node.status.capacity[CPU]), MEMORY: str(node.status.capacity[MEMORY])}
        if machine is not None:
            capacity |= _of_machine(machine)
        if any(condition.type == "Ready" and condition.status != "True" for condition in node.status.conditions):
            self._not_ready.append(node.name)
        system: Part = {}
        # The simulation knows no memory of pods outside containers.
        if machine is not None and machine.system_bytes + machine.pods_other_bytes > 0:
            system["memory"] = memory_text(machine.system_bytes + machine.pods_other_bytes)
        if summary is not None:
            disks = _Disks(summary, {pod.key: pod for pod in self._pods if pod.spec.node_name == node.name})
            made["filesystems"] = disks.filesystems
            system |= disks.system
            rlimit = summary.node.rlimit
            if rlimit is not None and rlimit.maxpid and rlimit.curproc is not None:
                capacity["pids"] = memory_text(rlimit.maxpid)
                system["pids"] = memory_text(max(0, rlimit.curproc - sum(map(_processes, summary.pods or ()))))
        made["capacity"] = capacity
        kubelet = self._cluster.kubelet(node.name) or (None if state is None else state.known_kubelet)
        if kubelet is not None:
            made["kubelet"] = kubelet_part(kubelet.config)
        if kubelet is None or kubelet.is_implied:
            self._unsettled += 1
        return {name: each for name, each in {**made, "system": system}.items() if each != {}}

    # ---- pods --------------------------------------------------------------------------------------------------------

    def _workload(self, pod: Pod, used: PodUsage | None) -> Part:
        part: Part = {"workload": f"Pod/{pod.key}"}
        node = pod.spec.node_name
        if node in self._cluster.nodes:
            part["nodes"] = [node]
        if _owner(pod):
            part["recreate"] = True
        part["containers"] = self._demands(pod, used)
        return part

    def _demands(self, pod: Pod, used: PodUsage | None) -> Part:
        stats = None if used is None or self._cluster.summary(pod.spec.node_name) is None else used.stats
        metrics = self._cluster.pod_metrics.get(pod.key)
        requested = {container.name: container for container in assumed_usage(pod).containers}
        found = (
            {container.name: container for container in used.containers if container.is_measured}
            if used is not None
            else {}
        )
        if stats is not None and found:
            source = UsageSource.KUBELET
        elif metrics is not None and found:
            source = UsageSource.METRICS
        else:
            source, found = UsageSource.REQUESTS, {}
        self._sources[source] += 1
        missing = [name for name in requested if name not in found]
        if missing:
            self._unmeasured.append(pod.key)
        measured = {container.name: container for container in (stats.containers or ())} if stats is not None else {}
        cpu = {} if metrics is None else {container.name: container.usage.get(CPU) for container in metrics.containers}
        containers = {
            name: container_demand(found.get(name, usage), measured.get(name), cpu.get(name))
            for name, usage in requested.items()
        }
        if stats is not None and containers:
            first = next(iter(containers.values()))
            first |= _volumes(pod, stats, sum(usage.tmpfs_bytes for usage in found.values()))
            if _processes(stats) > len(containers):
                first["pids"] = memory_text(_processes(stats) - len(containers) + 1)
        return {name: demand for name, demand in containers.items() if demand}

    def _manifest(self, pod: Pod) -> Part:
        metadata = pod.metadata
        own = ObjectMeta(
            name=metadata.name,
            namespace=metadata.namespace,
            uid=metadata.uid,
            labels=metadata.labels,
            annotations=metadata.annotations,
        )
        runs = self._without_devices(pod) if pod.spec.node_name else pod
        return pod_manifest(runs, own, keeps_node=_owner(pod) in _STAYS)

    def _without_devices(self, pod: Pod) -> Pod:
        """Return a pod without what nodes of a scenario cannot have: huge pages, devices."""

        def known(amounts: ResourceList) -> ResourceList:
            self._devices.update(name for name in amounts if name not in _OF_NODES)
            return {name: amount for name, amount in amounts.items() if name in _OF_NODES}

        def bare(asked: ResourceRequirements) -> ResourceRequirements:
            return replace(asked, requests=known(asked.requests), limits=known(asked.limits))

        def each(containers: tuple[Container, ...]) -> tuple[Container, ...]:
            return tuple(replace(container, resources=bare(container.resources)) for container in containers)

        spec = pod.spec
        resources = None if spec.resources is None else bare(spec.resources)
        inner = {"containers": each(spec.containers), "init_containers": each(spec.init_containers)}
        return replace(pod, spec=replace(spec, resources=resources, **inner))

    def _budgets(self) -> Iterable[Part]:
        for budget in self._cluster.objects.of(PodDisruptionBudget):
            metadata = ObjectMeta(name=budget.metadata.name, namespace=budget.metadata.namespace)
            yield manifest("policy/v1", "PodDisruptionBudget", {"metadata": metadata, "spec": budget.spec})


def _owner(pod: Pod) -> str:
    """Return the kind of a pod's controller; empty if it has none."""
    return next((kind for kind, _ in controllers(pod.metadata)), "")


def _tainted(node: Node) -> Node:
    """Return a node with the taints that say what someone decided; those of its conditions are found anew."""
    taints = [taint for taint in node.spec.taints if taint.key not in CONDITION_TAINTS]
    if node.spec.unschedulable and all(taint.key != TAINT_UNSCHEDULABLE for taint in taints):
        taints.append(Taint(TAINT_UNSCHEDULABLE, effect="NoSchedule"))
    return replace(node, spec=replace(node.spec, taints=tuple(taints)))


def memory_text(amount: int) -> str:
    """Return an amount as a scenario has it."""
    if amount.bit_length() > _MOST_BITS:
        raise InputError("it contains an amount too large for Kubernetes", fix="take the snapshot again")
    return str(amount)


def _of_machine(machine: NodeUsage) -> dict[str, str]:
    swap = {"swap": memory_text(machine.swap_bytes)} if machine.swap_bytes else {}
    return {MEMORY: memory_text(machine.memory_bytes), **swap}


def kubelet_part(config: KubeletConfiguration) -> Part:
    """Return the settings that are not the kubelet's defaults."""
    stated, usual = plain(config), plain(KubeletConfiguration())
    assert isinstance(stated, dict)
    assert isinstance(usual, dict)
    return {name: each for name, each in stated.items() if each != usual[name]}


def container_demand(usage: ContainerUsage, stats: ContainerStats | None = None, cpu: Quantity | None = None) -> Part:
    """Return what a container goes on using."""
    amounts = {
        "memory": usage.anon_bytes + usage.page_table_bytes + usage.swap_bytes,
        "activeFile": usage.active_file_bytes,
        "inactiveFile": usage.inactive_file_bytes,
    }
    if stats is not None:
        for name, disk in (("rootfs", stats.rootfs), ("logs", stats.logs)):
            if disk is not None:
                amounts |= {name: disk.used_bytes or 0, f"{name}Inodes": disk.inodes_used or 0}
    made: Part = {name: memory_text(amount) for name, amount in amounts.items() if amount}
    nanos = stats.cpu.usage_nano_cores if stats is not None and stats.cpu is not None else None
    milli = -(-nanos // _NANOS_PER_MILLI) if nanos is not None else 0 if cpu is None else cpu.milli_value
    return {**made, "cpu": f"{memory_text(milli)}m"} if milli else made


def _volumes(pod: Pod, stats: PodStats, in_memory_bytes: int) -> Part:
    """Return what a pod's own volumes hold; of those in memory no more than its containers are charged for."""
    known = {volume.name: volume for volume in pod.spec.volumes if volume.empty_dir is not None}
    made: Part = {}
    for volume_stats in stats.volumes or ():
        volume, used_bytes = known.get(volume_stats.name), volume_stats.used_bytes or 0
        if volume is None:
            continue
        if volume.is_in_memory:
            used_bytes = min(used_bytes, in_memory_bytes)
            in_memory_bytes -= used_bytes
        if used_bytes:
            inodes = (
                {"inodes": memory_text(volume_stats.inodes_used)}
                if volume_stats.inodes_used and not volume.is_in_memory
                else {}
            )
            made[volume_stats.name] = {"bytes": memory_text(used_bytes), **inodes}
    return {"volumes": made} if made else {}


def _processes(stats: PodStats) -> int:
    return (stats.process_stats.process_count or 0) if stats.process_stats is not None else 0


class _Disks:
    """The filesystems of a node, and what is on them that belongs to no pod."""

    def __init__(self, summary: Summary, pods: Mapping[str, Pod]) -> None:
        node, runtime = summary.node.fs, summary.node.runtime
        image = None if runtime is None else runtime.image_fs
        is_apart = image is not None and node is not None and not _are_one(node, image)
        self.filesystems: Part = {}
        self.system: Part = {}
        layers: list[FsStats] = []
        others: list[FsStats | VolumeStats] = []
        for stats in summary.pods or ():
            pod = pods.get(f"{stats.pod_ref.namespace}/{stats.pod_ref.name}")
            if pod is not None:
                on_disk = {volume.name for volume in pod.spec.volumes if volume.empty_dir and not volume.is_in_memory}
                layers += [container.rootfs for container in stats.containers or () if container.rootfs is not None]
                others += [container.logs for container in stats.containers or () if container.logs is not None]
                others += [volume for volume in stats.volumes or () if volume.name in on_disk]
        self._take("nodefs", node, others if is_apart else [*others, *layers])
        if is_apart:
            self._take("imagefs", image, layers)

    def _take(self, name: str, disk: FsStats | None, of_pods: Sequence[FsStats | VolumeStats]) -> None:
        if disk is None or not disk.capacity_bytes or disk.available_bytes is None:
            return
        made = {"capacity": memory_text(disk.capacity_bytes)}
        of_pods_bytes = sum(of_pod.used_bytes or 0 for of_pod in of_pods)
        self.system[name] = memory_text(max(0, disk.capacity_bytes - disk.available_bytes - of_pods_bytes))
        if disk.inodes:
            made["inodes"] = memory_text(disk.inodes)
            # What runs outside of pods has no inodes on the other filesystem, in a scenario.
            if name == "nodefs" and disk.inodes_free is not None:
                of_pods_inodes = sum(of_pod.inodes_used or 0 for of_pod in of_pods)
                self.system["nodefsInodes"] = memory_text(max(0, disk.inodes - disk.inodes_free - of_pods_inodes))
        self.filesystems[name] = made


def _are_one(one: FsStats, other: FsStats) -> bool:
    return (one.capacity_bytes, one.inodes) == (other.capacity_bytes, other.inodes)


_MOST_NAMES = 10


def replay_lines(told: Replayed) -> Iterator[str]:
    """Yield what the scenario holds, and what it leaves out."""
    yield f"{counted(told.pods, 'pod')} of {counted(told.workloads, 'workload')} with {told.kept:,} samples"
    if told.kept < told.samples:
        yield f"{told.samples - told.kept:,} of {told.samples:,} samples are left out; the curves are exact"
    for what, count in told.irregular.items():
        yield f"{counted(count, 'sample')}: {what.value}"
    if told.unplaced:
        yield f"node unknown, so the scheduler places: {counted(told.unplaced, 'pod')}"
    for name, why in list(told.unmatched.items())[:_MOST_NAMES]:
        yield f"left out: {name}: {why}"
    if len(told.unmatched) > _MOST_NAMES:
        yield f"left out: {len(told.unmatched) - _MOST_NAMES:,} more"
    if told.without_samples:
        some = ", ".join(told.without_samples[:_MOST_NAMES])
        more = len(told.without_samples) - _MOST_NAMES
        yield f"no samples, so they do not run: {some}" + (f" and {more:,} more" if more > 0 else "")


def cluster_lines(nodes: int, pods: int, sources: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yield what a scenario of a cluster holds; ``sources`` says how many pods use what whom says."""
    yield f"{counted(pods, 'pod')} on {counted(nodes, 'node')}"
    for source, count in sorted(sources):
        yield f"usage of {counted(count, 'pod')}: {source}"
