"""What differs between Kubernetes versions, as named, frozen values.

Nothing in podqos asks for a version number: a rule that changed asks the profile for the behaviour. Each field says
since when, read from upstream's history; what is newer than ``LATEST`` was read at Kubernetes v1.37.0-rc.1 and is held
against no recorded answers.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from podqos.errors import InvalidArgument
from podqos.naming import naming

OLDEST = (1, 8)
NEWEST = (1, 37)
RECORDED = (1, 36)
"""The newest version whose answers are compared with recorded ones: the default, and exact; a newer one is not."""


class Profile(Struct, frozen=True):
    """The behaviour of one Kubernetes version."""

    version: tuple[int, int]

    @property
    def version_text(self) -> str:
        """Such as ``1.36``."""
        return version_text(self.version)

    @property
    def is_approximate(self) -> bool:
        """Whether this version is not verified by recorded answers of upstream."""
        return self.version > RECORDED

    guaranteed_oom_score_adj: int
    """-998 up to 1.19, -997 since; Burstable's floor is 1000 plus this."""
    lowest_score_for: Literal["nobody", "critical", "node-critical"]
    """Which pods get the Guaranteed score whatever their class: critical ones since 1.14, node-critical since 1.22."""
    init_containers_decide_class: bool
    """Since 1.16."""
    sidecar_oom_score: bool
    """Since 1.32 a sidecar's score is at most that of the smallest regular container."""
    pod_level_resources: bool
    """``spec.resources``; on by default since 1.34."""
    empty_pod_level_decides_class: bool
    """Up to 1.36 ``spec.resources`` decides the class alone, even where it states nothing."""
    pod_level_defaults_last: bool
    """Since 1.37 pod-level amounts are filled in after admission, limits among them; before, while decoding."""
    unclaimed_request_below_zero: bool
    """Up to 1.36 a pod that asks for less than its containers do raises their oom scores."""
    in_place_resize: bool
    """Resources of running pods can change; on by default since 1.33."""
    init_container_resize: bool
    """Since 1.36 also those of init containers other than sidecars."""
    pod_level_resize: bool
    """Since 1.36 also pod-level resources."""
    resize_asks_node: bool
    """Since 1.36 the API server rejects a resize that the pod's node could not hold; before, its kubelet does."""
    memory_limit_decrease: bool
    """Since 1.34 a resize may lower a memory limit without restarting the container."""
    memory_oom_group: bool
    """Since 1.28, on cgroup v2, a container dies as a whole."""
    single_process_oom_kill: bool
    """Since 1.32 the kubelet setting ``singleProcessOOMKill`` turns that off."""
    init_limits_with_sidecars: bool
    """Up to 1.36 an init container without a limit leaves its pod limited if a sidecar before it has one."""

    memory_qos: Literal["absent", "alpha", "beta"]
    """The feature gate MemoryQoS: alpha, which is off by default, since 1.22, beta since 1.37."""
    memory_throttling_factor: float | None
    """Where none is set: 0.8 up to 1.26, 0.9 up to 1.36; none since, so that nothing is slowed down."""
    memory_high_above_request: bool
    """Since 1.27 ``memory.high`` lies between request and limit; before, it was a share of the limit."""
    memory_reservation_policy: bool
    """Since 1.36 requests are protected only if ``memoryReservationPolicy`` says so, Burstable ones by ``memory.low``;
    before, all by ``memory.min``."""
    memory_high_of_pods: bool
    """Since 1.37 a pod-level memory limit slows the pod as a whole, and BestEffort containers are slowed, too."""
    memory_low_of_node: bool
    """Since 1.37 ``kubepods`` protects what Burstable pods request: without that their own protection has no effect."""

    pods_swap: Literal["always", "by-gate", "by-setting"]
    """Where the node has swap: up to 1.27 nothing keeps pods from it, in 1.28 and 1.29 the feature gate NodeSwap does
    unless it is on; since 1.30 only ``memorySwap.swapBehavior`` LimitedSwap lets them."""
    exclusive_cpu_quota: bool
    """Up to 1.32 containers with CPUs of their own had a CPU quota like all others."""
    qos_reserved_gate: bool
    """Since 1.11 the kubelet setting ``qosReserved`` needs the feature gate QOSReserved."""
    max_container_restart_period: bool
    """Since 1.35 the kubelet setting ``crashLoopBackOff.maxContainerRestartPeriod`` bounds how long a restart waits."""
    container_restart_rules: bool
    """Since 1.35 a container may have a restart policy of its own, and rules by exit code."""
    restart_all_containers: bool
    """Since 1.36 such a rule may start the whole pod again."""

    eviction_ranking: Literal["qos-usage", "kubelet"]
    """By class first up to 1.8; by usage over request, priority, usage - request since 1.9."""
    pid_ranking: Literal["none", "priority", "priority-and-count"]
    """PID pressure ranks by priority since 1.14, and by process count among equals since 1.19."""
    memory_pressure_toleration: bool
    """Since 1.11 BestEffort pods that tolerate the taint are admitted under MemoryPressure."""
    conditions_become_taints: bool
    """Since 1.12 memory pressure keeps every pod without the toleration away at scheduling."""
    namespace_selectors_leak: bool
    """From 1.34 to 1.36 a pod's own affinity terms with a namespace selector that only excludes mean all of them."""
    declared_features: bool
    """Since 1.36 a pod that needs a feature runs only on nodes that declare it."""
    broken_budget_ends_count: bool
    """Since 1.37 a victim that breaks one disruption budget is not counted towards the next."""
    balance_ignores_best_effort: bool
    """Since 1.33 pods without requests are not scored by how they balance a node."""
    balance_compares: bool
    """Since 1.36 a node is scored by how much the pod improves its balance, not by the balance with the pod."""
    image_volumes_count: bool
    """Since 1.36 images that a pod mounts count towards image locality."""
    image_volumes_raise_maximum: bool
    """Since 1.37 they also count towards the maximum of the score."""
    daemon_set_backoff: bool
    """Since 1.12 the DaemonSet controller waits longer each time before it replaces a failed pod of a node."""
    only_preempted_delay_preemption: bool
    """Since 1.27 a nominated pod waits for pods on its node that were preempted; before, for all on their way out."""
    ending_victims_keep_nominations: bool
    """Since 1.34 a pod whose victims are all on their way out already ends no lower nominations to that node."""
    disk_pressure_admits_only_critical: bool
    """Since 1.17, also when MemoryPressure holds at the same time."""
    eviction_message_amounts: bool
    """Since 1.26 eviction messages carry the threshold and the available amount."""
    imagefs_inodes_default: bool
    """Since 1.30 imagefs.inodesFree has a default threshold."""
    sidecar_storage_limits: bool
    """Since 1.37 a sidecar is held to its own limit on ephemeral storage."""
    hugepage_aware_eviction: bool
    """Since 1.37 huge pages do not count as available memory."""
    hard_eviction_grace: Literal["zero", "pod", "one-second"]
    """Immediate up to 1.21, the pod's own grace period up to 1.30 (0 meant unset), one second since 1.31."""
    soft_grace_capped_by_pod: bool
    """Since 1.32 soft eviction never waits longer than the pod itself asks for."""
    validating_admission_policies: bool
    """Since 1.30 the API server has ValidatingAdmissionPolicy v1."""
    mutating_admission_policies: Literal["v1beta1", "v1"] | None
    """The version of MutatingAdmissionPolicy: v1beta1 since 1.34, v1 since 1.36. Its alphas are not used."""
    istio_sidecars_are_native: bool
    """Since 1.33 Istio injects its sidecar as an init container that is always restarted (KEP-753)."""
    has_kubelet_arguments: bool
    """Up to 1.11, which is OpenShift 3.11, files of nodes have ``kubeletArguments``."""


