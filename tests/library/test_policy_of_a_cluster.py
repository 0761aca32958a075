"""A policy held against a live cluster, or a snapshot of one: what it would refuse of what runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from library.test_live_cluster import podqos

POLICY = """\
apiVersion: podqos.dev/v1alpha1
kind: Policy
metadata: {name: rollout}
spec:
  rules:
  - name: guaranteed
    require: {minClass: Guaranteed}
    action: Deny
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: new, namespace: shop}\nspec: {containers: [{name: a, image: a}]}\n"


@pytest.fixture(autouse=True)
def _policy(served, capsys):
    served()
    podqos(capsys, "snapshot", "-o", "c.json.gz")
    Path("policy.yaml").write_text(POLICY)


@pytest.mark.parametrize("cluster", [("-A",), ("--snapshot", "c.json.gz")], ids=" ".join)
def test_a_policy_alone_is_held_against_the_pods_that_run_together_by_what_made_them(capsys, cluster):
    code, out, _ = podqos(capsys, "policy", "test", "-f", "policy.yaml", *cluster)
    assert code == 1
    assert out.startswith("4 objects: 3 would be rejected; rejected by rollout/guaranteed.\n")
    assert "ReplicaSet shop/web-7d4b9c (2 pods): rejected\n  spec.containers[0].resources: Deny\n" in out
    report = json.loads(podqos(capsys, "policy", "test", "-f", "policy.yaml", *cluster, "-o", "json")[1])
    assert [(item["kind"], item["source"] != "policy.yaml") for item in report["items"]] == [("Pod", True)] * 3


def test_workloads_of_files_are_judged_beside_what_the_cluster_has(capsys):
    Path("pod.yaml").write_text(POD)
    _, out, err = podqos(capsys, "policy", "test", "-f", "policy.yaml", "-f", "pod.yaml", "-A")
    assert out.startswith("1 object: 1 would be rejected; rejected by rollout/guaranteed.\n")
    assert "assumed" not in err


@pytest.mark.parametrize(("named", "count"), [("deploy/web", 1), ("pod/shell", 1)])
def test_objects_of_a_cluster_can_be_named(capsys, named, count):
    code, out, _ = podqos(capsys, "policy", "test", named, "--policies", "policy.yaml", "-n", "shop")
    assert code == 1
    assert out.startswith(f"{count} object: {count} would be rejected; rejected by rollout/guaranteed.\n")


def test_without_a_policy_a_cluster_is_not_judged(capsys):
    code, _, err = podqos(capsys, "policy", "test", "-A")
    assert code == 2
    assert "no policy (give a file with kind: Policy" in err
