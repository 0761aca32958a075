"""PQ401–PQ415: kubelet settings that leave the choice of victims to the kernel, or to chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, INFO, WARNING, bundle_check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Effect, Fact, FieldEdit, Finding, Patch
from podqos.advice.checks.judged_kubelet import JudgedKubelet, KubeletTrials, in_mebibytes, starting, twice, wrong_units
from podqos.advice.checks.sketch import Sketch
from podqos.advice.checks.view import CheckContext
from podqos.amounts import listed, mebibytes
from podqos.errors import InvalidConfiguration
from podqos.eviction.pods import soft_grace_seconds
from podqos.eviction.signals import Signal
from podqos.eviction.thresholds import (
    Threshold,
    ThresholdWarning,
    WarningKind,
    default_eviction_hard,
    effective_eviction_hard,
    parse_thresholds,
    threshold_warnings,
)
from podqos.model.pod import Pod, PodSpec
from podqos.model.resources import EPHEMERAL_STORAGE, MEMORY
from podqos.naming import published
from podqos.placement.allocatable import check_starts, node_allocatable, too_much_withheld

if TYPE_CHECKING:
    from podqos.orders.plain_node import FirstActor

_GRACE_PERIOD = "1m30s"
"""For a soft threshold that has none: long enough for a burst to pass, as in upstream's documentation."""
_MUCH = 5
"""A minimum reclaim above this many times the threshold evicts more pods than the pressure requires."""

_THRESHOLDS = "Kubernetes: pkg/kubelet/eviction/helpers.go (ParseThresholdConfig)"
_MANAGER = "Kubernetes: pkg/kubelet/eviction/eviction_manager.go"
_ALLOCATABLE = "Kubernetes: pkg/kubelet/cm/node_container_manager_linux.go"
_TYPES = "Kubernetes: staging/src/k8s.io/kubelet/config/v1beta1/types.go"

_RESERVED = "kubeReserved: {memory: 1Gi}\nsystemReserved: {memory: 1Gi}\n"
_MORE_RESERVED = "kubeReserved: {memory: 1Gi}\nsystemReserved: {memory: 3Gi}\n"
_HARD = "evictionHard: {memory.available: 1Gi, nodefs.available: 10%}\n"
_SOFT = "evictionSoft: {memory.available: 2Gi}\n"
_GRACE = "evictionSoftGracePeriod: {memory.available: 1m30s}\n"
_GOOD = examples.kubelet(f"{_RESERVED}evictionHard: {{memory.available: 1Gi, nodefs.available: 10%}}\n")

Found = Iterator[Finding]


# ---- one configuration -------------------------------------------------------------------------------------------


def kubelets(context: CheckContext, sketches: Sequence[Sketch]) -> Found:
    """Yield what is wrong with the configurations of kubelets; ``sketches`` are the workloads they may run."""
    trials = KubeletTrials(context, lambda kubelet: _findings(kubelet, sketches))
    for found in context.surroundings.kubelets:
        yield from trials.findings(found)


_kubelet_check = partial(bundle_check, effect=Effect.NONE, rule=kubelets)
_first_actor_check = partial(_kubelet_check, effect=Effect.NODE)
"""A setting that lets the kernel kill where the kubelet would have evicted. Others change when the kubelet evicts."""


def _findings(kubelet: JudgedKubelet, sketches: Sequence[Sketch]) -> Found:
    """Yield everything; if the kubelet does not start with the settings, little else."""
    yield from wrong_units(kubelet)
    config, profile = kubelet.config, kubelet.options.profile
    missing = [signal for signal in config.eviction_soft if signal not in config.eviction_soft_grace_period]
    yield from (_soft_without_grace(kubelet, signal) for signal in missing)
    try:
        check_starts(config, {}, profile=profile)
        thresholds = parse_thresholds(config, profile)
        # What the shares of thresholds are of, as far as that is known.
        signals = {Signal.MEMORY: MEMORY, Signal.NODEFS: EPHEMERAL_STORAGE}
        known = {signal: kubelet.capacity[name].value for signal, name in signals.items() if name in kubelet.capacity}
        warnings = threshold_warnings(config, known, profile)
        yield from _held_back(kubelet)
    except InvalidConfiguration as refused:
        for error in refused.all:
            path = error.where.replace('"', "")
            if path in {f"evictionSoft[{signal}]" for signal in missing}:
                continue
            patch = starting(kubelet, path)
            message = error.worded(published) if patch is None else f"{path}: {error.what}"
            patch = patch or Patch.choose(Choice.THRESHOLD)
            yield kubelet.finding(kubelet_refuses, path, KubeletRefuses(message), patch)
        return
    if node_allocatable(kubelet.capacity, config).over_reserved:
        return
    for warning in warnings:
        yield from _warned(kubelet, warning)
    yield from _kernel_first(kubelet, thresholds)
    yield from _minimum_reclaim(kubelet, thresholds)
    yield from _enforcement(kubelet)
    yield from _grace_cut(kubelet, sketches)


