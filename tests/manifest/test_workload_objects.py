"""How many pods an object wants, and what is kept of one that is not in order."""

from __future__ import annotations

import pytest

from podqos.manifest.reading import read

TEMPLATE = "template: {spec: {containers: [{name: c}]}}"


def _read(kind: str, api_version: str, spec: str):
    return read("x.yaml", f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {spec}\n".encode())


@pytest.mark.parametrize(
    ("kind", "api_version", "spec", "pods"),
    [
        pytest.param("Deployment", "apps/v1", f"{{replicas: 3, {TEMPLATE}}}", 3, id="replicas"),
        pytest.param("Deployment", "apps/v1", f"{{{TEMPLATE}}}", None, id="left-out"),
        pytest.param("Job", "batch/v1", f"{{parallelism: 4, {TEMPLATE}}}", 4, id="job"),
        pytest.param("Job", "batch/v1", f"{{parallelism: 4, completions: 2, {TEMPLATE}}}", 2, id="few-completions"),
        pytest.param("Job", "batch/v1", f"{{completions: 2, {TEMPLATE}}}", None, id="one-after-the-other"),
        pytest.param(
            "CronJob", "batch/v1", f"{{jobTemplate: {{spec: {{parallelism: 2, {TEMPLATE}}}}}}}", 2, id="cron-job"
        ),
    ],
)
def test_how_many_pods_run_at_a_time(kind, api_version, spec, pods):
    (workload,) = _read(kind, api_version, spec).workloads
    assert workload.replicas == pods


def test_an_object_that_is_not_in_order_is_kept_with_its_problems():
    """Whoever wants to say what an API server answers can look it up."""
    reading = _read("Job", "batch/v1", "{template: {spec: {containers: [{name: c, resource: {}}]}}}")
    assert not reading.workloads
    (refused,) = reading.refused
    assert (refused.kind, refused.metadata.name) == ("Job", "a")
    assert refused.problems == reading.problems


def test_an_object_that_kubernetes_does_not_know_is_not_kept():
    """The problem says all there is to say."""
    reading = _read("Job", "v1", f"{{{TEMPLATE}}}")
    assert (len(reading.problems), reading.refused) == (1, ())
