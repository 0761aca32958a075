"""Pods that were, or are being, resized in place: what their nodes run them with, and which score the kernel has."""

from __future__ import annotations

import json

import pytest

from podqos.cli.main import main
from podqos.manifest.pruning import pruned_list
from podqos.model.resized import LAST_APPLIED

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "worker"},
    "status": {"capacity": {"cpu": "4", "memory": "16Gi"}, "allocatable": {"cpu": "4", "memory": "16Gi"}},
}
STARTED, RESIZED, LATER = "2026-11-18T10:00:00Z", "2026-11-18T11:00:00Z", "2026-11-18T12:00:00Z"

PENDING = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


def _pod(name="web", memory="4Gi", *, started=STARTED, allocated=None, generation=2, **metadata):
    held = {"cpu": "1", "memory": allocated or memory}
    container = {"name": "app", "image": "i", "resources": {"requests": {"cpu": "1", "memory": memory}}}
    status = {
        "name": "app",
        "state": {"running": {"startedAt": started}},
        "allocatedResources": held,
        "resources": {"requests": held},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop", "uid": name, "generation": generation, **metadata},
        "spec": {"nodeName": "worker", "containers": [container]},
        "status": {"phase": "Running", "qosClass": "Burstable", "containerStatuses": [status]},
    }


def _resize(field="f:memory", subresource="resize"):
    owned = {'k:{"name":"app"}': {"f:resources": {"f:requests": {field: {}}}}}
    fields = {"f:spec": {"f:containers": owned}}
    return {"manager": "kubectl-patch", "subresource": subresource, "time": RESIZED, "fieldsV1": fields}


def _applied(memory="1Gi"):
    container = {"name": "app", "env": [{"name": "TOKEN", "value": "secret"}]}
    container["resources"] = {"requests": {"cpu": "1", "memory": memory}}
    return {LAST_APPLIED: json.dumps({"kind": "Pod", "spec": {"containers": [container]}})}


