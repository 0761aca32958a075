"""What an edit of a workload costs, in words: what is reserved, how many pods a node holds, class and priority."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.checks.costs import pod_costs
from podqos.model.effective import pod_requests
from podqos.model.pod import Pod
from podqos.model.profile import Profile
from podqos.model.quantity import ZERO
from podqos.model.resources import MEMORY
from podqos.qos.classes import qos_class_of
from podqos.wording import counted, mebibytes

_MANY_BYTES = 10 << 30


def edit_costs(before: Pod, after: Pod, replicas: int, room_bytes: int | None, profile: Profile) -> Iterator[str]:
    """Yield what pods, as stored, pay for becoming others; ``room_bytes`` is what pods may request on their node."""
    yield from (cost.text for cost in pod_costs(before, after, replicas))
    was, becomes = (pod_requests(pod).get(MEMORY, ZERO).value for pod in (before, after))
    if replicas > 1 and was < becomes:
        yield f"{_in_all((becomes - was) * replicas)} more memory in all"
    if room_bytes is not None and 0 < was < becomes:
        held, holds = room_bytes // was, room_bytes // becomes
        if holds < held:
            yield f"by its memory requests, an empty node of this size holds {counted(holds, 'such pod')}, not {held:,}"
    classes = qos_class_of(before, profile), qos_class_of(after, profile)
    if classes[0] is not classes[1]:
        yield f"its QoS class becomes {classes[1]} (was {classes[0]})"
    priorities = before.spec.priority or 0, after.spec.priority or 0
    if priorities[0] < priorities[1]:
        yield f"it needs a PriorityClass with value {priorities[1]}, whose pods may preempt others"


def _in_all(amount: int) -> str:
    """Return a sum, of which the tenth of a gibibyte is precise enough."""
    return mebibytes(amount) if amount < _MANY_BYTES else f"{amount / 2**30:.1f}Gi"
