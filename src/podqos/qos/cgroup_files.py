"""Decided values as the files of a cgroup directory, for cgroup v1 and v2.

The two versions name and combine things differently; what is decided is the same. A file that is listed without a
text is not written: its reason says why, and the kernel's own default ("no limit") stays.

Sources: opencontainers/cgroups fs and fs2 (what runc and the kubelet write), Documentation/admin-guide/cgroup-v1 and
cgroup-v2.rst of Linux.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from podqos.qos.cgroup_settings import CgroupVersion
from podqos.qos.cgroup_values import CgroupValues, HugepageLimit, Value, ValueReason
from podqos.qos.cpu import WeightConversion, weight_from_shares

_UNITS = ("B", "KB", "MB", "GB", "TB", "PB")


class CgroupFile(Struct, frozen=True, gc=False):
    """One file and what is written into it."""

    name: str
    text: str | None
    """None where nothing is written and the kernel's default stays."""
    because: ValueReason


def files(
    values: CgroupValues, version: CgroupVersion, conversion: WeightConversion = "linear"
) -> tuple[CgroupFile, ...]:
    """Return the files of one cgroup in a fixed order: cpu, memory, processes, huge pages."""
    return tuple(_files_v1(values) if version is CgroupVersion.V1 else _files_v2(values, conversion))


def _files_v1(values: CgroupValues) -> Iterator[CgroupFile]:
    yield from _plain("cpu.shares", values.cpu_shares)
    quota = values.cpu_quota_us
    if quota is not None:
        # A period with no quota in it is written all the same; the quota is then left at -1.
        yield from _plain("cpu.cfs_quota_us", quota)
        yield from _plain("cpu.cfs_period_us", Value(values.cpu_period_us, quota.because))
    memory, swap = values.memory_limit_bytes, values.memory_swap_bytes
    yield from _own_cpus(values)
    yield from _plain("memory.limit_in_bytes", _limit(memory))
    if memory is not None and swap is not None:
        both = None if memory.amount is None or swap.amount is None else memory.amount + swap.amount
        yield from _plain("memory.memsw.limit_in_bytes", Value(both, swap.because))
    yield from _plain("pids.max", values.pids_limit)
    for limit in values.hugepage_limits:
        yield from _plain(f"hugetlb.{_page_size(limit)}.limit_in_bytes", limit.limit_bytes)


def _files_v2(values: CgroupValues, conversion: WeightConversion) -> Iterator[CgroupFile]:
    shares = values.cpu_shares
    if shares is not None and shares.amount is not None:
        yield from _plain("cpu.weight", Value(weight_from_shares(shares.amount, conversion), shares.because))
    quota = values.cpu_quota_us
    if quota is not None:
        period_us = values.cpu_period_us
        text = None if period_us is None else f"{'max' if quota.amount is None else quota.amount} {period_us}"
        yield CgroupFile("cpu.max", text, quota.because)
    yield from _own_cpus(values)
    yield from _plain("memory.min", values.memory_min_bytes)
    yield from _plain("memory.low", values.memory_low_bytes)
    yield from _plain("memory.high", values.memory_high_bytes)
    yield from _plain("memory.max", _limit(values.memory_limit_bytes))
    yield from _plain("memory.swap.max", values.memory_swap_bytes)
    yield from _plain("memory.oom.group", values.memory_oom_group)
    yield from _plain("pids.max", values.pids_limit)
    for limit in values.hugepage_limits:
        yield from _plain(f"hugetlb.{_page_size(limit)}.max", limit.limit_bytes)


def _limit(value: Value | None) -> Value | None:
    """Return a limit of memory as runc's library takes it: one of 0 is not set, and what was set before stays."""
    return Value(None, value.because) if value is not None and value.amount == 0 else value


def _plain(name: str, value: Value | None) -> Iterator[CgroupFile]:
    if value is not None:
        yield CgroupFile(name, None if value.amount is None else str(value.amount), value.because)


def _own_cpus(values: CgroupValues) -> Iterator[CgroupFile]:
    """Yield the CPUs a container has to itself; their numbers are not known before the pod is on a node."""
    own = values.exclusive_cpus
    if own is not None:
        yield CgroupFile("cpuset.cpus", f"<{own.amount} of its own>", own.because)


def _page_size(limit: HugepageLimit) -> str:
    """Return a page size as the kernel spells it in file names: 2MB, 1GB, 64KB."""
    size, unit = limit.page_size_bytes, 0
    while size >= 1024 and size % 1024 == 0 and unit < len(_UNITS) - 1:
        size, unit = size // 1024, unit + 1
    return f"{size}{_UNITS[unit]}"
