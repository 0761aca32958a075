"""Each form of a patch makes of the object what the edits make of it."""

from __future__ import annotations

import json
import shlex

import pytest
import yaml
from msgspec.structs import replace

from podqos.advice.checks.finding import Choice, FieldEdit, Patch
from podqos.advice.fixes.patches import object_patch
from podqos.manifest.plain import parse_path
from podqos.questions.patches import json_patch, kubectl_patch, kustomize_entry, kustomize_file_name, kustomize_patch


def deployment() -> dict:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "app", "resources": {"limits": {"memory": "1Gi", "cpu": "1"}}},
                        {"name": "it's", "image": "envoy"},
                    ]
                }
            }
        },
    }


CONTAINERS = "spec.template.spec.containers"
EDITS = {
    "set": (FieldEdit(f"{CONTAINERS}[0].resources.limits.memory", "2Gi", "1Gi"),),
    "add": (FieldEdit(f"{CONTAINERS}[1].resources.requests.memory", "1Gi"),),
    "remove": (FieldEdit(f"{CONTAINERS}[0].resources.limits.cpu", None, "1"),),
    "slash": (FieldEdit("metadata.annotations[podqos.dev/ignore]", "PQ101"), FieldEdit("metadata.labels[a~b]", "c")),
    "several": (
        FieldEdit(f"{CONTAINERS}[0].resources.requests", {"cpu": "1", "memory": "1Gi"}),
        FieldEdit(f"{CONTAINERS}[1].resources.limits.memory", "1Gi"),
        FieldEdit("spec.template.spec.priorityClassName", "high"),
        FieldEdit("spec.template.spec.tolerations", ["a", "b"]),
    ),
}


def applied(value: dict, edits: tuple[FieldEdit, ...]) -> dict:
    for edit in edits:
        *parents, last = parse_path(edit.path)
        target = value
        for step in parents:
            target = target[step] if isinstance(step, int) else target.setdefault(step, {})
        if edit.value is None:
            del target[last]
        else:
            target[last] = edit.value
    return value


def merged(value, patch, names):
    """Merge as an API server does: null removes, lists are replaced, unless their items have a name."""
    if not isinstance(patch, dict):
        return patch
    value = dict(value) if isinstance(value, dict) else {}
    for key, item in patch.items():
        if item is None:
            value.pop(key, None)
        elif isinstance(item, list) and key in names:
            value[key] = [
                merged(old, next((new for new in item if new["name"] == old["name"]), {}), names) for old in value[key]
            ]
        else:
            value[key] = merged(value.get(key), item, names)
    return value


def operated(value, operations):
    for operation in operations:
        *parents, last = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        target = value
        for step in parents:
            target = target[int(step)] if isinstance(target, list) else target[step]
        if operation["op"] == "test":
            assert target[last] == operation["value"]
        elif operation["op"] == "remove":
            del target[last]
        else:
            assert (last in target) == (operation["op"] == "replace")
            target[last] = operation["value"]
    return value


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
def test_a_strategic_merge_does_what_the_edits_do_and_names_containers(edits):
    command = kubectl_patch(object_patch(deployment(), edits))
    *words, kind, body = shlex.split(command)
    assert words[:6] == ["kubectl", "patch", "deployment", "web", "-n", "shop"]
    assert [*words[6:], kind] == ["--type", "strategic", "-p"]
    assert merged(deployment(), json.loads(body), {"containers"}) == applied(deployment(), edits)


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
def test_a_merge_of_a_custom_resource_does_what_the_edits_do_with_whole_lists(edits):
    custom = {**deployment(), "apiVersion": "example.com/v1", "kind": "Web"}
    words = shlex.split(kubectl_patch(object_patch(custom, edits)))
    assert words[2] == "web.example.com"
    assert words[words.index("--type") + 1] == "merge"
    assert merged(custom, json.loads(words[-1]), set()) == applied({**deployment(), **custom}, edits)


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
def test_a_json_patch_does_what_the_edits_do(edits):
    operations = json.loads(json_patch(object_patch(deployment(), edits)))
    assert operated(deployment(), operations) == applied(deployment(), edits)


def test_a_json_patch_tests_which_container_it_changes():
    operations = json.loads(json_patch(object_patch(deployment(), EDITS["add"])))
    assert operations[0] == {"op": "test", "path": "/spec/template/spec/containers/1/name", "value": "it's"}


@pytest.mark.parametrize("edits", EDITS.values(), ids=EDITS)
def test_a_kustomize_patch_does_what_the_edits_do_and_is_aimed_at_the_object(edits):
    patch = object_patch(deployment(), edits)
    assert merged(deployment(), yaml.safe_load(kustomize_patch(patch)), {"containers"}) == applied(deployment(), edits)
    target = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "web", "namespace": "shop"}
    assert yaml.safe_load(kustomize_entry(patch)) == {
        "patches": [{"path": kustomize_file_name(patch), "target": target}]
    }


def test_an_object_without_a_namespace_is_matched_without_one_and_patched_where_it_lives():
    value = deployment()
    del value["metadata"]["namespace"]
    patch = object_patch(value, EDITS["set"])
    assert "namespace" not in kustomize_entry(patch)
    assert "namespace" not in kustomize_patch(patch)
    assert "-n default" in kubectl_patch(patch, "default")


@pytest.mark.parametrize(
    ("kind", "api_version", "field", "is_taken"),
    [
        ("Pod", "v1", "spec.priorityClassName", False),
        ("Pod", "v1", "metadata.labels.a", True),
        ("Job", "batch/v1", "spec.template.spec.priorityClassName", False),
        ("Job", "batch/v1", "spec.parallelism", True),
        ("PriorityClass", "scheduling.k8s.io/v1", "value", False),
        ("PriorityClass", "scheduling.k8s.io/v1", "globalDefault", True),
        ("LimitRange", "v1", "spec.note", True),
        ("KubeletConfiguration", "kubelet.config.k8s.io/v1beta1", "evictionHard", False),
    ],
)
def test_what_an_api_server_would_refuse_has_no_command(kind, api_version, field, is_taken):
    value = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    command = kubectl_patch(object_patch(value, (FieldEdit(field, "1"),)))
    assert (command is not None) == is_taken


def test_a_patch_is_applied_where_it_is_complete_was_tried_and_need_not_be_asked_for():
    whole = replace(Patch.write(*EDITS["set"]), is_tried=True)
    others = replace(whole, on_request=True), replace(whole, is_tried=False), Patch.choose(Choice.RESOURCES)
    assert [each.is_applied for each in (whole, *others)] == [True, False, False, False]


@pytest.mark.parametrize(
    "edits",
    [(FieldEdit(f"{CONTAINERS}[7].image", "a"),), (FieldEdit("kind", "Deployment"),), ()],
    ids=["elsewhere", "same", "none"],
)
def test_edits_that_do_not_fit_or_change_nothing_make_no_patch(edits):
    assert object_patch(deployment(), edits) is None


def test_a_part_of_a_manifest_is_no_object_that_could_be_patched():
    part = {name: value for name, value in deployment().items() if name == "spec"}
    assert object_patch(part, EDITS["set"]) is None