def _warned(kubelet: JudgedKubelet, warning: ThresholdWarning) -> Found:
    """Yield what eviction itself warns of."""
    signal = warning.signal.value
    match warning.kind:
        case WarningKind.MEMORY_UNWATCHED:
            yield _memory_unwatched(kubelet, signal)
        case WarningKind.DISK_UNWATCHED:
            yield _disk_unwatched(kubelet)
        case WarningKind.SOFT_AFTER_HARD:
            yield _soft_after_hard(kubelet, signal)
        case WarningKind.SOFT_WITHOUT_GRACE:
            yield _soft_without_grace(kubelet, signal)
        case WarningKind.SWAP_HIDES_PRESSURE:
            yield _swap(kubelet)
        case WarningKind.ABOVE_CAPACITY:
            yield _above_capacity(kubelet, warning)
        case _:
            yield from _without_effect(kubelet, warning)


# ---- PQ401 -------------------------------------------------------------------------------------------------------


class MemoryUnwatched(Fact, frozen=True, gc=False):
    """A kubelet without a hard threshold for memory."""

    named: tuple[str, ...]
    """The signals that evictionHard names instead."""

    def sentence(self, _: str) -> str:
        """Return what drops the default."""
        if not self.named:
            return "evictionHard is empty, which drops all defaults, that for memory.available among them"
        return f"evictionHard sets {listed(self.named)}, which drops the default for memory.available"


def _memory_unwatched(kubelet: JudgedKubelet, signal: str) -> Finding:
    written = kubelet.config.eviction_hard or {}
    patch = _hard_patch(kubelet, kubelet.first_actor())
    facts = MemoryUnwatched(tuple(name for name in written if name != signal))
    return kubelet.finding(memory_unwatched, "evictionHard", facts, patch)


def _hard_patch(kubelet: JudgedKubelet, first: FirstActor) -> Patch:
    """Return the threshold with which the kubelet is first, tried; where there is none, a person has to choose."""
    edits = None if first.sufficient_bytes is None else kubelet.hard_edits(first.sufficient_bytes)
    if edits is None:
        return Patch.choose(Choice.THRESHOLD, (f"evictionHard[{Signal.MEMORY.value}]",))
    return Patch.write(*edits)


@_first_actor_check(
    "PQ401",
    "no-memory-threshold",
    ERROR,
    _THRESHOLDS,
    "Kubernetes: pkg/kubelet/eviction/defaults_linux.go",
    fix_on_request=True,
)
def memory_unwatched() -> Example:
    """PQ401: The kubelet has no eviction threshold for memory.

    Setting any hard threshold drops the defaults of all others. Without one for memory.available the kubelet never
    evicts for memory: the node runs until the kernel kills, which ignores priorities, requests and grace periods.

    Fix: Add memory.available to evictionHard.
    """
    return Example(examples.kubelet(f"{_RESERVED}evictionHard: {{nodefs.available: 10%}}\n"))


# ---- PQ415 -------------------------------------------------------------------------------------------------------


class DiskUnwatched(Fact, frozen=True, gc=False):
    """A kubelet without a threshold for disk space."""

    named: tuple[str, ...]
    """The signals that evictionHard names instead."""
    dropped: tuple[str, ...]

    def sentence(self, _: str) -> str:
        """Return what drops the defaults."""
        return f"evictionHard sets {listed(self.named)}, which drops the defaults for {listed(self.dropped)}"


def _disk_unwatched(kubelet: JudgedKubelet) -> Finding:
    written, defaults = kubelet.config.eviction_hard or {}, default_eviction_hard(kubelet.options.profile)
    dropped = {name: text for name, text in defaults.items() if name not in written and name != Signal.MEMORY.value}
    patch = Patch.write(*(FieldEdit(f"evictionHard[{name}]", text) for name, text in dropped.items()))
    return kubelet.finding(disk_unwatched, "evictionHard", DiskUnwatched((*written,), (*dropped,)), patch)


