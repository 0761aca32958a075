from __future__ import annotations

import pytest

from podqos.host.node.manifests import ManifestFolder, RefusedManifest

_POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers: [{{name: main, image: x, command: [sleep, "{seconds}"]}}]
"""


def _pod(name: str, seconds: int = 1) -> str:
    return _POD.format(name=name, seconds=seconds)


@pytest.fixture
def folder(tmp_path):
    return ManifestFolder(tmp_path)


def _names(folder: ManifestFolder) -> list[str]:
    return [wanted.pod.metadata.name for wanted in folder.scan().wanted]


def test_files_come_change_and_go(folder, tmp_path):
    assert _names(folder) == []
    (tmp_path / "a.yaml").write_text(_pod("a"))
    (tmp_path / "notes.txt").write_text(_pod("b"))
    (tmp_path / ".hidden.yaml").write_text(_pod("c"))
    (first,) = folder.scan().wanted
    (tmp_path / "a.yaml.new").write_text(_pod("a", 2))
    (tmp_path / "a.yaml.new").rename(tmp_path / "a.yaml")
    (second,) = folder.scan().wanted
    assert first.pod.metadata.uid != second.pod.metadata.uid
    (tmp_path / "a.yaml").unlink()
    assert _names(folder) == []


def test_the_same_manifest_is_the_same_pod_whatever_file_it_is_in(folder, tmp_path):
    (tmp_path / "a.yaml").write_text(_pod("a"))
    (before,) = folder.scan().wanted
    (tmp_path / "a.yaml").rename(tmp_path / "b.yaml")
    (after,) = folder.scan().wanted
    assert before.pod == after.pod


@pytest.mark.parametrize("half", ["apiVersion: v1\nkind: Pod\nmetadata: {na", "", "kind: Pod\nspec:\n  - x"])
def test_a_half_written_file_keeps_what_it_last_said(folder, tmp_path, half):
    file = tmp_path / "a.yaml"
    file.write_text(_pod("a"))
    assert _names(folder) == ["a"]
    file.write_text(half)
    assert _names(folder) == ["a"]
    file.write_text(_pod("a") + "---" + _pod("b"))
    assert _names(folder) == ["a", "b"]


def test_a_part_of_a_manifest_runs_under_the_name_of_its_file_and_is_noted(folder, tmp_path):
    (tmp_path / "a.yaml").write_text(_pod("x").partition("spec:")[1] + _pod("x").partition("spec:")[2])
    (tmp_path / "b.yaml").write_text("containers: [{name: main, image: x, command: [sleep, '1']}]\n")
    scan = folder.scan()
    assert [wanted.pod.metadata.name for wanted in scan.wanted] == ["a", "b"]
    assert list(scan.reading.notes) == ["a.yaml:1: no kind: treated as Pod a", "b.yaml:1: no kind: treated as Pod b"]


def test_of_two_files_with_one_pod_the_first_counts(folder, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(_pod("same"))
    scan = folder.scan()
    assert [wanted.source for wanted in scan.wanted] == ["a.yaml"]
    assert "is already in a.yaml" in scan.reading.notes[0]


def test_policies_beside_a_pod_decide_about_it(folder, tmp_path):
    (tmp_path / "policies.yaml").write_text(
        "apiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\n"
        "spec: {limits: [{type: Container, default: {memory: 64Mi}, max: {memory: 128Mi}}]}\n"
        "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 1000\n"
    )
    (tmp_path / "a.yaml").write_text(_pod("a").replace("spec:", "spec:\n  priorityClassName: high"))
    (tmp_path / "b.yaml").write_text(
        _pod("b").replace("name: main,", "name: main, resources: {limits: {memory: 1Gi}},")
    )
    scan = folder.scan()
    first, second = scan.wanted
    admitted = scan.admitted(first)
    assert str(admitted.spec.containers[0].resources.limits["memory"]) == "64Mi"
    assert admitted.spec.priority == 1000
    refused = scan.admitted(second)
    assert isinstance(refused, RefusedManifest)
    assert "maximum memory usage per Container is 128Mi" in refused.why


def test_the_pods_of_a_controller_are_numbered(folder, tmp_path):
    (tmp_path / "d.yaml").write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n"
        "  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n"
        "    spec: {containers: [{name: main, image: x, command: [sleep, '1']}]}\n"
    )
    wanted = folder.scan().wanted
    assert [each.pod.metadata.name for each in wanted] == ["web-0", "web-1"]
    assert len({each.pod.metadata.uid for each in wanted}) == 2
    assert wanted[0].run.container("main").command == ("sleep", "1")


def test_what_the_node_leaves_out_is_said_before_the_pod_runs(folder, tmp_path):
    (tmp_path / "a.yaml").write_text(_pod("a").replace(
        "image: x", "image: x, envFrom: [{configMapRef: {name: s}}], livenessProbe: {grpc: {port: 80}}"
    ))  # fmt: skip
    scan = folder.scan()
    assert [(wanted.pod.key, wanted.why_not) for wanted in scan.wanted] == [("default/a", "")]
    assert list(scan.reading.notes) == [
        "a.yaml: default/a: container main: envFrom is ignored",
        "a.yaml: default/a: container main: livenessProbe without exec, httpGet or tcpSocket is ignored",
    ]
