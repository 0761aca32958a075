"""How long it takes to rank a node's pods twice, to divide its CPU and to forecast a growth, from pods to the answer.

Run: ``python bench/survival.py``. The budget for the CPU of 500 pods is 5 ms; ``cpu_model.py`` measures the model only.
"""

from __future__ import annotations

import random
import timeit
from collections.abc import Callable

from history import record
from msgspec.structs import replace

from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.model.snapshot import NodeUsage
from podqos.orders.exhaustion import exhaustion
from podqos.orders.growing import GrowingNode, Growth, KubeletWatch
from podqos.orders.memory import outlook
from podqos.orders.orders import both_orders
from podqos.orders.pods import NodePod
from podqos.orders.usage import UsageRow, from_usage
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.questions.cpu import burst
from podqos.questions.growth import forecast_growth as forecast

MEMORY_BYTES = 256 << 30


def pod(index: int, chance: random.Random) -> Pod:
    """Make a pod of any class."""
    memory, cpu = (
        Quantity.parse(f"{chance.randrange(1, 17) * 64}Mi"),
        Quantity.parse(f"{chance.randrange(1, 40) * 50}m"),
    )
    requests = {"memory": memory, "cpu": cpu} if chance.random() < 0.8 else {}
    limits = requests if chance.random() < 0.5 else {}
    container = Container("app", resources=ResourceRequirements(requests, limits))
    name = f"service-{index:04}"
    return Pod(ObjectMeta(name, "production", f"uid-{name}"), PodSpec(containers=(container,)))


def milliseconds(work: Callable[[], object], repeat: int = 50) -> float:
    return min(timeit.repeat(work, number=1, repeat=repeat)) * 1000


def main() -> None:
    for count in (110, 500):
        measure(count, CgroupSettings(node_memory_bytes=MEMORY_BYTES))


def measure(count: int, settings: CgroupSettings) -> None:
    chance = random.Random(count)
    pods = [pod(index, chance) for index in range(count)]
    rows = [UsageRow(each.key, memory=Quantity.parse(f"{chance.randrange(400)}Mi")) for each in pods]
    snapshot = from_usage([NodePod(each, each.key) for each in pods], rows, NodeUsage(MEMORY_BYTES))

    def rank() -> None:
        seen = outlook(snapshot, settings)
        both_orders(snapshot, Ranking(Signal.MEMORY), settings, seen.domain)

    cached = [replace(row, anon=Quantity.of_units(row.memory.value // 2, "BinarySI")) for row in rows if row.memory]
    with_cache = from_usage([NodePod(each, each.key) for each in pods], cached, NodeUsage(MEMORY_BYTES // 4))
    watch = KubeletWatch(exhaustion(KubeletConfiguration(), {Signal.MEMORY: MEMORY_BYTES // 4}))

    def grow() -> None:
        node = GrowingNode(with_cache, settings, Growth(pods[0].metadata.uid, "app"), watch)
        for rate in (16 << 20, 128 << 20, 1 << 30):
            forecast(node, rate)

    for name, took in (
        (f"cpu of {count} pods, from pods to shares", milliseconds(lambda: burst(pods, 64, settings))),
        (f"both orders of {count} pods and what is left", milliseconds(rank, 20)),
        (f"forecast of {count} pods with page cache, three rates", milliseconds(grow, 3)),
    ):
        print(f"{name + ':':<54}{took:7.2f} ms")
        record(name, took, "ms")


if __name__ == "__main__":
    main()
