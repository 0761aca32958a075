"""How long an evicted pod may take to end.

Sources: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (synchronize); for 1.22 to 1.30 also
pkg/kubelet/pod_workers.go, which took an override of zero for none.
"""

from __future__ import annotations

from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile

_IMMEDIATE_SECONDS = 1
_DEFAULT_TERMINATION_SECONDS = 30


def hard_grace_seconds(pod: Pod, profile: Profile = LATEST) -> int:
    """Return the grace period under a hard threshold or an exceeded local storage limit."""
    if profile.hard_eviction_grace == "one-second":
        return _IMMEDIATE_SECONDS
    return _own_grace_seconds(pod) if profile.hard_eviction_grace == "pod" else 0


def soft_grace_seconds(pod: Pod, max_pod_grace_seconds: int, profile: Profile = LATEST) -> int:
    """Return the grace period under a soft threshold: the configured maximum, since 1.32 at most the pod's own."""
    own = pod.spec.termination_grace_period_seconds
    if profile.soft_grace_capped_by_pod and own is not None:
        return min(max_pod_grace_seconds, own)
    if max_pod_grace_seconds == 0 and profile.hard_eviction_grace == "pod":
        return _own_grace_seconds(pod)
    return max_pod_grace_seconds


def _own_grace_seconds(pod: Pod) -> int:
    own = pod.spec.termination_grace_period_seconds
    return _DEFAULT_TERMINATION_SECONDS if own is None else own
