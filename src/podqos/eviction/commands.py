"""What the eviction manager asks its caller to do, with the reasons.

The caller carries commands out in their order; nothing here does anything.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.eviction.local_storage import LocalStorageExcess
from podqos.eviction.messages import EvictedCondition
from podqos.eviction.ranking import RankedPod
from podqos.eviction.signals import SIGNALS, CleanUp
from podqos.eviction.thresholds import Threshold
from podqos.model.pod import Pod
from podqos.model.quantity import Quantity


class ReclaimTarget(Struct, frozen=True, gc=False):
    """The threshold that acts in a pass, and the numbers by which it is met."""

    threshold: Threshold
    amount: Quantity
    """The threshold's value at the observed capacity."""
    available: Quantity

    @property
    def resource(self) -> str:
        """What is reclaimed: memory, ephemeral-storage, inodes or pids."""
        return SIGNALS[self.threshold.signal].resource


class CleanUpNode(Struct, frozen=True, gc=False):
    """Delete what is unused."""

    what: CleanUp
    because: ReclaimTarget


class EvictPod(Struct, frozen=True, gc=False):
    """End a pod for good: it becomes ``Failed`` with reason ``Evicted``."""

    pod: Pod
    grace_period_seconds: int
    message: str
    annotations: dict[str, str]
    """Of the event about the pod."""
    condition: EvictedCondition | None
    because: ReclaimTarget | LocalStorageExcess
    ranked: RankedPod | None = None
    """The place among the others; None where the pod exceeded a limit of its own."""


Command = CleanUpNode | EvictPod
