"""The guard killed with -9 at every step of an eviction, and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from subprocess import PIPE

import msgspec
import pytest

from guard.guards import victim_of
from guard.kubelets import REAL, RealKubelet
from guard.test_acting import is_frozen
from podqos.guard.eviction import KillWhen
from podqos.guard.requests import ANNOTATION

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).parent / "guard_process.py"
AT_ONCE = 4


STEPS = [
    f"{when} {step}"
    for step in (
        "keep 1", "freeze 1", "keep 2", "kill_charged 1", "thaw 1", "patch_status 1", "_hear 1", "keep 3",
        "post_event 1", "_hear 2", "keep 4", "forget 1",
    )
    for when in ("before", "after")
]  # fmt: skip


@pytest.fixture
def guards():
    """Return processes that are guards at once when they are told."""
    free = SimpleQueue()
    with ExitStack() as stack:
        for _ in range(AT_ONCE):
            command = [sys.executable, SCRIPT]
            free.put(stack.enter_context(subprocess.Popen(command, stdin=PIPE, stdout=PIPE, text=True)))
        yield free


def start(guards, kubelet, pod, when, folder, *, dies="", victim=None):
    """Run a guard to its end; return its exit code."""
    told = {
        "kubepods": kubelet.cgroups.own,
        "kubeconfig": REAL if isinstance(kubelet, RealKubelet) else None,
        "url": kubelet.access.server,
        "intents": str(folder),
        "kill_when": when,
        "cgroup": pod.cgroup,
        "container_ids": pod.container_ids,
        "victim": victim and msgspec.to_builtins(victim),
        "dies": dies,
    }
    process = guards.get()
    try:
        print(json.dumps(told), file=process.stdin, flush=True)
        return int(process.stdout.readline())
    finally:
        guards.put(process)


@pytest.mark.parametrize("when", KillWhen)
def test_no_kill_without_its_status_and_event_and_nothing_stays_frozen(kubelet, guards, when):
    innocent = kubelet.run("innocent")

    def trial(step):
        pod = kubelet.run(step.replace(" ", "-").replace("_", ""))
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            victim = victim_of(pod, kubelet.node)
            assert start(guards, kubelet, pod, when, folder, dies=step, victim=victim) == -signal.SIGKILL, step
            assert start(guards, kubelet, pod, when, folder) == 0, step
            assert list(Path(folder).iterdir()) == [], step
        assert not is_frozen(kubelet, pod), step
        there = kubelet.pod(pod.name)
        is_told = there["metadata"].get("annotations", {}).get(ANNOTATION) == victim.decided_at
        assert is_told is (step != "before keep 1"), f"{step}: what is on file is finished, and nothing else begun"
        if is_told:
            events = [each for each in kubelet.events(pod.uid) if each["source"]["component"] == "podqos-guard"]
            assert len(events) == 1, step
            assert there["status"]["phase"] == "Failed", step
            assert not kubelet.processes(pod), step
        else:
            assert kubelet.processes(pod)
            assert kubelet.restarts(pod.name) == 0

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(trial, STEPS))
    assert kubelet.processes(innocent)
    assert kubelet.pod(innocent.name)["status"]["phase"] == "Running"
    assert not kubelet.events(innocent.uid)