def profile_for(version: tuple[int, int]) -> Profile:
    """Return the behaviour of Kubernetes ``version`` (major, minor)."""
    assert OLDEST <= version <= NEWEST

    def since(minor: int) -> bool:
        return version >= (1, minor)

    return Profile(
        version=version,
        guaranteed_oom_score_adj=-997 if since(20) else -998,
        lowest_score_for="node-critical" if since(22) else "critical" if since(14) else "nobody",
        init_containers_decide_class=since(16),
        sidecar_oom_score=since(32),
        pod_level_resources=since(34),
        empty_pod_level_decides_class=not since(37),
        pod_level_defaults_last=since(37),
        unclaimed_request_below_zero=not since(37),
        in_place_resize=since(33),
        init_container_resize=since(36),
        pod_level_resize=since(36),
        resize_asks_node=since(36),
        memory_limit_decrease=since(34),
        memory_oom_group=since(28),
        single_process_oom_kill=since(32),
        init_limits_with_sidecars=not since(37),
        memory_qos="beta" if since(37) else "alpha" if since(22) else "absent",
        memory_throttling_factor=None if since(37) else 0.9 if since(27) else 0.8,
        memory_high_above_request=since(27),
        memory_reservation_policy=since(36),
        memory_high_of_pods=since(37),
        memory_low_of_node=since(37),
        pods_swap="by-setting" if since(30) else "by-gate" if since(28) else "always",
        exclusive_cpu_quota=not since(33),
        qos_reserved_gate=since(11),
        max_container_restart_period=since(35),
        container_restart_rules=since(35),
        restart_all_containers=since(36),
        eviction_ranking="kubelet" if since(9) else "qos-usage",
        pid_ranking="priority-and-count" if since(19) else "priority" if since(14) else "none",
        memory_pressure_toleration=since(11),
        conditions_become_taints=since(12),
        namespace_selectors_leak=since(34) and not since(37),
        declared_features=since(36),
        broken_budget_ends_count=since(37),
        balance_ignores_best_effort=since(33),
        balance_compares=since(36),
        image_volumes_count=since(36),
        image_volumes_raise_maximum=since(37),
        daemon_set_backoff=since(12),
        only_preempted_delay_preemption=since(27),
        ending_victims_keep_nominations=since(34),
        disk_pressure_admits_only_critical=since(17),
        eviction_message_amounts=since(26),
        imagefs_inodes_default=since(30),
        sidecar_storage_limits=since(37),
        hugepage_aware_eviction=since(37),
        hard_eviction_grace="one-second" if since(31) else "pod" if since(22) else "zero",
        soft_grace_capped_by_pod=since(32),
        validating_admission_policies=since(30),
        mutating_admission_policies="v1" if since(36) else "v1beta1" if since(34) else None,
        istio_sidecars_are_native=since(33),
        has_kubelet_arguments=not since(12),
    )


def version_text(version: tuple[int, int]) -> str:
    """Return how a version is written, such as ``1.36``."""
    return ".".join(map(str, version))


def parse_version(text: str) -> Profile:
    """Return the profile that ``1.29``, ``v1.29`` or ``v1.29.3`` names."""
    matched = re.fullmatch(r"v?(\d+)\.(\d+)(?:\.\d+.*)?", text)
    version = (int(matched[1]), int(matched[2])) if matched else None
    if version is None or not OLDEST <= version <= NEWEST:
        known = f"{version_text(OLDEST)} to {version_text(NEWEST)}"
        raise InvalidArgument(
            f"unknown Kubernetes version {text!r}",
            where=naming("kubernetes_version"),
            fix=f"use major.minor, {known}",
        )
    return profile_for(version)


LATEST = profile_for(RECORDED)
"""The default: a newer one must be requested."""
