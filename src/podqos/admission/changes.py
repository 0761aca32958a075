"""What admission did to a pod, as data: one change per resource and place, with the rule that made it.

Every mutating step writes the same kind of record, so that a report can show them side by side. Recording is
optional: a step appends to the list it is given and does nothing when it is given none.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.model.quantity import Quantity


class Why(StrEnum):
    """The rule behind a change."""

    REQUEST_FROM_LIMIT = "RequestFromLimit"
    """A container that states a limit and no request gets the limit as its request."""
    POD_REQUEST_FROM_CONTAINERS = "PodRequestFromContainers"
    """A missing pod-level request is what the containers add up to."""
    POD_REQUEST_FROM_LIMIT = "PodRequestFromLimit"
    """A missing pod-level request that no container states is the pod-level limit."""
    POD_HUGEPAGES_LIMIT_FROM_CONTAINERS = "PodHugePagesLimitFromContainers"
    """A missing pod-level limit of huge pages is what the containers add up to."""
    ROUNDED_UP_TO_MILLI = "RoundedUpToMilli"
    """The API server keeps no more than three decimals."""


class Change(Struct, frozen=True, gc=False):
    """One amount that a step wrote into a pod."""

    path: str
    """The resource list, such as ``spec.containers[0].resources.requests``."""
    resource: str
    before: Quantity | None
    after: Quantity
    why: Why


Record = list[Change] | None
