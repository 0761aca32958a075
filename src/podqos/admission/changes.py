"""What admission did to a pod, as data: one change per resource and place, with the rule that made it.

Every mutating step writes the same kind of record, so that a report can show them side by side. Recording is
optional: a step appends to the list it is given and does nothing when it is given none.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from podqos.model.pod import Pod
from podqos.model.quantity import Quantity
from podqos.model.resources import ResourceList


class Why(StrEnum):
    """The rule behind a change."""

    REQUEST_FROM_LIMIT = "RequestFromLimit"
    """A container that states a limit and no request gets the limit as its request."""
    POD_REQUEST_FROM_CONTAINERS = "PodRequestFromContainers"
    """A missing pod-level request is the sum of the containers'."""
    POD_REQUEST_FROM_LIMIT = "PodRequestFromLimit"
    """A missing pod-level request that no container states is the pod-level limit."""
    POD_HUGEPAGES_LIMIT_FROM_CONTAINERS = "PodHugePagesLimitFromContainers"
    """A missing pod-level limit of huge pages is the sum of the containers'."""
    POD_LIMIT_FROM_CONTAINERS = "PodLimitFromContainers"
    """A missing pod-level limit of a pod whose containers are all limited is the sum of theirs (1.37)."""
    POD_LEVEL_RESOURCES_UNKNOWN = "PodLevelResourcesUnknown"
    """This version of Kubernetes drops resources that are set for the pod as a whole."""
    ROUNDED_UP_TO_MILLI = "RoundedUpToMilli"
    """The API server keeps no more than three decimals."""
    LIMIT_RANGE_DEFAULT = "LimitRangeDefault"
    """A LimitRange fills in a limit that the container leaves out."""
    LIMIT_RANGE_DEFAULT_REQUEST = "LimitRangeDefaultRequest"
    """A LimitRange fills in a request that the container leaves out and that its own limit does not imply."""
    RUNTIME_CLASS_OVERHEAD = "RuntimeClassOverhead"
    """What the runtime class costs on top of the containers."""
    PRIORITY_FROM_CLASS = "PriorityFromClass"
    """The priority class that the pod names."""
    PRIORITY_FROM_GLOBAL_DEFAULT = "PriorityFromGlobalDefault"
    """The pod names no class, and one class is the default for such pods."""
    PRIORITY_WITHOUT_CLASS = "PriorityWithoutClass"
    """The pod names no class, and no class is the default."""
    DAEMON_SET_TOLERATION = "DaemonSetToleration"
    """The pods of a DaemonSet stay on lost nodes and run on nodes under pressure."""
    TOLERATION_OF_LOST_NODES = "TolerationOfLostNodes"
    """By default, pods stay five minutes on a node that is not ready or unreachable."""
    MEMORY_PRESSURE_TOLERATION = "MemoryPressureToleration"
    """PodTolerationRestriction lets pods that are not BestEffort onto nodes under memory pressure."""
    RUNTIME_CLASS_SCHEDULING = "RuntimeClassScheduling"
    """Where pods of the runtime class may run."""
    MEMORY_REQUEST_FROM_LIMIT = "MemoryRequestFromLimit"
    """The override sets the memory request to a percentage of the memory limit."""
    CPU_LIMIT_FROM_MEMORY = "CPULimitFromMemory"
    """The override sets the cpu limit by the memory limit."""
    CPU_REQUEST_FROM_LIMIT = "CPURequestFromLimit"
    """The override sets the cpu request to a percentage of the cpu limit."""
    RESIZED = "Resized"
    """The resize asks for it."""
    KEPT_GUARANTEED = "KeptGuaranteed"
    """A sidecar would demote a Guaranteed pod that asks to stay Guaranteed."""


class Change(Struct, frozen=True, gc=False):
    """One amount that a step wrote into a pod."""

    path: str
    """The resource list, such as ``spec.containers[0].resources.requests``."""
    resource: str
    before: Quantity | None
    after: Quantity
    why: Why
    source: str = ""
    """The name of the policy object behind it, if there is one."""


class FieldChange(Struct, frozen=True, gc=False):
    """One field other than an amount that a step wrote into a pod."""

    path: str
    before: str | int | None
    after: str | int | None
    why: Why
    source: str = ""


Record = list[Change | FieldChange] | None


def note(record: Record, path: str, amounts: ResourceList, why: Why, source: str = "") -> None:
    """Record amounts that were not there before, in the order of their names."""
    if record is not None:
        record.extend(Change(path, name, None, amounts[name], why, source) for name in sorted(amounts))


def container_names(pod: Pod) -> dict[str, str]:
    """Return the names of the containers by their paths."""
    lists = (("containers", pod.spec.containers), ("initContainers", pod.spec.init_containers))
    return {
        f"spec.{field}[{index}]": container.name
        for field, containers in lists
        for index, container in enumerate(containers)
    }
