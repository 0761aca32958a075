"""How much memory the pods of a class may use together if ``qosReserved`` keeps some for higher classes.

The rule is that of the cgroups (``qos.cgroup_tiers``); here it is asked for the pods that are placed on a node.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.resources import MEMORY
from podqos.placement.node_cgroups import cgroup_settings
from podqos.placement.node_state import SchedulerNode
from podqos.qos.cgroup_tiers import TierRequests, tier_values


class ClassCeilings(Struct, frozen=True, gc=False):
    """The limits of the two classes with a cgroup of their own; never below zero."""

    burstable_bytes: int
    best_effort_bytes: int


def class_ceilings(
    state: SchedulerNode, config: KubeletConfiguration, profile: Profile = LATEST
) -> ClassCeilings | None:
    """Return the ceilings on a node; None if there are none or its capacity is unknown."""
    capacity = state.node.status.capacity.get(MEMORY)
    if capacity is None or not config.cgroups_per_qos:
        return None
    settings = cgroup_settings(config, {MEMORY: capacity}, profile=profile)
    if settings.qos_reserved_memory_percent is None:
        return None
    requested = dict.fromkeys(QOSClass, 0)
    for view in state.pods.values():
        requested[view.shape.qos_class] += view.held.requested.get(MEMORY, 0)
    requests = TierRequests(0, requested[QOSClass.BURSTABLE], requested[QOSClass.GUARANTEED])
    tiers = tier_values(requests, settings)
    burstable, best_effort = (
        tiers[qos_class].memory_limit_bytes for qos_class in (QOSClass.BURSTABLE, QOSClass.BEST_EFFORT)
    )
    if burstable is None or best_effort is None:
        return None
    return ClassCeilings(max(0, burstable.amount or 0), max(0, best_effort.amount or 0))
