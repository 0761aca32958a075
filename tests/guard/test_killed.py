"""The guard killed with -9 at every step of an eviction, and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import msgspec
import pytest

from guard.guards import victim_of
from guard.kubelets import REAL, RealKubelet
from guard.test_acting import is_frozen
from podqos.guard.eviction import KillWhen

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parent / "guard_process.py"
AT_ONCE = 4


def start(kubelet, pod, when, folder, *, dies_at=None, victim=None):
    """Run a guard to its end; return its exit code and at which step it killed itself."""
    told = {
        "kubepods": kubelet.cgroups.own,
        "kubeconfig": REAL if isinstance(kubelet, RealKubelet) else None,
        "url": kubelet.access.server,
        "intents": str(folder),
        "kill_when": when,
        "cgroup": pod.cgroup,
        "container_ids": pod.container_ids,
        "victim": victim and msgspec.to_builtins(victim),
        "dies_at": dies_at,
    }
    ran = subprocess.run([sys.executable, SCRIPT, json.dumps(told)], stdout=subprocess.PIPE, timeout=300, check=False)
    return ran.returncode, ran.stdout.decode().strip()


@pytest.mark.parametrize("when", KillWhen)
def test_no_kill_without_its_status_and_event_and_nothing_stays_frozen(kubelet, when):
    innocent = kubelet.run("innocent")
    steps = []

    def trial(dies_at):
        """Return whether there was such a step."""
        pod = kubelet.run(f"victim-{dies_at}")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            victim = victim_of(pod, kubelet.node)
            code, step = start(kubelet, pod, when, folder, dies_at=dies_at, victim=victim)
            if code != 0:
                assert code == -signal.SIGKILL
                steps.append(step)
                assert start(kubelet, pod, when, folder) == (0, "")
            assert list(Path(folder).iterdir()) == []
        where = f"killed at step {dies_at}: {step}"
        assert not is_frozen(kubelet, pod), where
        there = kubelet.pod(pod.name)
        is_told = there["metadata"].get("annotations", {}).get("podqos.dev/evicted-at") == victim.decided_at
        if not is_told:
            # It had not begun: no intent was on file, nothing was done.
            assert step == "before keep", where
            assert kubelet.processes(pod), where
            assert kubelet.restarts(pod.name) == 0
        else:
            events = [each for each in kubelet.events(pod.uid) if each["source"]["component"] == "podqos-guard"]
            assert len(events) == 1, where
            assert there["status"]["phase"] == "Failed", where
            assert not kubelet.processes(pod), where
        return code != 0

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for first in count(0, AT_ONCE):
            if not all(pool.map(trial, range(first, first + AT_ONCE))):
                break
    assert {"before freeze", "after freeze", "before kill_charged", "after thaw", "after post_event"} <= set(steps)
    assert kubelet.processes(innocent)
    assert kubelet.pod(innocent.name)["status"]["phase"] == "Running"
    assert not kubelet.events(innocent.uid)
