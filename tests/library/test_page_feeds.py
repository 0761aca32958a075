"""What changes while the page shows it: files, a cluster, a node, a guard."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import msgspec
import pytest

from podqos.agent.guard_status import GuardStatus, SignalStatus
from podqos.errors import HostError, InputError
from podqos.eviction.signals import Signal
from podqos.web.ui.feeds import FilesFeed, GuardFeed, NodeFeed
from podqos.web.ui.pages import page_about

SCENARIOS = Path(__file__).parents[2] / "scenarios"

POD = """apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: shop, uid: u1}
spec:
  containers: [{name: c, image: i, resources: {limits: {memory: 100Mi}}}]
"""
SCENARIO = """apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  duration: 1m
  manifests: [manifests]
  nodes: [{name: worker-1, capacity: {cpu: 4, memory: 8Gi}}]
  workloads: [{workload: NAME, demand: {memory: 10Mi}}]
"""


def names(source):
    return [each.name for each in page_about(source).cluster().pods]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests/pod.yaml").write_text(POD.replace("NAME", "web"))
    return tmp_path


def test_files_are_read_again_when_one_changes_comes_or_goes(folder):
    feed = FilesFeed([str(folder / "manifests")])
    assert names(feed.first) == ["web"]
    assert feed.look() is None
    (folder / "manifests/other.yaml").write_text(POD.replace("NAME", "db").replace("u1", "u2"))
    assert sorted(names(feed.look())) == ["db", "web"]
    (folder / "manifests/pod.yaml").unlink()
    assert names(feed.look()) == ["db"]
    assert feed.look() is None


def test_a_scenario_is_read_again_when_its_manifests_change(folder):
    (folder / "small.yaml").write_text(SCENARIO.replace("NAME", "web"))
    feed = FilesFeed([str(folder / "small.yaml")])
    limits = feed.first.scenario.workloads[0].pod.spec.containers[0].resources.limits
    assert str(limits["memory"]) == "100Mi"
    (folder / "manifests/pod.yaml").write_text(POD.replace("NAME", "web").replace("100Mi", "1Gi"))
    limits = feed.look().scenario.workloads[0].pod.spec.containers[0].resources.limits
    assert str(limits["memory"]) == "1Gi"


def test_what_is_broken_raises_once_and_is_read_when_it_is_mended(folder):
    (folder / "small.yaml").write_text(SCENARIO.replace("NAME", "web"))
    feed = FilesFeed([str(folder / "small.yaml")])
    (folder / "small.yaml").write_text(SCENARIO.replace("NAME", "nothing"))
    with pytest.raises(InputError, match="nothing"):
        feed.look()
    (folder / "small.yaml").write_text(SCENARIO.replace("NAME", "web").replace("1m", "2m"))
    assert feed.look().scenario.duration_us == 120_000_000


def test_a_running_node_is_shown_by_what_its_api_answers():
    pod = {"metadata": {"name": "web", "namespace": "shop", "uid": "u1"}, "spec": {"containers": [{"name": "c"}]}}
    memory = {"availableBytes": 6 << 30, "workingSetBytes": 2 << 30, "usageBytes": 2 << 30, "rssBytes": 1 << 30}
    used = {"workingSetBytes": 50 << 20, "usageBytes": 60 << 20, "rssBytes": 40 << 20}
    stats = {
        "podRef": {"name": "web", "namespace": "shop", "uid": "u1"},
        "memory": used,
        "containers": [{"name": "c", "memory": used}],
    }
    answers = {
        "/pods": {"kind": "PodList", "apiVersion": "v1", "items": [pod]},
        "/stats/summary": {"node": {"nodeName": "here", "memory": memory}, "pods": [stats]},
        "/configz": {"kubeletconfig": {"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1"}},
    }
    feed = NodeFeed(lambda path: json.dumps(answers[path]).encode(), "/var/lib/podqos")
    view = page_about(feed.look()).cluster()
    assert [(each.name, each.memory_bytes) for each in view.nodes] == [("here", 8 << 30)]
    assert [(each.node, each.used_bytes) for each in view.pods] == [("here", 50 << 20)]
    assert feed.look() is None


class Guard:
    """What a guard leaves on disk."""

    def __init__(self, folder):
        self.folder = folder
        self.tell(time.time())
        pod = {
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1"},
            "spec": {
                "nodeName": "worker-1",
                "containers": [{"name": "c", "resources": {"requests": {"memory": "1Gi"}}}],
            },
        }
        (folder / "pods.json").write_text(json.dumps({"node": "worker-1", "savedUs": 1, "pods": [pod]}))

    def tell(self, now, **more):
        signals = (SignalStatus(Signal.MEMORY, 1, 2, 8 << 30, hard=True),)
        status = GuardStatus(
            node="worker-1", pid=1, version="1", started_us=0, updated_us=int(now * 1e6), kubepods="kubepods",
            cgroup="v2", signals=signals, **{"enforce": False, "held_back": "shadow", **more},
        )  # fmt: skip
        (self.folder / "status.json").write_bytes(msgspec.json.encode(status))


def test_a_guard_is_shown_by_the_pods_it_knows_its_mode_and_its_journal(tmp_path):
    guard = Guard(tmp_path)
    shutil.copy(SCENARIOS / "guard/journal.jsonl", tmp_path)
    feed = GuardFeed(str(tmp_path), str(tmp_path))
    source = feed.look()
    view = page_about(source).cluster()
    assert [(each.name, each.memory_bytes) for each in view.nodes] == [("worker-1", 8 << 30)]
    assert names(source) == ["web"]
    assert [each.name for each in source.logs] == [str(tmp_path / "journal.jsonl")]
    assert (view.guard.enforce, view.guard.held_back) == (False, "shadow")
    decided = [each for each in view.guard.entries if each.kind == "WouldEvict"]
    assert decided[-1].pod == "reports/report-builder-0"
    assert any("the first of 31" in each for each in decided[-1].reasons)
    assert [each.time for each in view.guard.entries] == sorted((e.time for e in view.guard.entries), reverse=True)
    assert feed.look() is None
    guard.tell(time.time())
    assert feed.look() is None  # it is as it was, and is known to be
    guard.tell(time.time(), enforce=True, held_back="", evictions=2)
    assert page_about(feed.look()).cluster().guard.mode == "enforces"
    guard.tell(time.time(), enforce=True, held_back="stop file", stop_file=True)
    paused = page_about(feed.look()).cluster().guard
    assert (paused.enforce, paused.mode) == (True, "evicts nothing: the stop file exists")
    assert ("kill switch", "on: the stop file") in [(each.name, each.text) for each in paused.facts]


def test_a_guard_that_has_just_begun_is_shown_before_it_has_written_down_its_pods(tmp_path):
    Guard(tmp_path)
    (tmp_path / "pods.json").unlink()
    source = GuardFeed(str(tmp_path), str(tmp_path)).look()
    view = page_about(source).cluster()
    assert ([each.name for each in view.nodes], view.pods, source.logs) == (["worker-1"], (), ())
    assert view.guard.entries == ()


def test_a_journal_that_is_long_broken_or_being_written_tells_what_can_be_read_of_its_end(tmp_path):
    Guard(tmp_path)
    lines = (SCENARIOS / "guard/journal.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "journal.jsonl").write_bytes(lines[0] * 3000 + b"{broken\n" + b"".join(lines) + lines[0][:40])
    entries = page_about(GuardFeed(str(tmp_path), str(tmp_path)).look()).cluster().guard.entries
    assert len(entries) <= 20
    assert "reports/report-builder-0" in [each.pod for each in entries]


def test_a_guard_that_says_nothing_any_more_is_not_up_to_date(tmp_path):
    guard = Guard(tmp_path)
    feed = GuardFeed(str(tmp_path), str(tmp_path))
    assert feed.look() is not None
    guard.tell(time.time() - 3600)
    with pytest.raises(HostError, match="has stopped or is stuck: no status for 3600 s"):
        feed.look()
    (tmp_path / "status.json").unlink()
    with pytest.raises(HostError, match="no guard status at"):
        feed.look()
