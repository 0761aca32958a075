"""What is judged: a pod as it will be stored, the object it is of, and who asks."""

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
    """A workload with the pod that comes of it."""

    workload: Workload
    """The object as written: a Pod, or what holds the template of one."""
    stored: Pod
    """Its pod as the API server stores it, or as far as that is known: at least defaulted."""
    priority: int | None
    """The priority of its pods; None where their class is not known."""
    namespace_metadata: ObjectMeta = ObjectMeta()
    """Labels and annotations of its namespace; none where it is not known."""
    user: str = ""
    """Who asks; empty where that is not known."""
    groups: tuple[str, ...] = ()

    @property
    def is_judged(self) -> bool:
        """Whether rules are about it: not about the picture of a static pod, which its node runs anyway."""
        return self.is_counted and not self.stored.is_mirror

    @property
    def is_counted(self) -> bool:
        """Whether budgets are about it: not about a pod that has ended."""
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
        """The labels of the object, and of the pods it makes: a rule is about both."""
        metadata, pod = self.workload.metadata, self.workload.pod.metadata
        return (metadata.labels, pod.labels) if self.workload.pod_path else (metadata.labels,)

    @property
    def annotations(self) -> tuple[Mapping[str, str], ...]:
        """The annotations of the object, and of the pods it makes."""
        metadata, pod = self.workload.metadata, self.workload.pod.metadata
        return (metadata.annotations, pod.annotations) if self.workload.pod_path else (metadata.annotations,)

    @property
    def name(self) -> str:
        """Its name, as far as it has one: that of a pod may only be made after admission."""
        metadata = self.workload.metadata
        return metadata.name or metadata.generate_name

    @cached_property
    def places(self) -> tuple[tuple[ResourcePlace, ResourceRequirements], ...]:
        """The containers and init containers of its pod, each with where it stands."""
        spec = self.stored.spec
        return tuple(
            (ResourcePlace(f"spec.{field}[{index}]", container.name), container.resources)
            for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers))
            for index, container in enumerate(containers)
        )

    @cached_property
    def identities(self) -> tuple[str, ...]:
        """``Kind/name`` of the object and of what made it, as far as the object itself tells."""
        return identities(self.workload)


def identities(workload: Workload) -> tuple[str, ...]:
    """Return ``Kind/name`` of an object, of its controller, and of what made that."""
    metadata = workload.metadata
    own = workload.kind, metadata.name or metadata.generate_name
    return tuple(f"{kind}/{name}" for kind, name in (own, *controllers(metadata)))
