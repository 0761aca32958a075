"""``kubectl drain``: which pods of a node it evicts, which it leaves, and which make it give up before it begins.

The node is cordoned first. If a single pod must not be removed, none is, and the node stays cordoned. Evictions that a
budget refuses are repeated every five seconds until the timeout; then kubectl waits until the pods are gone.

Source: Kubernetes v1.36 staging/src/k8s.io/kubectl/pkg/drain/filters.go (makeFilters), drain.go (evictPods,
deletePods, waitForDelete), staging/src/k8s.io/kubectl/pkg/cmd/drain/drain.go (NewDrainCmdOptions, RunDrain).
"""

from __future__ import annotations

from msgspec import Struct

from podqos.model.pod import Pod

RETRY_SECONDS = 5
"""From an eviction that a budget refuses to the next (EvictErrorRetryDelay)."""
POLL_SECONDS = 1
"""How often kubectl checks whether a pod is gone."""
_MIRROR = "kubernetes.io/config.mirror"

DAEMON_SET_FATAL = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
LOCAL_STORAGE_FATAL = "Pods with local storage (use --delete-emptydir-data to override)"
UNMANAGED_FATAL = "Pods that declare no controller (use --force to override)"


class DrainSettings(Struct, frozen=True, gc=False, kw_only=True):
    """The options of a drain."""

    grace_period_seconds: int | None = None
    """None: each pod's own."""
    timeout_us: int = 0
    """0: none."""
    ignore_daemon_sets: bool = False
    delete_empty_dir_data: bool = False
    force: bool = False
    disable_eviction: bool = False
    """Whether pods are deleted, whatever their budgets say."""


class DrainVerdict(Struct, frozen=True, gc=False):
    """What a drain does with a pod."""

    evicts: bool
    error: str = ""
    """Why it gives up, in kubectl's words."""


def verdict(pod: Pod, settings: DrainSettings, *, controller: str | None) -> DrainVerdict:
    """Return what a drain does with a running pod; ``controller`` is the kind of its controller, if it has one."""
    if controller == "DaemonSet":
        return DrainVerdict(evicts=False, error="" if settings.ignore_daemon_sets else DAEMON_SET_FATAL)
    if _MIRROR in (pod.metadata.annotations or {}):
        return DrainVerdict(evicts=False)
    if any(volume.empty_dir is not None for volume in pod.spec.volumes) and not settings.delete_empty_dir_data:
        return DrainVerdict(evicts=False, error=LOCAL_STORAGE_FATAL)
    if controller is None and not settings.force:
        return DrainVerdict(evicts=False, error=UNMANAGED_FATAL)
    return DrainVerdict(evicts=True)
