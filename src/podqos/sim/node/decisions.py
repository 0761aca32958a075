"""What kubelet and kernel decided on when they evicted or killed: with it the decision can be repeated with changes."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.agent.state import AgentState
from podqos.eviction.observation import observe
from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.memcg import oom_total_pages
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import PodStats
from podqos.sim.node.memory_group import MemoryGroup
from podqos.sim.node.node import SimNode
from podqos.sim.node.oom_kill import cuts
from podqos.sim.node.pods import SimContainer, SimPod
from podqos.sim.node.statistics import pod_stats
from podqos.sim.scenario.scenario import MachineSpec
from podqos.survival.counterfactual.kernel import KernelMoment
from podqos.survival.counterfactual.kubelet import KubeletMoment
from podqos.survival.orders.orders import OOMDomain

MOST_DECISIONS = 200
"""For this many evictions, and kills, of a node the input of the decision is kept."""


def seen_by_kubelet(node: SimNode, before: AgentState, now_us: int) -> KubeletMoment:
    """Return the pass in which the kubelet has just evicted; ``before`` is what the agent remembered until then."""
    first, *second = map(observe, node.looks)
    return KubeletMoment(
        config=node.settings.agent.eviction,
        state=before.manager,
        now_us=now_us,
        observation=first,
        pods=before.active_pods,
        cleaned_up=second[0] if second else None,
    )


def seen_by_kernel(node: SimNode, group: MemoryGroup, now_us: int) -> KernelMoment:
    """Return how the kernel sees a node whose pods, or some of them, are out of memory."""
    world, memory = node.world, node.world.memory
    lacking = cuts(memory.members(group), group, now_us)
    pods = tuple(
        PodUsage(
            pod.pod,
            _stats(pod, now_us, sum(lacking.get(container.path, 0) for container in pod.running)),
            tuple(container_usage(container, now_us, lacking.get(container.path, 0)) for container in pod.running),
        )
        for pod in world.pods.values()
        if not pod.is_gone
    )
    usage = machine_usage(
        node.settings.spec, node.name, memory.system_working_set_bytes(now_us) - memory.seen_huge_bytes
    )
    withheld = {
        (pod.uid, container.name): lacking[container.path]
        for pod in world.pods.values()
        for container in pod.running
        if container.path in lacking
    }
    agent = node.settings.agent
    return KernelMoment(
        Snapshot(usage, pods),
        agent.cgroups,
        OOMDomain(oom_total_pages(memory.machine, group.settings) * PAGE_BYTES, group.path),
        agent.profile,
        group.excess_bytes(now_us),
        withheld,
        now_us,
    )


def _stats(pod: SimPod, now_us: int, cut_bytes: int) -> PodStats:
    """Return the figures of a pod without what it wanted at last and did not get."""
    stats = pod_stats(pod, now_us)
    memory = stats.memory
    if not cut_bytes or memory is None or memory.working_set_bytes is None:
        return stats
    return replace(stats, memory=replace(memory, working_set_bytes=memory.working_set_bytes - cut_bytes))


def machine_usage(spec: MachineSpec, name: str, system_bytes: int) -> NodeUsage:
    """Return the machine of a node at a moment."""
    return NodeUsage(spec.memory_bytes, spec.swap_bytes, name, system_bytes, sum(spec.hugepages.values()))


def container_usage(container: SimContainer, now_us: int, cut_bytes: int = 0) -> ContainerUsage:
    """Return what a container uses, without what it wanted at last and did not get."""
    active, inactive = container.active_file, container.inactive_file
    return ContainerUsage(
        name=container.name,
        anon_bytes=max(0, container.anon_bytes(now_us) - cut_bytes),
        active_file_bytes=0 if active is None else active.at(now_us),
        inactive_file_bytes=0 if inactive is None else inactive.at(now_us),
        swap_bytes=container.swap_bytes(),
        tmpfs_bytes=container.tmpfs_bytes(now_us),
        processes=container.process_count(now_us),
        oom_score_adj=container.plan.oom_score_adj,
    )
