"""Parts of manifests: what is taken for a pod, what is not, and where things stand in the text."""

from __future__ import annotations

import textwrap

import pytest

from podqos.manifest.edits.apply import CannotEdit, Edited, ObjectEdit, Reason, apply_edits
from podqos.manifest.lookup import Lookup
from podqos.manifest.reading import read
from podqos.manifest.snippets import name_after

CONTAINERS = "containers: [{name: app, image: a}]"


def of(text: str, source: str = "pod.yaml"):
    return read(source, textwrap.dedent(text).encode())


@pytest.mark.parametrize(
    ("text", "kind", "fix"),
    [
        (f"spec: {{{CONTAINERS}}}", "Pod", "add apiVersion: v1 and kind: Pod"),
        (CONTAINERS, "Pod", "add apiVersion: v1, kind: Pod and spec:"),
        (f"kind:\nspec: {{{CONTAINERS}}}", "Pod", "add apiVersion: v1 and kind: Pod"),
        (f"apiVersion: v1\nmetadata: {{}}\nspec: {{{CONTAINERS}}}", "Pod", "add kind: Pod"),
        (
            f"spec: {{template: {{spec: {{{CONTAINERS}}}}}}}",
            "Deployment",
            "add apiVersion: apps/v1 and kind: Deployment",
        ),
        (f"apiVersion: batch/v1\nspec: {{template: {{spec: {{{CONTAINERS}}}}}}}", "Job", "add kind: Job"),
        (
            f"apiVersion: v1\nspec: {{template: {{spec: {{{CONTAINERS}}}}}}}",
            "ReplicationController",
            "add kind: ReplicationController",
        ),
        (
            f"spec: {{jobTemplate: {{spec: {{template: {{spec: {{{CONTAINERS}}}}}}}}}}}",
            "CronJob",
            "add apiVersion: batch/v1 and kind: CronJob",
        ),
        ('{"spec": {"containers": [{"name": "app"}]}}', "Pod", "add apiVersion: v1 and kind: Pod"),
    ],
)
def test_a_part_of_a_manifest_is_taken_for_what_it_shows_and_that_is_said(text, kind, fix):
    reading = of(text)
    (workload,) = reading.workloads
    assert (workload.kind, workload.metadata.name, workload.pod.spec.containers[0].name) == (kind, "pod", "app")
    (problem,) = reading.problems
    assert str(problem) == f"pod.yaml:1:1: warning: no kind: treated as {kind} pod ({fix})"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("spec: {containers: []}", id="no containers"),
        pytest.param("spec: {containers: 3}", id="a number of containers"),
        pytest.param("containers: {web: {image: a}}", id="containers by name"),
        pytest.param("containers: [{image: a}]", id="containers without names"),
        pytest.param(f"version: 3\n{CONTAINERS}", id="fields that no pod has"),
        pytest.param(f"name: x\nspec: {{{CONTAINERS}}}", id="fields that no object has"),
        pytest.param(f"kind: 5\nspec: {{{CONTAINERS}}}", id="a kind that is a number"),
        pytest.param(f"apiVersion: apps/v1\nspec: {{{CONTAINERS}}}", id="a version without such a kind"),
        pytest.param(
            f"apiVersion: serving.knative.dev/v1\nspec: {{template: {{spec: {{{CONTAINERS}}}}}}}",
            id="a custom resource",
        ),
        pytest.param(f"apiVersion: 1\nspec: {{{CONTAINERS}}}", id="a version that is a number"),
        pytest.param("- name: app\n  image: a\n", id="a list"),
        pytest.param("{}", id="nothing"),
    ],
)
def test_what_could_be_something_else_is_left_out(text):
    reading = of(text)
    assert (reading.workloads, reading.problems, reading.refused, reading.skipped) == ((), (), (), 1)


def test_items_of_a_list_are_not_completed():
    reading = of(f"apiVersion: v1\nkind: List\nitems: [{{spec: {{{CONTAINERS}}}}}]")
    assert (reading.workloads, reading.skipped) == ((), 1)


def test_a_name_in_the_text_is_kept_and_others_are_those_of_the_file_by_number():
    one = f"metadata: {{name: own, namespace: here}}\nspec: {{{CONTAINERS}}}\n"
    reading = of("---\n".join([f"{CONTAINERS}\n", one, f"{CONTAINERS}\n"]), "dir/My_Pod.v1.yaml")
    assert [workload.pod.key for workload in reading.workloads] == ["default/my-pod", "here/own", "default/my-pod-3"]


@pytest.mark.parametrize(
    ("source", "name"),
    [("-", "snippet"), ("", "snippet"), ("a/b/.yaml", "snippet"), ("ünï.yaml", "n"), ("x" * 99 + ".yaml", "x" * 50)],
)
def test_whatever_the_file_is_called_a_name_comes_out(source, name):
    assert name_after(source) == name


BARE = """\
# as pasted
containers:
- name: app
  resources:
    request: {cpu: 1}
    limits:
      memory: 64mi
"""


def test_errors_are_where_they_stand_in_the_text():
    assert [(problem.line, problem.column, problem.field) for problem in of(BARE).problems[1:]] == [
        (5, 5, "spec.containers[0].resources.request"),
        (7, 7, "spec.containers[0].resources.limits.memory"),
    ]


def test_a_field_that_the_text_has_no_room_for_is_where_the_text_begins():
    text = b"# comment\ncontainers:\n- name: app\n"
    (place,) = read("f", text).places
    lookup = Lookup(text)
    assert lookup.locate(place, "metadata.name") == lookup.locate(place, "") == (2, 1)
    assert lookup.locate(place, "spec.containers[0].name") == (3, 3)
    assert lookup.plain(place) == {"spec": {"containers": [{"name": "app"}]}}


def test_edits_touch_the_text_as_it_stands():
    text = b"...\ncontainers:\n- name: app # the one\n...\n"
    (place,) = read("f", text).places
    edited = apply_edits(text, [ObjectEdit(place, "spec.containers[0].image", "nginx")])
    assert edited == Edited(b"...\ncontainers:\n- name: app # the one\n  image: nginx\n...\n")


@pytest.mark.parametrize("path", ["metadata.name", "spec"])
def test_what_the_text_has_no_room_for_is_not_edited(path):
    text = b"containers:\n- name: app\n"
    (place,) = read("f", text).places
    edit = ObjectEdit(place, path, "x")
    assert apply_edits(text, [edit]) == CannotEdit(Reason.UNSUPPORTED, edit)
