"""A large list read in parts says the same as read as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podqos.cli import large_list
from podqos.cli.large_list import cut, read_part
from podqos.cli.main import main
from podqos.manifest.reading import read

RESOURCES = ({}, {"requests": {"cpu": "1"}}, {"limits": {"cpu": "1", "memory": "1Gi"}})


def live_pod(index: int, resources: dict, annotation: str = "") -> dict:
    metadata = {"name": f"pod-{index}", "namespace": "default", "uid": f"uid-{index}"}
    if annotation:
        metadata["annotations"] = {"note": annotation}
    container = {"name": "c", "resources": resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


KUBECTL = {"indent": 4}
API_SERVER = {"separators": (",", ":")}
PYTHON: dict = {}


def kubectl_list(path: Path, items: list[dict], kind: str = "List", style: dict = KUBECTL) -> Path:
    """Write a list as kubectl prints it, or in another style."""
    whole = {"apiVersion": "v1", "items": items, "kind": kind, "metadata": {"resourceVersion": ""}}
    path.write_text(json.dumps(whole, **style) + "\n")
    return path


@pytest.fixture(autouse=True)
def every_list_is_large(monkeypatch):
    monkeypatch.setattr(large_list, "_LARGE_BYTES", 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.builds(
            lambda resources, note: (resources, note),
            st.sampled_from(RESOURCES),
            # texts that look like structure
            st.sampled_from(("", "},\n        {\n", '"items": [', "\n    ],\n", "é")),
        ),
        min_size=2,
        max_size=12,
    ),
    st.integers(2, 5),
    st.sampled_from(("List", "PodList")),
    st.sampled_from((KUBECTL, API_SERVER, PYTHON)),
)
def test_the_parts_together_are_the_whole(tmp_path_factory, drawn, count, kind, style):
    items = [live_pod(index, resources, note) for index, (resources, note) in enumerate(drawn)]
    path = kubectl_list(tmp_path_factory.mktemp("lists") / "pods.json", items, kind, style)
    whole = read("pods.json", path.read_bytes())
    parts = [read_part(part) for part in cut(str(path), count)]
    read_in_parts = [(pod.metadata, pod.spec, pod.status) for part in parts for pod in part]
    assert read_in_parts == [(found.pod.metadata, found.pod.spec, found.pod.status) for found in whole.workloads]
    assert len(whole.workloads) == len(items)


def test_a_list_is_really_cut_in_every_style(tmp_path):
    items = [live_pod(index, {}) for index in range(20)]
    for style in (KUBECTL, API_SERVER, PYTHON):
        path = kubectl_list(tmp_path / "pods.json", items, style=style)
        assert [len(read_part(part)) for part in cut(str(path), 2)] in ([10, 10], [11, 9])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "kind: Pod",
        '{"apiVersion": "v1", "kind": "List", "items": []}',
        '{"apiVersion": "v1", "kind": "List", "items": [{"kind": "Service", "metadata": {}}]}',
        '{"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [{"metadata": {}}]}',
        '{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {}}',
    ],
)
def test_other_texts_are_left_to_the_ordinary_reading(tmp_path, text):
    path = tmp_path / "text.json"
    path.write_text(text)
    assert cut(str(path), 2) == []
    assert cut(str(tmp_path / "missing.json"), 2) == []


def test_a_list_with_something_wrong_is_read_as_a_whole_and_reported_with_its_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("podqos.parallel.WORTH_FORKING_BYTES", 0)
    items = [live_pod(0, {}), live_pod(1, {}), live_pod(2, {"request": {"cpu": "1"}})]
    path = kubectl_list(tmp_path / "pods.json", items)
    code = main(["explain", "-f", str(path), "-o", "csv", "--node-memory", "1Gi"])
    captured = capsys.readouterr()
    line = path.read_text().splitlines().index('                            "request": {') + 1
    assert code == 2
    assert f"{path}:{line}:" in captured.err
    assert [row.split(",")[1] for row in captured.out.splitlines()[1:]] == ["pod-0", "pod-1"]


def test_a_large_list_is_explained_by_all_cores_alike(tmp_path, capsys, monkeypatch):
    path = kubectl_list(tmp_path / "pods.json", [live_pod(n, RESOURCES[n % 3]) for n in range(50)])
    outputs = []
    for threshold in (0, 1 << 40):
        monkeypatch.setattr("podqos.parallel.WORTH_FORKING_BYTES", threshold)
        assert main(["explain", "-f", str(path), "-o", "csv", "--node-memory", "1Gi"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 51
