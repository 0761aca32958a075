"""What ``/proc/PID/oom_score`` is predicted to show, held against the kernel these tests run on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernel.shown import shown_for

PROC = Path("/proc")
PAGE_KIB = 4

# The kernel's own counters of a process lag a little behind what /proc/PID/status sums up, and memory moves between
# two readings: one step of a scale that has two thousand.
MARGIN = 1

# A child that takes an adjustment and some memory and reports on itself. Raising needs no privilege.
CHILD = """
import json, pathlib, sys
me = pathlib.Path("/proc/self")
adj, mebibytes = int(sys.argv[1]), int(sys.argv[2])
held = bytearray(b"x") * (mebibytes << 20)
(me / "oom_score_adj").write_text(str(adj))
print(json.dumps({"score": int((me / "oom_score").read_text()), "status": (me / "status").read_text()}))
"""


def kibibytes(text: str, *names: str) -> int:
    """Add up lines such as ``VmRSS:  1234 kB``."""
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return sum(int(fields[name].split()[0]) for name in names if name in fields)


def total_pages() -> int:
    return kibibytes((PROC / "meminfo").read_text(), "MemTotal", "SwapTotal") // PAGE_KIB


def used_pages(status: str) -> int:
    return kibibytes(status, "VmRSS", "VmSwap", "VmPTE") // PAGE_KIB


def own_adjustment() -> int:
    return int((PROC / "self/oom_score_adj").read_text())


@pytest.mark.skipif(not (PROC / "self/oom_score").exists(), reason="needs Linux")
class TestAgainstKernel:
    def test_this_very_process(self):
        status, shown = (PROC / "self/status").read_text(), int((PROC / "self/oom_score").read_text())
        expected = shown_for(own_adjustment(), used_pages(status), total_pages())
        assert abs(shown - expected) <= MARGIN

    @pytest.mark.parametrize("mebibytes", [0, 256])
    @pytest.mark.parametrize("adj", [3, 500, 937, 999, 1000])
    def test_a_child_with_a_raised_adjustment(self, adj, mebibytes):
        """The adjustments are those of Burstable and BestEffort containers."""
        if adj < own_adjustment():
            pytest.skip("only raising is free")
        command = [sys.executable, "-c", CHILD, str(adj), str(mebibytes)]
        seen = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        expected = shown_for(adj, used_pages(seen["status"]), total_pages())
        assert abs(seen["score"] - expected) <= MARGIN


def test_an_exempt_process_shows_zero_however_large():
    assert shown_for(-1000, 10**6, 10**6) == 0


@pytest.mark.parametrize(("adj", "shown"), [(-999, 0), (-997, 2), (0, 666), (937, 1291), (1000, 1333)])
def test_an_idle_process_shows_its_adjustment(adj, shown):
    """With a total that a thousand divides; otherwise the kernel's own rounding takes one more."""
    assert shown_for(adj, 0, 16 * 10**6) == shown
