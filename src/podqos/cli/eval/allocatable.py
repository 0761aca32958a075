"""The ``allocatable`` family: a node's capacity divided as its kubelet divides it.

The vectors give the thresholds as the kubelet's container manager gets them: without ``evictionHard`` there are none.
"""

from __future__ import annotations

import msgspec

from podqos.cli.eval.cgroup import tier_answer
from podqos.cli.eval.resources import plain
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.quantity import Quantity
from podqos.placement.allocatable import node_allocatable
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.cgroup_tiers import TierRequests, node_values


def evaluate(question: dict[str, object]) -> dict[str, object]:
    """Answer one question of the family."""
    capacity = msgspec.convert(question["capacity"], dict[str, str])
    stated = {name: value for name, value in question.items() if value is not None}
    config = msgspec.convert({"evictionHard": {}, **stated}, KubeletConfiguration)
    node = node_allocatable({name: Quantity.parse(text) for name, text in capacity.items()}, config)
    pods = node_values(TierRequests(), CgroupSettings(node_memory_bytes=0, node_allocatable=node.enforced))
    return {
        "reservation": plain(node.reservation),
        "nodeStatusCapacity": plain(node.capacity),
        "nodeStatusAllocatable": plain(node.allocatable),
        "enforcementAllocatable": plain(node.enforced),
        "podsCgroup": tier_answer(pods),
        "configValid": not node.over_reserved,
        "overReserved": list(node.over_reserved),
    }
