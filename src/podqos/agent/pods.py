"""The life of a pod on a node: admitted or rejected, started in its cgroups, stopped, removed.

A critical pod that does not fit is admitted when others have made room (``critical``). As in the kubelet, whose loop
waits for that, no pod is added or deleted meanwhile.

Whenever pods come or go, the class cgroups are rewritten, because they hold sums over all pods. Upstream does so when a
pod is added and once a minute; here also when one is removed.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from podqos.agent import active_deadline, containers
from podqos.agent.admission import refusal, without_victims
from podqos.agent.commands import (
    ContainerPlan,
    CreateCgroup,
    PreemptPod,
    RejectPod,
    RemoveCgroup,
    StartPod,
    StopPod,
    UpdateCgroup,
)
from podqos.agent.critical import NoVictims, victims
from podqos.agent.events import PodAdopted, PodBound, PodDeleted
from podqos.agent.journal import By, Kind
from podqos.agent.pod_plans import PodPlan
from podqos.agent.reasons import RoomForCritical, WaitedTooLong
from podqos.agent.shutdown import grace_seconds_of
from podqos.agent.state import ContainerStage, Phase, PodRecord, Preempting, Stage
from podqos.agent.turn import Turn
from podqos.model.pod import Pod
from podqos.model.time_units import SECOND_US
from podqos.qos.cgroup import Cgroup, Level, located
from podqos.qos.cgroup_paths import cgroup_uid

_LEAST_STOP_TIMEOUT_SECONDS = 10
_WANTED = (Stage.STARTING, Stage.RUNNING)


def bind(turn: Turn, pod: Pod) -> None:
    """Admit or reject a pod."""
    config, uid = turn.config, pod.metadata.uid
    assert uid, f"pod {pod.key} has no uid"
    if uid in turn.state.pods or _has_to_wait(turn, PodBound(pod)):
        return
    plan = config.plan_of(pod)
    refused = refusal(config, turn.state, pod, plan.requests)
    if refused is not None and refused.lacking and pod.is_critical and not config.shadow:
        try:
            chosen = victims(pod, turn.state.active_pods, refused.lacking, config)
        except NoVictims as none:
            refused = without_victims(refused, none.lacking)
        else:
            _preempt(turn, Preempting(pod, refused.lacking, tuple(pod.metadata.uid for pod in chosen), 0))
            return
    if refused is not None:
        turn.note(Kind.REJECTED, pod=pod.key, because=refused.because)
        turn.ask(RejectPod(pod, refused.reason, refused.message))
        return
    turn.note(Kind.ADMITTED, pod=pod.key)
    _start(turn, pod, plan)


def adopt(turn: Turn, event: PodAdopted) -> None:
    """Adopt a running pod: nothing is checked or started, only its cgroups are rewritten."""
    pod = event.pod
    if pod.metadata.uid in turn.state.pods:
        return
    record, own, _ = _recorded(turn, pod, turn.config.plan_of(pod))
    turn.note(Kind.ADOPTED, pod=pod.key)
    turn.put(replace(record, stage=Stage.RUNNING))
    _count(turn, record, 1)
    turn.ask(*map(CreateCgroup, own))
    containers.remember(turn, pod.metadata.uid, event.containers)
    if event.started_us is not None:
        active_deadline.watch(turn, pod, event.started_us)


def started(turn: Turn, uid: str) -> None:
    """Record that a pod's containers run."""
    record = turn.state.pods.get(uid)
    if record is not None and record.stage is Stage.STARTING:
        turn.note(Kind.STARTED, pod=record.pod.key, because=turn.config.plan_of(record.pod).promised)
        turn.put(containers.all_started(record))


def delete(turn: Turn, event: PodDeleted) -> None:
    """Stop a pod with its own grace period, or with that of the deletion."""
    record = turn.state.pods.get(event.uid)
    if _has_to_wait(turn, event) or record is None or record.stage not in _WANTED:
        return
    grace = event.grace_period_seconds
    turn.ask(StopPod(record.pod, grace_seconds_of(record.pod) if grace is None else grace))
    turn.put(replace(record, stage=Stage.STOPPING))


def finish(turn: Turn, uid: str, phase: Phase) -> None:
    """Stop a pod that has nothing left to run; sidecars may still run."""
    record = turn.state.pods[uid]
    turn.note(Kind(phase.value), pod=record.pod.key, by=None)
    turn.ask(StopPod(record.pod, grace_seconds_of(record.pod)))
    turn.put(replace(record, stage=Stage.STOPPING, phase=phase))


def evicting(turn: Turn, uid: str) -> None:
    """Record that a pod is being evicted."""
    turn.put(replace(turn.state.pods[uid], stage=Stage.STOPPING))


def stopped(turn: Turn, uid: str) -> None:
    """Release a pod's resources, and remove its cgroup."""
    record = turn.state.pods.get(uid)
    if record is None or not record.is_active:
        return
    was_told = record.stage is Stage.STOPPING and (record.phase is None or record.is_overdue)
    turn.note(Kind.STOPPED, pod=record.pod.key, by=By.KUBELET if was_told else None)
    turn.put(replace(record, stage=Stage.STOPPED))
    _count(turn, record, -1)
    if record.cgroup_path is not None:
        turn.ask(RemoveCgroup(uid, record.cgroup_path))


