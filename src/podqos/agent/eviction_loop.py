"""The kubelet's eviction loop: check, decide, evict, wait, check again.

Passes are ten seconds apart, unless a pod was evicted: then the loop waits for it to be gone and checks again within a
second. ``memory`` has what happens between two passes, ``eviction.manager`` the decisions themselves. A kubelet that is
notified during an eviction starts a second pass in parallel; here, that waits for the next pass.

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (Start, waitForPodsCleanup), pkg/kubelet/
pod_workers.go (killPodNow: how long an eviction waits for the containers to end).
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.agent import pods
from podqos.agent.commands import HoldPod, LookAtNode, SetCondition
from podqos.agent.journal import Kind
from podqos.agent.memory import REFRESH_SECONDS, fast_path_levels, is_for_memory_now, kubelet_levels
from podqos.agent.reasons import (
    CleanUpGain,
    ConditionStatus,
    LocalStorageExceeded,
    ThresholdFigures,
    ThresholdsMet,
    UnderPressure,
    WaitedTooLong,
)
from podqos.agent.state import AwaitingCleanUp, CleaningUp, Evicting, Looking, MemoryNotification, Resting
from podqos.agent.turn import Turn
from podqos.eviction.commands import CleanUpNode, EvictPod, ReclaimTarget
from podqos.eviction.manager import (
    MONITORING_INTERVAL_SECONDS,
    POD_CLEAN_UP_TIMEOUT_SECONDS,
    ManagerState,
    Pass,
    after_clean_up,
    synchronize,
)
from podqos.eviction.observation import Observation
from podqos.eviction.ranking import Policy, RankedPod
from podqos.model.time_units import SECOND_US

CLEAN_UP_POLL_SECONDS = 1
LOOK_AGAIN_US = 1000
"""How soon the fast path checks again: statistics must be newer than those that led to the eviction."""


def woken(turn: Turn) -> None:
    """Continue after a wait."""
    loop = turn.state.loop
    if loop.wake_us is None or turn.now_us < loop.wake_us:
        return
    if isinstance(loop, Evicting):
        turn.note(
            Kind.WAIT_TIMED_OUT,
            pod=loop.current.pod.key,
            because=WaitedTooLong(pods.stop_timeout_seconds(loop.current.grace_period_seconds)),
        )
        _after_stop(turn, loop)
        return
    if isinstance(loop, AwaitingCleanUp):
        for uid in loop.remaining:
            record = turn.state.pods.get(uid)
            key = None if record is None else record.pod.key
            turn.note(Kind.WAIT_TIMED_OUT, pod=key, because=WaitedTooLong(POD_CLEAN_UP_TIMEOUT_SECONDS))
    turn.change(loop=Looking())
    turn.ask(LookAtNode())


def notified(turn: Turn) -> None:
    """Check at once, unless a pod is already being evicted: its freed memory must be visible first."""
    loop = turn.state.loop
    if isinstance(loop, Resting):
        is_kubelet = turn.config.notification is MemoryNotification.KUBELET
        turn.change(loop=Looking(resume_us=loop.wake_us if is_kubelet else None))
        turn.ask(LookAtNode(is_urgent=True))


def observed(turn: Turn, observation: Observation) -> None:
    """Decide on an observation: the first phase of a pass, or the one after a clean-up."""
    loop = turn.state.loop
    if isinstance(loop, Looking):
        before = turn.state.manager
        done = synchronize(
            turn.config.eviction,
            before,
            now_us=turn.now_us,
            observation=observation,
            pods=turn.state.active_pods,
        )
        turn.change(manager=done.state)
        _listen_as_kubelet(turn)
        _report(turn, before, done.state, observation)
    elif isinstance(loop, CleaningUp):
        _note_clean_up(turn, loop.first_phase, observation)
        done = after_clean_up(turn.config.eviction, loop.first_phase, observation)
    else:
        return
    _act(turn, done, loop.resume_us)


def stopped(turn: Turn, uid: str) -> None:
    """Continue when the pod in question has stopped."""
    loop = turn.state.loop
    if isinstance(loop, Evicting) and loop.current.pod.metadata.uid == uid:
        _after_stop(turn, loop)


def cleaned_up(turn: Turn, uid: str) -> None:
    """Check again at the next tick, once nothing is left of the evicted pods."""
    loop = turn.state.loop
    if not isinstance(loop, AwaitingCleanUp) or uid not in loop.remaining:
        return
    remaining = tuple(other for other in loop.remaining if other != uid)
    if remaining:
        turn.change(loop=AwaitingCleanUp(remaining, loop.since_us, loop.wake_us))
    else:
        _look_again(turn, loop.since_us)


def _listen_as_kubelet(turn: Turn) -> None:
    """Set the levels that a kubelet is notified of, unless it has done so a moment ago."""
    before_us = turn.state.watched_us
    is_due = before_us is None or turn.now_us - before_us >= REFRESH_SECONDS * SECOND_US
    if turn.config.notification is MemoryNotification.KUBELET and is_due:
        turn.change(watched_us=turn.now_us)
        turn.ask(kubelet_levels(turn.config, turn.state.manager))


def _act(turn: Turn, done: Pass, resume_us: int | None) -> None:
    evictions = tuple(command for command in done.commands if isinstance(command, EvictPod))
    if done.awaiting is not None:
        turn.change(loop=CleaningUp(done, resume_us=resume_us))
        turn.ask(*done.commands, LookAtNode())
    elif evictions and turn.config.shadow:
        for eviction in evictions:
            turn.note(Kind.WOULD_EVICT, pod=eviction.pod.key, because=_why_evicted(turn, eviction, done.ranking))
        _rest(turn, resume_us)
    elif evictions:
        for eviction in evictions:
            turn.note(Kind.EVICTED, pod=eviction.pod.key, because=_why_evicted(turn, eviction, done.ranking))
        _evict(turn, evictions, (), resume_us)
    else:
        _rest(turn, resume_us)


def _rest(turn: Turn, resume_us: int | None) -> None:
    usual_us = turn.now_us + MONITORING_INTERVAL_SECONDS * SECOND_US
    turn.change(loop=Resting(usual_us if resume_us is None else max(resume_us, turn.now_us)))
    if turn.config.notification is MemoryNotification.FAST_PATH:
        turn.ask(fast_path_levels(turn.config, turn.state.manager))


def _evict(turn: Turn, evictions: tuple[EvictPod, ...], evicted: tuple[str, ...], resume_us: int | None) -> None:
    """Evict the first of the pods that still exists; upstream evicts one after the other."""
    there = [eviction for eviction in evictions if _is_active(turn, eviction)]
    if not there:
        _await_clean_up(turn, evicted, resume_us)
        return
    current, *waiting = there
    uid = current.pod.metadata.uid
    pods.evicting(turn, uid)
    until_us = turn.now_us + pods.stop_timeout_seconds(current.grace_period_seconds) * SECOND_US
    turn.change(loop=Evicting(current, tuple(waiting), (*evicted, uid), until_us, resume_us))
    if turn.config.notification is MemoryNotification.FAST_PATH and is_for_memory_now(current):
        turn.ask(HoldPod(current.pod))
    turn.ask(current)


def _after_stop(turn: Turn, loop: Evicting) -> None:
    _evict(turn, loop.waiting, loop.evicted, loop.resume_us)


def _is_active(turn: Turn, eviction: EvictPod) -> bool:
    record = turn.state.pods.get(eviction.pod.metadata.uid)
    return record is not None and record.is_active


def _await_clean_up(turn: Turn, evicted: tuple[str, ...], resume_us: int | None) -> None:
    """Wait until nothing is left of the pods; a notified kubelet does not wait, its own loop continues."""
    if resume_us is not None:
        _rest(turn, resume_us)
        return
    remaining = tuple(uid for uid in evicted if uid in turn.state.pods)
    if remaining:
        until_us = turn.now_us + POD_CLEAN_UP_TIMEOUT_SECONDS * SECOND_US
        turn.change(loop=AwaitingCleanUp(remaining, turn.now_us, until_us))
    else:
        _look_again(turn, turn.now_us)


def _look_again(turn: Turn, since_us: int) -> None:
    """Check again after an eviction: a kubelet at the next tick, the fast path as soon as there are new statistics."""
    if turn.config.notification is MemoryNotification.FAST_PATH:
        turn.change(loop=Resting(turn.now_us + LOOK_AGAIN_US))
    else:
        turn.change(loop=Resting(_next_poll_us(since_us, turn.now_us)))


def _next_poll_us(since_us: int, now_us: int) -> int:
    """Return when the loop next checks whether a pod is gone: every second, the first time after one."""
    period_us = CLEAN_UP_POLL_SECONDS * SECOND_US
    polls = max(1, -(-(now_us - since_us) // period_us))
    return since_us + polls * period_us


# ---- what the journal gets to know -------------------------------------------------------------------------------


def _report(turn: Turn, before: ManagerState, after: ManagerState, observation: Observation) -> None:
    """Record changes of thresholds and conditions; quiet passes leave no trace."""
    if before.first_observed_us.keys() != after.first_observed_us.keys():
        turn.note(Kind.OBSERVED, because=ThresholdsMet(tuple(_figures(after, observation))))
    for condition in sorted({*before.conditions, *after.conditions}):
        holds = condition in after.conditions
        if holds != (condition in before.conditions):
            turn.note(Kind.CONDITION_CHANGED, because=ConditionStatus(condition, holds))
            turn.ask(SetCondition(condition, holds))


def _figures(state: ManagerState, observation: Observation) -> Iterable[ThresholdFigures]:
    for threshold in state.first_observed_us:
        seen = observation.signals[threshold.signal]
        amount = threshold.amount(seen.capacity).value
        yield ThresholdFigures(threshold.signal, amount, seen.available, seen.capacity, threshold.grace_period_ns)


def _note_clean_up(turn: Turn, first_phase: Pass, observation: Observation) -> None:
    reclaiming = first_phase.reclaiming
    assert reclaiming is not None
    signal = reclaiming.threshold.signal
    after = observation.signals.get(signal)
    turn.note(
        Kind.RECLAIMED,
        because=CleanUpGain(
            what=tuple(command.what for command in first_phase.commands if isinstance(command, CleanUpNode)),
            signal=signal,
            threshold=reclaiming.amount.value,
            available_before=reclaiming.available.value,
            available_after=None if after is None else after.available,
        ),
    )


def _why_evicted(
    turn: Turn, eviction: EvictPod, ranking: tuple[RankedPod, ...]
) -> UnderPressure | LocalStorageExceeded:
    because = eviction.because
    if not isinstance(because, ReclaimTarget):
        return LocalStorageExceeded(
            because.kind,
            because.name,
            because.used_bytes,
            because.limit.value,
            eviction.grace_period_seconds,
            eviction.message,
            turn.config.held_back,
        )
    ranked = eviction.ranked
    assert ranked is not None
    place = ranking.index(ranked)
    following = ranking[place + 1] if place + 1 < len(ranking) else None
    config = turn.config.eviction
    return UnderPressure(
        signal=because.threshold.signal,
        threshold=because.amount.value,
        available=because.available.value,
        hard=because.threshold.is_hard,
        policy=config.policy or Policy(config.profile.eviction_ranking),
        usage=ranked.usage,
        request=ranked.request.value,
        over_request=ranked.over_request,
        priority=ranked.priority,
        has_statistics=ranked.has_statistics,
        candidates=sum(entry.spared is None for entry in ranking),
        spared=tuple(entry.pod.key for entry in ranking[:place]),
        next_pod=None if following is None else following.pod.key,
        before_next_by=ranked.before_next_by,
        grace_period_seconds=eviction.grace_period_seconds,
        message=eviction.message,
        held_back=turn.config.held_back,
    )
