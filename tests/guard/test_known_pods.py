"""What the guard knows of its node's pods: watched, kept while the server is away, and never more than needed."""

from __future__ import annotations

import contextlib
import select

import pytest

from guard.api_server import ApiServer
from guard.fake_node import NODE, guarded, pod
from guard.kubelets import wait_until
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access
from podqos.cluster.patience import ONCE
from podqos.guard.known_pods import KnownPods, never_evicted

SECRET = "hunter2"


@contextlib.contextmanager
def watching(api, file, notes=None):
    with Cluster(Access(server=api.url), patience=ONCE) as cluster:
        known = KnownPods(cluster, NODE, file, (notes if notes is not None else []).append)
        known.start()
        try:
            yield known
        finally:
            known.close()


@pytest.fixture
def api():
    with ApiServer(node=NODE).serving() as server:
        yield server


def names(known):
    return sorted(each.metadata.name for each in known.take().values())


def test_pods_of_the_node_come_and_go_and_the_loop_is_woken(api, tmp_path):
    api.add_pod(pod("a"))
    api.add_pod(pod("other", spec={"nodeName": "node-2"}))
    with watching(api, tmp_path / "pods.json") as known:
        assert select.select([known], [], [], 60)[0]
        wait_until(lambda: names(known) == ["a"], "the pod is known")
        assert not known.trouble
        assert known.take() is known.take(), "nothing has changed"
        api.add_pod(pod("b"))
        wait_until(lambda: names(known) == ["a", "b"], "another one")
        api.delete_pod("default", "a")
        wait_until(lambda: names(known) == ["b"], "one is gone")


def test_what_is_known_stays_while_the_server_is_away_and_over_a_restart(api, tmp_path):
    file = tmp_path / "pods.json"
    api.add_pod(pod("a"))
    with watching(api, file) as known:
        wait_until(lambda: names(known) == ["a"], "the pod is known")
        api.is_away = True
        wait_until(lambda: known.trouble, "the server is away")
        assert names(known) == ["a"]
        known.save()
    with watching(api, file) as again:
        assert names(again) == ["a"]
        assert again.is_from_disk
        api.add_pod(pod("b"))
        api.is_away = False
        wait_until(lambda: names(again) == ["a", "b"], "the server is back")
        wait_until(lambda: not again.is_from_disk and not again.trouble, "all is known again")


def test_nothing_that_may_be_a_secret_reaches_the_disk(api, tmp_path):
    file = tmp_path / "pods.json"
    container = {"name": "main", "command": [SECRET], "args": [SECRET], "env": [{"name": "PASSWORD", "value": SECRET}]}
    api.add_pod(
        pod(
            "a",
            metadata={"annotations": {"last-applied": SECRET}, "labels": {"x": SECRET}},
            spec={"containers": [container]},
            status={
                "message": SECRET,
                "containerStatuses": [{"name": "main", "state": {"waiting": {"message": SECRET}}}],
            },
        )
    )
    with watching(api, file) as known:
        wait_until(lambda: names(known) == ["a"], "the pod is known")
        known.save()
    assert b'"a"' in file.read_bytes()
    assert SECRET.encode() not in file.read_bytes()
    assert file.stat().st_mode & 0o077 == 0


def test_knowledge_of_another_node_or_no_knowledge_at_all_does_not_count(tmp_path):
    file, notes = tmp_path / "pods.json", []
    file.write_text('{"node": "node-2", "savedUs": 1, "pods": [{"metadata": {"name": "a", "uid": "u"}}]}')
    assert names(KnownPods(None, NODE, file, notes.append)) == []
    file.write_text("{")
    assert names(KnownPods(None, NODE, file, notes.append)) == []
    assert len(notes) == 1


def test_what_was_never_complete_does_not_replace_what_was_known(tmp_path):
    file = tmp_path / "pods.json"
    file.write_text('{"node": "node-1", "savedUs": 1, "pods": [{"metadata": {"name": "a", "uid": "u"}}]}')
    before = file.read_bytes()
    known = KnownPods(None, NODE, file, print)
    known.save()
    assert file.read_bytes() == before
    assert names(known) == ["a"]


