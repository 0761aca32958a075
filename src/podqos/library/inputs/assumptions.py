"""What answers rest on where nobody stated it, as values: one rule for each thing, the same for every question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from podqos.errors import InvalidOption
from podqos.manifest.kinds import NAMESPACE, is_policy
from podqos.model.assumption import Assumption
from podqos.model.resources import MEMORY

if TYPE_CHECKING:
    from podqos.library.inputs.objects import Objects
    from podqos.manifest.contents import Other
    from podqos.model.node import Node

USUAL_NODE_BYTES = 64 << 30
LEAST_NODE_BYTES = 1 << 20
"""With less, nothing is a node."""
NODE_MEMORY = Assumption("node memory", "64Gi", "--node-memory")
KUBELET_SETTINGS = Assumption("kubelet settings", "defaults", "--kubelet-config")
NO_POLICIES = Assumption("cluster policies", "none", "-f POLICIES")

# What is taken of a class that pods name and that is not among the objects.
_OF_CLASS = {"PriorityClass": ("priority of class {name}", "0"), "RuntimeClass": ("overhead of runtime {name}", "none")}


def node_memory(stated_bytes: int | None, nodes: Iterable[Node]) -> tuple[int, tuple[Assumption, ...]]:
    """Return a node's memory: as stated, else of the smallest Node, else 64Gi, which is then an assumption.

    Never this machine's, which has nothing to do with the manifests. A Node that states next to none states nothing.
    """
    if stated_bytes is not None:
        if stated_bytes < LEAST_NODE_BYTES:
            what = f"{stated_bytes} bytes are not the memory of a node"
            raise InvalidOption(what, where="--node-memory", fix="for example 64Gi")
        return stated_bytes, ()
    stated = (node.status.capacity[MEMORY].value for node in nodes if MEMORY in node.status.capacity)
    sizes = [size for size in stated if size >= LEAST_NODE_BYTES]
    return (min(sizes), ()) if sizes else (USUAL_NODE_BYTES, (NODE_MEMORY,))


def missing_classes(named: Iterable[tuple[str, str]]) -> tuple[Assumption, ...]:
    """Return what is taken of classes, by kind and name, that are not among the objects."""
    found = []
    for kind, name in sorted(set(named)):
        what, value = _OF_CLASS[kind]
        found.append(Assumption(what.format(name=name), value, f"-f its {kind}"))
    return tuple(found)


def without_policies(objects: Objects) -> tuple[Assumption, ...]:
    """Return what is taken where the objects hold no policy; what comes from a cluster has met its policies."""
    is_stored = all(found.workload.is_stored for found in objects.workloads)
    return () if is_stored or has_policies(objects) else (NO_POLICIES,)


def has_policies(objects: Objects) -> bool:
    """Whether there are policies that decide something."""
    return any(is_decisive_policy(found.other) for found in objects.others)


def is_decisive_policy(other: Other) -> bool:
    """Whether an object is a policy; a namespace alone decides nothing."""
    return is_policy(other.kind, other.api_version) and other.kind != NAMESPACE
