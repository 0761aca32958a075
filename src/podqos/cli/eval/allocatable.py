"""The ``allocatable`` family: a node's capacity divided as its kubelet divides it.

The vectors give the thresholds as the kubelet's container manager gets them: without ``evictionHard`` there are none.
"""

from __future__ import annotations

import msgspec

from podqos.cli.eval.resources import amounts
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceList
from podqos.placement.allocatable import node_allocatable
from podqos.qos.cgroup_settings import CgroupSettings
from podqos.qos.cgroup_tiers import TierRequests, node_values
from podqos.qos.cpu import weight_from_shares


class Question(msgspec.Struct, rename="camel"):
    """One node."""

    capacity: dict[str, str]
    kube_reserved: dict[str, str] | None = None
    system_reserved: dict[str, str] | None = None
    eviction_hard: dict[str, str] | None = None
    max_pods: int = 110
    pods_per_core: int = 0


def evaluate(question: dict[str, object]) -> dict[str, object]:
    """Answer one question of the family."""
    asked = msgspec.convert(question, Question)
    config = KubeletConfiguration(
        kube_reserved=asked.kube_reserved or {},
        system_reserved=asked.system_reserved or {},
        eviction_hard=asked.eviction_hard or {},
        max_pods=asked.max_pods,
        pods_per_core=asked.pods_per_core,
    )
    node = node_allocatable({name: Quantity.parse(text) for name, text in asked.capacity.items()}, config)
    return {
        "reservation": amounts(node.reservation),
        "nodeStatusCapacity": amounts(node.capacity),
        "nodeStatusAllocatable": amounts(node.allocatable),
        "enforcementAllocatable": amounts(node.enforced),
        "podsCgroup": _pods_cgroup(node.enforced),
        "configValid": not node.over_reserved,
        "overReserved": list(node.over_reserved),
    }


def _pods_cgroup(enforced: ResourceList) -> dict[str, object]:
    """Return what is set for the cgroup of all pods."""
    values = node_values(TierRequests(), CgroupSettings(node_memory_bytes=0, node_allocatable=enforced))
    answer: dict[str, object] = {}
    if values.cpu_shares is not None and values.cpu_shares.amount is not None:
        answer["cpuShares"] = values.cpu_shares.amount
        answer["cpuWeight"] = weight_from_shares(values.cpu_shares.amount)
    if values.memory_limit_bytes is not None:
        answer["memory"] = values.memory_limit_bytes.amount
    if values.hugepage_limits:
        answer["hugePageLimit"] = {
            str(limit.page_size_bytes): limit.limit_bytes.amount for limit in values.hugepage_limits
        }
    return answer
