"""The suite's API server and kubelet do what a real v1.36 was recorded to do (texts are the server's)."""

from __future__ import annotations

import threading

import pytest

from guard.api_server import ApiServer
from guard.kubelets import wait_until
from podqos.cluster.asking import Client
from podqos.cluster.kubeconfig import Access
from podqos.cluster.writing import Writer
from podqos.errors import ClusterError

FAILED = {"phase": "Failed", "reason": "Evicted", "message": "guard"}


@pytest.fixture
def api():
    with ApiServer().serving() as server:
        yield server


@pytest.fixture
def writer(api):
    client = Client(Access(server=api.url), environment={})
    yield Writer(client)
    client.close()


@pytest.fixture
def pod(api):
    return api.add_pod({"metadata": {"name": "same"}, "status": {"phase": "Running"}})


def test_the_uid_the_version_and_the_name_are_preconditions(api, writer, pod):
    wrong = "00000000-0000-0000-0000-000000000000"
    stale = writer.patch_status("default", "same", {"metadata": {"uid": wrong}, "status": FAILED})
    why = f'Pod "same" is invalid: metadata.uid: Invalid value: "{wrong}": field is immutable'
    assert (stale.status, stale.message) == (422, why)
    old = writer.patch_status("default", "same", {"metadata": {"resourceVersion": "1"}, "status": FAILED})
    assert old.status == 409
    assert "the object has been modified" in old.message
    gone = writer.patch_status("default", "nope", {"status": FAILED})
    assert (gone.status, gone.message) == (404, 'pods "nope" not found')
    assert api.pod("default", "same")["status"] == {"phase": "Running"}

    assert writer.patch_status("default", "same", {"status": FAILED}).status == 200, "without any it hits what is there"
    assert api.pod("default", "same")["status"]["phase"] == "Failed"


def test_a_rehearsal_changes_nothing(api, writer, pod):
    told = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": FAILED}
    assert writer.patch_status("default", "same", told, is_rehearsal=True).status == 200
    assert api.pod("default", "same") == pod


def test_conditions_are_merged_by_type(api, writer, pod):
    ready, target = {"type": "Ready", "status": "True"}, {"type": "DisruptionTarget", "status": "True"}
    for conditions in ([ready], [target], [{"type": "Ready", "status": "False"}]):
        writer.patch_status("default", "same", {"status": {"conditions": conditions}})
    assert api.pod("default", "same")["status"]["conditions"] == [target, {"type": "Ready", "status": "False"}]


def test_an_eviction_honours_budgets_and_the_uid(api, writer, pod):
    def ask(uid):
        return writer.evict("default", "same", {"deleteOptions": {"preconditions": {"uid": uid}}})

    assert ask("another").status == 409
    api.budget_refuses = True
    refused = ask(pod["metadata"]["uid"])
    assert (refused.status, "disruption budget" in refused.message) == (429, True)
    api.budget_refuses = False
    assert ask(pod["metadata"]["uid"]).status == 201
    assert "deletionTimestamp" in api.pod("default", "same")["metadata"]


def test_an_event_of_the_same_name_is_there_once(api, writer):
    event = {"metadata": {"name": "same.1", "namespace": "default"}, "involvedObject": {"namespace": "default"}}
    assert [writer.post_event("default", event).status for _ in range(2)] == [201, 409]


def test_a_server_that_is_away_does_not_answer(api, writer, pod):
    writer.warm()
    api.is_away = True
    with pytest.raises(ClusterError):
        writer.patch_status("default", "same", {"status": FAILED})
    api.is_away = False
    assert writer.patch_status("default", "same", {"status": FAILED}).status == 200


def test_a_watch_shows_the_pods_of_a_node_and_a_stale_one_nothing(api, pod):
    seen = []

    def watch():
        events = api.watch({"fieldSelector": "spec.nodeName=node-1"})
        seen.extend((each["type"], each["object"]["metadata"]["name"]) for each in events)

    threading.Thread(target=watch, daemon=True).start()
    wait_until(lambda: seen, "the first pod")
    api.add_pod({"metadata": {"name": "elsewhere"}, "spec": {"nodeName": "node-2"}})
    api.is_stale = True
    api.delete_pod("default", "same")
    api.is_stale = False
    wait_until(lambda: len(seen) == 2, "its end")
    assert seen == [("ADDED", "same"), ("DELETED", "same")]


def test_what_ends_is_restarted_until_the_kubelet_is_told_as_recorded(suite):
    suite.restart_seconds = 0.01
    run = suite.run("web-0", ("sh", "-c", "sleep 1000"))
    suite.cgroups.kill_charged(f"{run.cgroup}/{run.container_ids[0]}")
    wait_until(lambda: suite.restarts("web-0") == 1, "the kubelet restarts it")

    told = {"metadata": {"uid": run.uid, "annotations": {"changed": "1"}}, "status": FAILED}
    assert Writer(suite.client).patch_status("default", "web-0", told).status == 200
    wait_until(lambda: suite.is_evicted(run), "it is torn down")
    shown = [pod["status"].get("reason") for _, _, pod in suite.api.log if pod["status"]["phase"] == "Failed"]
    assert (shown[0], shown[1], shown[-1]) == ("Evicted", None, "Evicted"), "in between the reason is null"
    assert suite.restarts("web-0") == 1
