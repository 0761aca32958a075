"""Images that a node already has: the larger they are, and the more nodes have them, the more the node is preferred.

Source: Kubernetes v1.36 pkg/scheduler/framework/plugins/imagelocality/image_locality.go and
pkg/scheduler/backend/cache/cache.go (addNodeImageStates: the size is that of the first node seen with the image).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podqos.model.node import Node
from podqos.model.pod import PodSpec
from podqos.model.profile import Profile

ImageStates = Mapping[str, tuple[int, int]]
"""Size in bytes and number of nodes by the name of an image."""

_SMALLEST = 23 * 2**20
_LARGEST_PER_IMAGE = 1000 * 2**20


def images_of(spec: PodSpec, profile: Profile) -> tuple[str, ...]:
    """Return the names of the images a pod needs, one per container and, since 1.36, per mounted image."""
    named = [container.image for container in (*spec.init_containers, *spec.containers)]
    if profile.image_volumes_count:
        named += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(map(_with_tag, named))


def image_count(spec: PodSpec, profile: Profile) -> int:
    """Return the number of images for the maximum score: one per container and, since 1.37, per mounted image."""
    mounted = sum(volume.image is not None for volume in spec.volumes) if profile.image_volumes_raise_maximum else 0
    return len(spec.init_containers) + len(spec.containers) + mounted


def image_states(nodes: Iterable[Node]) -> ImageStates:
    """Return what is known of the images that any node has."""
    states: dict[str, tuple[int, int]] = {}
    for node in nodes:
        sizes = {name: image.size_bytes for image in node.status.images for name in image.names or ()}
        for name, size in sizes.items():
            known, number = states.get(name, (size, 0))
            states[name] = known, number + 1
    return states


def image_points(images: tuple[str, ...], count: int, present: frozenset[str], states: ImageStates, nodes: int) -> int:
    """Return 0 to 100 for one node that has the images ``present``, of so many nodes in all.

    ``count`` is that of ``image_count``.
    """
    total = 0
    for name in images:
        if name in present:
            size, number = states[name]
            total += int(size * (number / nodes))
    largest = _LARGEST_PER_IMAGE * count
    counted = _SMALLEST if total < _SMALLEST else min(total, largest)
    return 100 * (counted - _SMALLEST) // (largest - _SMALLEST)


def _with_tag(name: str) -> str:
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"
