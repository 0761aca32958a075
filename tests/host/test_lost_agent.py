"""What an agent or a shim was in the middle of when it was killed is undone, or done again, by the next."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from host.machine import needs_node
from host.nodes import NodeStage, pod_document, running_node
from podqos.host.runtimes import shim, shim_client
from podqos.host.runtimes.process import ProcessRuntime
from podqos.host.runtimes.shim_client import ShimClient, end_shim

pytestmark = needs_node

_LIMITED = {"requests": {"memory": "16Mi"}, "limits": {"memory": "64Mi"}}
_FILES = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.oom_control", "memory.high", "memory.max")


def _limits(stage: NodeStage) -> dict[tuple[str, str], str | None]:
    """Return what bounds the memory of each pod and container."""
    pods = stage.node.world.pods.values()
    paths = [path for pod in pods for path in (pod.cgroup, *(run.cgroup for run in pod.running))]
    return {(path, file): stage.node.cgroups.read(path, file) for path in paths for file in _FILES}


@pytest.mark.parametrize("runs", [True, False], ids=["running", "starting again"])
def test_a_pod_that_was_kept_from_growing_and_not_stopped_may_grow_again(runs):
    with running_node() as stage:
        stage.put(pod_document("free", "sleep", "1000"), pod_document("limited", "sleep", "1000", resources=_LIMITED))
        stage.until(lambda: stage.is_up("free", "limited"))
        before = _limits(stage)
        for name in ("free", "limited"):
            pod = stage.pod(name)
            # What a fast reaction does before it stops a pod; the agent is killed in between.
            signalled = stage.node.cgroups.hold(pod.cgroup)
            signalled.close()
            if not runs:
                stage.node.cgroups.kill(pod.running[0].cgroup)
        assert _limits(stage) != before
        stage.lose_agent()
        stage.until(lambda: stage.is_up("free", "limited"))
        now = _limits(stage)
        if runs:
            assert now == before
        else:
            assert sorted(map(str, now.values())) == sorted(map(str, before.values()))


def test_a_pod_that_was_being_evicted_stays_held_until_it_is_gone():
    with running_node() as stage:
        trap = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
        stage.put(pod_document("web", "sh", "-c", trap, spec={"terminationGracePeriodSeconds": 1}))
        stage.until(lambda: "ready" in stage.log("web"))
        cgroup = stage.pod("web").cgroup
        free = _limits(stage)
        stage.node.cgroups.hold(cgroup).close()
        (uid,) = stage.node.world.pods
        (stage.manifests / "web.json").unlink()
        stage.until(lambda: stage.node.world.pods[uid].is_stopping)
        stage.lose_agent()
        assert stage.node.world.pods[uid].held is not None
        assert _limits(stage) != free
        stage.until(lambda: not stage.node.world.pods)


def _shim(stage: NodeStage) -> int:
    assert isinstance(stage.node.runtime, ProcessRuntime)
    return stage.node.runtime._shim.pid


def _is_up(stage: NodeStage, attempt: int) -> bool:
    return stage.is_up("web") and stage.pod("web").running[0].id.attempt == attempt


def test_a_shim_that_dies_while_it_is_started_is_not_waited_for(monkeypatch, tmp_path):
    (tmp_path / "dies.py").write_text("import sys; sys.exit(1)")
    with running_node() as stage:
        stage.put(pod_document("web", "sleep", "1000"))
        stage.until(lambda: stage.is_up("web"))
        (before,) = stage.pod("web").running
        with monkeypatch.context() as patch:
            patch.setattr(shim, "__file__", str(tmp_path / "dies.py"))
            patch.setattr(shim_client, "_PATIENCE_SECONDS", 20.0)
            os.kill(_shim(stage), signal.SIGKILL)
            # What has lost its shim is ended, although there is no other.
            stage.until(lambda: not Path(f"/proc/{before.pid}/exe").exists())
            stage.node.loop.run_for(0.5)
            assert stage.node.loop.longest_turn_seconds < 20
        stage.until(lambda: _is_up(stage, 1))
        assert len(stage.node.cgroups.processes(stage.settings.own)) == 1


def test_a_container_that_lost_its_shim_is_restarted_at_once_however_often():
    with running_node() as stage:
        stage.put(pod_document("web", "sleep", "1000"))
        for attempt in range(4):
            stage.until(lambda: _is_up(stage, attempt))  # noqa: B023 - it is called here and now
            os.kill(_shim(stage), signal.SIGKILL)
        stage.until(lambda: _is_up(stage, 4))
        assert [entry.because.back_off_seconds for entry in stage.entries("Restarted")] == [0] * 4


def test_a_second_shim_of_one_directory_ends_and_leaves_the_first_its_socket(tmp_path):
    with contextlib.closing(ShimClient(tmp_path)) as client:
        try:
            ready, told = os.pipe()
            words = [sys.executable, "-I", "-S", shim.__file__, str(tmp_path / "shim.sock"), str(told), "0", "1024"]
            subprocess.run(words, pass_fds=[told], stderr=subprocess.DEVNULL, check=True)
            os.close(told)
            assert os.read(ready, 1) == b"", "it never listens"
            os.close(ready)
            with contextlib.closing(ShimClient(tmp_path)) as again:
                assert again.pid == client.pid
        finally:
            end_shim(tmp_path)
