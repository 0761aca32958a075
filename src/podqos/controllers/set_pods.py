"""A pod as its controller sees it in the API server.

Source: Kubernetes v1.36.4 pkg/api/v1/pod/util.go (IsPodReady, IsPodAvailable), pkg/controller/controller_utils.go
(IsPodActive).
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.model.time_units import SECOND_US


class PodPhase(StrEnum):
    """The phase of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


_TERMINAL = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})


class SetPod(Struct, frozen=True, gc=False, kw_only=True):
    """A pod of a StatefulSet, a ReplicaSet or a DaemonSet."""

    name: str
    number: int = 0
    """Its ordinal in a StatefulSet; its place among the pods of a ReplicaSet."""
    revision: int = 1
    """Which template it was made from."""
    phase: PodPhase = PodPhase.RUNNING
    ready_since_us: int | None = None
    """None if it is not ready."""
    is_terminating: bool = False
    """Whether it has been deleted and is still there."""
    node: str = ""
    created_us: int = 0
    restarts: tuple[int, int] = (0, 0)
    """The most of any container, and of any sidecar."""
    deletion_cost: int = 0

    @property
    def is_ready(self) -> bool:
        """Whether it is ready."""
        return self.ready_since_us is not None

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended by itself."""
        return self.phase in _TERMINAL

    @property
    def is_active(self) -> bool:
        """Whether it counts as a replica: it has not ended and has not been deleted."""
        return not self.is_terminal and not self.is_terminating

    def is_available(self, min_ready_seconds: int, now_us: int) -> bool:
        """Whether it has been ready for long enough."""
        return self.ready_since_us is not None and self.ready_since_us + min_ready_seconds * SECOND_US <= now_us


def next_available_us(pods: tuple[SetPod, ...], min_ready_seconds: int, now_us: int) -> int | None:
    """Return when the next ready pod will have been ready for long enough; None if none is on the way.

    Source: pkg/controller/controller_utils.go (FindMinNextPodAvailabilityCheck).
    """
    due = (pod.ready_since_us + min_ready_seconds * SECOND_US for pod in pods if pod.ready_since_us is not None)
    return min((time_us for time_us in due if time_us > now_us), default=None)
