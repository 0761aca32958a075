"""What is tried inside the virtual machine; ``test_linux_in_vm`` looks at the reports.

Here the model can be held to what a test on somebody's machine must not or cannot do: cgroup v2 of its own, negative
oom_score_adj, and OOMs of the whole machine.
"""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from kernel import procfs, trials
from vm.boot import report

CGROUPS = Path("/sys/fs/cgroup")
MI = 2**20
MCL_CURRENT = 1
HIGH_BYTES = 64 * MI
OVER_BYTES = 6 * MI
MEMCG_TRIALS = 6
GLOBAL_TRIALS = 6


def main(seed: int) -> None:
    """Try everything, most harmless first."""
    Path("/proc/self/oom_score_adj").write_text("-1000")
    # Otherwise the interpreter itself is read in again and again while memory runs short.
    ctypes.CDLL(None).mlockall(MCL_CURRENT)
    (CGROUPS / "cgroup.subtree_control").write_text("+memory")
    watermarks()
    high()
    where = trials.hierarchy()
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    for index in range(MEMCG_TRIALS + GLOBAL_TRIALS):
        check = "memcg" if index < MEMCG_TRIALS else "global"
        if check == "memcg":
            trial = trials.random_trial(chance, lowest_adjustment=-1000, largest_mib=24, with_groups=True)
        else:
            trial = trials.random_global_trial(chance)
        outcome = trials.run(trial, where, f"podqos-test-{os.getpid()}-{index}")
        report(check=check, outcome=asdict(outcome), agrees=outcome.agrees, is_close=outcome.is_close)


def watermarks() -> None:
    """Report what the kernel says of this machine's zones, after it has thought of them again."""
    least = Path("/proc/sys/vm/min_free_kbytes")
    least.write_text(least.read_text())
    zones = [
        (each.zone.name, each.zone.managed_pages, each.min_pages, each.low_pages, each.high_pages)
        for each in procfs.zoneinfo()
    ]
    report(check="watermarks", zones=zones, min_free_kib=int(least.read_text()))


def high() -> None:
    """Let a process grow above memory.high; report how long it takes."""
    folder = CGROUPS / f"podqos-test-{os.getpid()}-high"
    folder.mkdir()
    (folder / "memory.high").write_text(str(HIGH_BYTES))
    (folder / "memory.swap.max").write_text("0")
    # It grows to memory.high, says so, and then 6 MiB further.
    code = (
        f"import os; open({str(folder / 'cgroup.procs')!r}, 'w').write(str(os.getpid())); "
        f"used = int(open({str(folder / 'memory.current')!r}).read()); "
        f"first = bytearray(b'x') * ({HIGH_BYTES} - used - {MI // 2}); print('high', flush=True); "
        f"more = bytearray(b'x') * {OVER_BYTES}; print('done', flush=True); input()"
    )
    python = [sys.executable, "-I", "-S", "-c", code]
    with subprocess.Popen(python, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hog:
        assert hog.stdout is not None
        hog.stdout.readline()
        started = time.monotonic()
        start_bytes = int((folder / "memory.current").read_text())
        hog.stdout.readline()
        seconds = time.monotonic() - started
        end_bytes = int((folder / "memory.current").read_text())
        hog.kill()
    for _ in range(100):  # the kernel may need a moment to see the process off
        try:
            folder.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            break
    report(check="high", seconds=seconds, start_bytes=start_bytes, end_bytes=end_bytes, high_bytes=HIGH_BYTES)


if __name__ == "__main__":
    main(int(sys.argv[1]))