@_kubelet_check(
    "PQ415",
    "no-disk-threshold",
    WARNING,
    _THRESHOLDS,
    "Kubernetes: pkg/kubelet/eviction/defaults_linux.go",
    fix_on_request=True,
)
def disk_unwatched() -> Example:
    """PQ415: The kubelet has no eviction threshold for disk space.

    Setting any hard threshold drops the defaults of all others. Without one for nodefs.available or imagefs.available
    the kubelet deletes no unused images and evicts no pods for disk space: logs and writable layers fill the disk until
    every write on the node fails.

    Fix: Add the defaults to evictionHard, or set mergeDefaultEvictionSettings.
    """
    return Example(examples.kubelet(f"{_RESERVED}evictionHard: {{memory.available: 1Gi}}\n"))


# ---- PQ402, PQ403 ------------------------------------------------------------------------------------------------


class SoftAfterHard(Fact, frozen=True, gc=False):
    """A soft threshold that is not reached before the hard one."""

    signal: str
    soft: str
    hard: str

    def sentence(self, _: str) -> str:
        """Return both thresholds."""
        return f"the soft threshold of {self.signal}, {self.soft}, is not above the hard one, {self.hard}"


def _soft_after_hard(kubelet: JudgedKubelet, signal: str) -> Finding:
    soft = kubelet.config.eviction_soft[signal]
    hard = effective_eviction_hard(kubelet.config, kubelet.options.profile)[signal]
    path = f"evictionSoft[{signal}]"
    patch = Patch.write(FieldEdit(path, twice(hard), soft))
    return kubelet.finding(soft_after_hard, path, SoftAfterHard(signal, soft, hard), patch)


@_kubelet_check("PQ402", "soft-after-hard", WARNING, _THRESHOLDS, _MANAGER, fix_on_request=True)
def soft_after_hard() -> Example:
    """PQ402: A soft threshold comes too late.

    The hard threshold is crossed first and evicts immediately, with a grace period of one second. The soft one, meant
    to stop pods gently and in time, never takes effect.

    Fix: Set the soft threshold well above the hard one.
    """
    return Example(
        examples.kubelet(
            f"{_MORE_RESERVED}{_HARD}evictionSoft: {{memory.available: 512Mi}}\n{_GRACE}evictionMaxPodGracePeriod: 60\n"
        )
    )


class SoftWithoutGrace(Fact, frozen=True, gc=False):
    """A soft threshold without a grace period."""

    signal: str
    grace_period: str | None
    """None where there is none: the kubelet does not start."""

    def sentence(self, _: str) -> str:
        """Return which, and what the kubelet does with it."""
        if self.grace_period is None:
            return f"the soft threshold of {self.signal} has no grace period: the kubelet does not start"
        return f"the soft threshold of {self.signal} has a grace period of {self.grace_period} and acts at once"


def _soft_without_grace(kubelet: JudgedKubelet, signal: str) -> Finding:
    written = kubelet.config.eviction_soft_grace_period.get(signal)
    patch = Patch.write(FieldEdit(f"evictionSoftGracePeriod[{signal}]", _GRACE_PERIOD, written))
    return kubelet.finding(soft_without_grace, f"evictionSoft[{signal}]", SoftWithoutGrace(signal, written), patch)


@_kubelet_check("PQ403", "soft-without-grace", ERROR, _THRESHOLDS, fix_on_request=True)
def soft_without_grace() -> Example:
    """PQ403: A soft threshold has no grace period.

    Without an entry in evictionSoftGracePeriod the kubelet does not start. With an entry of zero the threshold acts at
    once, like a second, higher hard threshold, and evicts pods for every short burst.

    Fix: Add a grace period to evictionSoftGracePeriod.
    """
    return Example(examples.kubelet(f"{_MORE_RESERVED}{_HARD}{_SOFT}"))


# ---- PQ404 -------------------------------------------------------------------------------------------------------


