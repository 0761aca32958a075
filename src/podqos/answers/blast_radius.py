"""The impact of a leak in each pod on its neighbours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypedDict

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.node_state import NodeState
from podqos.answers.workers import Workers
from podqos.errors import InputError, InvalidArgument
from podqos.eviction.ranking import Policy
from podqos.model.assumption import Assumption, of_version
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import Snapshot
from podqos.naming import naming
from podqos.objects.assumptions import KUBELET_SETTINGS
from podqos.objects.kubelet_node import DEFAULT_KUBELET, Kubelet
from podqos.placement.kubelet_start import check_starts
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.sim.blast import (
    Blast,
    BlastNode,
    BlastPods,
    BlastRadius,
    EvictedBefore,
    Leak,
    leaks,
    radius_of,
    system_leak,
    victims_of,
)
from podqos.sim.engine.curve import constant
from podqos.sim.scenario.demand import SystemDemand
from podqos.sim.scenario.scenario import Filesystem, MachineSpec, Scenario
from podqos.survival.forecast.forecast import SYSTEM
from podqos.wording import listed
from podqos.words.blast import headline

# A node of which nothing is known but its memory: enough of everything else.
_PLENTY_CPU_MILLI = 1_000_000
_PLENTY = Filesystem(capacity_bytes=1 << 50, inodes=1 << 40)
SetUp = Callable[[BlastPods], BlastNode]
Leaks = Callable[[BlastPods], Iterable[Leak]]
OfNode = tuple[list[Blast], tuple[EvictedBefore, ...]]
_SHOWN_PODS = 3


class BlastRequest(Struct, frozen=True, kw_only=True):
    """What leaks how fast, and by which rules kubelets evict."""

    slow_bytes_per_second: int
    fast_bytes_per_second: int
    kubelet: Kubelet | KubeletConfiguration | None = None
    """None: the node's own where that is known, or one with the defaults."""
    profile: Profile | None = None
    """The rules of a Kubernetes version; None: the newest."""
    policy: Policy | None = None
    """How the kubelet ranks; None: as its version does."""
    growing: str | None = None
    """The only pod to leak, or ``system``: what runs besides pods. None: each in turn."""


class BlastKeywords(TypedDict, total=False):
    """``BlastRequest`` as keyword arguments, but for the rates."""

    kubelet: Kubelet | KubeletConfiguration | None
    profile: Profile | None
    policy: Policy | None
    growing: str | None


class Ground(Struct, frozen=True):
    """The nodes on which pods leak, and the rules there."""

    set_up: SetUp
    """Makes a node ready for leaks."""
    nodes: Sequence[BlastPods]
    assumptions: tuple[Assumption, ...]
    neighbours: frozenset[str] = frozenset()
    """Pods that count but that the answer is not about."""


def scenario_ground(scenario: Scenario, nodes: Sequence[BlastPods], request: BlastRequest) -> Ground:
    """Return the nodes of a scenario at its beginning, which brings its own kubelets and Kubernetes version."""
    given = {"kubelet": request.kubelet, "profile": request.profile}
    names = [name for name, value in given.items() if value is not None]
    if names:
        raise InputError(f"{listed(names)} cannot be given together with a scenario, which has its own")
    profile, policy = scenario.profile, request.policy or scenario.policy
    return Ground(_set_up(request, profile, policy, scenario), nodes, of_version(profile))


def snapshot_ground(source: Snapshot | NodeState, request: BlastRequest) -> Ground:
    """Return the one node of a snapshot, or of a state, with the settings of a kubelet."""
    profile, given = request.profile or LATEST, request.kubelet
    kubelet = Kubelet(given) if isinstance(given, KubeletConfiguration) else given
    set_up = _set_up(request, profile, request.policy)
    if isinstance(source, NodeState):
        kubelet = kubelet or source.kubelet or DEFAULT_KUBELET
        source.cgroups(kubelet, CgroupVersion.V2, profile)  # a kubelet that does not start there is an error
        nodes, assumptions = (pods_of_node(source.snapshot, kubelet.config),), source.growing_on(kubelet, profile)
        return Ground(set_up, nodes, assumptions, source.neighbours)
    if kubelet is None:
        return Ground(set_up, (pods_of_node(source, KubeletConfiguration()),), (*of_version(profile), KUBELET_SETTINGS))
    # That there is swap was measured: the kubelet did start.
    memory = {MEMORY: Quantity.of_units(source.node.memory_bytes, "BinarySI")}
    check_starts(kubelet.config, memory, profile=profile)
    return Ground(set_up, (pods_of_node(source, kubelet.config),), of_version(profile))


