"""Whatever is wrong with an object is found, all of it, with the field at fault and a way out."""

from __future__ import annotations

import pytest

from podqos.manifest.examine import examine
from podqos.manifest.fields import CONTAINER_FIELDS, POD_SPEC_FIELDS
from podqos.manifest.kinds import POD_HOLDERS
from podqos.manifest.objects import interpret, objects_in
from podqos.manifest.plain import Plain, format_path

NAMED: Plain = {"name": "n"}


def findings(value: dict[str, Plain], kind: str = "Pod") -> list[tuple[str, str, str]]:
    _, found = examine(POD_HOLDERS[kind], value)
    return [(format_path(finding.path), finding.what, finding.fix) for finding in found]


def pod(spec: dict[str, Plain], **container: Plain) -> dict[str, Plain]:
    return {"metadata": NAMED, "spec": {"containers": [{"name": "a", **container}], **spec}}


C = "spec.containers[0]"
REGEX = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
SUFFIX = "unable to parse quantity's suffix"
ANY_AMOUNT = "write a quantity such as 250m, 1.5 or 512Mi"

WRONG: dict[str, tuple[dict[str, Plain], tuple[str, str, str]]] = {
    # unknown fields
    "request": (
        pod({}, resources={"request": {"cpu": 1}}),
        (f"{C}.resources.request", 'unknown field "request"', 'did you mean "requests"?'),
    ),
    "limit": (
        pod({}, resources={"limit": {}}),
        (f"{C}.resources.limit", 'unknown field "limit"', 'did you mean "limits"?'),
    ),
    "capitals": (
        pod({}, resources={"Limits": {}}),
        (f"{C}.resources.Limits", 'unknown field "Limits"', 'did you mean "limits"?'),
    ),
    "nothing near": (
        pod({}, resources={"cpu": 1}),
        (f"{C}.resources.cpu", 'unknown field "cpu"', "one of claims, limits, requests"),
    ),
    "pod level": (
        pod({"resources": {"request": {}}}),
        ("spec.resources.request", 'unknown field "request"', 'did you mean "requests"?'),
    ),
    "container field": (
        pod({}, resource={}),
        (f"{C}.resource", 'unknown field "resource"', 'did you mean "resources"?'),
    ),
    "pod field": (
        pod({"initContainer": []}),
        ("spec.initContainer", 'unknown field "initContainer"', 'did you mean "initContainers"?'),
    ),
    "a field from nowhere": (pod({"foo": 1}), ("spec.foo", 'unknown field "foo"', "remove it")),
    "ephemeral field elsewhere": (
        pod({}, targetContainerName="a"),
        (f"{C}.targetContainerName", 'unknown field "targetContainerName"', "remove it"),
    ),
    # amounts
    "suffix": (
        pod({}, resources={"limits": {"memory": "128mi"}}),
        (f"{C}.resources.limits.memory", f'"128mi" is not a valid quantity: {SUFFIX}', "did you mean 128Mi?"),
    ),
    "bytes": (
        pod({}, resources={"limits": {"memory": "512MB"}}),
        (f"{C}.resources.limits.memory", f'"512MB" is not a valid quantity: {REGEX}', "did you mean 512Mi or 512M?"),
    ),
    "comma": (
        pod({}, resources={"limits": {"cpu": "0,5"}}),
        (f"{C}.resources.limits.cpu", f'"0,5" is not a valid quantity: {REGEX}', "did you mean 0.5?"),
    ),
    "cores": (
        pod({}, resources={"requests": {"cpu": "2 cores"}}),
        (f"{C}.resources.requests.cpu", f'"2 cores" is not a valid quantity: {REGEX}', "did you mean 2?"),
    ),
    "nonsense": (
        pod({}, resources={"requests": {"nvidia.com/gpu": "many"}}),
        (f"{C}.resources.requests[nvidia.com/gpu]", f'"many" is not a valid quantity: {REGEX}', ANY_AMOUNT),
    ),
    "overhead": (
        pod({"overhead": {"cpu": "x"}}),
        ("spec.overhead.cpu", f'"x" is not a valid quantity: {REGEX}', ANY_AMOUNT),
    ),
    "true": (
        pod({}, resources={"limits": {"cpu": True}}),
        (
            f"{C}.resources.limits.cpu",
            "true is not a valid quantity: a quantity must be a string or a number",
            ANY_AMOUNT,
        ),
    ),
    # types
    "mapping for a list": (
        pod({"initContainers": {}}),
        ("spec.initContainers", "must be a list, not a mapping", 'begin each item with "- "'),
    ),
    "text for a mapping": (pod({}, resources="x"), (f"{C}.resources", 'must be a mapping, not "x"', "")),
    "list for a mapping": (
        pod({}, resources={"limits": ["cpu"]}),
        (f"{C}.resources.limits", "must be a mapping, not a list", ""),
    ),
    "number for a text": (pod({"nodeName": 5}), ("spec.nodeName", "must be a string, not 5", "put it in quotes")),
    "boolean for a label": (
        {"metadata": {"name": "n", "labels": {"on": True}}, "spec": {"containers": [{"name": "a"}]}},
        ("metadata.labels.on", "must be a string, not true", "put it in quotes"),
    ),
    "text for a number": (pod({"priority": "high"}), ("spec.priority", 'must be a whole number, not "high"', "")),
    "fraction for a number": (pod({"priority": 1.5}), ("spec.priority", "must be a whole number, not 1.5", "")),
    "text for a boolean": (pod({"hostNetwork": "yes"}), ("spec.hostNetwork", 'must be true or false, not "yes"', "")),
    "item of the wrong type": (
        pod({"tolerations": ["all"]}),
        ("spec.tolerations[0]", 'must be a mapping, not "all"', ""),
    ),
    # what is missing or there twice
    "no containers": ({"metadata": NAMED, "spec": {}}, ("spec.containers", "Required value", "")),
    "empty containers": ({"metadata": NAMED, "spec": {"containers": []}}, ("spec.containers", "Required value", "")),
    "no spec": ({"metadata": NAMED}, ("spec.containers", "Required value", "")),
    "no name": (
        {"spec": {"containers": [{"name": "a"}]}},
        ("metadata.name", "Required value: name or generateName is required", ""),
    ),
    "container twice": (
        pod({"initContainers": [{"name": "b"}, {"name": "a"}]}),
        ("spec.initContainers[1].name", 'Duplicate value: "a"', "rename one"),
    ),
}


