"""Whether a node admits a pod that was bound to it: first node pressure, then free resources.

The scheduler has checked the same before, with older data, and has never seen static pods. Extended resources that the
node does not list are not checked: they may belong to the cluster as a whole.

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (Admit), pkg/kubelet/lifecycle/predicate.go. Node
affinity and host ports are not checked here. For a critical pod, others are preempted (``critical``).
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
from podqos.placement.reasons import Insufficient


class KubeletRefusal(Struct, frozen=True, gc=False):
    """Why a pod is rejected, in the kubelet's words and as data."""

    reason: str
    message: str
    because: NotAdmitted | TooLittleLeft
    lacking: Mapping[str, int] = {}
    """If nothing else is wrong: how much of each resource is missing."""


def refusal(config: AgentConfig, state: AgentState, pod: Pod, requests: Mapping[str, int]) -> KubeletRefusal | None:
    """Return why the node rejects a pod with these requests (``PodPlan.requests``); None if it admits the pod."""
    answer = admit(pod, state.manager.conditions, config.profile)
    if not answer.admit:
        return KubeletRefusal(answer.reason, answer.message, NotAdmitted(answer.rule, answer.message))
    missing = _too_little_left(config, state, requests)
    if not missing:
        return None
    first = missing[0]  # the kubelet names only the first
    message = out_of(first)
    lacking = {left.resource: left.requested - (left.capacity - left.used) for left in missing}
    return KubeletRefusal(f"OutOf{first.resource}", message, first, lacking)


def out_of(missing: TooLittleLeft | Insufficient) -> str:
    """Return the kubelet's words for a resource that is used up."""
    return (
        f"Node didn't have enough resource: {missing.resource}, "
        f"requested: {missing.requested}, used: {missing.used}, capacity: {missing.capacity}"
    )


def without_victims(refused: KubeletRefusal, lacking: Mapping[str, int]) -> KubeletRefusal:
    """Return why a critical pod is rejected: what would be missing even if all preemptable pods were gone."""
    what = "".join(f"(res: {name}, q: {amount}), " for name, amount in lacking.items())
    message = (
        "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods "
        f"to preempt: no set of running pods found to reclaim resources: [{what}]"
    )
    return KubeletRefusal("UnexpectedAdmissionError", message, refused.because)


def _too_little_left(config: AgentConfig, state: AgentState, requests: Mapping[str, int]) -> list[TooLittleLeft]:
    allocatable = config.allocatable
    asked = {name: amount for name, amount in requests.items() if name in allocatable or not is_extended(name)}
    active = len(state.pods)
    if active >= config.max_pods:
        active = sum(record.is_active for record in state.pods.values())
    missing = lacking(asked, state.requested, config.known_plans.allocatable, active, config.max_pods)
    return [
        TooLittleLeft(insufficient.resource, insufficient.requested, insufficient.used, insufficient.capacity)
        for insufficient in missing
    ]
