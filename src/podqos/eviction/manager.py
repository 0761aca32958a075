"""The eviction manager as a state machine: ``(state, now, observation, pods) → (state, commands)``.

One call of ``synchronize`` is one pass of the kubelet's loop. A pass has one or two phases::

    synchronize ──► commands: evict a pod, or nothing ──► done
         │
         └────────► commands: clean the node up  (pass.awaiting is set)
                         │  carry them out, look at the node again
                    after_clean_up ──► commands: evict a pod, or nothing ──► done

The state is final after the first phase; cleaning up or not, it is what the next pass begins with. The order of things
in a pass:

1. which thresholds are met, which of them for as long as their grace period, and what the node reports
   (``conditions``);
2. all pods above their own local storage limits are evicted, and the pass ends there (``local_storage``);
3. of the thresholds met with a new sample one acts, and the node is cleaned up for it, at once: its row in ``signals``
   says of what, which is nothing for memory and process ids;
4. unless that cleared all thresholds, the first evictable pod in its ranking is evicted: one pod per pass.

Where upstream leaves the choice of the acting threshold to chance (it ranges over a map, and only puts memory first),
the order here is: the rows of the table of signals, memory first; of one signal the shorter grace period, hard before
soft; then the order of the configuration.

Derived containerfs thresholds are added during the first pass and take effect from the second on.

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (synchronize, reclaimNodeLevelResources).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction import conditions
from podqos.eviction.commands import CleanUpNode, Command, EvictPod, ReclaimTarget
from podqos.eviction.grace import hard_grace_seconds, soft_grace_seconds
from podqos.eviction.local_storage import local_storage_excess
from podqos.eviction.messages import Shortage, disruption_condition, local_storage_text, pressure_text
from podqos.eviction.observation import Observation, SignalObservation, available_quantity
from podqos.eviction.ranking import Policy, RankedPod, Ranking, can_rank, rank
from podqos.eviction.signals import SIGNALS, Layout, NodeCondition, Signal
from podqos.eviction.thresholds import (
    Threshold,
    derive_containerfs,
    parse_thresholds,
    pressure_transition_period_ns,
)
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.pod import Pod
from podqos.model.profile import LATEST, Profile

MONITORING_INTERVAL_SECONDS = 10
"""Between two passes, if no pod was evicted."""
POD_CLEAN_UP_TIMEOUT_SECONDS = 30
"""How long the loop waits, after an eviction, for the pod to be gone; then the next pass follows at once."""

_ACTING_ORDER = {signal: place for place, signal in enumerate(SIGNALS)}


class ManagerConfig(Struct, frozen=True, gc=False):
    """How a manager is set up."""

    thresholds: tuple[Threshold, ...]
    pressure_transition_period_ns: int
    max_pod_grace_seconds: int = 0
    layout: Layout = Layout.SINGLE
    local_storage_capacity_isolation: bool = True
    policy: Policy | None = None
    """None is the policy of the Kubernetes version."""
    profile: Profile = LATEST


class ManagerState(Struct, frozen=True, gc=False):
    """What a manager remembers between passes."""

    thresholds: tuple[Threshold, ...] | None = None
    """Those of the configuration with containerfs derived; None before the first pass."""
    conditions: tuple[NodeCondition, ...] = ()
    """What the node reports."""
    thresholds_met: tuple[Threshold, ...] = ()
    """Met for at least their grace period, or not yet cleared."""
    first_observed_us: Mapping[Threshold, int] = {}
    last_observed_us: Mapping[NodeCondition, int] = {}
    last_signals: Mapping[Signal, SignalObservation] = {}


class PassUnderWay(Struct, frozen=True, gc=False):
    """What the second phase of a pass needs of the first."""

    observation: Observation
    pods: tuple[Pod, ...]


class Pass(Struct, frozen=True, gc=False):
    """What a phase of a pass came to."""

    state: ManagerState
    commands: tuple[Command, ...] = ()
    reclaiming: ReclaimTarget | None = None
    """The threshold that acts."""
    ranking: tuple[RankedPod, ...] = ()
    """All pods in the order of eviction, where they were ranked."""
    awaiting: PassUnderWay | None = None
    """Set while ``after_clean_up`` is still to come."""


def configure(
    settings: KubeletConfiguration, *, layout: Layout, policy: Policy | None = None, profile: Profile = LATEST
) -> ManagerConfig:
    """Set a manager up from a kubelet's settings."""
    return ManagerConfig(
        thresholds=parse_thresholds(settings, profile),
        pressure_transition_period_ns=pressure_transition_period_ns(settings),
        max_pod_grace_seconds=settings.eviction_max_pod_grace_period,
        layout=layout,
        local_storage_capacity_isolation=settings.local_storage_capacity_isolation,
        policy=policy,
        profile=profile,
    )