class KernelFirst(Fact, frozen=True, gc=False):
    """A threshold that memory falls through faster than the kubelet looks."""

    threshold_bytes: int
    growth_bytes_per_second: int
    interval_seconds: int
    kubelet_first: float
    """Probability that the kubelet acts before the kernel."""
    needed_bytes: int | None
    """The smallest threshold with which it always does; None where none is enough."""
    sufficient_bytes: int | None = None
    """The same while the system uses all that is reserved for it."""

    def sentence(self, _: str) -> str:
        """Return who is how likely to act first, and what threshold would do."""
        known = f"memory.available {mebibytes(self.threshold_bytes)}, checked every {self.interval_seconds} s"
        said = f"at {mebibytes(self.growth_bytes_per_second)}/s {self._kernel()} ({known})"
        if self.needed_bytes is None:
            return f"{said}; no threshold is high enough"
        said = f"{said}; with {mebibytes(self.needed_bytes)} the kubelet always evicts first"
        if self.sufficient_bytes in {None, self.needed_bytes}:
            return said
        more = mebibytes(self.sufficient_bytes or 0)
        return f"{said}, with {more} even if the system uses its whole reservation"

    def summary(self) -> str:
        """Return how often the kernel is first, and what would end that."""
        often = "every time" if self.kubelet_first == 0 else f"in {self._percent}% of cases"
        enough = self.sufficient_bytes or self.needed_bytes
        unless = "at any threshold" if enough is None else f"unless memory.available is at least {mebibytes(enough)}"
        return f"the kernel acts before the kubelet {often}, {unless}"

    @property
    def _percent(self) -> int:
        """How often the kernel is first: all but certain is not certain, and rare is not never."""
        return min(99, max(1, round((1 - self.kubelet_first) * 100)))

    def _kernel(self) -> str:
        if self.kubelet_first == 0:
            return "the kernel always kills before the kubelet evicts"
        return f"the kernel kills before the kubelet evicts in {self._percent}% of cases"


def _kernel_first(kubelet: JudgedKubelet, thresholds: Sequence[Threshold]) -> Found:
    """Ask what ``forecast`` says."""
    from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS

    hard = [threshold for threshold in thresholds if threshold.signal is Signal.MEMORY and threshold.is_hard]
    if not hard:
        return
    first = kubelet.first_actor()
    if first.kubelet_first == 1:
        return
    facts = KernelFirst(
        max(threshold.amount(kubelet.memory_bytes).value for threshold in hard),
        kubelet.growth,
        MONITORING_INTERVAL_SECONDS,
        float(first.kubelet_first),
        first.needed_bytes,
        first.sufficient_bytes,
    )
    path = f"evictionHard[{Signal.MEMORY.value}]"
    yield kubelet.finding(kernel_first, path, facts, _hard_patch(kubelet, first))


@_first_actor_check("PQ404", "kernel-kills-first", WARNING, _MANAGER, fix_on_request=True)
def kernel_first() -> Example:
    """PQ404: Memory can run out between two eviction checks.

    The kubelet checks every ten seconds. What pods allocate in that time must fit between the threshold and the
    point where the kernel kills (its min watermark, 325Mi of 64Gi). If it doesn't, the kernel kills before the kubelet
    notices: by oom_score_adj and size, regardless of priority and without a grace period. The figures are those of
    `podqos forecast` for a pod without a limit.

    Fix: Raise evictionHard for memory.available. On cgroup v1, kernelMemcgNotification helps as well; on v2, the
    kubelet's notifier is a stub that never fires.
    """
    return Example(examples.kubelet(f"{_RESERVED}evictionHard: {{memory.available: 100Mi, nodefs.available: 10%}}\n"))


# ---- PQ405, PQ406, and PQ412 for too much ------------------------------------------------------------------------


class SoftNotCovered(Fact, frozen=True, gc=False):
    """A soft threshold that pods within their allocatable can reach."""

    resource: str
    soft_bytes: int
    allocatable_bytes: int
    usable_before_soft_bytes: int

    def sentence(self, _: str) -> str:
        """Return what pods may request, and at what use the threshold is met."""
        return (
            f"pods may request {mebibytes(self.allocatable_bytes)} of {self.resource}, but the soft threshold of "
            f"{mebibytes(self.soft_bytes)} is crossed when they use {mebibytes(self.usable_before_soft_bytes)}"
        )


class NothingReserved(Fact, frozen=True, gc=False):
    """A node that offers all of its memory to pods."""

    resources: tuple[str, ...]

    def sentence(self, _: str) -> str:
        """Return what is not named."""
        return f"neither kubeReserved nor systemReserved sets {listed(self.resources)}"


