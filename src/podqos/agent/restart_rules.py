"""Whether a container that ended is restarted: its own restart policy and rules, then those of its pod.

A rule matches exit codes, and the first match counts: it restarts the container whatever the policy says, or the whole
pod (KEP-5307, since 1.35; KEP-5532, since 1.36). Before that, only the pod has a policy; the default is ``Always``.

Source: Kubernetes v1.37.0-rc.1 pkg/api/v1/pod/util.go (ContainerShouldRestart, FindMatchingContainerRestartRule),
pkg/kubelet/kuberuntime/kuberuntime_container.go (computeInitContainerActions); the same in v1.36.
"""

from __future__ import annotations

from podqos.agent.state import ContainerRecord, Role
from podqos.model.pod import RESTART_ALL_CONTAINERS, Container, Pod
from podqos.model.profile import Profile

_RESTART = "Restart"


def restarts_all(pod: Pod, ended: ContainerRecord, profile: Profile) -> bool:
    """Whether a rule restarts the whole pod."""
    if not profile.restart_all_containers:
        return False
    return _matching_action(container_of(pod, ended), ended.exit_code) == RESTART_ALL_CONTAINERS


def is_restarted(pod: Pod, ended: ContainerRecord, profile: Profile) -> bool:
    """Whether a container that ended is restarted by itself."""
    match ended.role:
        case Role.SIDECAR:
            return True
        case Role.EPHEMERAL:
            return False
        case Role.INIT if ended.exit_code == 0:
            return False
    policy = pod.spec.restart_policy or "Always"
    container = container_of(pod, ended)
    if container.restart_policy is not None and profile.container_restart_rules:
        if _matching_action(container, ended.exit_code) == _RESTART:
            return True
        policy = container.restart_policy
    # For a failed init container, Always and OnFailure are the same.
    return policy == "Always" or (policy == "OnFailure" and ended.exit_code != 0)


def _matching_action(container: Container, exit_code: int) -> str:
    """Return the action of the first rule that matches an exit code; empty if none does."""
    for rule in container.restart_policy_rules:
        codes = rule.exit_codes
        if codes is not None and (exit_code in codes.values) == (codes.operator == "In"):
            return rule.action
    return ""


def container_of(pod: Pod, ended: ContainerRecord) -> Container:
    """Return a container as its pod declares it."""
    every = (*pod.spec.containers, *pod.spec.init_containers, *pod.spec.ephemeral_containers)
    return next(container for container in every if container.name == ended.plan.name)
