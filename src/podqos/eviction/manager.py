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
   (the functions before ``ManagerConfig``);
2. all pods above their own local storage limits are evicted, and the pass ends there (``pods``);
3. of the thresholds met with a new sample one acts, and the node is cleaned up for it, at once: its row in ``signals``
   says of what, which is nothing for memory and process ids;
4. unless that cleared all thresholds, the first evictable pod in its ranking is evicted: one pod per pass.

Where upstream leaves the choice of the acting threshold to chance (it ranges over a map, and only puts memory first),
the order here is: the rows of the table of signals, memory first; of one signal the shorter grace period, hard before
soft; then the order of the configuration.

Three pieces of state keep a node from flapping: when a threshold was first seen met (its grace period runs from there),
when a condition was last seen (it is reported for the transition period after that), and that a threshold once met
clears only at its value plus the minimum reclaim. Times are integer microseconds. Where upstream keeps unordered maps,
the order is that of the configuration. The caller carries commands out in their order; nothing here does anything.

``admit`` is the kubelet's own answer to new pods under pressure; the scheduler keeps pods away by taints, later.

Derived containerfs thresholds are added during the first pass and take effect from the second on.

Source: Kubernetes v1.36 pkg/kubelet/eviction/eviction_manager.go (synchronize, reclaimNodeLevelResources, Admit)
and helpers.go, from thresholdsMet to mergeThresholds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from podqos.eviction.messages import (
    REASON,
    EvictedCondition,
    Shortage,
    disruption_condition,
    local_storage_text,
    node_condition_text,
    pressure_text,
)
from podqos.eviction.pods import LocalStorageExcess, hard_grace_seconds, local_storage_excess, soft_grace_seconds
from podqos.eviction.ranking import Policy, RankedPod, Ranking, can_rank, rank
from podqos.eviction.signals import (
    SIGNALS,
    CleanUp,
    Layout,
    NodeCondition,
    Observation,
    Signal,
    SignalObservation,
    available_quantity,
)
from podqos.eviction.thresholds import (
    Threshold,
    derive_containerfs,
    parse_thresholds,
    pressure_transition_period_ns,
)
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import TAINT_MEMORY_PRESSURE
from podqos.model.pod import Pod, QOSClass
from podqos.model.profile import LATEST, Profile
from podqos.model.quantity import NANOS, Quantity
from podqos.model.time_units import MICROSECOND_NS
from podqos.qos.classes import qos_class_of


class ReclaimTarget(Struct, frozen=True, gc=False):
    """The threshold that acts in a pass, and the numbers by which it is met."""

    threshold: Threshold
    amount: Quantity
    """The threshold's value at the observed capacity."""
    available: Quantity

    @property
    def resource(self) -> str:
        """What is reclaimed: memory, ephemeral-storage, inodes or pids."""
        return SIGNALS[self.threshold.signal].resource


class CleanUpNode(Struct, frozen=True, gc=False):
    """Delete what is unused."""

    what: CleanUp
    because: ReclaimTarget


class EvictPod(Struct, frozen=True, gc=False):
    """End a pod for good: it becomes ``Failed`` with reason ``Evicted``."""

    pod: Pod
    grace_period_seconds: int
    message: str
    annotations: dict[str, str]
    """Of the event about the pod."""
    condition: EvictedCondition | None
    because: ReclaimTarget | LocalStorageExcess
    ranked: RankedPod | None = None
    """The place among the others; None where the pod exceeded a limit of its own."""


Command = CleanUpNode | EvictPod


Observations = Mapping[Signal, SignalObservation]


def thresholds_met(
    thresholds: Iterable[Threshold], observed: Observations, *, with_min_reclaim: bool = False
) -> tuple[Threshold, ...]:
    """Return the thresholds of which strictly less is left, whatever their grace period.

    A signal that is not observed meets nothing. ``with_min_reclaim`` asks whether a threshold may clear yet.
    """
    return tuple(
        threshold
        for threshold in thresholds
        if (seen := observed.get(threshold.signal)) is not None
        and threshold.amount(seen.capacity, with_min_reclaim=with_min_reclaim).nanos > seen.available * NANOS
    )


def merge(met: tuple[Threshold, ...], unresolved: Iterable[Threshold]) -> tuple[Threshold, ...]:
    """Add those that were met before and have not cleared."""
    return met + tuple(threshold for threshold in unresolved if threshold not in met)


def first_observed(met: Iterable[Threshold], before: Mapping[Threshold, int], now_us: int) -> dict[Threshold, int]:
    """Return since when each is met; one that cleared starts anew."""
    return {threshold: before.get(threshold, now_us) for threshold in met}


def past_grace_period(first_observed_us: Mapping[Threshold, int], now_us: int) -> tuple[Threshold, ...]:
    """Return the thresholds that have been met for at least their grace period."""
    return tuple(
        threshold
        for threshold, since_us in first_observed_us.items()
        if (now_us - since_us) * MICROSECOND_NS >= threshold.grace_period_ns
    )


def with_new_samples(
    thresholds: Iterable[Threshold], observed: Observations, before: Observations
) -> tuple[Threshold, ...]:
    """Return the thresholds whose sample is newer than at the last pass: no second eviction for one figure.

    A sample without a time always counts as new.
    """
    return tuple(
        threshold
        for threshold in thresholds
        if (seen := observed.get(threshold.signal)) is not None and _is_new(seen, before.get(threshold.signal))
    )


