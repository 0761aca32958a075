"""Assumed usage of containers without measurements: one rule for all commands, and for both versions of a workload.

A container is assumed to use what it requests; of two versions, what the older one requests, so that a lowered request
leaves its pod above it, and nothing else changes. A container without a request uses a nominal amount. So no pod goes
first because nothing is known of it; only statistics that a kubelet itself has not got count as missing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from podqos.model.pod import Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import PodUsage
from podqos.model.stats import ContainerStats, MemoryStats
from podqos.survival.node.usage import pod_usage
from podqos.survival.node.usage_file import UsageRow
from podqos.wording import mebibytes

NOMINAL_BYTES = 64 << 20
NOMINAL = Quantity.of_units(NOMINAL_BYTES, "BinarySI")
"""Assumed usage of a container that requests no memory, in every command."""


def is_nominal(pods: Iterable[Pod]) -> bool:
    """Whether any of these pods has a container that requests no memory."""
    return any(MEMORY not in container.resources.requests for pod in pods for container in pod.running_containers)


def assumed_amounts(pods: Iterable[Pod], requested: str = "the pods' requests") -> str:
    """Return what is assumed of pods, in words."""
    return f"{requested}, or {mebibytes(NOMINAL_BYTES)} without one" if is_nominal(pods) else requested


def is_unmeasured(entry: PodUsage, idle: Collection[str]) -> bool:
    """Whether the memory of a container that has a process is not known."""
    return any(not container.is_measured and container.name not in idle for container in entry.containers)


def with_assumed(entry: PodUsage, older: Pod | None = None, *, idle: Collection[str] = ()) -> PodUsage:
    """Return a pod with assumed memory for those of its containers whose memory is not known."""
    if not is_unmeasured(entry, idle):
        return entry
    assumed = assumed_usage(entry.pod, older, idle=idle)
    if entry.stats is None or assumed.stats is None:
        return assumed
    amounts = {container.name: container for container in assumed.containers if container.name not in idle}
    filled = {
        container.name: amounts[container.name]
        for container in entry.containers
        if not container.is_measured and container.name in amounts
    }
    containers = tuple(
        replace(container, anon_bytes=filled[container.name].anon_bytes, is_measured=True)
        if container.name in filled
        else container
        for container in entry.containers
    )
    memory = {name: MemoryStats(working_set_bytes=usage.working_set_bytes) for name, usage in filled.items()}
    seen = {container.name: container for container in entry.stats.containers or ()}
    seen |= {name: replace(seen.get(name, ContainerStats(name)), memory=stats) for name, stats in memory.items()}
    whole = sum(container.working_set_bytes for container in containers if container.is_measured)
    stats = replace(
        entry.stats,
        containers=tuple(seen[container.name] for container in containers if container.name in seen),
        memory=MemoryStats(working_set_bytes=whole),
    )
    return replace(entry, containers=containers, stats=stats)


def assumed_usage(
    pod: Pod, older: Pod | None = None, measured: Mapping[str, int] | None = None, *, idle: Collection[str] = ()
) -> PodUsage:
    """Return a pod with assumed memory usage; ``older`` is the version that it is taken from.

    ``measured`` are bytes by container, where known. ``idle`` have no process, and no
    statistics.
    """
    known: Mapping[str, Container] = (
        {} if older is None else {container.name: container for container in older.running_containers}
    )
    amounts = {container.name: _memory(known.get(container.name, container)) for container in pod.running_containers}
    for name, known_bytes in (measured or {}).items():
        if name in amounts:
            amounts[name] = Quantity.of_units(known_bytes, "BinarySI")
    rows = {name: UsageRow(pod.key, name, memory=amount) for name, amount in amounts.items() if name not in idle}
    return pod_usage(pod, rows)


def _memory(container: Container) -> Quantity:
    requested = container.resources.requests.get(MEMORY)
    return requested or NOMINAL