@pytest.fixture
def run(capsys, tmp_path):
    def call(command, *pods):
        path = tmp_path / "pods.json"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*pods, NODE]}))
        assert main([command, "-f", str(path), "-o", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return call


def _scores(answer):
    return {
        (item["name"], each["name"]): each["oomScoreAdj"] for item in answer["items"] for each in item["containers"]
    }


def _assumed(answer):
    return [each["what"] for each in answer["assumptions"] if each["what"].startswith("oom_score_adj")]


class TestAResizeThatIsDone:
    """4Gi of 16Gi give 750; the 1Gi that the container started with gave 938."""

    def test_the_score_is_that_of_the_request_that_kubectl_applied_until_a_restart(self, run):
        answer = run("explain", _pod(managedFields=[_resize()], annotations=_applied()))
        (container,) = answer["items"][0]["containers"]
        assert (container["oomScoreAdj"], container["oomScoreAdjAfterRestart"]) == (938, 750)
        assert container["oomReason"].endswith("the request that it started with; a restart makes it 750")
        assert _assumed(answer) == []

    def test_the_kernels_order_goes_by_the_older_score_and_the_kubelets_by_the_new_request(self, run):
        resized = _pod(managedFields=[_resize()], annotations=_applied())
        answer = run("rank", _pod("other", "4Gi", generation=1), resized)
        assert [(entry["pod"], entry["oomScoreAdj"]) for entry in answer["killOrder"]] == [
            ("shop/web", 938),
            ("shop/other", 750),
        ]
        assert {entry["request"] for entry in answer["evictionOrder"]} == {4 << 30}

    def test_a_container_that_started_after_the_resize_has_the_new_score(self, run):
        answer = run("explain", _pod(managedFields=[_resize()], annotations=_applied(), started=LATER))
        assert (_scores(answer)["web", "app"], _assumed(answer)) == (750, [])

    def test_a_container_that_a_resize_restarts_has_the_new_score(self, run):
        """Times have seconds: the restart can be in that of the resize."""
        pod = _pod(managedFields=[_resize()], annotations=_applied(), started=RESIZED)
        assert _scores(run("explain", pod))["web", "app"] == 938
        pod["spec"]["containers"][0]["resizePolicy"] = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
        assert _scores(run("explain", pod))["web", "app"] == 750

    def test_without_the_earlier_request_the_score_is_an_assumption(self, run):
        answer = run("explain", _pod(managedFields=[_resize()]))
        assert (_scores(answer)["web", "app"], _assumed(answer)) == (750, ["oom_score_adj of app in shop/web"])
        assert _assumed(run("rank", _pod(managedFields=[_resize()]))) == ["oom_score_adj of app in shop/web"]

    @pytest.mark.parametrize("entry", [_resize("f:cpu"), _resize(subresource=""), _resize(subresource="status")])
    def test_other_changes_than_a_resize_of_memory_change_no_score(self, run, entry):
        assert _assumed(run("explain", _pod(managedFields=[entry], annotations=_applied()))) == []

    @pytest.mark.parametrize("managed", [[_resize()], []])
    def test_the_status_of_a_pod_keeps_the_request_of_its_start(self, run, managed):
        """Seen with a kubelet of 1.36: its allocatedResources are new, its resources are not."""
        pod = _pod(managedFields=managed)
        pod["status"] |= {"resources": {"requests": {"memory": "1Gi"}}, "allocatedResources": {"memory": "4Gi"}}
        answer = run("explain", pod)
        assert (_scores(answer)["web", "app"], _assumed(answer)) == (938, [])

    def test_a_status_whose_requests_are_equal_shows_that_no_memory_was_resized(self, run):
        pod = _pod()
        pod["status"] |= {"resources": {"requests": {"memory": "4Gi"}}, "allocatedResources": {"memory": "4Gi"}}
        assert _assumed(run("explain", pod)) == []

    def test_a_container_that_restarted_may_have_either_score(self, run):
        pod = _pod()
        pod["status"] |= {"resources": {"requests": {"memory": "1Gi"}}, "allocatedResources": {"memory": "4Gi"}}
        pod["status"]["containerStatuses"][0]["restartCount"] = 1
        assert _assumed(run("explain", pod)) == ["oom_score_adj of app in shop/web"]

    def test_where_only_the_generation_shows_a_change_that_is_said(self, run):
        """The printing of kubectl leaves out managedFields."""
        assert _assumed(run("explain", _pod())) == ["oom_score_adj of app in shop/web"]
        assert _assumed(run("explain", _pod(generation=1))) == []

    def test_scores_that_do_not_depend_on_requests_are_no_assumption(self, run):
        pod = _pod(managedFields=[_resize()])
        pod["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "1", "memory": "4Gi"}
        pod["status"]["qosClass"] = "Guaranteed"
        assert _assumed(run("explain", pod)) == []


class TestAResizeThatIsNotDone:
    """The spec asks for 4Gi, the kubelet has allocated 1Gi."""

    def _pod(self, **metadata):
        pod = _pod(allocated="1Gi", **metadata)
        pod["status"]["conditions"] = [PENDING]
        return pod

    def test_the_score_and_the_amounts_are_those_that_its_kubelet_allocated(self, run):
        answer = run("explain", self._pod(managedFields=[_resize()]))
        assert (_scores(answer)["web", "app"], _assumed(answer)) == (938, [])
        assert (
            "waits for room on its node (Deferred); it runs with app requests.memory 1Gi instead of 4Gi"
            in (answer["items"][0]["notes"][0])
        )

    def test_the_kubelet_ranks_by_what_it_allocated(self, run):
        answer = run("rank", self._pod())
        assert [entry["request"] for entry in answer["evictionOrder"]] == [1 << 30]
        assert [entry["oomScoreAdj"] for entry in answer["killOrder"]] == [938]


def test_a_snapshot_keeps_what_shows_a_resize_and_no_more():
    manager = {"manager": "kubelet", "subresource": "status", "time": RESIZED, "fieldsV1": {"f:status": {}}}
    pod = _pod(managedFields=[manager, _resize()], annotations=_applied())
    pod["status"]["conditions"] = [PENDING, {"type": "Ready", "status": "True"}]
    data = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [pod]}).encode()
    (kept,) = json.loads(pruned_list(data))["items"]
    assert [entry["subresource"] for entry in kept["metadata"]["managedFields"]] == ["resize"]
    assert json.loads(kept["metadata"]["annotations"][LAST_APPLIED])["spec"]["containers"][0]["name"] == "app"
    assert b"secret" not in pruned_list(data)
    assert [condition["type"] for condition in kept["status"]["conditions"]] == ["PodResizePending"]


def test_a_snapshot_of_a_pod_that_was_never_resized_has_neither():
    data = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [_pod(annotations=_applied())]}).encode()
    (kept,) = json.loads(pruned_list(data))["items"]
    assert not {"managedFields", "annotations"} & kept["metadata"].keys()
