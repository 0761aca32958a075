"""What happens as a resource runs out, and settings that look wrong, in words."""

from __future__ import annotations

from collections.abc import Iterable

from podqos.eviction.manager import MONITORING_INTERVAL_SECONDS
from podqos.eviction.signals import SIGNALS, Signal
from podqos.eviction.threshold_warnings import Most, ThresholdWarning, WarningKind
from podqos.placement.allocatable import SoftCoverage
from podqos.survival.orders.exhaustion import SOFT, Actor, ActorLevel, Exhaustion, WatchedThreshold
from podqos.words.durations import duration
from podqos.words.ranking import amount as amount_of

_STEPS = {
    Actor.KSWAPD: "the kernel starts to reclaim page cache",
    Actor.OOM_KILLER: "the kernel kills if nothing is left to reclaim",
    Actor.HARD_THRESHOLD: "hard threshold: the kubelet evicts at its next check, within {interval} s",
    Actor.SOFT_THRESHOLD: "soft threshold: reports pressure, evicts after {}",
}


def step_text(step: ActorLevel, thresholds: Iterable[WatchedThreshold]) -> str:
    """Return what happens when this much is left."""
    met = (
        threshold.grace_seconds
        for threshold in thresholds
        if (threshold.signal, threshold.amount) == (step.signal, step.left)
    )
    return _STEPS[step.actor].format(duration(max(met, default=0)), interval=MONITORING_INTERVAL_SECONDS)


_WARNINGS = {
    WarningKind.SOFT_AFTER_HARD: "the hard threshold ({hard}) is crossed before the soft one ({soft}), which never "
    "acts",
    WarningKind.SOFT_WITHOUT_GRACE: "a grace period of zero makes the soft threshold act like a hard one",
    WarningKind.UNUSED_GRACE_PERIOD: "grace period without a soft threshold",
    WarningKind.CONTAINERFS_IGNORED: "the kubelet ignores it and uses the threshold of nodefs or imagefs",
    WarningKind.NEVER_MET: "this threshold can never be crossed",
    WarningKind.MEMORY_UNWATCHED: "no hard threshold for memory, so only {actor} (setting any hard "
    "threshold drops all defaults; mergeDefaultEvictionSettings keeps them)",
    WarningKind.DISK_UNWATCHED: "no threshold for disk space, so nothing is evicted before a disk is full (setting any "
    "hard threshold drops all defaults; mergeDefaultEvictionSettings keeps them)",
    WarningKind.ABOVE_CAPACITY: "the {type} threshold is {count} {what}, and {there} has at most {most}: the node is "
    "always under pressure and keeps evicting",
    WarningKind.SWAP_HIDES_PRESSURE: "with swap on, pods that swap out do not lower memory.available: the kubelet sees "
    "no pressure until swap is full",
}


def warning_text(warning: ThresholdWarning, exhaustion: Exhaustion) -> str:
    """Return what is wrong with a setting."""
    has_soft = any(threshold.signal is Signal.MEMORY and threshold.type == SOFT for threshold in exhaustion.thresholds)
    actor = "the soft threshold acts before the kernel" if has_soft else "the kernel acts"
    amounts = {"soft": warning.soft, "hard": warning.hard}
    shown = {
        name: "" if amount is None else amount_text(warning.signal, amount.value) for name, amount in amounts.items()
    }
    if warning.most is not None:
        shown |= {
            "type": "hard" if warning.soft is None else "soft",
            "count": f"{warning.demanded:,}",
            "most": f"{warning.most.count:,}",
            **_counted(warning.signal, warning.most),
        }
    text = _WARNINGS[warning.kind].format(actor=actor, **shown)
    return f"{text}, if the filesystem has {warning.assumed_capacity}" if warning.assumed_capacity else text


def _counted(signal: Signal, most: Most) -> dict[str, str]:
    """Return what is counted, and what has it."""
    if signal is Signal.PID:
        return {"what": "process ids", "there": "this kernel"}
    return {"what": "inodes", "there": "ext4" if most.is_ext4 else "the filesystem"}


def too_late_text(threshold: WatchedThreshold, exhaustion: Exhaustion) -> str:
    """Return that the kernel kills before a threshold is met."""
    assert exhaustion.watermarks is not None
    kept = amount_of(exhaustion.watermarks.min_bytes, SIGNALS[threshold.signal].resource)
    return f"{threshold.value} is too low: the kernel keeps {kept} free and kills before it is crossed"


def uncovered_text(coverage: SoftCoverage) -> str:
    """Return that pods within their allocatable meet a soft threshold."""
    amounts = (coverage.allocatable, coverage.usable_before_soft, coverage.soft)
    allocatable, usable, soft = (amount_of(amount.value, coverage.resource) for amount in amounts)
    text = f"pods may request {allocatable}, but cross the soft threshold at {usable}: "
    return f"{text}add {soft} to systemReserved"


def amount_text(signal: Signal, amount: int | None) -> str:
    """Return an amount of what a signal watches."""
    return "?" if amount is None else amount_of(amount, SIGNALS[signal].resource)
