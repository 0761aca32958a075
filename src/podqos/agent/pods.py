"""The life of a pod on a node: admitted or rejected, started in its cgroups, stopped, removed.

*Admission*: first node pressure, then free resources. The scheduler has checked the same before, with older data, and
has never seen static pods. Extended resources that the node does not list are not checked: they may belong to the
cluster as a whole. Node affinity and host ports are not checked here.

*Critical pods* that do not fit are admitted when others have made room. As in the kubelet, whose loop waits for that,
no pod is added or deleted meanwhile. Preemption frees requests, not memory in use: as few Guaranteed pods as possible,
then as few Burstable, then as few BestEffort. Within a class, it prefers the pod that leaves the smallest shortfall,
then the one that requests less. Critical pods are only preempted for one of higher priority. Among equals, the kubelet
takes whichever comes last in an unordered list; here that is the one admitted last.

*A pod's own* ``activeDeadlineSeconds`` count from when the kubelet admitted it, in whole seconds; init containers,
back-off and restarts are part of them. The containers have the pod's grace period, and the pod is ``Failed`` with the
reason ``DeadlineExceeded`` once they have stopped, no matter how they end. A kubelet that makes room for a critical pod
does not notice a deadline before that is done. Upstream checks once a second, and not while an image is being pulled.

Whenever pods come or go, the class cgroups are rewritten, because they hold sums over all pods. Upstream does so when a
pod is added and once a minute; here also when one is removed.

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (Admit), pkg/kubelet/lifecycle/predicate.go;
pkg/kubelet/preemption/preemption.go, pkg/kubelet/types/pod_update.go (Preemptable), pkg/api/v1/resource/helpers.go
(GetResourceRequest); pkg/kubelet/active_deadline.go (pastActiveDeadline), kubelet_pods.go (generateAPIPodStatus),
status/status_manager.go (normalizeStatus: whole seconds; mergePodStatus: Failed once nothing runs), pod_workers.go
(completeSync, calculateEffectiveGracePeriod).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.agent import containers
from podqos.agent.journal import By, Kind
from podqos.agent.port import (
    ContainerPlan,
    CreateCgroup,
    FailPod,
    PodAdopted,
    PodBound,
    PodDeleted,
    PreemptPod,
    RejectPod,
    RemoveCgroup,
    StartPod,
    StopPod,
    UpdateCgroup,
)
from podqos.agent.reasons import ActiveDeadlineExceeded, NotAdmitted, RoomForCritical, TooLittleLeft, WaitedTooLong
from podqos.agent.shutdown import grace_seconds_of
from podqos.agent.state import (
    AgentConfig,
    AgentState,
    ContainerStage,
    Deadline,
    Phase,
    PodPlan,
    PodRecord,
    Preempting,
    Stage,
    Turn,
)
from podqos.eviction.manager import admit
from podqos.model.effective import pod_level_is_set, pod_requests
from podqos.model.node import PODS
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import Profile
from podqos.model.quantity import ZERO
from podqos.model.resources import CPU, MEMORY, is_extended, is_pod_level
from podqos.model.time_units import SECOND_US
from podqos.placement.filters import lacking
from podqos.placement.reasons import Insufficient
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
        _watch_deadline(turn, pod, event.started_us)


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
        stop_overdue(turn)
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
    _watch_deadline(turn, pod, turn.now_us)
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


Lacking = Mapping[str, int]
"""The shortfall by resource, in the scheduler's units."""


class NoVictims(Exception):
    """Preempting all preemptable pods would not be enough; ``lacking`` is the remaining shortfall."""

    def __init__(self, lacking: Lacking) -> None:
        super().__init__()
        self.lacking = lacking


