"""The benchmarks beside a real kubelet, in small, where ``PODQOS_TEST_KUBELET`` names one."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guard.kubelets import REAL

pytestmark = [pytest.mark.slow, pytest.mark.skipif(REAL is None, reason="PODQOS_TEST_KUBELET names no kubeconfig")]

BENCH = Path(__file__).resolve().parents[2] / "bench"
FAULTS = 8


def run(script: str, *options: str) -> str:
    command = [sys.executable, str(BENCH / script), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        try:
            said = running.communicate(timeout=900)[0]
        except subprocess.TimeoutExpired:
            # It ends what it has started.
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=120)[0]
    assert running.returncode == 0, said
    return said


def test_whatever_goes_wrong_only_the_right_pods_die_and_each_is_told_and_nothing_stays_frozen():
    assert f"{FAULTS} rounds: 0 problems" in run("guard_chaos.py", "--rounds", str(FAULTS))


@pytest.mark.parametrize("mode", ["patch", "answer"])
def test_exactly_the_right_pods_are_evicted_whoever_grows(mode):
    said = run("guard_race.py", "--races", "9", "--modes", mode)
    assert "a wrong pod in 0;" in said
    assert "right pod Evicted in 9," in said
