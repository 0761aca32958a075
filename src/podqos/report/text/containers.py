"""Containers as every report shows them: which kind each is, and what it asks for."""

from __future__ import annotations

from podqos.model.pod import Container, Pod
from podqos.model.resources import ResourceList


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
    """Return a resource list in texts, by name."""
    return {name: str(amount) for name, amount in sorted(resources.items())}