class OverReserved(Fact, frozen=True, gc=False):
    """A node that holds back more than it has, with which the kubelet does not start."""

    resource: str
    reserved: str
    capacity: str

    def sentence(self, _: str) -> str:
        """Return both amounts."""
        return too_much_withheld(self.resource, self.reserved, self.capacity)


def _held_back(kubelet: JudgedKubelet) -> Found:
    """Yield what is wrong with what is held back from pods."""
    config = kubelet.config
    divided = node_allocatable(kubelet.capacity, config)
    for resource in divided.over_reserved:
        over = OverReserved(resource, str(divided.reservation[resource]), str(kubelet.capacity[resource]))
        yield kubelet.finding(kubelet_refuses, "systemReserved", over, Patch.choose(Choice.RESERVATION))
    for coverage in divided.soft_coverage:
        if coverage.is_covered:
            continue
        resource = coverage.resource
        system = config.reserved_for_system.get(resource)
        needed = coverage.soft if system is None else coverage.soft + system
        usable_bytes = coverage.usable_before_soft.value
        facts = SoftNotCovered(resource, coverage.soft.value, coverage.allocatable.value, usable_bytes)
        written = config.system_reserved.get(resource)
        patch = Patch.write(FieldEdit(f"systemReserved.{resource}", in_mebibytes(needed.value), written))
        signal = Signal.MEMORY if resource == MEMORY else Signal.NODEFS
        yield kubelet.finding(soft_not_covered, f"evictionSoft[{signal.value}]", facts, patch)
    if MEMORY not in config.reserved_for_kube and MEMORY not in config.reserved_for_system:
        patch = Patch.choose(Choice.RESERVATION, ("kubeReserved.memory", "systemReserved.memory"))
        yield kubelet.finding(nothing_reserved, "", NothingReserved((MEMORY,)), patch)


@_kubelet_check(
    "PQ405", "soft-not-covered-by-reservation", WARNING, _ALLOCATABLE, "OKD: Handling out of resource errors"
)
def soft_not_covered() -> Example:
    """PQ405: Pods within their requests can reach the soft threshold.

    Allocatable excludes the hard threshold but not the soft one. On a full node, pods that stay within their requests
    reach the soft threshold, and the kubelet evicts one of them although the scheduler was right to place it there.

    Fix: Add the soft threshold to systemReserved.
    """
    return Example(examples.kubelet(f"{_RESERVED}{_HARD}{_SOFT}{_GRACE}"))


@_kubelet_check("PQ406", "no-memory-reserved", WARNING, _ALLOCATABLE)
def nothing_reserved() -> Example:
    """PQ406: No memory is reserved for the system and the kubelet.

    Everything except the hard threshold is offered to pods. On a full node the daemons use memory that was promised to
    pods, and pods within their requests are evicted or killed for memory that the system uses.

    Fix: Set kubeReserved.memory and systemReserved.memory to what they use.
    """
    return Example(examples.kubelet(_HARD), chosen={"kubeReserved.memory": "1Gi", "systemReserved.memory": "1Gi"})


# ---- PQ407, PQ410 ------------------------------------------------------------------------------------------------


class SwapHidesPressure(Fact, frozen=True, gc=False):
    """A kubelet that lets pods swap."""

    swap_behavior: str

    def sentence(self, _: str) -> str:
        """Return the settings, and what they do."""
        behavior = self.swap_behavior or "not set"
        return f"failSwapOn is false and swapBehavior {behavior}: memory.available does not fall while pods swap"


def _swap(kubelet: JudgedKubelet) -> Finding:
    behavior = kubelet.config.memory_swap.swap_behavior
    edit = FieldEdit("memorySwap.swapBehavior", "NoSwap", behavior or None)
    if kubelet.flags is not None:  # there is no such flag
        edit = FieldEdit("failSwapOn", True, "false")
    return kubelet.finding(swap_hides_pressure, "failSwapOn", SwapHidesPressure(behavior), Patch.write(edit))


