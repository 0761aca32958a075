"""Containers as every report shows them: type, requests and limits."""

from __future__ import annotations

from msgspec import Struct

from podqos.model.pod import Container, Pod
from podqos.model.resources import ResourceList


class ContainerAmounts(Struct, frozen=True):
    """A container as it is stored, or as far as it got."""

    name: str
    type: str
    """``container``, ``initContainer``, ``sidecar`` or ``ephemeralContainer``."""
    requests: dict[str, str]
    limits: dict[str, str]


def container_amounts(pod: Pod) -> tuple[ContainerAmounts, ...]:
    """Return the requests and limits of every container, in the order of ``typed_containers``."""
    return tuple(
        ContainerAmounts(
            container.name, kind, amounts(container.resources.requests), amounts(container.resources.limits)
        )
        for kind, container in typed_containers(pod)
    )


def typed_containers(pod: Pod) -> list[tuple[str, Container]]:
    """Return all containers with their type, in the order of ``qos.oom.oom_scores``."""
    return [
        *(("container", container) for container in pod.spec.containers),
        *(
            ("sidecar" if container.is_sidecar else "initContainer", container)
            for container in pod.spec.init_containers
        ),
        *(("ephemeralContainer", container) for container in pod.spec.ephemeral_containers),
    ]


def amounts(resources: ResourceList) -> dict[str, str]:
    """Return a resource list as text, by name."""
    return {name: str(amount) for name, amount in sorted(resources.items())}
