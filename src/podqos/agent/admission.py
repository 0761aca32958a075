"""Whether a node takes a pod that was bound to it: pressure first, then what is left.

The scheduler has asked the same questions before, with older figures; a static pod it never saw. Extended resources the
node does not list are not asked for: they may be the cluster's as a whole.

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (Admit), pkg/kubelet/lifecycle/predicate.go. Node
affinity, host ports and the preemption for critical pods are not asked here.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from podqos.agent.reasons import NotAdmitted, TooLittleLeft
from podqos.agent.state import AgentConfig, AgentState
from podqos.eviction.admission import admit
from podqos.model.pod import Pod
from podqos.model.resources import is_extended
from podqos.placement.fit import lacking


class Refusal(Struct, frozen=True, gc=False):
    """Why not, in the words of the kubelet and as data."""

    reason: str
    message: str
    because: NotAdmitted | TooLittleLeft


def requests_of(pod: Pod, config: AgentConfig) -> Mapping[str, int]:
    """Return what a pod takes away from the node: thousandths of cpu, whole units of everything else."""
    return config.plan_of(pod).requests


def refusal(config: AgentConfig, state: AgentState, pod: Pod, requests: Mapping[str, int]) -> Refusal | None:
    """Return why the node does not take a pod; None if it does."""
    answer = admit(pod, state.manager.conditions, config.profile)
    if not answer.admit:
        return Refusal(answer.reason, answer.message, NotAdmitted(answer.rule, answer.message))
    missing = _too_little_left(config, state, requests)
    if missing is None:
        return None
    message = (
        f"Node didn't have enough resource: {missing.resource}, "
        f"requested: {missing.requested}, used: {missing.used}, capacity: {missing.capacity}"
    )
    return Refusal(f"OutOf{missing.resource}", message, missing)


def _too_little_left(config: AgentConfig, state: AgentState, requests: Mapping[str, int]) -> TooLittleLeft | None:
    """Return the first resource that lacks; the kubelet names no other."""
    allocatable = config.allocatable
    asked = {name: amount for name, amount in requests.items() if name in allocatable or not is_extended(name)}
    active = len(state.pods)
    if active >= config.max_pods:
        active = sum(record.is_active for record in state.pods.values())
    for first in lacking(asked, state.requested, config.known_plans.allocatable, active, config.max_pods):
        return TooLittleLeft(first.resource, first.requested, first.used, first.capacity)
    return None
