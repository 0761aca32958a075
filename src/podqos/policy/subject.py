"""The subject of a policy: a pod as stored, its object, and the requesting user."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct

from podqos.model.owners import controllers
from podqos.model.pod import TERMINAL_PHASES, ObjectMeta, Pod, Workload
from podqos.model.resources import ResourceRequirements
from podqos.qos.classes import ResourcePlace

_NAMESPACE_NAME = "kubernetes.io/metadata.name"


class Subject(Struct, frozen=True, dict=True):
    """A workload with its pod."""

    workload: Workload
    """The object as written: a Pod, or a workload with a pod template."""
    stored: Pod
    """Its pod as the API server stores it, as far as known; at least with defaults."""
    priority: int | None
    """The priority of its pods; None if their class is unknown."""
    namespace_metadata: ObjectMeta = ObjectMeta()
    """Labels and annotations of its namespace; empty if unknown."""
    user: str = ""
    """The requesting user; empty if unknown."""
    groups: tuple[str, ...] = ()

    @property
    def is_judged(self) -> bool:
        """Whether rules apply to it: not to a mirror pod, whose static pod the node runs anyway."""
        return self.is_counted and not self.stored.is_mirror

    @property
    def is_counted(self) -> bool:
        """Whether budgets apply to it: not to a pod that has terminated."""
        return self.stored.status.phase not in TERMINAL_PHASES

    @property
    def namespace(self) -> str:
        """The namespace it is in."""
        return self.workload.metadata.namespace_or_default

    @cached_property
    def labels_of_namespace(self) -> Mapping[str, str]:
        """The labels of its namespace, with the one that every API server adds."""
        return {_NAMESPACE_NAME: self.namespace, **self.namespace_metadata.labels}

    @property
    def labels(self) -> tuple[Mapping[str, str], ...]:
        """The labels of the object and of its pods: a rule applies to both."""
        metadata, pod = self.workload.metadata, self.workload.pod.metadata
        return (metadata.labels, pod.labels) if self.workload.pod_path else (metadata.labels,)

    @property
    def annotations(self) -> tuple[Mapping[str, str], ...]:
        """The annotations of the object and of its pods."""
        metadata, pod = self.workload.metadata, self.workload.pod.metadata
        return (metadata.annotations, pod.annotations) if self.workload.pod_path else (metadata.annotations,)

    @property
    def name(self) -> str:
        """Its name, if it has one: a pod's may be generated after admission."""
        metadata = self.workload.metadata
        return metadata.name or metadata.generate_name

    @cached_property
    def places(self) -> tuple[tuple[ResourcePlace, ResourceRequirements], ...]:
        """The containers and init containers of its pod, each with its path."""
        spec = self.stored.spec
        return tuple(
            (ResourcePlace(f"spec.{field}[{index}]", container.name), container.resources)
            for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers))
            for index, container in enumerate(containers)
        )

    @cached_property
    def identities(self) -> tuple[str, ...]:
        """``Kind/name`` of the object and of its owners, as far as the object itself shows."""
        return identities(self.workload)


def identities(workload: Workload) -> tuple[str, ...]:
    """Return ``Kind/name`` of an object, of its controller, and of the controller's owner."""
    metadata = workload.metadata
    own = workload.kind, metadata.name or metadata.generate_name
    return tuple(f"{kind}/{name}" for kind, name in (own, *controllers(metadata)))
