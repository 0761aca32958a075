"""CPU amounts in the units of the kernel: milli-CPUs, shares, weight, quota.

A request becomes a share of what is contended (``cpu.shares`` on cgroup v1, ``cpu.weight`` on v2), a limit becomes a
quota of run time per period. Every conversion rounds; the rounding is part of the contract and is upstream's.

Sources: Kubernetes v1.36 pkg/kubelet/cm/{helpers_linux,cgroup_v2_manager_linux}.go; for the curve,
opencontainers/cgroups utils.go (runc since 1.3.2, crun since 1.23). Only numbers belong here; which amount of a pod
goes into which file is decided in ``cgroup_values``.
"""

from __future__ import annotations

import math
from typing import Literal

WeightConversion = Literal["linear", "quadratic"]

# The kernel's own bounds (kernel/sched/sched.h: MIN_SHARES, MAX_SHARES).
MIN_SHARES = 2
MAX_SHARES = 262_144
MIN_WEIGHT = 1
MAX_WEIGHT = 10_000

# What a cgroup weighs that nobody wrote a weight to, such as a slice of systemd's with daemons in it.
DEFAULT_SHARES = 1024
DEFAULT_WEIGHT = 100

DEFAULT_PERIOD_US = 100_000
MIN_QUOTA_US = 1_000

_SHARES_PER_CPU = 1024
_LARGEST = 2**63 - 1
_MILLI_PER_CPU = 1000


def shares_from_milli(cpu_milli: int) -> int:
    """Return the shares of a cpu request; nothing requested gives the kernel's minimum."""
    return min(max(cpu_milli * _SHARES_PER_CPU // _MILLI_PER_CPU, MIN_SHARES), MAX_SHARES)


def milli_from_shares(shares: int) -> int:
    """Return the request that shares stand for, rounded up; less than the minimum stands for none."""
    return -(-shares * _MILLI_PER_CPU // _SHARES_PER_CPU) if shares >= MIN_SHARES else 0


def weight_from_shares(shares: int, conversion: WeightConversion = "linear") -> int:
    """Return the cgroup v2 weight of cgroup v1 shares.

    The kubelet draws a straight line from (2, 1) to (262144, 10000) for its own cgroups. One CPU (1024 shares) is
    then worth 39 where the kernel's default is 100, so newer runtimes put a curve through (1024, 100) for containers.
    """
    shares = min(max(shares, MIN_SHARES), MAX_SHARES)
    if conversion == "linear" or shares in (MIN_SHARES, MAX_SHARES):
        return MIN_WEIGHT + (shares - MIN_SHARES) * (MAX_WEIGHT - MIN_WEIGHT) // (MAX_SHARES - MIN_SHARES)
    # Floating point is safe: of all shares only 1024 lands next to a whole number, and there it is exact.
    log = math.log2(shares)
    return math.ceil(10 ** ((log * log + 125 * log) / 612 - 7 / 34))


def shares_from_weight(weight: int) -> int:
    """Return the shares of a weight on the kubelet's line."""
    return MIN_SHARES + (weight - MIN_WEIGHT) * (MAX_SHARES - MIN_SHARES) // (MAX_WEIGHT - MIN_WEIGHT)


def quota_from_milli(cpu_milli: int, period_us: int = DEFAULT_PERIOD_US) -> int | None:
    """Return the run time per period that a cpu limit allows; no limit gives none, a tiny one the kernel's minimum.

    It is a number of 64 bits, also where the limit is not.
    """
    return max(min(cpu_milli * period_us // _MILLI_PER_CPU, _LARGEST), MIN_QUOTA_US) if cpu_milli else None


def milli_from_quota(quota_us: int | None, period_us: int = DEFAULT_PERIOD_US) -> int | None:
    """Return the limit that a quota stands for."""
    return quota_us * _MILLI_PER_CPU // period_us if quota_us is not None else None
