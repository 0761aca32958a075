"""Why a node does not take a pod, as data.

One class per way to be rejected, each with the numbers and names that decided. ``plugin`` is the scheduler's own name
for the rule; ``unresolvable`` says that removing pods from the node would not help, so preemption does not try.
The texts that Kubernetes prints for them are in ``report.scheduling``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from podqos.model.node import PODS, Taint
from podqos.model.scheduling import NodeSelectorRequirement

GATED_MESSAGE = "Scheduling is blocked due to non-empty scheduling gates"


class Plugin(StrEnum):
    """The scheduler's rules, in its order (pkg/scheduler/apis/config/v1/default_plugins.go)."""

    NODE_UNSCHEDULABLE = "NodeUnschedulable"
    TAINT_TOLERATION = "TaintToleration"
    NODE_AFFINITY = "NodeAffinity"
    NODE_PORTS = "NodePorts"
    NODE_RESOURCES_FIT = "NodeResourcesFit"
    POD_TOPOLOGY_SPREAD = "PodTopologySpread"
    INTER_POD_AFFINITY = "InterPodAffinity"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    NODE_RESOURCES_BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
    IMAGE_LOCALITY = "ImageLocality"


class _Reason(Struct, frozen=True, gc=False, tag=True, tag_field="kind", rename="camel"):
    plugin: ClassVar[Plugin]

    @property
    def unresolvable(self) -> bool:
        """Whether the node would reject the pod even without any of its pods."""
        return True


class Unschedulable(_Reason, frozen=True, gc=False):
    """The node is cordoned."""

    plugin = Plugin.NODE_UNSCHEDULABLE


class UntoleratedTaint(_Reason, frozen=True, gc=False):
    """The first taint, in the node's order, that the pod does not tolerate."""

    plugin = Plugin.TAINT_TOLERATION
    taint: Taint


class UnderPressure(_Reason, frozen=True, gc=False):
    """A condition that keeps pods away by itself, as it did before conditions became taints in 1.12."""

    plugin = Plugin.TAINT_TOLERATION
    condition: str


class NotNamed(_Reason, frozen=True, gc=False):
    """The pod's node affinity lists nodes by name, and this is not one of them."""

    plugin = Plugin.NODE_AFFINITY


class NamesConflict(_Reason, frozen=True, gc=False):
    """Every term of the pod's node affinity asks for several names at once, which no node has."""

    plugin = Plugin.NODE_AFFINITY


class SelectorMismatch(_Reason, frozen=True, gc=False):
    """A label that ``nodeSelector`` asks for is missing or has another value."""

    plugin = Plugin.NODE_AFFINITY
    key: str
    wanted: str
    found: str | None


class AffinityMismatch(_Reason, frozen=True, gc=False):
    """No term of the required node affinity matches; per term, the first condition that fails.

    A term without conditions, which matches nothing, contributes nothing.
    """

    plugin = Plugin.NODE_AFFINITY
    failed: tuple[NodeSelectorRequirement, ...]


class PortTaken(_Reason, frozen=True, gc=False):
    """A host port that a pod on the node already uses."""

    plugin = Plugin.NODE_PORTS
    port: int
    protocol: str
    host_ip: str

    @property
    def unresolvable(self) -> bool:
        """Whether removing pods could never free the port: no."""
        return False


class Insufficient(_Reason, frozen=True, gc=False):
    """Too little of a resource is left. cpu is in thousandths, everything else in whole units."""

    plugin = Plugin.NODE_RESOURCES_FIT
    resource: str
    requested: int
    used: int
    capacity: int

    @property
    def unresolvable(self) -> bool:
        """Whether the pod asks for more than the empty node has."""
        return self.resource != PODS and self.requested > self.capacity


class MissingTopologyLabel(_Reason, frozen=True, gc=False):
    """The node has no value for the label over which pods are to be spread."""

    plugin = Plugin.POD_TOPOLOGY_SPREAD
    topology_key: str


class SkewTooLarge(_Reason, frozen=True, gc=False):
    """One more pod here would make the spread too uneven: matching + self − minimum > maxSkew."""

    plugin = Plugin.POD_TOPOLOGY_SPREAD
    topology_key: str
    topology_value: str
    matching: int
    minimum: int
    max_skew: int

    @property
    def unresolvable(self) -> bool:
        """Whether removing pods could never help: no, it might."""
        return False


class AffinityUnmet(_Reason, frozen=True, gc=False):
    """No pod that the pod must be near to is in this node's part of the topology."""

    plugin = Plugin.INTER_POD_AFFINITY
    topology_key: str
    topology_value: str | None


class AntiAffinityViolated(_Reason, frozen=True, gc=False):
    """A pod that the pod must stay away from is near."""

    plugin = Plugin.INTER_POD_AFFINITY
    topology_key: str
    topology_value: str

    @property
    def unresolvable(self) -> bool:
        """Whether removing pods could never help: no, it might."""
        return False


class ExistingAntiAffinity(_Reason, frozen=True, gc=False):
    """A pod that is near must stay away from this one."""

    plugin = Plugin.INTER_POD_AFFINITY
    topology_key: str
    topology_value: str

    @property
    def unresolvable(self) -> bool:
        """Whether removing pods could never help: no, it might."""
        return False


class FeaturesNotDeclared(_Reason, frozen=True, gc=False):
    """The node does not declare features that the pod needs."""

    plugin = Plugin.NODE_DECLARED_FEATURES
    features: tuple[str, ...]


Reason = (
    Unschedulable
    | UntoleratedTaint
    | UnderPressure
    | NotNamed
    | NamesConflict
    | SelectorMismatch
    | AffinityMismatch
    | PortTaken
    | Insufficient
    | MissingTopologyLabel
    | SkewTooLarge
    | AffinityUnmet
    | AntiAffinityViolated
    | ExistingAntiAffinity
    | FeaturesNotDeclared
)
Reasons = tuple[Reason, ...]
