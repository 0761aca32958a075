"""The commands that talk to a node, against a real one in a process of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import pytest

from host.machine import needs_node
from host.nodes import GROW, PYTHON, pod_document
from podqos.cli.main import main
from podqos.host.linux.capabilities import open_cgroups

pytestmark = [needs_node, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


class RunningNode:
    """``podqos node run`` in a process of its own."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="podqos-test-"))
        self.manifests = self.folder / "manifests"
        self.manifests.mkdir()
        self.state = self.folder / "state"
        self.cgroup = f"podqos-test-{os.getpid()}-cli"
        self.said = (self.folder / "said").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "podqos", "node", "run", "--manifests", self.manifests, "--memory", "256Mi",
             "--state-dir", self.state, "--cgroup-root", self.cgroup, "--node-name", "n", "--listen", "127.0.0.1:0"],
            stderr=self.said,
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip

    def put(self, document):
        partial = self.folder / "partial"
        partial.write_bytes(msgspec.json.encode(document))
        partial.rename(self.manifests / f"{document['metadata']['name']}.json")

    def until(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, (self.folder / "said").read_text()
            time.sleep(0.05)

    def journal(self):
        file = self.state / "journal.jsonl"
        return file.read_text() if file.exists() else ""

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(300)
        finally:
            self.process.kill()
            self.process.wait()
            self.said.close()
            cgroups = open_cgroups(f"/{self.cgroup}")
            cgroups.end([cgroups.own], 60)
            shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def node():
    node = RunningNode()
    try:
        fixed = {"cpu": "10m", "memory": "32Mi"}
        node.put(pod_document("steady", "sh", "-c", "echo one; echo two; sleep 1000",
                              resources={"requests": fixed, "limits": fixed}))  # fmt: skip
        node.put(pod_document("grown", *PYTHON, GROW, "40", resources={"requests": {"memory": "8Mi"}}))
        node.until(lambda: node.journal().count('"Started"') == 2)
        node.until(lambda: any(node.state.glob("logs/*_grown_*/main/0.log")))
        node.until(lambda: "grown" in next(node.state.glob("logs/*_grown_*/main/0.log")).read_text())
        yield node
    finally:
        node.close()


@pytest.fixture
def run(node, capsys):
    """Run a command about the node; return what it prints."""

    def run(*arguments, code=0):
        assert main(["node", *arguments, "--state-dir", str(node.state)]) == code
        return capsys.readouterr().out

    return run


def test_status_tells_the_distance_and_both_next_victims(run):
    text = run("status")
    assert text.startswith("node          n, podqos ")
    assert "of 256Mi in use" in text
    assert "\nconditions    Ready, no pressure\n" in text
    (row,) = [line.split() for line in text.splitlines() if line.startswith("memory.available")]
    assert row[1:3] == ["hard", "100Mi"]
    assert "next evicted  default/grown: uses" in text
    assert "next killed   default/grown (main)" in text
    assert "on: the kernel watches" in text


def test_status_is_documented_as_json(run):
    status = msgspec.json.decode(run("status", "-o", "json"))
    assert status["node"] == "n"
    assert {pod["name"] for pod in status["pods"]} == {"steady", "grown"}
    assert "isConfined: true" in run("status", "-o", "yaml")


def test_the_journal_in_words_and_as_written(run, node):
    words = run("journal")
    assert "steady started: Guaranteed, oom_score_adj −997" in words
    assert run("journal", "-o", "jsonl") == node.journal()
    assert run("journal", "--since", "1ns") == ""
    assert run("journal", "--since", "2020-01-01T00:00:00Z") == words
    assert len(run("journal", "--tail", "1").splitlines()) == 1
    run("journal", "--since", "yesterday", code=2)


def test_a_port_that_is_taken_ends_the_node_before_it_begins(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        own = f"podqos-test-{os.getpid()}-port"
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "-m", "podqos", "node", "run", "--manifests", tmp_path / "m",
             "--state-dir", tmp_path / "s", "--memory", "256Mi", "--cgroup-root", own, "--listen", f"127.0.0.1:{port}"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
    assert done.returncode == 3
    assert f"--listen 127.0.0.1:{port}: Address already in use" in done.stderr
    assert not open_cgroups(f"/{own}").exists(f"/{own}")
    assert "Traceback" not in done.stderr
