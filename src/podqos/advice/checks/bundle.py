"""What is checked: workloads, and the objects that affect their pods.

The two are separate because there can be ten thousand workloads, which are checked one by one and in parallel, and only
a few policies, nodes and services, which each of these checks may need.
"""

from __future__ import annotations

from datetime import date
from fractions import Fraction

from msgspec import Struct

from podqos.admission.field_errors import FieldError
from podqos.admission.policies import ClusterPolicies, Policies
from podqos.advice.checks.finding import CheckedObject
from podqos.manifest.kubelet import Notation
from podqos.model.autoscaling import HorizontalPodAutoscaler
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import Node
from podqos.model.pod import Pod, Workload
from podqos.model.profile import LATEST, Profile
from podqos.model.selector import selects
from podqos.model.service import Service
from podqos.model.snapshot import PodUsage
from podqos.policy.model import Policy


class FoundAutoscaler(Struct, frozen=True, gc=False):
    """A HorizontalPodAutoscaler and where it stands."""

    autoscaler: HorizontalPodAutoscaler
    subject: CheckedObject

    @property
    def name(self) -> str:
        """Its name."""
        return self.subject.name

    @property
    def most(self) -> int:
        """How many pods it may ask for."""
        return self.autoscaler.spec.max_replicas


class LocatedWorkload(Struct, frozen=True, gc=False):
    """A workload and where it stands."""

    workload: Workload
    subject: CheckedObject
    scaled_by: FoundAutoscaler | None = None
    """What changes the number of its pods."""
    rejections: tuple[FieldError, ...] = ()
    """What the API server rejects about the object as written."""


class FoundBudget(Struct, frozen=True, gc=False):
    """A PodDisruptionBudget and where it stands."""

    budget: PodDisruptionBudget
    subject: CheckedObject

    def covers(self, pod: Pod) -> bool:
        """Whether it counts the pods that are like this one."""
        metadata = self.budget.metadata
        return metadata.namespace == pod.metadata.namespace and selects(self.budget.spec.selector, pod.metadata.labels)


class FoundKubelet(Struct, frozen=True):
    """A kubelet's configuration, where it stands and how it is written."""

    configuration: KubeletConfiguration
    subject: CheckedObject
    notation: Notation = Notation.CONFIGURATION
    arguments: dict[str, list[str]] | None = None
    """Where it is written as flags: the values of each."""


class Resize(Struct, frozen=True):
    """A pod that runs, and the workload it is to be resized to."""

    old: Pod
    new: LocatedWorkload
    measured: tuple[PodUsage, ...] = ()
    """What its pods use, where that is known."""


class ClusterObjects(Struct, frozen=True):
    """Everything but the workloads. What has a namespace names it, here as in workloads."""

    cluster: ClusterPolicies = ClusterPolicies(Policies())
    """The policies of all namespaces."""
    services: tuple[Service, ...] = ()
    routes: dict[tuple[str, str], str] = {}
    """What leads users to a Service (``Ingress shop``), by its namespace and name."""
    disruption_budgets: tuple[FoundBudget, ...] = ()
    nodes: tuple[Node, ...] = ()
    kubelets: tuple[FoundKubelet, ...] = ()
    node_memory_bytes: int = 64 << 30
    """Of the node that pods run on."""
    subjects: tuple[CheckedObject, ...] = ()
    """Where policies, nodes and the rest stand; an object that is not listed has no place."""
    demands: tuple[Policy, ...] = ()
    """The policies of podqos."""

    def subject(self, kind: str, name: str, namespace: str = "") -> CheckedObject:
        """Return where an object stands."""
        for subject in self.subjects:
            if subject.kind == kind and subject.name == name and subject.namespace == namespace:
                return subject
        return CheckedObject(kind, name, namespace)


class CheckOptions(Struct, frozen=True):
    """Settings of the checks."""

    profile: Profile = LATEST
    node_memory_bytes: int | None = None
    """Of the node that pods run on; None: of the smallest Node among the objects, or 64Gi."""
    inject: tuple[str, ...] = ()
    """Injectors that add containers to every pod: istio, linkerd, vault."""
    memory_ratio: Fraction = Fraction(4)
    """How many times its request a memory limit may be."""
    growth_bytes_per_second: int = 50 << 20
    """How fast memory grows when a node runs out of it."""
    important_priority: int = 1_000_000
    """Pods with this priority or above are important."""
    demands: tuple[Policy, ...] = ()
    """Policies of podqos besides those among the objects: of ``.podqos.yaml``."""
    today: date | None = None
    """The day on which exemptions from policies may have expired; None: none has."""
    compare_up_to: int = 300
    """With more workloads than this, pods are not compared: no node runs them all."""
    disabled: frozenset[str] = frozenset()
    """Ids of checks that are not run."""
    only: frozenset[str] = frozenset()
    """Ids of the only checks that are run; none: all. Their fixes are applied, whatever they rest on."""

    def runs(self, check: str) -> bool:
        """Whether a check is run."""
        return check not in self.disabled and (not self.only or check in self.only)