def victims(preemptor: Pod, pods: Iterable[Pod], lacking: Lacking, config: AgentConfig) -> tuple[Pod, ...]:
    """Return which active pods are preempted for a critical pod, in order; raises ``NoVictims``."""
    by_class: dict[QOSClass, list[Pod]] = {qos_class: [] for qos_class in QOSClass}
    for pod in pods:
        if _may_preempt(preemptor, pod):
            by_class[config.plan_of(pod).qos_class].append(pod)
    best_effort, burstable, guaranteed = (
        by_class[qos_class] for qos_class in (QOSClass.BEST_EFFORT, QOSClass.BURSTABLE, QOSClass.GUARANTEED)
    )
    profile = config.profile
    still = _without(lacking, (*best_effort, *burstable, *guaranteed), profile)
    if still:
        raise NoVictims(still)
    of_guaranteed = _nearest(guaranteed, _without(lacking, (*best_effort, *burstable), profile), profile)
    of_burstable = _nearest(burstable, _without(lacking, (*best_effort, *of_guaranteed), profile), profile)
    of_best_effort = _nearest(best_effort, _without(lacking, (*of_burstable, *of_guaranteed), profile), profile)
    return *of_best_effort, *of_burstable, *of_guaranteed


def request(pod: Pod, resource: str, profile: Profile) -> int:
    """Return what a pod would free: with pod-level resources, not its containers', no overhead without a request."""
    if resource == PODS:
        return 1
    if profile.pod_level_resources and pod_level_is_set(pod) and not is_pod_level(resource):
        return 0
    amount = pod_requests(pod, overhead=False, pod_level=profile.pod_level_resources).get(resource, ZERO)
    if amount:
        amount += (pod.spec.overhead or {}).get(resource, ZERO)
    return amount.milli_value if resource == CPU else amount.value


def _may_preempt(preemptor: Pod, pod: Pod) -> bool:
    if not pod.is_critical:
        return True
    own, other = preemptor.spec.priority, pod.spec.priority
    return own is not None and other is not None and own > other


def _without(lacking: Lacking, pods: Iterable[Pod], profile: Profile) -> dict[str, int]:
    """Return the shortfall after these pods are gone."""
    pods = tuple(pods)
    left = {name: amount - sum(request(pod, name, profile) for pod in pods) for name, amount in lacking.items()}
    return {name: amount for name, amount in left.items() if amount > 0}


def _nearest(pods: Sequence[Pod], lacking: Lacking, profile: Profile) -> list[Pod]:
    """Return pods that together free enough; one after the other, the one that comes closest."""
    chosen: list[Pod] = []
    left = list(pods)
    while lacking:
        best, least = 0, float(len(lacking) + 1)
        for index, pod in enumerate(left):
            distance = _distance(pod, lacking, profile)
            if distance < least or (distance == least and _requests_no_more(pod, left[best], profile)):
                best, least = index, distance
        lacking = _without(lacking, (left[best],), profile)
        chosen.append(left[best])
        left[best] = left[-1]
        left.pop()
    return chosen


def _distance(pod: Pod, lacking: Lacking, profile: Profile) -> float:
    """Return how much of the shortfall a pod leaves: the sum of the squared fractions."""
    missing = ((amount, amount - request(pod, name, profile)) for name, amount in lacking.items())
    return sum((left / amount) ** 2 for amount, left in missing if left > 0)


def _requests_no_more(pod: Pod, other: Pod, profile: Profile) -> bool:
    own, others = ([request(each, name, profile) for name in (MEMORY, CPU)] for each in (pod, other))
    return own <= others


def _watch_deadline(turn: Turn, pod: Pod, started_us: int) -> None:
    """Take note of the deadline of a pod that started at a time."""
    seconds = pod.spec.active_deadline_seconds
    if seconds is not None:
        deadlines = list(turn.state.deadlines)
        insort(deadlines, Deadline((started_us // SECOND_US + seconds) * SECOND_US, pod.metadata.uid))
        turn.change(deadlines=tuple(deadlines))


def stop_overdue(turn: Turn) -> None:
    """Stop the pods that have been active for too long."""
    if turn.state.preempting is not None:
        return
    due = [deadline for deadline in turn.state.deadlines if deadline.wake_us <= turn.now_us]
    if not due:
        return
    turn.change(deadlines=turn.state.deadlines[len(due) :])
    for deadline in due:
        record = turn.state.pods.get(deadline.uid)
        if record is not None and record.stage in {Stage.STARTING, Stage.RUNNING}:
            seconds = record.pod.spec.active_deadline_seconds
            assert seconds is not None
            turn.note(Kind.FAILED, pod=record.pod.key, because=ActiveDeadlineExceeded(seconds))
            turn.ask(FailPod(record.pod, grace_seconds_of(record.pod)))
            turn.put(replace(record, stage=Stage.STOPPING, phase=Phase.FAILED, is_overdue=True))
