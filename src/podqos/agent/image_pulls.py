"""Pulling images: when a kubelet pulls at all, how many at a time, and when it tries again.

A container waits for its image before it starts. With ``serializeImagePulls``, the default, a kubelet pulls one image
after the other; otherwise at most ``maxParallelImagePulls`` at a time. A pull that fails is tried again after 10 s,
20 s, 40 s … 300 s, for each pod and image.

Source: Kubernetes v1.36 pkg/kubelet/images/image_manager.go (EnsureImageExists), puller.go, pkg/kubelet/kubelet.go
(imageBackOff), pkg/apis/core/v1/defaults.go (SetDefaults_Container). Upstream tries again with the next sync of the pod
after the back-off.
"""

from __future__ import annotations

from enum import StrEnum

from podqos.model.pod import Container

FIRST_BACK_OFF_SECONDS = 10
LONGEST_BACK_OFF_SECONDS = 300


class PullPolicy(StrEnum):
    """When the kubelet pulls the image of a container."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class PullError(StrEnum):
    """Why a container waits for its image."""

    ERR_IMAGE_PULL = "ErrImagePull"
    ERR_IMAGE_NEVER_PULL = "ErrImageNeverPull"


def pull_policy(container: Container) -> PullPolicy:
    """Return the policy of a container; by default ``Always`` for the tag latest, and for no tag at all."""
    if container.image_pull_policy:
        return PullPolicy(container.image_pull_policy)
    name, has_digest, _ = container.image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2] or ("" if has_digest else "latest")
    return PullPolicy.ALWAYS if tag == "latest" else PullPolicy.IF_NOT_PRESENT


def next_back_off_seconds(before: int) -> int:
    """Return how long to wait after a pull that failed; ``before`` is the last wait, or 0."""
    return min(2 * before, LONGEST_BACK_OFF_SECONDS) if before else FIRST_BACK_OFF_SECONDS


def pulls_at_once(*, serialized: bool, at_most: int | None) -> int | None:
    """Return how many images are pulled at a time; None: any number."""
    if serialized:
        return 1
    return None if at_most is None or at_most < 1 else at_most
