"""Same scenario, same bytes: on a second run, and whatever the order of hashes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from eviction.nodes import pod
from podqos.agent.journal import encode
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.time_units import SECOND_US
from podqos.sim.run import simulate
from podqos.sim.scenario.scenario import NodeGroup, NodeLost, Scenario
from sim.worlds import MI, node, ramp, scenario, using, workload

TESTS = Path(__file__).parents[1]


def busy() -> Scenario:
    """Return a scenario with a bit of everything: kills, evictions, preemption, replacement, a lost node."""
    config = KubeletConfiguration(eviction_hard={"memory.available": "100Mi"}, enforce_node_allocatable=())
    free = {"nodes": (), "kind": "Deployment", "recreate": True}
    return scenario(
        workload(pod("leaks", "memory=100Mi"), using(ramp(50 * MI, 600 * MI, 40)), replicas=6, **free),
        workload(pod("limited", limits="memory=64Mi"), using(ramp(0, 100 * MI, 7)), replicas=5, **free),
        workload(pod("busy", "cpu=1", priority=5), using(20 * MI, cpu_milli=ramp(0, 4000, 30)), replicas=4, **free),
        workload(pod("late", "memory=500Mi", priority=9), using(MI), arrives_us=50 * SECOND_US, replicas=3, **free),
        seconds=300,
        nodes=(NodeGroup(node(config=config), 3, phase_step_us=SECOND_US),),
        happenings=(NodeLost(at_us=90 * SECOND_US, node="n-2"),),
    )


def test_a_second_run_gives_the_same_bytes():
    assert encode(simulate(busy()).entries) == encode(simulate(busy()).entries)


def test_the_order_of_hashes_does_not_matter():
    program = "from sim.test_determinism import digest; print(digest())"
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=TESTS,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def digest() -> str:
    """Return a fingerprint of the journal, and how much is in it."""
    entries = simulate(busy()).entries
    return f"{hashlib.sha256(encode(entries)).hexdigest()} {len(entries)}"