def conditions_of(met: Iterable[Threshold]) -> tuple[NodeCondition, ...]:
    """Return the conditions behind thresholds, grace periods over or not, in order of name."""
    return tuple(sorted({SIGNALS[threshold.signal].condition for threshold in met}))


def last_observed(
    conditions: Iterable[NodeCondition], before: Mapping[NodeCondition, int], now_us: int
) -> dict[NodeCondition, int]:
    """Return when each condition was last seen, now included."""
    return {**before, **dict.fromkeys(conditions, now_us)}


def conditions_reported(
    last_observed_us: Mapping[NodeCondition, int], transition_period_ns: int, now_us: int
) -> tuple[NodeCondition, ...]:
    """Return the conditions the node reports: those seen less than the transition period ago, in order of name.

    With a period of zero none is ever reported, though evictions happen.
    """
    return tuple(
        sorted(
            condition
            for condition, at_us in last_observed_us.items()
            if (now_us - at_us) * MICROSECOND_NS < transition_period_ns
        )
    )


def _is_new(seen: SignalObservation, last: SignalObservation | None) -> bool:
    if last is None or seen.time_us is None or last.time_us is None:
        return True
    return seen.time_us > last.time_us


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
    may_act = with_new_samples(after.thresholds_met, observation.signals, state.last_signals)
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
    if not thresholds_met(done.state.thresholds or (), observation.signals, with_min_reclaim=True):
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
    unresolved = thresholds_met(state.thresholds_met, seen, with_min_reclaim=True)
    met = merge(thresholds_met(watched, seen), unresolved)
    first_observed_us = first_observed(met, state.first_observed_us, now_us)
    last_observed_us = last_observed(conditions_of(met), state.last_observed_us, now_us)
    return ManagerState(
        thresholds=thresholds,
        conditions=conditions_reported(last_observed_us, config.pressure_transition_period_ns, now_us),
        thresholds_met=past_grace_period(first_observed_us, now_us),
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


class AdmissionRule(StrEnum):
    """Which rule decided."""

    NO_PRESSURE = "NoPressure"
    CRITICAL = "Critical"
    NOT_BEST_EFFORT = "NotBestEffort"
    TOLERATES_MEMORY_PRESSURE = "ToleratesMemoryPressure"
    BEST_EFFORT_UNDER_MEMORY_PRESSURE = "BestEffortUnderMemoryPressure"
    OTHER_PRESSURE = "OtherPressure"


class Refused(StrEnum):
    """Which pods the kubelet refuses under a condition; critical ones never."""

    BEST_EFFORT = "BestEffort"
    BEST_EFFORT_WITHOUT_TOLERATION = "BestEffortWithoutToleration"
    ALL = "All"


def refused(condition: NodeCondition, profile: Profile = LATEST) -> Refused:
    """Return which pods the kubelet refuses while its node has this condition alone."""
    if condition is not NodeCondition.MEMORY_PRESSURE:
        return Refused.ALL
    return Refused.BEST_EFFORT_WITHOUT_TOLERATION if profile.memory_pressure_toleration else Refused.BEST_EFFORT


class NodeAdmission(Struct, frozen=True, gc=False):
    """The answer, in the words of the kubelet where it is no."""

    admit: bool
    rule: AdmissionRule
    reason: str = ""
    message: str = ""


def admit(pod: Pod, conditions: Collection[NodeCondition], profile: Profile = LATEST) -> NodeAdmission:
    """Decide on a pod that has just been bound to a node with these conditions."""
    if not conditions:
        return NodeAdmission(admit=True, rule=AdmissionRule.NO_PRESSURE)
    if pod.is_critical:
        return NodeAdmission(admit=True, rule=AdmissionRule.CRITICAL)
    rule = AdmissionRule.OTHER_PRESSURE
    if _memory_pressure_decides(conditions, profile):
        if qos_class_of(pod, profile) is not QOSClass.BEST_EFFORT:
            return NodeAdmission(admit=True, rule=AdmissionRule.NOT_BEST_EFFORT)
        whom = refused(NodeCondition.MEMORY_PRESSURE, profile)
        if whom is Refused.BEST_EFFORT_WITHOUT_TOLERATION and _tolerates_memory_pressure(pod):
            return NodeAdmission(admit=True, rule=AdmissionRule.TOLERATES_MEMORY_PRESSURE)
        rule = AdmissionRule.BEST_EFFORT_UNDER_MEMORY_PRESSURE
    return NodeAdmission(admit=False, rule=rule, reason=REASON, message=node_condition_text(conditions))


def _memory_pressure_decides(conditions: Collection[NodeCondition], profile: Profile) -> bool:
    """Whether other conditions do not matter: up to 1.16 memory pressure, where it held, decided alone."""
    if NodeCondition.MEMORY_PRESSURE not in conditions:
        return False
    return len(conditions) == 1 or not profile.disk_pressure_admits_only_critical


def _tolerates_memory_pressure(pod: Pod) -> bool:
    return any(toleration.tolerates(TAINT_MEMORY_PRESSURE, "", "NoSchedule") for toleration in pod.spec.tolerations)