@_first_actor_check("PQ407", "swap-hides-pressure", WARNING, _TYPES, "KEP-2400: node swap")
def swap_hides_pressure() -> Example:
    """PQ407: Swap hides memory pressure from the kubelet.

    While pods swap, memory.available does not fall, so the kubelet sees no pressure and evicts nothing. Pods slow down
    instead, and when swap is full the kernel kills.

    Fix: Set memorySwap.swapBehavior to NoSwap, or failSwapOn to true.
    """
    return Example(f"{_GOOD}failSwapOn: false\nmemorySwap: {{swapBehavior: LimitedSwap}}\n")


class NoEffect(Fact, frozen=True, gc=False):
    """An eviction setting that does nothing."""

    signal: str
    setting: str
    kind: str

    def sentence(self, _: str) -> str:
        """Return which, and why."""
        why = {
            WarningKind.UNUSED_GRACE_PERIOD: "it has no soft threshold",
            WarningKind.CONTAINERFS_IGNORED: "the kubelet overwrites it with that of nodefs or imagefs",
            WarningKind.NEVER_MET: "nothing is ever below it",
        }
        return f"{self.setting} of {self.signal} has no effect: {why[WarningKind(self.kind)]}"


def _without_effect(kubelet: JudgedKubelet, warning: ThresholdWarning) -> Found:
    signal = warning.signal.value
    config = kubelet.config
    grace_periods = config.eviction_soft_grace_period
    settings = {"evictionHard": config.eviction_hard or {}, "evictionSoft": config.eviction_soft}
    if warning.kind is WarningKind.UNUSED_GRACE_PERIOD:
        settings = {"evictionSoftGracePeriod": grace_periods}
    named = [name for name, statements in settings.items() if signal in statements]
    if not named:
        return
    edits = [FieldEdit(f"{name}[{signal}]", None, settings[name][signal]) for name in named]
    if "evictionSoft" in named:
        edits.append(FieldEdit(f"evictionSoftGracePeriod[{signal}]", None, grace_periods[signal]))
    facts = NoEffect(signal, named[0], warning.kind.value)
    yield kubelet.finding(no_effect, f"{named[0]}[{signal}]", facts, Patch.write(*edits))


@_kubelet_check("PQ410", "eviction-setting-without-effect", INFO, _THRESHOLDS)
def no_effect() -> Example:
    """PQ410: An eviction setting has no effect.

    A grace period without its soft threshold, a threshold for containerfs (the kubelet overwrites it) or a percentage
    of zero never acts: the intended protection does not exist.

    Fix: Remove it, or complete it.
    """
    return Example(f"{_GOOD}evictionSoftGracePeriod: {{memory.available: 2m}}\n")


# ---- PQ408, PQ413 ------------------------------------------------------------------------------------------------


class PodsNotEnforced(Fact, frozen=True, gc=False):
    """A node whose pods are not held to what is allocatable."""

    enforced: tuple[str, ...]

    def sentence(self, _: str) -> str:
        """Return what is named instead of pods."""
        named = f"lists {listed(self.enforced)} but not pods" if self.enforced else "does not include pods"
        return f"enforceNodeAllocatable {named}"


class QOSCgroupsOff(Fact, frozen=True, gc=False):
    """A kubelet that makes no cgroups for the classes."""

    def sentence(self, _: str) -> str:
        """Return the setting."""
        return "cgroupsPerQOS is false"


def _enforcement(kubelet: JudgedKubelet) -> Found:
    """Without cgroups for the classes nothing can be enforced, so only that is reported."""
    path, named = "enforceNodeAllocatable", kubelet.config.enforce_node_allocatable
    if not kubelet.config.cgroups_per_qos:
        patch = Patch.write(
            FieldEdit("cgroupsPerQOS", True, "false"),
            FieldEdit(path, ["pods"], ", ".join(named)),
        )
        yield kubelet.finding(qos_cgroups_off, "cgroupsPerQOS", QOSCgroupsOff(), patch)
    elif "pods" not in named:
        enforced = tuple(name for name in named if name != "none")
        patch = Patch.write(FieldEdit(path, ["pods", *enforced], ", ".join(named)))
        yield kubelet.finding(pods_not_enforced, path, PodsNotEnforced(enforced), patch)


@_kubelet_check("PQ408", "pods-not-enforced", WARNING, _ALLOCATABLE, _THRESHOLDS)
def pods_not_enforced() -> Example:
    """PQ408: Pods are not limited to allocatable.

    Without pods in enforceNodeAllocatable no cgroup limits all pods together: they can use what is reserved for the
    system, and when memory runs out the kernel chooses among all processes of the machine. The threshold for
    allocatable memory disappears as well.

    Fix: Add pods to enforceNodeAllocatable.
    """
    return Example(f"{_GOOD}enforceNodeAllocatable: [none]\n")


