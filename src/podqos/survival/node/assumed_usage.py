"""Assumed usage of pods without measurements, the same for both versions of a workload.

A container is assumed to use what the older version requests; a new container, what it requests itself. So a lowered
request leaves its pod above it, and nothing else changes. A container without a request uses a nominal amount.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from podqos.model.pod import Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import PodUsage
from podqos.survival.node.usage import pod_usage
from podqos.survival.node.usage_file import UsageRow

NOMINAL_BYTES = 64 << 20
"""Assumed usage of a container that requests no memory."""


def assumed_usage(
    pod: Pod, older: Pod | None = None, measured: Mapping[str, int] | None = None, *, idle: Collection[str] = ()
) -> PodUsage:
    """Return a pod with assumed memory usage; ``older`` is the version that it is taken from.

    ``measured`` are bytes by container, where known. ``idle`` have no process, and no
    statistics.
    """
    known: Mapping[str, Container] = {} if older is None else {each.name: each for each in older.running_containers}
    amounts = {container.name: _memory(known.get(container.name, container)) for container in pod.running_containers}
    for name, known_bytes in (measured or {}).items():
        if name in amounts:
            amounts[name] = Quantity.of_units(known_bytes, "BinarySI")
    rows = {name: UsageRow(pod.key, name, memory=amount) for name, amount in amounts.items() if name not in idle}
    return pod_usage(pod, rows)


def _memory(container: Container) -> Quantity:
    requested = container.resources.requests.get(MEMORY)
    return requested or Quantity.of_units(NOMINAL_BYTES, "BinarySI")
