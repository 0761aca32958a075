"""The cluster autoscaler of a scenario: which node groups it changes, and how."""

from __future__ import annotations

from msgspec import Struct

from podqos.controllers.node_groups import SCAN_INTERVAL_US, Expander
from podqos.controllers.unneeded_nodes import (
    DELAY_AFTER_ADD_US,
    UNNEEDED_US,
    UTILIZATION_THRESHOLD,
    DrainSettings,
)
from podqos.model.time_units import MINUTE_US, SECOND_US


class AutoscaledGroup(Struct, frozen=True):
    """A group of nodes that grows and shrinks."""

    name: str
    """That of its nodes: ``name-0``, ``name-1``, …"""
    minimum: int
    maximum: int
    provision_us: int = MINUTE_US
    """From the decision until a node has joined and is ready."""
    priority: int = 0
    """For the expander ``priority``: the highest is taken."""


class ScaleDownSettings(Struct, frozen=True):
    """When nodes are removed."""

    unneeded_us: int = UNNEEDED_US
    threshold: float = UTILIZATION_THRESHOLD
    delay_after_add_us: int = DELAY_AFTER_ADD_US
    delay_after_delete_us: int = 0
    drain: DrainSettings = DrainSettings()
    max_grace_us: int = 600 * SECOND_US
    """``--max-graceful-termination-sec``: pods get at most as long to stop."""


class ClusterAutoscaler(Struct, frozen=True):
    """Adds nodes for pods that no node takes, and removes nodes that are not needed."""

    groups: tuple[AutoscaledGroup, ...]
    scan_us: int = SCAN_INTERVAL_US
    expander: Expander = Expander.LEAST_WASTE
    new_pod_delay_us: int = 0
    """``--new-pod-scale-up-delay``: younger pods do not count."""
    scale_down: ScaleDownSettings | None = ScaleDownSettings()
    """None if nodes are never removed."""
