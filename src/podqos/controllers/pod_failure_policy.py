"""Which rule of a Job's pod failure policy a failed pod matches.

Source: Kubernetes v1.36 pkg/controller/job/pod_failure_policy.go (matchPodFailurePolicy, matchOnExitCodes,
matchOnPodConditions).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from podqos.model.jobs import ExitCodeOperator, FailureAction, OnExitCodes, PodFailurePolicy

DISRUPTION_TARGET = "DisruptionTarget"
"""The condition of a pod that was evicted by the kubelet for node pressure, preempted, drained or lost with its node.
A pod that is evicted for exceeding its own limits of local storage does not have it (``eviction_manager.go``)."""


class ContainerExit(Struct, frozen=True, gc=False):
    """How a container of a failed pod ended; regular containers come before init containers."""

    container: str
    exit_code: int


class PolicyMatch(Struct, frozen=True, gc=False):
    """The rule that a failed pod matches."""

    action: FailureAction
    rule: int
    """Its index."""
    exit: ContainerExit | None = None
    """The container that it is about."""
    condition: str = ""
    """Or the condition."""


def match(
    policy: PodFailurePolicy | None, exits: Sequence[ContainerExit], conditions: Sequence[str]
) -> PolicyMatch | None:
    """Return the first rule that a failed pod matches; ``conditions`` are those that are True."""
    for index, rule in enumerate(() if policy is None else policy.rules):
        if rule.on_exit_codes is not None:
            exited = _matching_exit(rule.on_exit_codes, exits)
            if exited is not None:
                return PolicyMatch(rule.action, index, exit=exited)
            continue
        for condition in conditions:
            if any(pattern.type == condition and pattern.status == "True" for pattern in rule.on_pod_conditions):
                return PolicyMatch(rule.action, index, condition=condition)
    return None


def counts(matched: PolicyMatch | None) -> bool:
    """Whether a failure counts towards the back-off limits of its Job."""
    return matched is None or matched.action is not FailureAction.IGNORE


def _matching_exit(requirement: OnExitCodes, exits: Sequence[ContainerExit]) -> ContainerExit | None:
    """Return the first container that exited with such a code; 0 never matches."""
    for exited in exits:
        if requirement.container_name not in {None, exited.container} or exited.exit_code == 0:
            continue
        if (exited.exit_code in requirement.values) == (requirement.operator is ExitCodeOperator.IN):
            return exited
    return None
