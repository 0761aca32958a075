"""Reads of /proc what the model of the kernel takes."""

from __future__ import annotations

import re
from pathlib import Path

from podqos.kernel.build import PAGE_BYTES
from podqos.kernel.memory import Zone, ZoneWatermarks
from podqos.kernel.oom import Process

PROC = Path("/proc")


def meminfo() -> dict[str, int]:
    """Return the lines of /proc/meminfo, in bytes."""
    lines = (PROC / "meminfo").read_text().splitlines()
    return {name: int(rest.split()[0]) * 1024 for name, rest in (line.split(":") for line in lines)}


def zoneinfo() -> tuple[ZoneWatermarks, ...]:
    """Return the zones of all nodes, as /proc/zoneinfo shows them."""
    zones = []
    for block in re.split(r"(?m)^(?=Node )", (PROC / "zoneinfo").read_text()):
        name = re.search(r"zone\s+(\w+)", block)
        if not name or name[1] == "Device":
            continue
        low, high, least, managed = (
            int(re.search(rf"(?m)^\s+{field}\s+(\d+)$", block)[1]) for field in ("low", "high", "min", "managed")
        )
        reserve = max(int(number) for number in re.search(r"protection: \((.*)\)", block)[1].split(","))
        zones.append(ZoneWatermarks(Zone(name[1], managed), least, low, high, reserve))
    return tuple(zones)


def process(pid: int, cgroup: str) -> Process | None:
    """Return a process as the OOM killer sees it; None for one that is gone and for kernel threads."""
    try:
        status = (PROC / str(pid) / "status").read_text()
        adjustment = int((PROC / str(pid) / "oom_score_adj").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    kib = dict(re.findall(r"(?m)^(VmRSS|VmSwap|VmPTE):\s+(\d+) kB$", status))
    if "VmRSS" not in kib:
        return None
    rss, swap, tables = (int(kib[name]) * 1024 // PAGE_BYTES for name in ("VmRSS", "VmSwap", "VmPTE"))
    return Process(pid, cgroup, rss, swap, tables, adjustment)


def processes() -> list[Process]:
    """Return all processes of the machine with their v2 cgroups."""
    found = []
    for path in PROC.glob("[0-9]*"):
        try:
            line = re.search(r"(?m)^0::(.*)$", (path / "cgroup").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
        each = process(int(path.name), line[1] if line else "/")
        if each is not None:
            found.append(each)
    return found
