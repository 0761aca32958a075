"""How long the DaemonSet controller waits before it removes a failed pod and makes another on the same node.

A kubelet that evicts or rejects the pods of a DaemonSet and a controller that puts them back at once would do nothing
else: since Kubernetes 1.12 the controller waits longer each time.

Source: Kubernetes v1.36 pkg/controller/daemon/daemon_controller.go (podsShouldBeOnNode, failedPodsBackoff),
cmd/kube-controller-manager/app/apps.go (1 s to 15 min), client-go/util/flowcontrol/backoff.go.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.time_units import SECOND_US

_FIRST_US = 1 * SECOND_US
_LONGEST_US = 15 * 60 * SECOND_US
# A pod that ran this long counts as stable: the back-off starts over.
_FORGOTTEN_US = 2 * _LONGEST_US


class _Last(Struct, frozen=True, gc=False):
    backoff_us: int
    removed_us: int


class DaemonBackoff:
    """The failed pods of all DaemonSets, by workload and node."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], _Last] = {}

    def wait_us(self, workload: str, node: str, failed_us: int) -> int:
        """Return how long a failed pod stays before it is removed, and count it.

        The first failures are removed as they are seen. One that comes within the back-off of the last removal is
        looked at again when a whole back-off more has passed.
        """
        last = self._last.get((workload, node))
        if last is not None and failed_us - last.removed_us > _FORGOTTEN_US:
            last = None
        wait_us = last.backoff_us if last is not None and failed_us - last.removed_us < last.backoff_us else 0
        backoff_us = _FIRST_US if last is None else min(2 * last.backoff_us, _LONGEST_US)
        self._last[workload, node] = _Last(backoff_us, failed_us + wait_us)
        return wait_us
