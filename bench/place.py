"""How long placing takes, for three sizes in one run: 5,000 pods on 250 nodes, a half and a quarter of both.

The claim is "at most linear in pods × nodes", so the time per pod and node must not grow. Three kinds of pods: replicas
of workloads, pods that all differ, and workloads of which a third are spread over zones or keep away from their like.

    python bench/place.py [--kind replicas]
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Callable, Iterator

from history import record
from msgspec.structs import replace

from podqos.model.node import LABEL_HOSTNAME, Node, NodeStatus
from podqos.model.pod import Container, ObjectMeta, Pod, PodSpec
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceRequirements
from podqos.model.scheduling import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from podqos.model.selector import LabelSelector
from podqos.placement.place import PlacementSurroundings, Status, place

ZONE = "topology.kubernetes.io/zone"
SIZES = ((1_250, 62), (2_500, 125), (5_000, 250))


def nodes(count: int, chance: random.Random) -> tuple[Node, ...]:
    """Return nodes of 32 cores; as in a real cloud no two have quite the same memory."""
    made = []
    for index in range(count):
        name = f"node-{index:05}"
        allocatable = {
            "cpu": Quantity.parse("31850m"),
            "memory": Quantity.of_units((128 * 2**20 - chance.randrange(4096)) * 1024, "BinarySI"),
            "pods": Quantity.of_units(110),
        }
        labels = {LABEL_HOSTNAME: name, ZONE: f"zone-{index % 3}"}
        made.append(Node(ObjectMeta(name=name, labels=labels), status=NodeStatus(allocatable, allocatable)))
    return tuple(made)


def pod_of(name: str, chance: random.Random, **spec: object) -> Pod:
    """Return a pod of one container with its own amounts."""
    requests = {
        "cpu": Quantity.of_milli(chance.randrange(50, 2_000)),
        "memory": Quantity.of_units(chance.randrange(64, 8_192) * 2**20, "BinarySI"),
    }
    container = Container(name="app", resources=ResourceRequirements(requests, requests))
    return Pod(ObjectMeta(name=name, namespace="bench", labels={"app": name}), PodSpec(containers=(container,), **spec))


def all_different(count: int, chance: random.Random) -> Iterator[Pod]:
    """Yield pods of which no two ask for the same."""
    for index in range(count):
        yield pod_of(f"pod-{index}", chance)


def replicas(
    count: int, chance: random.Random, constrain: Callable[[int], dict[str, object]] | None = None
) -> Iterator[Pod]:
    """Yield the pods of workloads with 50 replicas each."""
    for index in range(count // 50):
        original = pod_of(f"workload-{index}", chance, **(constrain(index) if constrain else {}))
        for replica in range(50):
            yield replace(original, metadata=replace(original.metadata, name=f"workload-{index}-{replica}"))


def constrained(count: int, chance: random.Random) -> Iterator[Pod]:
    """Yield workloads of which a third are spread over zones or keep away from their like."""

    def constraints(index: int) -> dict[str, object]:
        own = LabelSelector({"app": f"workload-{index}"})
        if index % 6 == 0:
            return {"topology_spread_constraints": (TopologySpreadConstraint(1, ZONE, "DoNotSchedule", own),)}
        if index % 6 == 3:
            return {"affinity": Affinity(pod_anti_affinity=PodAffinity((PodAffinityTerm(LABEL_HOSTNAME, own),)))}
        return {}

    return replicas(count, chance, constraints)


KINDS = {"replicas": replicas, "all different": all_different, "constrained": constrained}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, action="append", help="only these kinds of pods")
    arguments = parser.parse_args()
    print(f"{'pods are':<14} {'pods':>8} {'nodes':>6} {'seconds':>8} {'ns per pod×node':>16} {'placed':>8}")
    for kind in arguments.kind or KINDS:
        for pod_count, node_count in SIZES:
            chance = random.Random(1)
            pods = tuple(KINDS[kind](pod_count, chance))
            surroundings = PlacementSurroundings(nodes(node_count, chance))
            # Processor time: another process on the machine must not look like a worse algorithm.
            start = time.process_time()
            placement = place(pods, surroundings)
            seconds = time.process_time() - start
            placed = sum(outcome.status is Status.PLACED for outcome in placement.outcomes)
            each = seconds / pod_count / node_count * 1e9
            print(f"{kind:<14} {pod_count:>8,} {node_count:>6,} {seconds:>8.1f} {each:>16.1f} {placed:>8,}", flush=True)
            record(f"place {kind}, {pod_count} × {node_count}", seconds, "s")
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"peak memory {peak_kib / 1024:,.0f} MiB")
    if arguments.kind is None:
        record("place, peak memory", peak_kib * 1024, "bytes")


if __name__ == "__main__":
    main()
