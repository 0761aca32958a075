"""Records OOMs of cgroup v2 and of the whole machine, inside the virtual machine (``kernel.record_ooms``)."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

from kernel import record_ooms
from vm.boot import report

CGROUPS = Path("/sys/fs/cgroup")
MCL_CURRENT = 1


def main() -> None:
    """Record everything, most harmless first."""
    Path("/proc/self/oom_score_adj").write_text("-1000")
    ctypes.CDLL(None).mlockall(MCL_CURRENT)
    Path("/proc/sys/kernel/printk").write_text("1")
    subprocess.run(["mount", "-o", "remount,size=100%", "/dev/shm"], check=True)  # noqa: S108
    if Path("/sys/devices/system/node/node1").exists():
        record_ooms.run(record_ooms.NODE_CASES, CGROUPS, 2, lambda made: report(**made))
        return
    cases = (*record_ooms.CASES, *record_ooms.GROUP_CASES, *record_ooms.MACHINE_CASES)
    record_ooms.run(cases, CGROUPS, 2, lambda made: report(**made))
    for setting, value in (("oom_kill_allocating_task", "1"), ("oom_dump_tasks", "0")):
        file = Path("/proc/sys/vm") / setting
        before = file.read_text()
        file.write_text(value)
        named = [each._replace(name=f"{each.name}-{setting}") for each in record_ooms.MACHINE_CASES[:1]]
        record_ooms.run(tuple(named), CGROUPS, 2, lambda made: report(**made))
        file.write_text(before)


if __name__ == "__main__":
    main()
    sys.exit(0)