@pytest.mark.parametrize(("value", "expected"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_field_is_named_with_a_way_out(value: dict[str, Plain], expected: tuple[str, str, str]):
    assert findings(value) == [expected]


@pytest.mark.parametrize("value", [value for value, _ in WRONG.values()], ids=WRONG.keys())
def test_nothing_wrong_gets_through_the_quick_conversion(value: dict[str, Plain]):
    (found,) = objects_in({"kind": "Pod", "apiVersion": "v1", **value})
    interpretation = interpret(found)
    assert interpretation.workload is None
    assert len(interpretation.findings) == 1


def test_everything_wrong_is_found_at_once():
    value = pod({"foo": 1, "priority": "x"}, resources={"limits": {"cpu": "x", "memory": "y"}, "request": {}})
    assert [field for field, _, _ in findings(value)] == [
        f"{C}.resources.limits.cpu",
        f"{C}.resources.limits.memory",
        f"{C}.resources.request",
        "spec.foo",
        "spec.priority",
    ]


TEMPLATES: dict[str, tuple[dict[str, Plain], str, str]] = {
    "no template": ({"spec": {}}, "spec.template.spec.containers", "Required value"),
    "null": ({"spec": None}, "spec.template.spec.containers", "Required value"),
    "wrong type": ({"spec": {"template": []}}, "spec.template", "must be a mapping, not a list"),
    "replicas": (
        {"spec": {"replicas": "3", "template": {"spec": {"containers": [{"name": "a"}]}}}},
        "spec.replicas",
        'must be a whole number, not "3"',
    ),
    "deep inside": (
        {"spec": {"template": {"spec": {"containers": [{"name": "a", "resource": {}}]}}}},
        "spec.template.spec.containers[0].resource",
        'unknown field "resource"',
    ),
}


@pytest.mark.parametrize(("value", "field", "what"), TEMPLATES.values(), ids=TEMPLATES.keys())
def test_templates_are_examined_where_they_stand(value: dict[str, Plain], field: str, what: str):
    assert [found[:2] for found in findings({"metadata": NAMED, **value}, "Deployment")] == [(field, what)]


def test_objects_from_an_api_server_may_be_newer_than_we_are():
    live: Plain = {"name": "n", "resourceVersion": "5"}
    value = {**pod({"newField": 1}, otherField=2), "metadata": live, "status": {"phase": "Running"}}
    assert findings(value) == []
    value = {**pod({}, resources={"request": {}}), "metadata": live}
    assert [field for field, _, _ in findings(value)] == [f"{C}.resources.request"]


def test_every_known_field_is_accepted():
    spec: dict[str, Plain] = dict.fromkeys(POD_SPEC_FIELDS - {"containers"})
    container: dict[str, Plain] = dict.fromkeys(CONTAINER_FIELDS - {"name"})
    ephemeral: Plain = [{"name": "e", "targetContainerName": "a"}]
    assert findings(pod({**spec, "ephemeralContainers": ephemeral}, **container)) == []


def test_nulls_are_cleaned_away():
    value = pod({"priority": None}, resources={"requests": {"cpu": None}, "limits": None})
    cleaned, _ = examine(POD_HOLDERS["Pod"], value)
    assert cleaned["spec"] == {"containers": [{"name": "a", "resources": {"requests": {"cpu": None}}}]}