@_kubelet_check(
    "PQ413", "qos-cgroups-off", WARNING, _TYPES, "Kubernetes: pkg/kubelet/cm/qos_container_manager_linux.go"
)
def qos_cgroups_off() -> Example:
    """PQ413: QoS classes have no cgroups.

    Without cgroupsPerQOS there is no cgroup per class and pod: under contention a BestEffort pod gets as much cpu as a
    Burstable one requests, nothing limits pods to allocatable, and a pod's memory is not accounted as a whole.

    Fix: Set cgroupsPerQOS to true, which is the default.
    """
    return Example(f"{_GOOD}cgroupsPerQOS: false\nenforceNodeAllocatable: []\n")


# ---- PQ409 -------------------------------------------------------------------------------------------------------


class ReclaimsTooMuch(Fact, frozen=True, gc=False):
    """A minimum reclaim that evicts several pods where one would do."""

    signal: str
    minimum_reclaim: str
    threshold: str

    def sentence(self, _: str) -> str:
        """Return how long the kubelet goes on."""
        more = f"evicts until {self.minimum_reclaim} more is free"
        return f"once {self.signal} falls below {self.threshold}, the kubelet {more}"


def _minimum_reclaim(kubelet: JudgedKubelet, thresholds: Sequence[Threshold]) -> Found:
    for threshold in thresholds:
        if threshold.signal is not Signal.MEMORY or threshold.min_reclaim is None:
            continue
        amount, reclaim = threshold.amount(kubelet.memory_bytes), threshold.min_reclaim.at(kubelet.memory_bytes)
        if reclaim.nanos > _MUCH * amount.nanos:
            signal = threshold.signal.value
            path = f"evictionMinimumReclaim[{signal}]"
            patch = Patch.write(FieldEdit(path, str(amount), kubelet.config.eviction_minimum_reclaim[signal]))
            yield kubelet.finding(reclaims_too_much, path, ReclaimsTooMuch(signal, str(reclaim), str(amount)), patch)
            return


@_kubelet_check("PQ409", "minimum-reclaim-too-large", WARNING, _THRESHOLDS, _MANAGER, fix_on_request=True)
def reclaims_too_much() -> Example:
    """PQ409: Each eviction removes more pods than the pressure requires.

    Once a threshold is crossed, the kubelet evicts until evictionMinimumReclaim more than the threshold is free. If
    that is many times the threshold, a moment of pressure costs several pods.

    Fix: Set it to about the threshold.
    """
    return Example(f"{_GOOD}evictionMinimumReclaim: {{memory.available: 16Gi}}\n")


# ---- PQ411 -------------------------------------------------------------------------------------------------------


class GraceCut(Fact, frozen=True, gc=False):
    """A grace period that a soft eviction does not give."""

    workload: str
    stated_seconds: int
    given_seconds: int

    def sentence(self, _: str) -> str:
        """Return both times."""
        seconds = f"{self.given_seconds} s of its {self.stated_seconds} s grace period"
        return f"a soft eviction gives {self.workload} {seconds}"


def _grace_cut(kubelet: JudgedKubelet, sketches: Sequence[Sketch]) -> Found:
    """Only if a workload states a grace period that a soft threshold could honour."""
    most = kubelet.config.eviction_max_pod_grace_period
    stating = [(sketch.grace_seconds, sketch.subject.key) for sketch in sketches if sketch.grace_seconds is not None]
    if not kubelet.config.eviction_soft or not stating:
        return
    stated, workload = max(stating)
    given = soft_grace_seconds(
        Pod(spec=PodSpec(termination_grace_period_seconds=stated)), most, kubelet.options.profile
    )
    if given < stated:
        path = "evictionMaxPodGracePeriod"
        patch = Patch.write(FieldEdit(path, stated, str(most) if most else None))
        yield kubelet.finding(grace_cut, path, GraceCut(workload, stated, given), patch)


