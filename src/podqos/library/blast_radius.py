"""``blast``: the impact of a leak in each pod on its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from podqos.errors import InputError, InvalidOption
from podqos.library.engines.fan_out import Progress, fan_out, in_copy, usable_cores
from podqos.model.assumption import Assumption, of_version
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.placement.kubelet_start import check_starts
from podqos.sim.blast import (
    Blast,
    BlastNode,
    BlastRadius,
    EvictedBefore,
    Leak,
    NodePods,
    leaks,
    nodes_now,
    radius_of,
    system_leak,
)
from podqos.sim.engine.curve import constant
from podqos.sim.scenario.demand import SystemDemand
from podqos.sim.scenario.scenario import Filesystem, MachineSpec, Scenario
from podqos.survival.forecast import SYSTEM

if TYPE_CHECKING:
    from podqos.eviction.ranking import Policy
    from podqos.model.snapshot import Snapshot

# A node of which nothing is known but its memory: enough of everything else.
_PLENTY_CPU_MILLI = 1_000_000
_PLENTY = Filesystem(capacity_bytes=1 << 50, inodes=1 << 40)
SetUp = Callable[[NodePods], BlastNode]
Leaks = Callable[[NodePods], Iterable[Leak]]
OfNode = tuple[list[Blast], tuple[EvictedBefore, ...]]
_SHOWN_PODS = 3
_KUBELET_DEFAULTS = Assumption("kubelet settings", "defaults", "--kubelet-config")


def blast(
    source: Scenario | Snapshot,
    slow_bytes_per_second: int = 4 << 20,
    fast_bytes_per_second: int = 1 << 30,
    *,
    kubelet: KubeletConfiguration | None = None,
    profile: Profile = LATEST,
    policy: Policy | None = None,
    growing: str | None = None,
    progress: Progress | None = None,
    cores: int | None = None,
) -> BlastRadius:
    """Let each pod leak in turn, slowly and fast, and return which other pods die, how soon and what kills them.

    The nodes are those of a scenario at its beginning, which brings its own kubelets and Kubernetes version; or the one
    node of a snapshot, with the settings of ``kubelet``. ``policy`` overrides how the kubelet ranks. ``growing`` is the
    only pod to leak, or ``system``: what runs besides pods. ``progress`` gets how many leaks are done, and how many
    there are. ``cores``: by default all.
    """
    assumptions: tuple[Assumption, ...] = ()
    options = None
    nodes: Sequence[NodePods]
    if isinstance(source, Scenario):
        profile, policy, options = source.profile, policy or source.policy, source.options
        # The memory needed to find out where pods are is freed with the copy.
        nodes = in_copy(partial(nodes_now, source))
    else:
        if kubelet is not None:
            # That there is swap was measured: the kubelet did start.
            memory = {MEMORY: Quantity.of_units(source.node.memory_bytes, "BinarySI")}
            check_starts(kubelet, memory, profile=profile)
        nodes = (_node(source, kubelet or KubeletConfiguration()),)
        assumptions = (_KUBELET_DEFAULTS,) if kubelet is None else ()
    rates = tuple(dict.fromkeys((slow_bytes_per_second, fast_bytes_per_second)))
    nodes = [each for each in nodes if each.pods]
    every = partial(_every, rates=rates, growing=_growing(growing, nodes))
    cores = cores or usable_cores()
    set_up = partial(BlastNode, slowest=min(rates), profile=profile, policy=policy, options=options)
    found = (_one_by_one if len(nodes) < cores or cores == 1 else _at_once)(set_up, nodes, every, cores, progress)
    blasts = [each for of_node, _ in found for each in of_node]
    evicted_before = [each for _, evicted in found for each in evicted]
    if not blasts and not evicted_before:
        raise InputError("no pods there", fix="name a scenario with pods, or manifests with their usage")
    return radius_of(
        blasts,
        slow=slow_bytes_per_second,
        fast=fast_bytes_per_second,
        assumptions=(*of_version(profile), *assumptions),
        evicted_before=evicted_before,
    )


def _at_once(
    set_up: SetUp, nodes: Sequence[NodePods], every: Leaks, cores: int, progress: Progress | None
) -> list[OfNode]:
    """Let each core take one node after the other."""

    def of_node(pods: NodePods) -> OfNode:
        node = set_up(pods)
        return [node.unleash(leak) for leak in every(node.pods)], node.evicted_before

    total = _count(nodes, every)
    told = None if progress is None else lambda done, _: progress(done * total // len(nodes), total)
    return list(fan_out(of_node, nodes, cores, told))


def _one_by_one(
    set_up: SetUp, nodes: Sequence[NodePods], every: Leaks, cores: int, progress: Progress | None
) -> list[OfNode]:
    """Let all cores simulate the leaks of one node after the other."""
    done, total = 0, _count(nodes, every)

    def told(simulated: int, _: int) -> None:
        if progress is not None:
            progress(done + simulated, total)

    found = []
    for pods in nodes:
        node = set_up(pods)
        own = list(every(node.pods))
        foreseen = [node.foreseen(leak) for leak in own]
        rest = [leak for leak, blast in zip(own, foreseen, strict=True) if blast is None]
        done += len(own) - len(rest)
        simulated = fan_out(node.simulated, rest, cores, told)
        found.append(([blast or next(simulated) for blast in foreseen], node.evicted_before))
        done += len(rest)
    if progress is not None:
        progress(total, total)
    return found


def _every(node: NodePods, *, rates: Sequence[int], growing: frozenset[str] | None) -> Iterator[Leak]:
    """Yield what leaks: every pod, those of ``growing``, or what runs besides pods."""
    for rate in rates:
        if growing is None or growing != {SYSTEM}:
            yield from (leak for leak in leaks(node, rate) if growing is None or leak.pod in growing)
        else:
            yield system_leak(rate)


def _growing(name: str | None, nodes: Sequence[NodePods]) -> frozenset[str] | None:
    """Return the pods that are meant, or ``system``, unless a pod is called that; None for every pod."""
    if name is None:
        return None
    keys = [pod.key for node in nodes for pod, _ in node.pods]
    found = frozenset(key for key in keys if name in {key, key.partition("/")[2]})
    # The name of a workload stands for all its pods.
    found = found or frozenset(key for key in keys if f"/{key}-".find(f"/{name}-") >= 0)
    if not found and name == SYSTEM:
        return frozenset({SYSTEM})
    if not found:
        some = ", ".join(sorted(keys)[:_SHOWN_PODS])
        raise InvalidOption(f"there is no pod {name}", where="--growing", fix=f"such as {some}, or {SYSTEM}")
    return found


def _count(nodes: Sequence[NodePods], every: Leaks) -> int:
    return sum(len(list(every(each))) for each in nodes)


def _node(snapshot: Snapshot, kubelet: KubeletConfiguration) -> NodePods:
    spec = MachineSpec(
        name=snapshot.node.name or "node",
        memory_bytes=snapshot.node.memory_bytes,
        swap_bytes=snapshot.node.swap_bytes,
        cpu_milli=_PLENTY_CPU_MILLI,
        nodefs=_PLENTY,
        system=SystemDemand(anon_bytes=constant(snapshot.node.system_bytes)),
        config=kubelet,
    )
    return NodePods(spec, tuple((entry.pod, entry.containers) for entry in snapshot.pods))
