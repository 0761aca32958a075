"""What changes while the page shows it: files, a cluster, a node, a guard."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import msgspec
import pytest

from podqos.agent.guard_status import GuardStatus, SignalStatus
from podqos.errors import HostError
from podqos.eviction.signals import Signal
from podqos.page.session import source_info
from podqos.serve import feeds
from podqos.serve.feeds import GuardFeed, NodeFeed
from podqos.serve.files_feed import FilesFeed
from podqos.serve.work import page_about

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
    feed.removal_seconds = 0.0
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


def requested(source):
    """Return the limits of the pods, in Mi, by name."""
    return {pod.name: pod.limit_bytes >> 20 for pod in page_about(source).cluster().pods}


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("kind: [", (2, 1), "broken YAML"),
        (POD.replace("NAME", "web").replace("100Mi", "100Mx"), (5, 57), "not a valid quantity"),
        (
            POD.replace("NAME", "web")
            .replace(", uid: u1", "")
            .replace("{limits:", "{requests: {memory: 200Mi}, limits:"),
            (5, 48),
            "must be less than or equal to memory limit",
        ),
        (POD.replace("NAME", "web")[:60], (4, 1), "broken YAML"),
        ("", (0, 0), "the file is empty"),
        ("\n", (0, 0), "the file is empty"),
        (None, (0, 0), "no such file"),
    ],
    ids=["syntax", "quantity", "rejected", "half written", "empty", "blank", "gone"],
)
def test_a_broken_file_keeps_its_last_good_content_until_it_is_good_again_and_others_are_updated(
    folder, text, where, words
):
    web, other = folder / "manifests/pod.yaml", folder / "manifests/other.yaml"
    other.write_text(POD.replace("NAME", "db").replace("u1", "u2"))
    feed = FilesFeed([str(web), str(other)])
    assert feed.first.broken == ()
    if text is None:
        web.unlink()
    else:
        web.write_text(text)
    other.write_text(POD.replace("NAME", "db").replace("u1", "u2").replace("100Mi", "300Mi"))
    source = feed.look()
    assert requested(source) == {"web": 100, "db": 300}
    [problem] = source.broken
    assert (problem.source, problem.line, problem.column) == (str(web), *where)
    assert words in problem.what
    assert feed.look() is None
    web.write_text(POD.replace("NAME", "web").replace("100Mi", "150Mi"))
    source = feed.look()
    assert requested(source) == {"web": 150, "db": 300}
    assert source.broken == ()


def test_of_two_broken_files_both_keep_their_last_good_content(folder):
    web, other = folder / "manifests/pod.yaml", folder / "manifests/other.yaml"
    other.write_text(POD.replace("NAME", "db").replace("u1", "u2"))
    feed = FilesFeed([str(folder / "manifests")])
    web.write_text("kind: [")
    other.write_text("kind: b: c")
    source = feed.look()
    assert requested(source) == {"web": 100, "db": 100}
    assert {problem.source for problem in source.broken} == {str(web), str(other)}
    other.write_text(POD.replace("NAME", "db").replace("u1", "u2").replace("100Mi", "300Mi"))
    source = feed.look()
    assert requested(source) == {"web": 100, "db": 300}
    assert {problem.source for problem in source.broken} == {str(web)}


def test_a_file_that_was_never_good_is_shown_as_far_as_it_can_be(folder):
    web = folder / "manifests/pod.yaml"
    web.write_text("kind: [")
    (folder / "manifests/other.yaml").write_text(POD.replace("NAME", "db"))
    feed = FilesFeed([str(folder / "manifests")])
    web.write_text("kind: [[")
    source = feed.look()
    assert names(source) == ["db"]
    assert source.broken == ()
    assert [problem.source for problem in source.problems] == [str(web)]


def test_a_file_of_a_directory_that_is_replaced_is_never_missing_and_one_that_is_removed_is(folder):
    web = folder / "manifests/pod.yaml"
    (folder / "manifests/other.yaml").write_text(POD.replace("NAME", "db").replace("u1", "u2"))
    feed = FilesFeed([str(folder / "manifests")])
    web.unlink()
    source = feed.look()
    assert sorted(names(source)) == ["db", "web"]
    assert source.broken == ()
    assert feed.look() is None
    feed.removal_seconds = 0.0
    assert names(feed.look()) == ["db"]


def test_a_broken_scenario_or_manifest_of_it_keeps_the_last_good_state_of_that_file(folder):
    scenario, web = folder / "small.yaml", folder / "manifests/pod.yaml"
    scenario.write_text(SCENARIO.replace("NAME", "web"))
    feed = FilesFeed([str(scenario)])
    scenario.write_text(SCENARIO.replace("NAME", "nothing"))
    source = feed.look()
    assert source.scenario.duration_us == 60_000_000
    assert source.broken[0].source == str(scenario)
    assert "nothing" in source.broken[0].what
    # What else changes is shown meanwhile.
    web.write_text(POD.replace("NAME", "web").replace("100Mi", "1Gi"))
    source = feed.look()
    limits = source.scenario.workloads[0].pod.spec.containers[0].resources.limits
    assert str(limits["memory"]) == "1Gi"
    assert source.broken
    scenario.write_text(SCENARIO.replace("NAME", "web").replace("1m", "2m"))
    web.write_text("kind: [")
    source = feed.look()
    assert source.scenario.duration_us == 120_000_000
    assert [problem.source for problem in source.broken] == [str(web)]
    web.write_text(POD.replace("NAME", "web"))
    assert feed.look().broken == ()


def test_half_of_a_snapshot_leaves_the_whole_one_before_it_on_the_page(tmp_path):
    pod = {"metadata": {"name": "web", "namespace": "shop", "uid": "u1"}, "spec": {"containers": [{"name": "c"}]}}
    file, lines = tmp_path / "cluster.jsonl", feeds._node_lines("worker-1", [pod], 8 << 30)
    file.write_bytes(b"\n".join(lines) + b"\n")
    feed = FilesFeed([str(file)])
    before = names(feed.first)
    for part in (b"\n".join(lines[:2]), lines[0][:20], b""):
        file.write_bytes(part)
        source = feed.look()
        assert names(source) == before
        assert source.broken[0].source == str(file)
    file.write_bytes(b"\n".join(lines) + b"\n")
    assert feed.look().broken == ()


def test_files_say_when_they_were_changed_and_which_was_last(folder):
    web, other = folder / "manifests/pod.yaml", folder / "manifests/other.yaml"
    other.write_text(POD.replace("NAME", "db").replace("u1", "u2"))
    os.utime(web, (1_700_000_000, 1_700_000_000))
    os.utime(other, (1_700_000_100, 1_700_000_100))
    feed = FilesFeed([str(folder / "manifests")])
    info = source_info("start", feed.first)
    assert (info.changed_file, info.changed_at, info.changed_files) == ("other.yaml", "2023-11-14T22:15:00Z", 2)
    assert info.follows == "files"
    # What is shown of a broken file is as old as it was.
    other.write_text("kind: [")
    info = source_info("start", feed.look())
    assert (info.changed_file, info.changed_at) == ("other.yaml", "2023-11-14T22:15:00Z")
    assert [(problem.file, problem.line, problem.column) for problem in info.broken] == [(str(other), 2, 1)]


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