def cleaned_up(turn: Turn, uid: str) -> None:
    """Forget a pod that is completely gone."""
    record = turn.state.pods.get(uid)
    if record is None:
        return
    turn.note(Kind.CLEANED_UP, pod=record.pod.key)
    others = dict(turn.state.pods)
    del others[uid]
    turn.change(pods=others)


def woken(turn: Turn) -> None:
    """Continue a preemption after the maximum wait."""
    preempting = turn.state.preempting
    if preempting is not None and turn.now_us >= preempting.wake_us:
        pod = turn.state.pods[preempting.victims[0]].pod
        turn.note(Kind.WAIT_TIMED_OUT, pod=pod.key, because=WaitedTooLong(stop_timeout_seconds(grace_seconds_of(pod))))
        _preempt(turn, replace(preempting, victims=preempting.victims[1:]))


def hear(turn: Turn, events: Iterable[PodBound | PodDeleted]) -> None:
    """Handle events that had to wait."""
    for event in events:
        if isinstance(event, PodBound):
            bind(turn, event.pod)
        else:
            delete(turn, event)


def made_room(turn: Turn, uid: str) -> None:
    """Continue a preemption when the pod it waits for has stopped."""
    preempting = turn.state.preempting
    if preempting is not None and preempting.victims[0] == uid:
        _preempt(turn, replace(preempting, victims=preempting.victims[1:]))


def stop_timeout_seconds(grace_period_seconds: int) -> int:
    """Return how long the kubelet waits for a pod that it kills."""
    return max(_LEAST_STOP_TIMEOUT_SECONDS, grace_period_seconds + grace_period_seconds // 2)


def _preempt(turn: Turn, preempting: Preempting) -> None:
    """Stop the next pod to make room for a critical one; after the last, admit that one and process queued events."""
    there = [uid for uid in preempting.victims if uid in turn.state.pods and turn.state.pods[uid].is_active]
    pod = preempting.pod
    if not there:
        turn.change(preempting=None)
        turn.note(Kind.ADMITTED, pod=pod.key)
        _start(turn, pod, turn.config.plan_of(pod))
        hear(turn, preempting.unheard)
        active_deadline.woken(turn)
        return
    victim = turn.state.pods[there[0]]
    grace_seconds = grace_seconds_of(victim.pod)
    wake_us = turn.now_us + stop_timeout_seconds(grace_seconds) * SECOND_US
    turn.change(preempting=replace(preempting, victims=tuple(there), wake_us=wake_us))
    because = RoomForCritical(pod.key, dict(preempting.lacking), turn.config.plan_of(victim.pod).qos_class)
    turn.note(Kind.PREEMPTED, pod=victim.pod.key, because=because)
    turn.ask(PreemptPod(victim.pod, grace_seconds))
    turn.put(replace(victim, stage=Stage.STOPPING, is_preempted=True))


def _has_to_wait(turn: Turn, event: PodBound | PodDeleted) -> bool:
    """Queue events while room is made for a critical pod: the kubelet does nothing else meanwhile."""
    preempting = turn.state.preempting
    if preempting is not None:
        turn.change(preempting=replace(preempting, unheard=(*preempting.unheard, event)))
    return preempting is not None


def _start(turn: Turn, pod: Pod, plan: PodPlan) -> None:
    record, own, sandbox = _recorded(turn, pod, plan)
    turn.put(record)
    _count(turn, record, 1)
    active_deadline.watch(turn, pod, turn.now_us)
    turn.ask(*map(CreateCgroup, own), StartPod(pod, sandbox, containers.plans_in(record, ContainerStage.STARTING)))


def _recorded(turn: Turn, pod: Pod, plan: PodPlan) -> tuple[PodRecord, tuple[Cgroup, ...], Cgroup]:
    """Return a starting pod, its own cgroup if it has one, and that of its sandbox."""
    cgroups = located(plan.contents, cgroup_uid(pod), plan.qos_class, turn.config.cgroups)
    at = next(index for index, cgroup in enumerate(cgroups) if cgroup.level is Level.SANDBOX)
    own, sandbox, runtime = cgroups[:at], cgroups[at], cgroups[at + 1 :]
    plans = [
        ContainerPlan(score.container, cgroup, score.value) for score, cgroup in zip(plan.scores, runtime, strict=True)
    ]
    record = PodRecord(
        pod=pod,
        stage=Stage.STARTING,
        requests=plan.requests,
        tier=plan.tier,
        cgroup_path=own[0].path if own else None,
        containers=containers.begun(pod, plans),
    )
    return record, own, sandbox


def _count(turn: Turn, record: PodRecord, sign: int) -> None:
    """Add a pod (1) or remove it (−1), and rewrite the class cgroups if that changed them."""
    state = turn.state
    requested = dict(state.requested)
    for name, amount in record.requests.items():
        requested[name] = requested.get(name, 0) + sign * amount
    before, after = state.tiers, state.tiers.plus(record.tier, sign)
    turn.change(requested=requested, tiers=after)
    if before != after:
        turn.ask(*map(UpdateCgroup, turn.config.changed_tiers(before, after)))