def test_a_pod_that_cannot_be_read_stops_nothing_and_is_never_evicted(api, tmp_path):
    """One of a later Kubernetes, whose priority is no number any more."""
    file, notes = tmp_path / "pods.json", []
    later = pod("later", spec={"priority": {"value": 1}})
    api.add_pod(pod("a"))
    api.add_pod(later)
    with watching(api, file, notes) as known:
        wait_until(lambda: names(known) == ["a", "later"], "what exists is known")
        api.add_pod(pod("b"))
        wait_until(lambda: names(known) == ["a", "b", "later"], "what comes is known")
        api.change("default", "b", "uid-b", lambda each: each["spec"].update(priority=[]))
        wait_until(lambda: known.take()["uid-b"].unread, "one that was read no longer is")
        assert not known.trouble
        known.save()
        found = known.take()
        for each in ("uid-b", "uid-later"):
            assert never_evicted(found[each], NODE).startswith("podqos cannot read it: ")
            assert "$.spec.priority" in found[each].unread
        assert never_evicted(found["uid-a"], NODE) == ""
        api.delete_pod("default", "later")
        wait_until(lambda: names(known) == ["a", "b"], "it is gone")
    assert any("default/later" in each and "never evicted" in each for each in notes)
    again = KnownPods(None, NODE, file, notes.append).take()
    assert again["uid-later"].unread, "the next guard knows it, too"


def test_a_pod_without_a_readable_name_is_left_out_and_said(api, tmp_path):
    notes = []
    api.add_pod(pod("a"))
    api.log.append((1000, "ADDED", {"metadata": {"name": 7, "resourceVersion": "1000"}, "spec": {"nodeName": NODE}}))
    with watching(api, tmp_path / "pods.json", notes) as known:
        wait_until(lambda: names(known) == ["a"] and notes, "the others are known")
        assert not known.trouble
    assert any("not even its name" in each for each in notes)


def test_a_kubelets_word_changes_when_it_starts_anew_and_not_with_its_heartbeats(api, tmp_path):
    def ready(since, beat):
        return {"type": "Ready", "status": "True", "lastTransitionTime": since, "lastHeartbeatTime": beat}

    api.show_node(conditions=[ready("1", "1")], allocatable={"memory": "1Gi"})
    with watching(api, tmp_path / "pods.json") as known:
        wait_until(lambda: known.kubelet_says, "the node is known")
        first = known.kubelet_says
        api.show_node(conditions=[ready("1", "2")], allocatable={"memory": "1Gi"}, images=[{"names": ["x"]}])
        api.annotate_node(**{"podqos.dev/guard": "off"})
        wait_until(lambda: known.is_switched_off, "the change is seen")
        assert known.kubelet_says == first
        api.show_node(conditions=[ready("3", "3")], allocatable={"memory": "1Gi"})
        wait_until(lambda: known.kubelet_says != first, "it was not ready for a while")
        second = known.kubelet_says
        api.show_node(conditions=[ready("3", "3")], allocatable={"memory": "900Mi"})
        wait_until(lambda: known.kubelet_says != second, "it reserves more")


@pytest.mark.parametrize("value", ["off", " OFF\n"])
def test_the_nodes_annotation_switches_the_guard_off_and_on(api, tmp_path, value):
    api.annotate_node(**{"podqos.dev/guard": value})
    with watching(api, tmp_path / "pods.json") as known:
        wait_until(lambda: known.is_switched_off, "the annotation is seen")
        api.annotate_node()
        wait_until(lambda: not known.is_switched_off, "it is gone")


def test_a_refused_watch_is_tried_again(api, tmp_path):
    api.refuses = lambda request: (403, "Forbidden", "no") if request.path.endswith("/pods") else None
    api.add_pod(pod("a"))
    with watching(api, tmp_path / "pods.json") as known:
        wait_until(lambda: "no" in known.trouble, "it is refused")
        api.refuses = lambda _request: None
        wait_until(lambda: names(known) == ["a"], "it is granted")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, ""),
        ({"spec": {"priority": 1_999_999_999}}, ""),
        ({"spec": {"priority": 2_000_000_000}}, "critical priority"),
        ({"spec": {"priority": 2_000_001_000}}, "critical priority"),
        ({"spec": {"priority": None}}, "its priority is unknown"),
        ({"metadata": {"annotations": {"kubernetes.io/config.source": "file"}}}, "static pod"),
        ({"metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}}, "static pod"),
        ({"spec": {"nodeName": "node-2"}}, "it runs on another node"),
        ({"spec": {"nodeName": ""}}, "it runs on another node"),
        ({"metadata": {"namespace": ""}}, "its name or uid is unknown"),
    ],
)
def test_who_is_never_evicted(fields, why):
    assert never_evicted(guarded("a", **fields), NODE) == why
