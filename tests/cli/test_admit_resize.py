"""``podqos admit --resize`` with the nodes that the pods are on."""

from __future__ import annotations

import json

import pytest

from podqos.cli.main import main

POD = """apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, uid: {name}}}
spec:
  nodeName: worker
  containers:
  - {{name: app, image: i, resources: {{requests: {{cpu: {cpu}, memory: {memory}}}}}}}
status: {{phase: Running, qosClass: Burstable}}
"""
NODE = """apiVersion: v1
kind: Node
metadata: {name: worker}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "110"}, capacity: {cpu: "4", memory: 8Gi}}
"""


def _pod(name="web", cpu="500m", memory="1Gi"):
    return POD.format(name=name, cpu=f'"{cpu}"', memory=memory)


@pytest.fixture
def admit(capsys, tmp_path):
    def run(resized: str, *stored: str, options=()):
        old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
        old.write_text("---\n".join(stored))
        new.write_text(resized)
        code = main(["admit", "-f", str(old), "pod/web", "--resize", str(new), *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_a_resize_that_the_node_cannot_hold_is_rejected_with_the_servers_words(admit):
    code, out, err = admit(_pod(cpu="5"), _pod(), NODE)
    assert code == 1
    assert "PodResizeValidator         rejected, 403 Forbidden" in out
    assert "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000" in " ".join(
        out.split()
    )
    assert "assumed: room" not in err
    assert "skipped" not in err


def test_a_resize_that_other_pods_leave_no_room_for_is_allowed_and_deferred(admit):
    code, out, _ = admit(_pod(cpu="3"), _pod(), _pod("db", cpu="2"), NODE)
    assert code == 0
    assert "kubelet                    Deferred on node worker: Node didn't have enough resource: cpu" in out
    _, out, _ = admit(_pod(cpu="3"), _pod(), _pod("db", cpu="2"), NODE, options=("-o", "json"))
    assert json.loads(out)["items"][-1]["pending"] == {
        "node": "worker",
        "reason": "Deferred",
        "message": "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
    }


def test_a_pod_whose_own_resize_waits_counts_with_what_its_kubelet_allocated(admit):
    smaller = _pod("db", cpu="1").replace(
        "qosClass: Burstable",
        'qosClass: Burstable, containerStatuses: [{name: app, allocatedResources: {cpu: "2", memory: 1Gi}}]',
    )
    assert "Deferred" in admit(_pod(cpu="3"), _pod(), smaller, NODE)[1]


def test_before_1_36_the_kubelet_rejects_what_the_node_cannot_hold(admit):
    code, out, _ = admit(_pod(cpu="5"), _pod(), NODE, options=("--kubernetes-version", "1.35"))
    assert code == 0
    assert (
        "Infeasible on node worker: Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"
        in " ".join(out.split())
    )


def test_a_resize_of_memory_leaves_the_score_until_a_restart(admit):
    _, out, _ = admit(_pod(memory="2Gi"), _pod(), NODE)
    assert "scores                     app keeps its oom_score_adj until the next restart" in out
    assert "oom_score_adj" not in admit(_pod(cpu="1"), _pod(), NODE)[1]
    policy = "image: i, resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]"
    old, new = (_pod(memory=memory).replace("image: i", policy) for memory in ("1Gi", "2Gi"))
    assert "oom_score_adj" not in admit(new, old, NODE)[1]


def test_without_its_node_room_is_assumed(admit):
    code, out, err = admit(_pod(cpu="900"), _pod())
    assert code == 0
    assert "PodResizeValidator" not in out
    assert "assumed: room on the nodes of resized pods: enough" in err
