"""Whose cgroup: a node takes one that is free or its own, and leaves all others alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from host.machine import needs_node
from host.nodes import MI, PATIENCE, NodeStage, kubelet, pod_document, running_node
from podqos.errors import HostError
from podqos.host.linux.capabilities import open_cgroups
from podqos.host.linux.claim import Claim, owner

pytestmark = needs_node


@pytest.fixture
def cgroups():
    """Make a cgroup of this test's own, gone afterwards."""
    made = open_cgroups(f"/podqos-test-{os.getpid()}-claim")
    made.create(made.own)
    try:
        yield made
    finally:
        made.end([made.own], 5)
        assert not made.exists(made.own)


@pytest.fixture
def stranger(cgroups):
    """Start a process in the cgroup that is not the node's."""
    process = subprocess.Popen(["sleep", "1000"])
    (cgroups.folder(cgroups.own) / "cgroup.procs").write_text(str(process.pid))
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _second(stage: NodeStage) -> None:
    """Start a node with another state directory and the same cgroup."""
    made = NodeStage(kubelet(), 64 * MI, cgroup_root=stage.settings.cgroup_root)
    made.close()


def test_a_second_node_leaves_the_cgroup_of_a_living_one_alone(monkeypatch):
    # The name of a socket in it must not be long.
    with tempfile.TemporaryDirectory(prefix="podqos-test-") as folder, monkeypatch.context() as patch:
        patch.setattr(NodeStage, "parent", folder)
        _second_node_is_refused()


def _second_node_is_refused() -> None:
    with running_node() as stage:
        stage.put(pod_document("web", "sleep", "1000"))
        stage.until(lambda: stage.is_up("web"))
        before = stage.node.cgroups.processes(stage.settings.own)
        message = (
            rf"belongs to the node with --state-dir {stage.settings.state_dir}, which is running as pid {os.getpid()}"
        )
        with pytest.raises(HostError, match=message):
            _second(stage)
        assert stage.node.cgroups.processes(stage.settings.own) == before
        assert stage.node.cgroups.memory_limit(stage.settings.own) == 256 * MI


def test_a_node_whose_agent_is_gone_keeps_its_cgroup_as_long_as_it_has_its_directory(tmp_path, cgroups, stranger):
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    stranger.kill()
    stranger.wait()
    Claim(cgroups, tmp_path / "first").close()
    cgroups.create(f"{cgroups.own}/kubepods")
    with pytest.raises(HostError, match=f"has pods of the node with --state-dir {tmp_path / 'first'}: start that one"):
        Claim(cgroups, tmp_path / "second")
    Claim(cgroups, tmp_path / "first").close()
    shutil.rmtree(tmp_path / "first")
    Claim(cgroups, tmp_path / "second").close()
    marked = owner(cgroups, cgroups.own)
    assert marked is not None
    assert marked.state_dir == str(tmp_path / "second")


def test_a_cgroup_with_something_in_it_that_podqos_did_not_make_is_refused_and_stays_as_it_is(
    tmp_path, cgroups, stranger
):
    with pytest.raises(HostError, match=f"cgroup {cgroups.own} is in use, and not by a podqos node; choose another"):
        Claim(cgroups, tmp_path)
    assert owner(cgroups, cgroups.own) is None
    assert stranger.poll() is None


def test_an_empty_cgroup_that_was_made_before_is_taken(tmp_path, cgroups):
    Claim(cgroups, tmp_path).close()
    marked = owner(cgroups, cgroups.own)
    assert marked is not None
    assert marked.pid == os.getpid()


@pytest.mark.parametrize("root", ["/", "", "..", "a/../.."])
def test_the_root_is_no_cgroup_of_its_own(root, tmp_path):
    own = "/" + root.strip("/")
    with pytest.raises(HostError, match="a node needs a cgroup of its own; choose another with cgroup_root"):
        Claim(open_cgroups(own), tmp_path)


def test_a_cgroup_inside_that_of_another_node_is_refused(tmp_path, cgroups):
    claim = Claim(cgroups, tmp_path)
    inner = open_cgroups(f"{cgroups.own}/kubepods/mine")
    with pytest.raises(HostError, match=f"is inside {cgroups.own}, which belongs to the node with --state-dir"):
        Claim(inner, tmp_path / "other")
    assert not inner.exists(inner.own)
    claim.close()


def test_the_lock_ends_with_its_process_and_not_with_its_children(tmp_path, cgroups):
    program = (
        "import subprocess, sys; from pathlib import Path\n"
        "from podqos.host.linux.capabilities import open_cgroups; from podqos.host.linux.claim import Claim\n"
        "claim = Claim(open_cgroups(sys.argv[1]), Path(sys.argv[2]))\n"
        "child = subprocess.Popen(['sleep', '30'], stdout=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    words = [sys.executable, "-c", program, cgroups.own, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        child = int(holder.stdout.readline())
        try:
            with pytest.raises(HostError, match="which is running as pid"):
                Claim(cgroups, tmp_path)
            holder.kill()
            holder.wait()
            assert Path(f"/proc/{child}").exists()
            Claim(cgroups, tmp_path).close()
        finally:
            holder.kill()
            os.kill(child, 9)


def test_the_command_refuses_in_one_line(tmp_path, cgroups, stranger):
    (tmp_path / "pods").mkdir()
    words = [sys.executable, "-m", "podqos", "node", "run", "--manifests", str(tmp_path / "pods")]
    words += ["--state-dir", str(tmp_path / "state"), "--cgroup-root", cgroups.own]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300 * PATIENCE, check=False)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert "is in use, and not by a podqos node" in line
    assert stranger.poll() is None