def synchronize(
    config: ManagerConfig, state: ManagerState, *, now_us: int, observation: Observation, pods: Sequence[Pod]
) -> Pass:
    """Run a pass, up to the clean-up if there is one. ``pods`` are the active ones, in the order of the node's list."""
    thresholds = config.thresholds if state.thresholds is None else state.thresholds
    if not thresholds and not config.local_storage_capacity_isolation:
        return Pass(state)
    after = _look(config, state, now_us, observation)
    if config.local_storage_capacity_isolation:
        evictions = _local_storage_evictions(config, observation, pods)
        if evictions:
            return Pass(after, evictions)
    may_act = conditions.with_new_samples(after.thresholds_met, observation.signals, state.last_signals)
    if not may_act:
        return Pass(after)
    reclaiming = _reclaiming(min(may_act, key=acting_order), observation)
    clean_up = SIGNALS[reclaiming.threshold.signal].clean_up[config.layout]
    if clean_up:
        commands = tuple(CleanUpNode(what, reclaiming) for what in clean_up)
        return Pass(after, commands, reclaiming, awaiting=PassUnderWay(observation, tuple(pods)))
    return _evict_one(config, Pass(after, reclaiming=reclaiming), observation, pods)


def after_clean_up(config: ManagerConfig, first_phase: Pass, observation: Observation) -> Pass:
    """Finish a pass, given how the node looks after its clean-up.

    The pod to evict is still chosen by the figures from before, which met the threshold.
    """
    awaiting = first_phase.awaiting
    assert awaiting is not None
    done = replace(first_phase, commands=(), awaiting=None)
    if not conditions.thresholds_met(done.state.thresholds or (), observation.signals, with_min_reclaim=True):
        return done
    return _evict_one(config, done, awaiting.observation, awaiting.pods)


def _look(config: ManagerConfig, state: ManagerState, now_us: int, observation: Observation) -> ManagerState:
    """Return the state after a look at the node: what is met, since when, and what the node reports."""
    if state.thresholds is None:
        derived = derive_containerfs(config.thresholds, config.layout)
        watched, thresholds = derived.in_place, derived.in_place + derived.added
    else:
        watched = thresholds = state.thresholds
    seen = observation.signals
    unresolved = conditions.thresholds_met(state.thresholds_met, seen, with_min_reclaim=True)
    met = conditions.merge(conditions.thresholds_met(watched, seen), unresolved)
    first_observed_us = conditions.first_observed(met, state.first_observed_us, now_us)
    last_observed_us = conditions.last_observed(conditions.conditions_of(met), state.last_observed_us, now_us)
    return ManagerState(
        thresholds=thresholds,
        conditions=conditions.conditions_reported(last_observed_us, config.pressure_transition_period_ns, now_us),
        thresholds_met=conditions.past_grace_period(first_observed_us, now_us),
        first_observed_us=first_observed_us,
        last_observed_us=last_observed_us,
        last_signals=seen,
    )


def acting_order(threshold: Threshold) -> tuple[int, int]:
    """Return the key by which the first of the thresholds that are met acts."""
    return _ACTING_ORDER[threshold.signal], threshold.grace_period_ns


def _reclaiming(threshold: Threshold, observation: Observation) -> ReclaimTarget:
    seen = observation.signals[threshold.signal]
    return ReclaimTarget(threshold, threshold.amount(seen.capacity), available_quantity(threshold.signal, seen))


def _local_storage_evictions(
    config: ManagerConfig, observation: Observation, pods: Sequence[Pod]
) -> tuple[EvictPod, ...]:
    evictions = []
    for pod in pods:
        stats = observation.pods.get(pod.metadata.uid)
        excess = local_storage_excess(pod, stats, config.layout, config.profile) if stats is not None else None
        if excess is not None and not pod.is_critical:
            text = local_storage_text(excess)
            grace = hard_grace_seconds(pod, config.profile)
            evictions.append(EvictPod(pod, grace, text.message, text.annotations, None, excess))
    return tuple(evictions)


def _evict_one(config: ManagerConfig, so_far: Pass, observation: Observation, pods: Sequence[Pod]) -> Pass:
    """Rank the pods and evict the first that may be evicted."""
    reclaiming = so_far.reclaiming
    assert reclaiming is not None
    threshold = reclaiming.threshold
    ranking = Ranking(threshold.signal, config.layout, config.policy, threshold.is_hard, config.profile)
    if not can_rank(ranking):
        return so_far
    ranked = rank(pods, observation.pods, ranking)
    victim = next((entry for entry in ranked if entry.spared is None), None)
    if victim is None:
        return replace(so_far, ranking=ranked)
    return replace(so_far, ranking=ranked, commands=(_eviction(config, reclaiming, victim, observation),))


def _eviction(
    config: ManagerConfig, reclaiming: ReclaimTarget, victim: RankedPod, observation: Observation
) -> EvictPod:
    pod, profile = victim.pod, config.profile
    grace = (
        hard_grace_seconds(pod, profile)
        if reclaiming.threshold.is_hard
        else soft_grace_seconds(pod, config.max_pod_grace_seconds, profile)
    )
    shortage = Shortage(reclaiming.resource, reclaiming.amount, reclaiming.available)
    text = pressure_text(shortage, pod, observation.pods.get(pod.metadata.uid), profile)
    condition = disruption_condition(text.message)
    return EvictPod(pod, grace, text.message, text.annotations, condition, reclaiming, victim)
