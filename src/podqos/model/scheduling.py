"""Constraints on where a pod runs: affinity, spreading, ports (core/v1).

Preferences change which of several good nodes is taken (``placement.score``), never whether one is.
"""

from __future__ import annotations

from msgspec import Struct, field

from podqos.model.selector import LabelSelector

FIELD_NAME = "metadata.name"
"""The only field of a node that an affinity can name."""


class NodeSelectorRequirement(Struct, frozen=True, gc=False):
    """One condition on a label or a field of a node."""

    key: str = ""
    operator: str = ""
    """In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct, frozen=True, gc=False, rename="camel"):
    """All of its conditions together; without any it matches no node."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct, frozen=True, gc=False, rename="camel"):
    """Any of its terms."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredNodes(Struct, frozen=True, gc=False):
    """Nodes a pod would rather run on."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct, frozen=True, gc=False):
    """Which nodes a pod may run on."""

    required: NodeSelector | None = field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredNodes, ...] = field(default=(), name="preferredDuringSchedulingIgnoredDuringExecution")


class PodAffinityTerm(Struct, frozen=True, gc=False, rename="camel"):
    """Pods to be near to or away from; near means the same value of the label ``topology_key`` on the node."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PreferredPods(Struct, frozen=True, gc=False, rename="camel"):
    """Pods a pod would rather be near to, or away from."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True, gc=False):
    """Pods to be near to, or (as ``podAntiAffinity``) away from: every term counts."""

    required: tuple[PodAffinityTerm, ...] = field(default=(), name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredPods, ...] = field(default=(), name="preferredDuringSchedulingIgnoredDuringExecution")


class Affinity(Struct, frozen=True, gc=False, rename="camel"):
    """All affinities of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True, gc=False, rename="camel"):
    """How unevenly pods may be spread over the values of a node label."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    """DoNotSchedule or ScheduleAnyway; the second is a preference."""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class ContainerPort(Struct, frozen=True, gc=False, rename="camel"):
    """A port of a container; only those taken from the node matter to placement."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(default="", name="hostIP")
    protocol: str = ""


class PodSchedulingGate(Struct, frozen=True, gc=False):
    """Keeps a pod from being scheduled until it is removed."""

    name: str = ""
