"""How long an evicted pod may take to end.

Sources: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (synchronize); for 1.22 to 1.30 also
pkg/kubelet/pod_workers.go, which took an override of zero for none.
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile

_IMMEDIATE_SECONDS = 1
_DEFAULT_TERMINATION_SECONDS = 30


class PodGrace(Struct, frozen=True, gc=False):
    """The rule for every pod of a node."""

    most_seconds: int | None = None
    """None: whatever the pod's own grace period is."""
    is_capped_by_pod: bool = False
    """Whether a shorter grace period of the pod's own counts."""

    def seconds(self, pod: Pod) -> int:
        """Return what a pod is given."""
        own = pod.spec.termination_grace_period_seconds
        if self.most_seconds is None:
            return _DEFAULT_TERMINATION_SECONDS if own is None else own
        return min(self.most_seconds, own) if self.is_capped_by_pod and own is not None else self.most_seconds


def hard_pod_grace(profile: Profile = LATEST) -> PodGrace:
    """Return the rule under a hard threshold or an exceeded local storage limit."""
    if profile.hard_eviction_grace == "one-second":
        return PodGrace(_IMMEDIATE_SECONDS)
    return PodGrace() if profile.hard_eviction_grace == "pod" else PodGrace(0)


def soft_pod_grace(max_pod_grace_seconds: int, profile: Profile = LATEST) -> PodGrace:
    """Return the rule under a soft threshold: the configured maximum, since 1.32 at most the pod's own."""
    if max_pod_grace_seconds == 0 and profile.hard_eviction_grace == "pod" and not profile.soft_grace_capped_by_pod:
        return PodGrace()
    return PodGrace(max_pod_grace_seconds, profile.soft_grace_capped_by_pod)


def hard_grace_seconds(pod: Pod, profile: Profile = LATEST) -> int:
    """Return the grace period of a pod under a hard threshold or an exceeded local storage limit."""
    return hard_pod_grace(profile).seconds(pod)


def soft_grace_seconds(pod: Pod, max_pod_grace_seconds: int, profile: Profile = LATEST) -> int:
    """Return the grace period of a pod under a soft threshold."""
    return soft_pod_grace(max_pod_grace_seconds, profile).seconds(pod)
