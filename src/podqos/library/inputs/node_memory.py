"""The memory of the node that a question is about: one rule for all of them.

As stated, else the smallest Node among the objects, else 64Gi, which is then an assumption. Never this machine's, which
has nothing to do with the manifests.
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.model.assumption import Assumption
from podqos.model.node import Node
from podqos.model.resources import MEMORY

USUAL_BYTES = 64 << 30
ASSUMED_NODE_MEMORY = Assumption("node memory", "64Gi", "--node-memory")


def node_memory(stated_bytes: int | None, nodes: Iterable[Node]) -> tuple[int, tuple[Assumption, ...]]:
    """Return the node's memory, and what was assumed for it."""
    if stated_bytes is not None:
        return stated_bytes, ()
    sizes = [node.status.capacity[MEMORY].value for node in nodes if MEMORY in node.status.capacity]
    return (min(sizes), ()) if sizes else (USUAL_BYTES, (ASSUMED_NODE_MEMORY,))
