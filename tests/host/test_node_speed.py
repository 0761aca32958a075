"""A hard eviction: a pod that keeps growing is killed at once, others have their grace period; extras of version 2."""

from __future__ import annotations

import os

import pytest

from host.machine import needs_node
from host.nodes import MI, PYTHON, kubelet, pod_document, running_node
from podqos.eviction import pods
from podqos.host.linux.capabilities import detect
from podqos.qos.cgroup_settings import CgroupVersion

pytestmark = [needs_node, pytest.mark.slow]

_HARD = kubelet(evictionHard={"memory.available": "64Mi"})
_HARD_LARGE = kubelet(evictionHard={"memory.available": "256Mi"})
# Some 80 MiB a second, so that a node that is held up for seconds is still before the kernel; how fast it may be is
# measured by bench/node_race.py.
_DEAF = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nkept = [bytearray(b'x') * (200 << 20)]\n"
    "while True: kept.append(bytearray(b'x') * (1 << 20)); time.sleep(0.012)"
)


def test_a_pod_that_ignores_sigterm_and_grows_on_is_killed_before_the_kernel_has_to(monkeypatch):
    monkeypatch.setattr(pods, "_IMMEDIATE_SECONDS", 300)
    with running_node(_HARD_LARGE, 512 * MI) as stage:
        fixed = {"memory": "96Mi", "cpu": "100m"}
        stage.put(pod_document("other", "sleep", "1000", resources={"requests": fixed, "limits": fixed}))
        stage.until(lambda: stage.is_up("other"))
        stage.put(pod_document("deaf", *PYTHON, _DEAF))
        stage.until(lambda: stage.lines("CleanedUp"))
        assert stage.lines("Evicted", "OOMKilled") == [("Evicted", "deaf")]
        assert stage.is_up("other")
        (reaction,) = stage.node.world.reactions
        assert reaction.noticed is not None, "it was not the fast path"
        assert reaction.killed is not None, "it was not waited for the end of its grace"


# Files of 16 MiB, together more than the node has room for, begun again when their turn comes; one is read every time.
_WRITER = (
    "import os, sys\nos.chdir(sys.argv[1])\ndata, number = os.urandom(1 << 20), 0\nwhile True:\n"
    "    with open(str(number % 48), 'wb') as file:\n        for _ in range(16): file.write(data)\n"
    "    with open('0', 'rb') as file:\n        while file.read(1 << 20): pass\n    number += 1"
)


def test_page_cache_that_fills_the_node_does_not_let_the_kernel_win(tmp_path):
    """Usage is at the limit all the time: what grows takes the place of files in memory."""
    memory = 640 * MI
    with running_node(_HARD_LARGE, memory) as stage:
        asked = {"requests": {"memory": "128Mi", "cpu": "10m"}}
        stage.put(pod_document("writer", *PYTHON, _WRITER, str(tmp_path), resources=asked))
        own = stage.settings.own
        for name in ("first", "second", "third"):
            stage.until(lambda: stage.node.cgroups.memory(own).usage_bytes > memory - 32 * MI)
            little = {"requests": {"memory": "1Mi", "cpu": "10m"}}
            stage.put(pod_document(name, *PYTHON, _DEAF, resources=little, spec={"restartPolicy": "Never"}))
            stage.until(lambda name=name: ("CleanedUp", name) in stage.lines("CleanedUp"))
        assert stage.lines("Evicted", "OOMKilled") == [("Evicted", name) for name in ("first", "second", "third")]
        assert stage.is_up("writer")
        # One may come at the moment of a regular pass.
        assert sum(reaction.noticed is not None for reaction in stage.node.world.reactions) >= 2


@pytest.mark.skipif(detect().version is not CgroupVersion.V2, reason="cgroup v1 has no memory.oom.group")
def test_a_container_that_runs_out_of_memory_dies_as_a_whole():
    parent = "import os, time\nif os.fork() == 0:\n    kept = bytearray(b'x') * (80 << 20)\nwhile True: time.sleep(1)"
    limits = {"requests": {"memory": "16Mi", "cpu": "10m"}, "limits": {"memory": "32Mi"}}
    with running_node(_HARD) as stage:
        stage.put(pod_document("two", *PYTHON, parent, spec={"restartPolicy": "Never"}, resources=limits))
        stage.until(lambda: stage.lines("CleanedUp"))
        (exited,) = stage.entries("Exited")
        assert (exited.because.exit_code, exited.because.oom_killed) == (137, True)
        kills = stage.entries("OOMKilled")
        assert all(entry.because.limit_bytes == 32 * MI for entry in kills)
        assert len(kills) <= 2, "the kernel names its victim again with the group"


@pytest.mark.skipif(not detect().can_lower_oom_score, reason="CAP_SYS_RESOURCE is missing")
def test_negative_scores_are_set_for_guaranteed_pods_and_the_agent():
    fixed = {"memory": "32Mi", "cpu": "100m"}
    with running_node(_HARD) as stage:
        stage.put(pod_document("guaranteed", "sleep", "1000", resources={"requests": fixed, "limits": fixed}))
        stage.until(lambda: stage.is_up("guaranteed"))
        (run,) = stage.pod("guaranteed").running
        assert stage.node.procfs.oom_score_adj(run.pid) == -997
        assert stage.node.procfs.oom_score_adj(os.getpid()) == -999