@_kubelet_check("PQ411", "eviction-cuts-grace-period", INFO, _MANAGER)
def grace_cut() -> Example:
    """PQ411: A soft eviction gives pods less time than they request.

    Under a soft threshold a pod gets the smaller of evictionMaxPodGracePeriod, which is zero unless set, and its own
    terminationGracePeriodSeconds. Anything that takes longer, such as saving state, is cut off. (Under a hard threshold
    it is always one second.)

    Fix: Set evictionMaxPodGracePeriod to the longest grace period on the node.
    """
    return Example(
        examples.documents(
            examples.kubelet(f"{_MORE_RESERVED}{_HARD}{_SOFT}{_GRACE}"),
            examples.pod(
                examples.container("index", *examples.USUAL),
                name="index",
                spec="  terminationGracePeriodSeconds: 120\n",
            ),
        )
    )


# ---- PQ412 -------------------------------------------------------------------------------------------------------


class KubeletRefuses(Fact, frozen=True, gc=False):
    """A configuration with which the kubelet does not start."""

    message: str

    def sentence(self, _: str) -> str:
        """Return what it says."""
        return self.message


@_kubelet_check("PQ412", "kubelet-does-not-start", ERROR, _THRESHOLDS, _ALLOCATABLE)
def kubelet_refuses() -> Example:
    """PQ412: The kubelet does not start with these settings.

    The node goes down at the kubelet's next restart, and all its pods are moved or lost.

    Fix: Correct the setting.
    """
    return Example(
        examples.kubelet(f"{_RESERVED}evictionHard: {{memory.available: -1Gi, nodefs.available: 10%}}\n"),
        chosen={"evictionHard[memory.available]": "1Gi"},
    )


# ---- PQ414 -------------------------------------------------------------------------------------------------------


class ThresholdAboveAll(Fact, frozen=True, gc=False):
    """A threshold above the number of inodes or process ids that the node has at most."""

    signal: str
    threshold: str
    count: int
    """The threshold as a number."""
    most: int
    """How many the node has at most."""
    of: str
    """What has so many."""

    def sentence(self, _: str) -> str:
        """Return the threshold as a number, beside what there is."""
        what = "process ids" if self.signal == Signal.PID.value else "inodes"
        wanted = f"{self.signal} must stay above {self.threshold}, {self.count:,} {what}"
        return f"{wanted}; {self.of} has at most {self.most:,}"


def _above_capacity(kubelet: JudgedKubelet, warning: ThresholdWarning) -> Finding:
    config, signal, most = kubelet.config, warning.signal.value, warning.most
    assert most is not None
    setting, written = (
        ("evictionHard", config.eviction_hard or {})
        if warning.soft is None
        else (
            "evictionSoft",
            config.eviction_soft,
        )
    )
    if most.filesystem is None:
        of = f"a kernel with {in_mebibytes(kubelet.memory_bytes)} of memory"
    else:
        of = f"{'ext4' if most.is_ext4 else 'a filesystem'} of {most.filesystem}"
    facts = ThresholdAboveAll(signal, written[signal], warning.demanded, most.count, of)
    share = "10%" if warning.signal is Signal.PID else "5%"
    path = f"{setting}[{signal}]"
    return kubelet.finding(threshold_above_all, path, facts, Patch.choose(Choice.SHARE, (path,), (share,)))


@_kubelet_check(
    "PQ414", "threshold-above-capacity", ERROR, _THRESHOLDS, "Kubernetes: pkg/kubelet/stats/pidlimit/pidlimit_linux.go"
)
def threshold_above_all() -> Example:
    """PQ414: A threshold is higher than what the node has.

    Inodes and process ids are counted, not measured in bytes: nodefs.inodesFree<100Mi, as some guides print it,
    requires 104,857,600 free inodes, but a 100Gi ext4 filesystem has 6,553,600. The threshold is always crossed: the
    node is under DiskPressure or PIDPressure forever, accepts no new pods, and the kubelet evicts one pod after another
    without ever clearing it. If the disk size is unknown, 100Gi is assumed (a Node gives it as ephemeral-storage).

    Fix: Use a percentage, such as 5% (the default for inodes), or a number below what the node has (df -i; the smaller
    of sysctl kernel.pid_max and kernel.threads-max).
    """
    hard = "{memory.available: 1Gi, nodefs.available: 10%, nodefs.inodesFree: 100Mi}"
    return Example(
        examples.kubelet(f"{_RESERVED}evictionHard: {hard}\n"),
        chosen={"evictionHard[nodefs.inodesFree]": "5%"},
    )
