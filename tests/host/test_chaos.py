"""A node that nothing takes down, for half a minute; ``bench/node_chaos.py`` does the same for half an hour."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from host.machine import needs_node

pytestmark = [needs_node, pytest.mark.slow]

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "node_chaos.py"


def test_every_healthy_pod_runs_once_and_nothing_is_left_whatever_is_killed():
    seed = os.environ.get("PODQOS_TEST_SEED") or "1"
    command = [sys.executable, str(SCRIPT), "--minutes", "0.5", "--seed", seed]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        try:
            said = running.communicate(timeout=240)[0]
        except subprocess.TimeoutExpired:
            # It ends what it has started.
            running.send_signal(signal.SIGINT)
            said = running.communicate(timeout=300)[0]
    assert running.returncode == 0, said
    assert f"seed {seed}: 0 problems" in said
