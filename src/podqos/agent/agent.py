"""The node agent: ``(config, state, now, event) → (state, commands, journal entries)``.

It has no side effects. A world carries out its commands and reports the results; the simulator and a real node run the
same agent. It admits pods and assigns their cgroups (``pods``), restarts containers (``containers``), watches the node
and evicts: check, decide, evict, wait, check again. ``eviction.manager`` has the decisions themselves.

Passes of the eviction loop are ten seconds apart, unless a pod was evicted: then the loop waits for it to be gone and
checks again within a second. Between passes, the kernel can notify when memory crosses a level. Who listens differs:

- a kubelet listens with ``kernelMemcgNotification``, on cgroup v1 only: on v2, its notifier is a stub that never fires.
  It sets one level per memory threshold, hard or soft, in a pass, at most every ten seconds. A crossing makes it check
  at once, and its regular passes stay on schedule. A kubelet that is notified during an eviction starts a second pass
  in parallel; here, that waits for the next pass.
- podqos' fast path listens on either version, for hard thresholds. Page cache does not blind it: where usage alone
  is not enough, memory is polled as often as the fastest growth requires. It stops the growth of a victim before it is
  terminated (``HoldPod``), and checks again as soon as the victim is gone.

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (Start, synchronize, waitForPodsCleanup),
memory_threshold_notifier_others.go, threshold_notifier_linux.go (NewCgroupNotifier), pkg/kubelet/pod_workers.go
(killPodNow: how long an eviction waits for the containers to end).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podqos.agent import containers, pods
from podqos.agent.journal import Kind
from podqos.agent.port import (
    ContainerExited,
    ContainerStarted,
    CreateCgroup,
    Event,
    HoldPod,
    LookAtNode,
    MemoryLevel,
    MemoryNotified,
    Observed,
    PodAdopted,
    PodBound,
    PodCleanedUp,
    PodDeleted,
    PodStarted,
    PodStopped,
    ProbeFailed,
    ReadinessChanged,
    SetCondition,
    WatchMemory,
    Woken,
)
from podqos.agent.reasons import (
    CleanUpGain,
    ConditionStatus,
    LocalStorageExceeded,
    ThresholdFigures,
    ThresholdsMet,
    UnderPressure,
    WaitedTooLong,
)
from podqos.agent.state import (
    AgentConfig,
    AgentState,
    AgentStep,
    AwaitingCleanUp,
    CleaningUp,
    Evicting,
    Looking,
    MemoryNotification,
    Resting,
    Turn,
)
from podqos.eviction.manager import (
    MONITORING_INTERVAL_SECONDS,
    POD_CLEAN_UP_TIMEOUT_SECONDS,
    CleanUpNode,
    EvictPod,
    ManagerState,
    Observations,
    Pass,
    ReclaimTarget,
    after_clean_up,
    synchronize,
    thresholds_met,
)
from podqos.eviction.ranking import Policy, RankedPod
from podqos.eviction.signals import Observation, Signal
from podqos.eviction.thresholds import Threshold
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.time_units import MICROSECOND_NS, SECOND_US
from podqos.qos.cgroup import tier_cgroups
from podqos.qos.cgroup_settings import CgroupVersion


def start(config: AgentConfig, now_us: int, first_pass_us: int | None = None) -> AgentStep:
    """Set up a node: its cgroups and the first pass of the eviction loop, by default immediately."""
    turn = Turn(config, AgentState(loop=Resting(now_us if first_pass_us is None else first_pass_us)), now_us)
    turn.ask(*map(CreateCgroup, tier_cgroups(turn.state.tiers, config.cgroups, config.profile)))
    return turn.step()


def handle(config: AgentConfig, state: AgentState, now_us: int, event: Event) -> AgentStep:
    """Handle one event. ``now_us`` never decreases."""
    turn = Turn(config, state, now_us)
    match event:
        case Woken():
            pods.stop_overdue(turn)
            _loop_woken(turn)
            containers.woken(turn)
            pods.woken(turn)
        case MemoryNotified():
            _notified(turn)
        case Observed(observation):
            _observed(turn, observation)
        case PodBound(pod):
            pods.bind(turn, pod)
        case PodAdopted():
            pods.adopt(turn, event)
        case PodStarted(uid):
            pods.started(turn, uid)
        case ContainerStarted(uid, name):
            containers.started(turn, uid, name)
        case ContainerExited():
            phase = containers.exited(turn, event)
            if phase is not None:
                pods.finish(turn, event.uid, phase)
        case ProbeFailed():
            containers.kill_unhealthy(turn, event)
        case ReadinessChanged():
            containers.readiness(turn, event)
        case PodDeleted():
            pods.delete(turn, event)
        case PodStopped(uid):
            pods.stopped(turn, uid)
            _loop_stopped(turn, uid)
            pods.made_room(turn, uid)
        case PodCleanedUp(uid):
            pods.cleaned_up(turn, uid)
            _loop_cleaned_up(turn, uid)
    return turn.step()


def skip_idle_passes(config: AgentConfig, state: AgentState, until_us: int | None) -> AgentState:
    """Return the state as if all passes before ``until_us`` had run and seen nothing.

    For worlds that know when nothing happens. A pass that clears a condition is not skipped: if the time is None, all
    passes before the next of those are.
    """
    loop = state.loop
    assert isinstance(loop, Resting)
    assert is_idle(state)
    interval_us = MONITORING_INTERVAL_SECONDS * SECOND_US
    ends = [each for each in (until_us, idle_until_us(config, state)) if each is not None]
    skipped = -(-(min(ends, default=loop.wake_us) - loop.wake_us) // interval_us)
    if skipped <= 0:
        return state
    wake_us = loop.wake_us + skipped * interval_us
    watched_us = None if state.watched_us is None else wake_us - interval_us
    return replace(state, loop=Resting(wake_us), watched_us=watched_us)


def is_idle(state: AgentState) -> bool:
    """Whether the eviction loop is resting and remembers no threshold: a pass that sees nothing changes nothing."""
    manager = state.manager
    return isinstance(state.loop, Resting) and not (manager.thresholds_met or manager.first_observed_us)


def idle_until_us(config: AgentConfig, state: AgentState) -> int | None:
    """Return from when on a pass that sees nothing clears a condition; None if there is none to clear."""
    last_us, period_ns = state.manager.last_observed_us, config.eviction.pressure_transition_period_ns
    first_us = min((last_us[condition] for condition in state.manager.conditions), default=None)
    return None if first_us is None else first_us - (-period_ns // MICROSECOND_NS)


CLEAN_UP_POLL_SECONDS = 1
LOOK_AGAIN_US = 1000
"""How soon the fast path checks again: statistics must be newer than those that led to the eviction."""


def _loop_woken(turn: Turn) -> None:
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


def _notified(turn: Turn) -> None:
    """Check at once, unless a pod is already being evicted: its freed memory must be visible first."""
    loop = turn.state.loop
    if isinstance(loop, Resting):
        is_kubelet = turn.config.notification is MemoryNotification.KUBELET
        turn.change(loop=Looking(resume_us=loop.wake_us if is_kubelet else None))
        turn.ask(LookAtNode(is_urgent=True))


def _observed(turn: Turn, observation: Observation) -> None:
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


def _loop_stopped(turn: Turn, uid: str) -> None:
    """Continue when the pod in question has stopped."""
    loop = turn.state.loop
    if isinstance(loop, Evicting) and loop.current.pod.metadata.uid == uid:
        _after_stop(turn, loop)


def _loop_cleaned_up(turn: Turn, uid: str) -> None:
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


MEMORY_SIGNALS = (Signal.MEMORY, Signal.ALLOCATABLE_MEMORY)
REFRESH_SECONDS = 10
"""Minimum time between two updates of a kubelet's levels (notifierRefreshInterval)."""
FASTEST_BYTES_PER_SECOND = 8 << 30
"""The fastest expected growth; one core clears memory at about seven GiB per second."""
LEAST_LOOK_SECONDS = 0.002
IDLE_LOOK_SECONDS = 0.01
"""The minimum while nothing changes, or in a shortage that the agent knows of: it may end and start again."""