def blast(ground: Ground, request: BlastRequest, workers: Workers) -> BlastRadius:
    """Let each pod leak in turn, slowly and fast, and return which other pods die, how soon and what kills them."""
    nodes = [node for node in ground.nodes if node.pods]
    every = partial(_every, rates=_rates(request), growing=_growing(request.growing, nodes))
    many = len(nodes) >= workers.cores > 1
    found = (_at_once if many else _one_by_one)(ground.set_up, nodes, every, workers)
    blasts = [each for of_node, _ in found for each in of_node]
    evicted_before = [before for _, evicted in found for before in evicted]
    if not blasts and not evicted_before:
        raise InputError("no pods there", fix="name a scenario with pods, or manifests with their usage")
    radius = radius_of(
        blasts,
        slow=request.slow_bytes_per_second,
        fast=request.fast_bytes_per_second,
        assumptions=ground.assumptions,
        evicted_before=evicted_before,
    )
    own = replace(radius, leaks=tuple(leak for leak in radius.leaks if leak.pod not in ground.neighbours))
    return replace(own, headline=headline(own), victims=victims_of(own.leaks))


def _rates(request: BlastRequest) -> tuple[int, ...]:
    return tuple(dict.fromkeys((request.slow_bytes_per_second, request.fast_bytes_per_second)))


def _set_up(request: BlastRequest, profile: Profile, policy: Policy | None, scenario: Scenario | None = None) -> SetUp:
    options = None if scenario is None else scenario.options
    return partial(BlastNode, slowest=min(_rates(request)), profile=profile, policy=policy, options=options)


def _at_once(set_up: SetUp, nodes: Sequence[BlastPods], every: Leaks, workers: Workers) -> list[OfNode]:
    """Let each core take one node after the other."""

    def of_node(pods: BlastPods) -> OfNode:
        node = set_up(pods)
        return [node.unleash(leak) for leak in every(node.pods)], node.evicted_before

    progress, total = workers.progress, _count(nodes, every)
    told = None if progress is None else lambda done, _: progress(done * total // len(nodes), total)
    return list(workers.each(of_node, nodes, told))


def _one_by_one(set_up: SetUp, nodes: Sequence[BlastPods], every: Leaks, workers: Workers) -> list[OfNode]:
    """Let all cores simulate the leaks of one node after the other."""
    progress, done, total = workers.progress, 0, _count(nodes, every)

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
        simulated = workers.each(node.simulated, rest, told)
        found.append(([blast or next(simulated) for blast in foreseen], node.evicted_before))
        done += len(rest)
    if progress is not None:
        progress(total, total)
    return found


def _every(node: BlastPods, *, rates: Sequence[int], growing: frozenset[str] | None) -> Iterator[Leak]:
    """Yield what leaks: every pod, those of ``growing``, or what runs besides pods."""
    for rate in rates:
        if growing is None or growing != {SYSTEM}:
            yield from (leak for leak in leaks(node, rate) if growing is None or leak.pod in growing)
        else:
            yield system_leak(rate)


def _growing(name: str | None, nodes: Sequence[BlastPods]) -> frozenset[str] | None:
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
        raise InvalidArgument(f"no such pod: {name}", where=naming("growing"), fix=f"such as {some}, or {SYSTEM}")
    return found


def _count(nodes: Sequence[BlastPods], every: Leaks) -> int:
    return sum(len(list(every(node))) for node in nodes)


def pods_of_node(snapshot: Snapshot, kubelet: KubeletConfiguration) -> BlastPods:
    """Return a node of which nothing is known but its memory, with what its containers hold."""
    # The simulation knows no memory of pods outside containers.
    system_bytes = max(0, snapshot.node.system_bytes + snapshot.node.pods_other_bytes)
    spec = MachineSpec(
        name=snapshot.node.name or "node",
        memory_bytes=snapshot.node.memory_bytes,
        swap_bytes=snapshot.node.swap_bytes,
        cpu_milli=_PLENTY_CPU_MILLI,
        nodefs=_PLENTY,
        system=SystemDemand(anon_bytes=constant(system_bytes)),
        config=kubelet,
    )
    return BlastPods(spec, tuple((entry.pod, entry.containers) for entry in snapshot.pods))
