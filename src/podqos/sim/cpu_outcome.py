"""What the pods of a workload got of the CPU they wanted, added up over a run.

Counted are pods that were slowed, or had work to do, over all the time that they ran; others got all they wanted. The
shape is part of what ``podqos simulate -o json`` prints: fields are added, never renamed or removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from podqos.sim.node.cpu import CPU_US, CpuAccount

_DIGITS = 6


class CpuOutcome(Struct, frozen=True, gc=False, rename="camel"):
    """What the pods of a workload got of the CPU: those that were slowed, or had work to do."""

    slowed: int
    """Pods that at some time got less CPU than they wanted, whatever else happened to them."""
    wanted_us: int
    """CPU time that these pods wanted while they ran, in microseconds of one core."""
    granted_us: int
    """What they got of it."""
    denied_us: int
    """What they did not get."""
    least_share: float
    """The least share of what it wanted that a container got at any time: 0.5 is half."""
    mean_share: float
    """Granted by wanted."""
    slowdown: float | None
    """How many times longer everything took. Work that is done: the time it took by the time it takes alone, with all
    the CPU it wants; else wanted by granted. None: it got nothing."""
    throttled_periods: int = 0
    """Periods (of 100 ms, unless the kubelet is configured otherwise) in which a CPU limit stopped a container."""
    work_done: int = 0
    """How often a container did all its work."""
    work_unfinished: int = 0
    """How often it did not: it was killed or stopped before, or the run ended."""
    work_taken_us: int = 0
    """How long the work that is done took."""
    work_alone_us: int = 0
    """How long it would have taken with all the CPU it wants."""


def cpu_outcome(accounts: Sequence[CpuAccount], firsts: Mapping[str, str]) -> CpuOutcome | None:
    """Add up the accounts of a workload; ``firsts`` has the first of the pods that a replacement stands for."""
    if not accounts:
        return None
    done = [account for account in accounts if account.is_done]
    compared = [account for account in done if account.alone_us is not None]
    # Rounded one by one, so that the parts of a fleet add up to the whole.
    wanted_us = sum(round(account.wanted / CPU_US) for account in accounts)
    granted_us = sum(round(account.granted / CPU_US) for account in accounts)
    return _outcome(
        slowed=len({firsts.get(account.pod, account.pod) for account in accounts if account.throttled_us}),
        wanted_us=wanted_us,
        granted_us=granted_us,
        least_share=min(account.least[0] / account.least[1] for account in accounts),
        throttled_periods=sum(account.throttled_periods for account in accounts),
        work_done=len(done),
        work_unfinished=sum(account.work is not None and not account.is_done for account in accounts),
        work_taken_us=sum(account.ended_us - account.started_us for account in compared),
        work_alone_us=sum(account.alone_us or 0 for account in compared),
    )


def cpu_together(parts: Sequence[CpuOutcome | None]) -> CpuOutcome | None:
    """Return the outcome of several parts of a fleet, or of several workloads."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    names = (
        "slowed",
        "wanted_us",
        "granted_us",
        "throttled_periods",
        "work_done",
        "work_unfinished",
        "work_taken_us",
        "work_alone_us",
    )
    least = min(part.least_share for part in known)
    return _outcome(least_share=least, **{name: sum(getattr(part, name) for part in known) for name in names})


def _outcome(
    *, least_share: float, wanted_us: int, granted_us: int, work_taken_us: int, work_alone_us: int, **more: int
) -> CpuOutcome:
    if work_alone_us:
        slowdown: float | None = work_taken_us / work_alone_us
    else:
        slowdown = wanted_us / granted_us if granted_us else None
    return CpuOutcome(
        wanted_us=wanted_us,
        granted_us=granted_us,
        denied_us=wanted_us - granted_us,
        least_share=round(least_share, _DIGITS),
        mean_share=round(granted_us / wanted_us, _DIGITS) if wanted_us else 1.0,
        slowdown=None if slowdown is None else round(slowdown, _DIGITS),
        work_taken_us=work_taken_us,
        work_alone_us=work_alone_us,
        **more,
    )
