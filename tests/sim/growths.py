"""Random nodes on which one container grows: the same node for the forecast, and for simulations at many phases."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal, NamedTuple

from msgspec.structs import replace

from eviction.nodes import container, pod_of
from podqos.agent.agent import memory_notification
from podqos.agent.journal import By, Entry
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import Signal
from podqos.kernel.memory import machine
from podqos.model.kubelet_config import KubeletConfiguration, MemorySwapConfiguration
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import ContainerUsage, NodeUsage, PodUsage, Snapshot
from podqos.model.stats import MemoryStats, PodReference, PodStats
from podqos.model.time_units import SECOND_US
from podqos.orders.exhaustion import exhaustion
from podqos.orders.growing import OF_SYSTEM, GrowingNode, Growth, KubeletWatch
from podqos.placement.allocatable import cgroup_settings, node_allocatable
from podqos.qos.cgroup_settings import CgroupDriver, CgroupVersion
from podqos.runs.comparison import victims
from podqos.sim.engine.curve import Clock, Curve, constant
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import (
    ContainerDemand,
    Filesystem,
    MachineSpec,
    NodeGroup,
    Options,
    Scenario,
    ScenarioWorkload,
    SystemDemand,
)

MI, GI = 1 << 20, 1 << 30
INTERVAL_US = 10 * SECOND_US
GROWER = "grower"


class First(NamedTuple):
    """Who acts first, on which pod, and when."""

    by: By
    pod: str
    signal: str | None
    """Of an eviction."""
    seconds: float


class Setting(NamedTuple):
    """A node, what runs there, and how fast the first container of the first pod grows."""

    memory_bytes: int
    system_bytes: int
    swap_bytes: int
    config: KubeletConfiguration
    pods: tuple[tuple[Pod, tuple[ContainerUsage, ...]], ...]
    rate: int
    statistics_age_us: int = 0
    fast_path: bool = False
    policy: Policy | None = None
    cgroup_version: Literal[1, 2] = 2
    of_system: bool = False
    """Whether the daemons of the machine grow instead."""

    @property
    def looks_between_passes(self) -> bool:
        """Whether the agent is told of a threshold that is crossed."""
        return self.fast_path or (self.config.kernel_memcg_notification and self.cgroup_version == 1)

    def growing(self) -> GrowingNode:
        """Return the node as the forecast knows it."""
        capacity = {MEMORY: Quantity.of_units(self.memory_bytes, "BinarySI")}
        settings = cgroup_settings(
            self.config, capacity, swap_bytes=self.swap_bytes, cgroup_version=CgroupVersion(f"v{self.cgroup_version}")
        )
        settings = replace(settings, cgroup_driver=CgroupDriver.CGROUPFS, swap_controller=self.swap_bytes > 0)
        divided = node_allocatable(capacity, self.config)
        watch = KubeletWatch(
            exhaustion(self.config, {Signal.MEMORY: self.memory_bytes}, allocatable=divided),
            divided.enforced[MEMORY].value if settings.enforce_node_allocatable else None,
            statistics_age_us=self.statistics_age_us,
            notification=memory_notification(self.config, settings.cgroup_version, fast_path=self.fast_path),
            policy=self.policy,
        )
        node = NodeUsage(self.memory_bytes, self.swap_bytes, system_bytes=self.system_bytes)
        snapshot = Snapshot(node, tuple(_used(each, usage) for each, usage in self.pods))
        growth = OF_SYSTEM if self.of_system else Growth(GROWER, self.pods[0][1][0].name)
        return GrowingNode(snapshot, settings, growth, watch)

    def with_hard(self, amount: int) -> Setting:
        """Return the setting with this hard threshold and no other."""
        hard = {"memory.available": str(amount)}
        config = replace(self.config, eviction_hard=hard, eviction_soft={}, eviction_soft_grace_period={})
        return self._replace(config=config)

    def unlimited(self) -> Setting:
        """Return the setting without limits of the growing pod."""
        pod, usage = self.pods[0]
        free = tuple(replace(each, resources=replace(each.resources, limits={})) for each in pod.spec.containers)
        return self._replace(pods=((replace(pod, spec=replace(pod.spec, containers=free)), usage), *self.pods[1:]))

    def scenario(self, phases_us: Sequence[int], until_us: int, start_us: int = 0) -> Scenario:
        """Return one such node for each of these phases, with growth that begins at ``start_us``."""
        spec = MachineSpec(
            name="n",
            memory_bytes=self.memory_bytes,
            swap_bytes=self.swap_bytes,
            cpu_milli=64_000,
            nodefs=Filesystem(1 << 40, 1 << 30),
            system=SystemDemand(anon_bytes=self._system(start_us, until_us)),
            config=self.config,
            statistics_age_us=self.statistics_age_us,
            fast_path=self.fast_path,
            cgroup_version=self.cgroup_version,
        )
        nodes = tuple(
            NodeGroup(replace(spec, name=f"n{place}", loop_phase_us=phase_us))
            for place, phase_us in enumerate(phases_us)
        )
        return Scenario(
            name="growth",
            duration_us=start_us + until_us + SECOND_US // 10,
            nodes=nodes,
            workloads=tuple(self._workload(place, len(nodes), start_us, until_us) for place in range(len(self.pods))),
            policy=self.policy,
            options=Options(slows_at_memory_high=False),
        )

    def simulated(self, phases_us: Sequence[int], until_us: int, start_us: int = 0) -> list[First | None]:
        """Return what happens first at each of these phases."""
        scenario = self.scenario(phases_us, until_us, start_us)
        found: dict[str, list[Entry]] = {}
        for entry in simulate(scenario).entries:
            found.setdefault(entry.node, []).append(entry)
        return [_first(found.get(name, []), start_us) for name in scenario.node_names]

    def _system(self, start_us: int, until_us: int) -> Curve:
        if not self.of_system:
            return constant(self.system_bytes)
        return self._curve(self.system_bytes, start_us, until_us, Clock.SCENARIO)

    def _curve(self, held_bytes: int, start_us: int, until_us: int, clock: Clock) -> Curve:
        knots = [(0, held_bytes), (start_us, held_bytes)][0 if start_us else 1 :]
        seconds = until_us // SECOND_US + 20
        return Curve((*knots, (start_us + seconds * SECOND_US, held_bytes + seconds * self.rate)), clock=clock)

    def _workload(self, place: int, count: int, start_us: int, until_us: int) -> ScenarioWorkload:
        pod, usage = self.pods[place]
        demands = {
            each.name: ContainerDemand(
                anon_bytes=constant(each.anon_bytes),
                active_file_bytes=constant(each.active_file_bytes),
                inactive_file_bytes=constant(each.inactive_file_bytes),
                processes=constant(each.processes),
            )
            for each in usage
        }
        if place == 0 and not self.of_system:
            first = usage[0]
            grows = self._curve(first.anon_bytes, start_us, until_us, Clock.CONTAINER)
            demands[first.name] = replace(demands[first.name], anon_bytes=grows)
        return ScenarioWorkload(
            kind="Deployment",
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            pod=pod,
            replicas=count,
            demands=(demands,),
            nodes=tuple(f"n{number}" for number in range(count)),
            recreate=False,
        )


def _first(entries: Sequence[Entry], start_us: int) -> First | None:
    found = victims(entries)
    if not found:
        return None
    pod = found[0].pod.rpartition("-")[0].partition("/")[2]
    signal = found[0].cause if found[0].by is By.KUBELET else None
    return First(found[0].by, pod, signal, found[0].at_seconds - start_us / SECOND_US)


def drawn(seed: int) -> Setting:
    """Draw a setting."""
    chance = random.Random(seed)  # noqa: S311
    memory_bytes = chance.choice((2, 4, 8, 8, 16, 64)) * GI
    left = memory_bytes - chance.choice((0, memory_bytes // 50, memory_bytes // 8))
    system_bytes = memory_bytes - left
    swap_bytes = chance.choice((0, 0, 0, memory_bytes // 8))
    config = _config(chance, memory_bytes, has_swap=swap_bytes > 0)
    capacity = {MEMORY: Quantity.of_units(memory_bytes, "BinarySI")}
    enforced = node_allocatable(capacity, config).enforced[MEMORY].value
    left = min(left, enforced) if "pods" in config.enforce_node_allocatable else left
    # Together the pods hold from a third to nearly all.
    weights = [chance.uniform(0.02, 1), *(chance.uniform(0.2, 1) for _ in range(chance.randrange(5)))]
    held = left * chance.uniform(0.3, 0.93) / sum(weights)
    pods = tuple(
        _pod(chance, GROWER if place == 0 else f"other{place}", int(held * weight), memory_bytes)
        for place, weight in enumerate(weights)
    )
    seconds = 10 ** chance.uniform(-0.3, 2.3)
    age_us = chance.choice((0, 0, 0, chance.randrange(1, 25 * SECOND_US)))
    if config.kernel_memcg_notification and config.eviction_soft:
        # The simulator leaves out passes with figures from before a crossing, also where they would end a grace period.
        age_us = 0
    return Setting(
        memory_bytes,
        system_bytes,
        swap_bytes,
        config,
        pods,
        max(1, int(memory_bytes / seconds / 2)),
        age_us,
        chance.random() < 0.15,
        chance.choice((None, None, None, Policy.QOS_TIERS, Policy.QOS_USAGE)),
        cgroup_version=1 if config.kernel_memcg_notification else 2,
    )


def _config(chance: random.Random, memory_bytes: int, *, has_swap: bool) -> KubeletConfiguration:
    signal = "memory.available"

    def amount(most: float) -> str:
        share = chance.uniform(0.002, most)
        return chance.choice((f"{int(memory_bytes * share)}", f"{share * 100:.2f}%"))

    marks = machine(memory_bytes).watermarks
    # Where kswapd is at work a threshold is met, and cleared, and met again.
    at_work = f"{chance.randint(marks.min_bytes, marks.high_bytes)}"
    hard = {} if chance.random() < 0.08 else {signal: chance.choice(("100Mi", at_work, amount(0.05), amount(0.3)))}
    soft = {signal: amount(0.4)} if chance.random() < 0.5 else {}
    reserved = f"{int(memory_bytes * chance.uniform(0.01, 0.12))}"
    protects = not has_swap and chance.random() < 0.2
    return KubeletConfiguration(
        eviction_hard=hard,
        eviction_soft=soft,
        eviction_soft_grace_period={signal: f"{chance.choice((1, 7, 10, 25, 60))}s"} if soft else {},
        eviction_minimum_reclaim={signal: "64Mi"} if chance.random() < 0.2 else {},
        enforce_node_allocatable=chance.choice((("pods",), ("pods",), ("none",), ())),
        kube_reserved=chance.choice(({}, {"memory": reserved})),
        system_reserved=chance.choice(({}, {"memory": reserved})),
        feature_gates={"MemoryQoS": True} if protects else {},
        memory_reservation_policy="TieredReservation" if protects and chance.random() < 0.5 else "None",
        kernel_memcg_notification=not has_swap and not protects and chance.random() < 0.25,
        fail_swap_on=False,
        memory_swap=MemorySwapConfiguration("LimitedSwap" if has_swap and chance.random() < 0.7 else ""),
    )


def _pod(
    chance: random.Random, name: str, held_bytes: int, memory_bytes: int
) -> tuple[Pod, tuple[ContainerUsage, ...]]:
    count = chance.choice((1, 1, 2))
    made, usages = [], []
    for number in range(count):
        share = held_bytes // count
        active, inactive = (
            int(share * chance.choice((0, 0, chance.uniform(0, 0.2), chance.uniform(0, 0.45)))) for _ in range(2)
        )
        processes = chance.choice((1, 1, 3))
        usages.append(ContainerUsage(f"c{number}", share - active - inactive, active, inactive, processes=processes))
        request = int(share * chance.choice((0, 0.3, 0.8)))
        limit = max(request, share + int(memory_bytes * chance.uniform(0.02, 0.5))) if chance.random() < 0.3 else 0
        if limit and chance.random() < 0.3:
            request = limit
        request = min(request, memory_bytes // 16)
        made.append(
            container(
                f"c{number}",
                requests=f"memory={request}" if request else "",
                limits=f"memory={limit}" if limit else "",
            )
        )
    return pod_of(name, *made, priority=chance.choice((None, None, 100, 2_000_001_000))), tuple(usages)


def _used(pod: Pod, usage: tuple[ContainerUsage, ...]) -> PodUsage:
    memory = MemoryStats(working_set_bytes=sum(each.working_set_bytes for each in usage))
    return PodUsage(pod, PodStats(PodReference(pod.metadata.name, "default", pod.metadata.uid), memory=memory), usage)
