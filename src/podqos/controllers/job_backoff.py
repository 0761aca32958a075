"""How long the Job controller waits before it creates a pod after failures.

10 s after the first failure since the last success, then twice as long each time, up to ten minutes. (The
documentation says six minutes, the code ten.)

Source: Kubernetes v1.36 pkg/controller/job/backoff_utils.go (newBackoffRecord, getRemainingTimeForFailuresCount),
pkg/controller/job/job_controller.go (DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from podqos.model.time_units import SECOND_US

FIRST_US = 10 * SECOND_US
LONGEST_US = 600 * SECOND_US


class BackoffRecord(Struct, frozen=True, gc=False):
    """The failures of a Job since its last success."""

    failures: int = 0
    last_failure_us: int | None = None

    def after(self, succeeded_us: Sequence[int], failed_us: Sequence[int]) -> BackoffRecord:
        """Return the record after pods that ended at these times (``newBackoffRecord``).

        A success forgets all failures before it, and those at the same moment.
        """
        if not succeeded_us:
            if not failed_us:
                return self
            return BackoffRecord(self.failures + len(failed_us), max(failed_us))
        later = [time_us for time_us in failed_us if time_us > max(succeeded_us)]
        return BackoffRecord(len(later), max(later, default=None))

    def wait_us(self) -> int:
        """Return the whole back-off."""
        return backoff_us(self.failures)

    def remaining_us(self, now_us: int) -> int:
        """Return how much of the back-off is left."""
        return remaining_us(self.failures, self.last_failure_us, now_us)


def backoff_us(failures: int) -> int:
    """Return the back-off after a number of failures in a row."""
    # Beyond the seventh it no longer grows; a shift by a million would.
    return 0 if failures == 0 else min(FIRST_US << min(failures - 1, 16), LONGEST_US)


def remaining_us(failures: int, last_failure_us: int | None, now_us: int) -> int:
    """Return how much of a back-off is left (``getRemainingTimeForFailuresCount``)."""
    if failures == 0 or last_failure_us is None:
        return 0
    return max(0, backoff_us(failures) - (now_us - last_failure_us))
