"""A kubelet that restarts, with the same configuration or another one, while its containers keep running.

What it had only in memory is gone: which thresholds were crossed and since when, the conditions and how long they hold,
the back-off of crashing containers. It checks for pressure at once, and every ten seconds from then on. Its pods are
admitted again, in the order in which they were admitted: those that no longer fit into what pods may request are
rejected, and their containers are killed with a grace period of a second. A container that was waiting for its restart
is restarted at once.

Source: Kubernetes v1.36 pkg/kubelet/kubelet.go (HandlePodAdditions, rejectPod), pkg/kubelet/allocation/
allocation_manager.go (AddPod, canAdmitPod), pkg/kubelet/kubelet_pods.go (HandlePodCleanups: pods that no pod worker
knows), pkg/kubelet/eviction/eviction_manager.go (Start, NewManager), pkg/kubelet/cm/node_container_manager_linux.go
(enforceNodeAllocatableCgroups). Upstream's clean-up may kill up to two seconds later.
"""

from __future__ import annotations

from msgspec.structs import replace

from podqos.agent import active_deadline, containers, pods
from podqos.agent.admission import refusal
from podqos.agent.commands import PreemptPod, SetCondition, StopPod, UpdateCgroup
from podqos.agent.critical import NoVictims, victims
from podqos.agent.journal import Kind
from podqos.agent.reasons import ConditionStatus, RoomForCritical
from podqos.agent.shutdown import grace_seconds_of
from podqos.agent.state import AgentState, Phase, PodRecord, Resting, Stage
from podqos.agent.turn import Turn
from podqos.eviction.manager import ManagerState
from podqos.qos.cgroup import tier_cgroups

_ORPHAN_GRACE_SECONDS = 1
_ENDING = (Stage.STOPPING, Stage.STOPPED)


def restarted(turn: Turn) -> None:
    """Start anew with what is on the node; ``turn.config`` may be another than before."""
    config, state = turn.config, turn.state
    for condition in sorted(state.manager.conditions):
        turn.note(Kind.CONDITION_CHANGED, because=ConditionStatus(condition, holds=False))
        turn.ask(SetCondition(condition, holds=False))
    waiting = state.preempting
    turn.change(manager=ManagerState(), loop=Resting(turn.now_us), preempting=None, watched_us=None)
    turn.ask(*map(UpdateCgroup, tier_cgroups(state.tiers, config.cgroups, config.profile)))
    _admit_again(turn)
    containers.forget_back_off(turn)
    if waiting is not None:
        # It is told of all its pods again.
        pods.bind(turn, waiting.pod)
        pods.hear(turn, waiting.unheard)
        active_deadline.woken(turn)


def _admit_again(turn: Turn) -> None:
    """Admit the pods that run in order, each next to those before it."""
    admitted: dict[str, PodRecord] = {}
    requested: dict[str, int] = {}
    for uid, record in turn.state.pods.items():
        if record.stage not in _ENDING and not _is_admitted(turn, record, admitted, requested):
            continue
        admitted[uid] = turn.state.pods[uid]
        if record.is_active:
            for name, amount in record.requests.items():
                requested[name] = requested.get(name, 0) + amount


def _is_admitted(turn: Turn, record: PodRecord, admitted: dict[str, PodRecord], requested: dict[str, int]) -> bool:
    config, pod = turn.config, record.pod
    refused = refusal(config, AgentState(pods=admitted, requested=requested), pod, record.requests)
    if refused is None:
        return True
    if refused.lacking and pod.is_critical:
        others = [other.pod for other in admitted.values() if other.stage not in _ENDING]
        try:
            chosen = victims(pod, others, refused.lacking, config)
        except NoVictims:
            chosen = None
        if chosen is not None:
            for victim in chosen:
                because = RoomForCritical(pod.key, dict(refused.lacking), config.plan_of(victim).qos_class)
                turn.note(Kind.PREEMPTED, pod=victim.key, because=because)
                turn.ask(PreemptPod(victim, grace_seconds_of(victim)))
                turn.put(replace(turn.state.pods[victim.metadata.uid], stage=Stage.STOPPING, is_preempted=True))
            return True
    turn.note(Kind.REJECTED, pod=pod.key, because=refused.because)
    turn.ask(StopPod(pod, _ORPHAN_GRACE_SECONDS))
    turn.put(replace(record, stage=Stage.STOPPING, phase=Phase.FAILED, is_rejected=True))
    return False
