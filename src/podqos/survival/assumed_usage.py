"""What pods use where nobody measured it: an assumption, made the same way for both versions of a workload.

A container is taken to use what the older version requests; one that the older version does not have, what it requests
itself. So a request that is lowered leaves its pod above it, and nothing else moves. A container that requests nothing
uses a nominal amount: it cannot be within a request that it does not have.
"""

from __future__ import annotations

from collections.abc import Mapping

from podqos.model.pod import Container, Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY
from podqos.model.snapshot import PodUsage
from podqos.survival.usage import pod_usage
from podqos.survival.usage_file import UsageRow

NOMINAL_BYTES = 64 << 20
"""What a container is taken to use that requests no memory."""


def assumed_usage(pod: Pod, older: Pod | None = None, measured: Mapping[str, int] | None = None) -> PodUsage:
    """Return a pod with memory it may well use; ``older`` is the version of it that says how much.

    ``measured`` are bytes by container, where somebody knows better.
    """
    known: Mapping[str, Container] = {} if older is None else {each.name: each for each in older.running_containers}
    amounts = {container.name: _memory(known.get(container.name, container)) for container in pod.running_containers}
    for name, known_bytes in (measured or {}).items():
        if name in amounts:
            amounts[name] = Quantity.of_units(known_bytes, "BinarySI")
    rows = {name: UsageRow(pod.key, name, memory=amount) for name, amount in amounts.items()}
    return pod_usage(pod, rows)


def _memory(container: Container) -> Quantity:
    requested = container.resources.requests.get(MEMORY)
    return requested or Quantity.of_units(NOMINAL_BYTES, "BinarySI")
