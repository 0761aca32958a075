"""The smallest edit that makes a pod Guaranteed.

It is the other half of the answer to "why is this pod not Guaranteed": the reasons of ``classes`` say what is wrong,
the edit says what to write.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.effective import sum_of_containers
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import Quantity
from podqos.model.resources import QOS_RESOURCES, ResourceList
from podqos.qos.classes import deciding_resources


class Edit(Struct, frozen=True, gc=False):
    """One line of a manifest to write: ``path`` becomes ``value``; no value means one has to be chosen."""

    path: str
    value: Quantity | None
    replaces: Quantity | None = None


def edits_to_guaranteed(pod: Pod, profile: Profile = LATEST) -> tuple[Edit, ...]:
    """Return the fewest lines that make the pod Guaranteed once the API server has defaulted it.

    A limit alone is enough, because the request follows it. Where request and limit differ the request is raised:
    that changes what is reserved, never what the container may use. No lines are known to be enough for a pod to which
    its controller adds containers.
    """
    if pod.is_partial:
        return ()
    edits: list[Edit] = []
    # A pod-level request that is left out becomes what the containers request together.
    implied: ResourceList = {}
    if pod.spec.resources is not None:
        implied = sum_of_containers(pod, lambda container: container.resources.limits | container.resources.requests)
    for place, resources in deciding_resources(pod, profile):
        for name in QOS_RESOURCES:
            limit = resources.limits.get(name)
            written = resources.requests.get(name)
            request = implied.get(name) if written is None and place.is_pod else written
            if not limit:
                value = request or None
                edits.append(Edit(f"{place.path}.resources.limits.{name}", value, limit))
                if request is not None and not request:
                    # A zero would stay and differ from any limit.
                    edits.append(Edit(f"{place.path}.resources.requests.{name}", value, written))
            elif request is not None and request != limit:
                edits.append(Edit(f"{place.path}.resources.requests.{name}", limit, written))
    return tuple(edits)