def memory_notification(
    configuration: KubeletConfiguration, version: CgroupVersion, *, fast_path: bool
) -> MemoryNotification:
    """Return who listens to the kernel on a node."""
    if fast_path:
        return MemoryNotification.FAST_PATH
    if configuration.kernel_memcg_notification and version is CgroupVersion.V1:
        return MemoryNotification.KUBELET
    return MemoryNotification.OFF


def is_memory_short(thresholds: Iterable[Threshold], observed: Observations) -> bool:
    """Whether a memory threshold is crossed."""
    return bool(thresholds_met(_of_memory(thresholds), observed))


def is_for_memory_now(eviction: EvictPod) -> bool:
    """Whether a pod is evicted because a hard memory threshold is crossed."""
    because = eviction.because
    return (
        isinstance(because, ReclaimTarget) and because.threshold.signal in MEMORY_SIGNALS and because.threshold.is_hard
    )


def look_again_seconds(beyond_bytes: int) -> float:
    """Return when to check memory again, with this much available above the threshold: before it can be gone."""
    if beyond_bytes < 0:
        return IDLE_LOOK_SECONDS
    return max(LEAST_LOOK_SECONDS, min(beyond_bytes / FASTEST_BYTES_PER_SECOND, MONITORING_INTERVAL_SECONDS))


def kubelet_levels(config: AgentConfig, manager: ManagerState) -> WatchMemory:
    """Return what a kubelet listens for: every memory threshold. Levels that are already crossed do not notify."""
    return WatchMemory(tuple(_levels(_of_memory(_thresholds(config, manager)), manager.last_signals)))


def fast_path_levels(config: AgentConfig, manager: ManagerState) -> WatchMemory:
    """Return what the fast path listens for: the first hard threshold of each signal.

    One that is crossed without the agent having seen it notifies at once.
    """
    hard = [threshold for threshold in _of_memory(_thresholds(config, manager)) if threshold.is_hard]
    known = {threshold.signal for threshold in manager.first_observed_us if threshold.is_hard}
    highest: dict[Signal, MemoryLevel] = {}
    for level in _levels(hard, manager.last_signals):
        before = highest.get(level.signal)
        if before is None or before.below_bytes < level.below_bytes:
            highest[level.signal] = MemoryLevel(
                level.signal, level.below_bytes, tell_if_below=level.signal not in known
            )
    return WatchMemory(tuple(highest.values()), through_cache=True)


def _thresholds(config: AgentConfig, manager: ManagerState) -> Iterable[Threshold]:
    return config.eviction.thresholds if manager.thresholds is None else manager.thresholds


def _of_memory(thresholds: Iterable[Threshold]) -> Iterator[Threshold]:
    return (threshold for threshold in thresholds if threshold.signal in MEMORY_SIGNALS)


def _levels(thresholds: Iterable[Threshold], observed: Observations) -> Iterator[MemoryLevel]:
    for threshold in thresholds:
        seen = observed.get(threshold.signal)
        if seen is not None:
            yield MemoryLevel(threshold.signal, threshold.amount(seen.capacity).value)
