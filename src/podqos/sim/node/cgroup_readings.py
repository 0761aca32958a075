"""The settings in a cgroup's files, for the simulated kernel. Cgroups with the same files are parsed once."""

from __future__ import annotations

from msgspec import Struct

from podqos.kernel.cpu import DEFAULT_PERIOD_USEC
from podqos.kernel.memcg import MemcgSettings
from podqos.qos.cgroup import Cgroup
from podqos.qos.cgroup_files import CgroupFile
from podqos.survival.node.memory_tree import memcg_settings

_MOST_KEPT = 50_000


class CpuSettings(Struct, frozen=True, gc=False):
    """What the files say about CPU."""

    weight: int
    """``cpu.weight`` or ``cpu.shares``."""
    quota_usec: int | None
    """Per period; None is as much as there is."""
    period_usec: int

    @property
    def quota_milli(self) -> int | None:
        """The quota in thousandths of a core."""
        return None if self.quota_usec is None else self.quota_usec * 1000 // self.period_usec


class CgroupReading(Struct, frozen=True, gc=False):
    """What the files say."""

    files: tuple[CgroupFile, ...]
    memory: MemcgSettings
    cpu: CpuSettings
    pids_max: int | None


class CgroupReadings:
    """Remembers what has been read."""

    def __init__(self) -> None:
        self._known: dict[int, CgroupReading] = {}

    def of(self, cgroup: Cgroup) -> CgroupReading:
        """Return what the files of a cgroup say."""
        known = self._known.get(id(cgroup.files))
        if known is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            known = self._known[id(cgroup.files)] = _read(cgroup)
        return known


def _read(cgroup: Cgroup) -> CgroupReading:
    pids_max = cgroup.text("pids.max")
    return CgroupReading(
        cgroup.files, memcg_settings(cgroup), _cpu(cgroup), None if pids_max is None else int(pids_max)
    )


def _cpu(cgroup: Cgroup) -> CpuSettings:
    files = {file.name: file.text for file in cgroup.files if file.text is not None}
    quota, _, period = (files.get("cpu.max") or "max").partition(" ")
    if "cpu.cfs_quota_us" in files:
        quota, period = files["cpu.cfs_quota_us"], files.get("cpu.cfs_period_us", "")
    return CpuSettings(
        weight=int(files.get("cpu.weight") or files.get("cpu.shares") or 100),
        quota_usec=int(quota) if quota.isdecimal() else None,
        period_usec=int(period or DEFAULT_PERIOD_USEC),
    )
