"""Victims of the kernel's OOM killer on a real node are those that the node's own statistics foretell."""

from __future__ import annotations

import os
import random

import pytest

from host.machine import needs_node
from host.nodes import kubelet, running_node
from host.victims import MEMORY_BYTES, trial

pytestmark = [needs_node, pytest.mark.slow]

TRIALS = 10


def test_the_kernel_kills_the_process_that_the_statistics_predict():
    seed = int(os.environ.get("PODQOS_TEST_SEED") or 1)
    print(f"PODQOS_TEST_SEED={seed}")  # noqa: T201 - pytest shows it with a failure
    chance = random.Random(seed)  # noqa: S311
    hard = kubelet(evictionHard={"memory.available": "100Ki"}, evictionPressureTransitionPeriod="1ms")
    with running_node(hard, memory_bytes=MEMORY_BYTES, fast_path=False) as stage:
        verdicts = [trial(stage, number, chance) for number in range(TRIALS)]
    assert [verdict for verdict in verdicts if not verdict.agrees] == []
    assert all(verdict.is_container_told for verdict in verdicts)
    assert sum(len(verdict.foretold) > 1 for verdict in verdicts) <= TRIALS // 2, "too many were too close to call"
