"""Documents that need not be parsed: which they are, and that nothing else is left out."""

from __future__ import annotations

import pytest

from podqos.manifest import fastyaml, strictyaml
from podqos.manifest.kinds import POD_HOLDERS, POLICY_GROUPS, is_kubelet
from podqos.manifest.known_kinds import KNOWN_KINDS
from podqos.manifest.lookup import Lookup
from podqos.manifest.reading import read
from podqos.manifest.unparsed import _KINDS
from podqos.model.service import Service
from podqos.objects.objects import Objects

DEPLOYMENT = (
    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec:\n  template:\n    spec:\n"
    "      containers: [{name: a}]\n"
)


def unparsed(text: str, *, skips_services: bool = True) -> list[str]:
    reading = read("f", text.encode(), skips_services=skips_services)
    return [other.kind for other in reading.others if not other.is_parsed]


SKIPPED = {
    "ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {}\n",
    "in the order of kustomize": "apiVersion: v1\ndata:\n  a: |\n    kind: Pod\nkind: ConfigMap\nmetadata: {name: a}\n",
    "quoted, with a comment": "# about\n\nkind: \"Secret\" # secret\napiVersion: 'v1'\nmetadata: {name: a}\n",
    "definition": "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {}\n",
    "no line end": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role",
    "broken": "apiVersion: v1\nkind: ConfigMap\ndata: [\n",
    "with a template in it": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Values.name }}\n",
    "beside a workload": DEPLOYMENT + "---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n" + DEPLOYMENT,
}


@pytest.mark.parametrize("text", SKIPPED.values(), ids=SKIPPED.keys())
def test_objects_that_hold_neither_pods_nor_policies_are_not_parsed(text: str, monkeypatch: pytest.MonkeyPatch):
    parsed: list[bytes] = []
    whole = fastyaml.tokens
    monkeypatch.setattr(fastyaml, "tokens", lambda data, **how: parsed.append(data) or whole(data, **how))
    monkeypatch.setattr(strictyaml, "read_documents", lambda *_: pytest.fail("parsed"))
    assert len(unparsed(text)) == 1
    assert len(parsed) == text.count("kind: Deployment")
    assert not read("f", text.encode(), skips_services=True).problems


PARSED = {
    "pods": DEPLOYMENT,
    "policies": "apiVersion: v1\nkind: LimitRange\nmetadata: {name: a}\nspec: {limits: []}\n",
    "unknown kinds": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n",
    "a known name in another group": "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: a}\n",
    "lists": "apiVersion: v1\nkind: ConfigMapList\nitems: []\n",
    "no apiVersion": "kind: ConfigMap\nmetadata: {name: a}\n",
    "a missing separator": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" + DEPLOYMENT,
    "a document behind its separator": "apiVersion: v1\nkind: ConfigMap\n--- !x\nkind : Pod\n",
    "kind below another key": "apiVersion: v1\nspec:\n  kind: ConfigMap\n",
    "flow": "{\napiVersion: v1,\nkind: ConfigMap\n}\n",
}


@pytest.mark.parametrize("text", PARSED.values(), ids=PARSED.keys())
def test_everything_else_is_parsed(text: str):
    assert unparsed(text) == []


def test_a_workload_whose_separator_is_missing_is_not_lost():
    reading = read("f", PARSED["a missing separator"].encode())
    assert [workload.metadata.name for workload in reading.workloads] == ["d"]
    assert [problem.what for problem in reading.problems] == [
        f'key "{key}" is set twice' for key in ("apiVersion", "kind", "metadata")
    ]


def test_services_are_parsed_unless_they_are_not_needed():
    text = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {app: a}}\n"
    assert unparsed(text, skips_services=False) == []
    objects = Objects().with_text("f", text.encode())
    assert [service.metadata.name for service in objects.of(Service)] == ["s"]
    assert objects.unparsed == 0


def test_what_was_not_parsed_can_still_be_looked_up():
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b: c}\n"
    (other,) = read("f", text).others
    assert (other.kind, other.api_version, other.is_parsed) == ("ConfigMap", "v1", False)
    assert Lookup(text).plain(other.place)["data"] == {"b": "c"}


def test_no_kind_on_the_list_holds_pods_policies_or_settings():
    for group, kinds in _KINDS.items():
        for kind in kinds:
            assert kind in KNOWN_KINDS
            assert kind not in POD_HOLDERS
            assert kind not in POLICY_GROUPS
            assert not is_kubelet(kind, f"{group}/v1".removeprefix("/"))
            assert kind not in {"Node", "PodDisruptionBudget", "HorizontalPodAutoscaler", "List", "Template"}
