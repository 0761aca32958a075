"""What podqos writes as YAML is read back as the same texts: by readers of YAML 1.1, and by Kubernetes.

PyYAML stands for the first. Kubernetes reads with sigs.k8s.io/yaml, whose go-yaml v2 resolves unquoted scalars by rules
of its own (resolve.go): they are written down here once more, apart from the code under test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podqos.advice.checks.finding import FieldEdit
from podqos.advice.fixes.patches import ObjectPatch
from podqos.cli.main import main
from podqos.manifest.edits.apply import Edited, ObjectEdit, apply_edits
from podqos.manifest.encoding import manifest_yaml, yaml_text
from podqos.manifest.reading import read
from podqos.questions.patches import kustomize_entry, kustomize_patch
from podqos.sim.scenario_format.writing import scenario_text

# ---- sigs.k8s.io/yaml v1.6 -----------------------------------------------------------------------------------------

_WORDS = (
    *("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"),
    *("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"),
    *("", "~", "null", "Null", "NULL", ".nan", ".NaN", ".NAN"),
    *(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")),
)
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_DOT_FLOAT = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)


class NotText(str):
    """An unquoted scalar that is a number, a boolean or null."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NotText) and str.__eq__(self, other)

    __hash__ = str.__hash__


def go_scalar(unquoted: str) -> str:
    """Return what go-yaml v2 takes an unquoted scalar for (resolve.go: resolveMap, yamlStyleFloat, ParseInt)."""
    if unquoted in _WORDS:
        return NotText(unquoted)
    if unquoted[0] not in "+-.0123456789":
        return unquoted
    digits = unquoted.replace("_", "")
    is_float = (_DOT_FLOAT if unquoted[0] == "." else _FLOAT).fullmatch(unquoted if unquoted[0] == "." else digits)
    is_number = _INTEGER.fullmatch(digits) or (is_float and abs(float(digits)) != float("inf"))
    return NotText(unquoted) if is_number else unquoted


class GoLoader(yaml.SafeLoader):
    """Reads texts as Kubernetes does, keys included."""

    yaml_implicit_resolvers: ClassVar = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        assert not any(key.value == "<<" and key.style is None for key, _ in node.value)
        members = [(self.construct_object(key, deep), self.construct_object(value, deep)) for key, value in node.value]
        assert len(members) == len({str(key) for key, _ in members}), "a key twice"
        return dict(members)

    def construct_text(self, node: yaml.ScalarNode) -> str:
        return go_scalar(node.value) if node.style is None else node.value


GoLoader.add_constructor("tag:yaml.org,2002:str", GoLoader.construct_text)


def assert_reads_back(text: str, value: object) -> None:
    """Hold that both readers read what was meant."""
    assert yaml.safe_load(text) == value
    assert yaml.load(text, GoLoader) == value  # noqa: S506 - a SafeLoader


def not_texts(text: str) -> list[str]:
    """Return what Kubernetes does not read as a text, of all documents."""
    waiting, seen = list(yaml.load_all(text, GoLoader)), []
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, NotText):
            seen.append(str(value))
    return seen


# ---- what may be written -------------------------------------------------------------------------------------------

_WITHOUT_SPACES = r"""
y n Y N on off yes No true null ~ = << - ? : 1e3 12e5 1E3 1e400 0x1 0X1 0b1 0o7 0O7 07 08 09 1_000 1__0 _1 0x_1 .5 5.
+.5 -.5 +.e3 1.e3 685.230_15e+03 .inf -.INF .nan NaN inf +1 -0 + 1:30 190:20:30 190:20:30.15 12:30 2026-01-01 2026-1-1
2026-01-01T00:00:00Z #a a: %a @a `a !a &a *a | > {a a} [a a] , ' " \ --- ... é 日本 😀 500m 1Gi 10.0.0.1 v1.36 1.2.3
"""
TRICKY = (
    *_WITHOUT_SPACES.split(),
    *("", " ", "- a", "a: b", "a #b", "2026-01-01 1:2:3", " a", "a ", "\ta", "a\tb", "a\nb", "a\n", "\na", "\r"),
    *("\x85", "\u2028", "\u2029", "\ufeff", "\x7f", "\0", "😀\x07", "a" * 200, "word " * 60, "x\n" * 3 + " y"),
)
TEXTS = st.one_of(
    st.sampled_from(TRICKY),
    st.text(st.characters(exclude_categories=("Cs",)), max_size=12),
    st.text("0123456789abcdefxXoOeE+-._:", max_size=8),
    st.text("0123456789-Tt :.Z", min_size=8, max_size=20),
)
# Wide rather than deep: the same scalars in every position.
VALUES = st.dictionaries(
    TEXTS, TEXTS | st.lists(TEXTS, max_size=3) | st.dictionaries(TEXTS, TEXTS, max_size=2), min_size=1, max_size=4
)


def as_patch(value: dict) -> str:
    return kustomize_patch(object_patch("ConfigMap", "v1", "n", "y", value))


def object_patch(kind: str, api_version: str, name: str, namespace: str, value: dict) -> ObjectPatch:
    forms = {"strategic": value, "merge": value, "operations": ()}
    return ObjectPatch(kind, api_version, name, namespace, **forms, is_custom=False, can_be_applied=True)


WRITERS = {"answers": yaml_text, "objects to apply": manifest_yaml}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@settings(max_examples=60)
@given(value=VALUES)
def test_texts_are_read_back_as_the_same_texts(write: Callable[[object], str], value: dict):
    assert_reads_back(write(value), value)


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("text", TRICKY)
def test_a_text_that_looks_like_something_else_is_quoted(write, text):
    assert_reads_back(write({text: text, "list": [text]}), {text: text, "list": [text]})


@settings(max_examples=60)
@given(value=VALUES)
def test_a_patch_for_kustomize_is_read_back_as_it_was_meant(value):
    expected = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n", "namespace": "y"}, "data": value}
    assert_reads_back(as_patch({"data": value}), expected)


FILES = {
    "block": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations:\n    old: text\n",
    "flow": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {old: text}}\n",
    "single quotes": "apiVersion: 'v1'\nkind: ConfigMap\nmetadata:\n  name: 'a'\n  annotations:\n    'old': 'text'\n",
    "double quotes": 'apiVersion: "v1"\nkind: ConfigMap\nmetadata:\n  name: "a"\n  annotations:\n    "old": "text"\n',
    "JSON": '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {"old": "text"}}}\n',
}


@settings(max_examples=60)
@given(file=st.sampled_from(list(FILES.values())), old=TEXTS, new=st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=2))
def test_a_text_that_is_written_into_a_file_is_read_back_as_the_same_text(file: str, old: str, new: dict):
    data = file.encode()
    (place,) = (other.place for other in read("", data).others)
    edits = [
        ObjectEdit(place, "metadata.annotations.old", old),
        ObjectEdit(place, "metadata.labels", new),
    ]
    edited = apply_edits(data, edits)
    assert isinstance(edited, Edited)
    metadata = {"name": "a", "annotations": {"old": old}, "labels": new}
    expected = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    if file[0] == "{":
        assert json.loads(edited.data) == expected
    else:
        assert_reads_back(edited.data.decode(), expected)


# ---- through the commands ------------------------------------------------------------------------------------------


def run(capsys, *arguments: str) -> str:
    main(list(arguments))
    out, err = capsys.readouterr()
    assert out, err
    return out


def test_names_in_a_patch_and_a_scenario_stay_names():
    document = {"apiVersion": "podqos.dev/v1alpha1", "kind": "Scenario", "metadata": {"name": "1e3"}}
    assert_reads_back(scenario_text("1e3", {"a": "n"}), {**document, "spec": {"a": "n"}})
    patch = object_patch("Deployment", "apps/v1", "on", "12e5", {})
    target = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "on", "namespace": "12e5"}
    assert_reads_back(kustomize_entry(patch), {"patches": [{"path": "deployment-on-patch.yaml", "target": target}]})


def test_namespaces_in_an_admission_policy_stay_texts(capsys, tmp_path):
    policy = Path(tmp_path, "policy.yaml")
    policy.write_text("""\
apiVersion: podqos.dev/v1alpha1
kind: Policy
metadata: {name: "y"}
spec:
  rules:
    - name: "1e3"
      match: {namespaces: ["n", "12e5"]}
      require: {minClass: Guaranteed}
      action: Deny
""")
    out = run(capsys, "policy", "cel", "-f", str(policy))
    assert "ValidatingAdmissionPolicy" in out
    assert all(scalar.isdecimal() or scalar in {"true", "false"} for scalar in not_texts(out))


@pytest.mark.parametrize("name", ["1e3", "y", "12e5", "0x1", "2026-01-01", "web"])
def test_a_file_to_start_from_has_the_name_it_was_given(capsys, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    run(capsys, "scenario", "new", name)
    text = Path(f"{name}.yaml").read_text()
    for reader in (yaml.SafeLoader, GoLoader):
        document = yaml.load(text, reader)  # noqa: S506 - a SafeLoader
        assert document["metadata"]["name"] == name
        assert document["spec"].get("manifests", [f"{name}/"]) == [f"{name}/"]


@pytest.mark.parametrize("part", ["webhook", "exporter", "guard"])
def test_manifests_of_podqos_keep_the_names_they_are_given(capsys, part):
    out = run(capsys, part, "manifests", "--namespace", "12e5", "--image", "1e3")
    texts = not_texts(out)
    assert "12e5" in out
    assert not {"12e5", "1e3"} & set(texts)


def test_an_option_that_is_not_utf_8_is_printed_in_manifests_as_its_bytes(capsys):
    out = run(capsys, "exporter", "manifests", "--image", "a\udcff")
    assert r"a\xff" in out


SNAPSHOT = (
    {"apiVersion": "podqos.dev/v1alpha1", "kind": "ClusterSnapshot", "serverVersion": "v1.36.0"},
    {
        "kind": "NodeList",
        "apiVersion": "v1",
        "items": [
            {
                "metadata": {"name": "1e3", "labels": {"12e5": "", "zone": "y"}},
                "spec": {"taints": [{"key": "on", "value": "0x1", "effect": "NoSchedule"}]},
                "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
            }
        ],
    },
    {
        "kind": "PodList",
        "apiVersion": "v1",
        "items": [
            {
                "metadata": {
                    "name": "12e5",
                    "namespace": "0",
                    "uid": "1e5",
                    "labels": {"sha": "12e5", "~": "", "n": "on"},
                },
                "spec": {
                    "nodeName": "1e3",
                    "priority": 0,
                    "nodeSelector": {"12e5": "", "zone": "y"},
                    "tolerations": [{"key": "on", "value": "0x1", "effect": "NoSchedule"}],
                    "volumes": [{"name": "on", "emptyDir": {}}],
                    "containers": [{"name": "0x1", "image": "1.5", "resources": {"requests": {"memory": "1Gi"}}}],
                    "affinity": {
                        "podAntiAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "labelSelector": {"matchLabels": {"a": ""}},
                                    "namespaceSelector": {},
                                    "topologyKey": "y",
                                }
                            ]
                        }
                    },
                },
                "status": {"phase": "Running", "qosClass": "Burstable"},
            }
        ],
    },
    {
        "kind": "PodDisruptionBudgetList",
        "apiVersion": "policy/v1",
        "items": [{"metadata": {"name": "n", "namespace": "0"}, "spec": {"minAvailable": "50%", "selector": {}}}],
    },
)


def test_a_scenario_of_a_cluster_says_what_the_cluster_said(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = (*SNAPSHOT, {"kind": "End", "lines": len(SNAPSHOT)})
    Path("cluster.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    run(capsys, "scenario", "new", "010", "--from-cluster", "--snapshot", "cluster.jsonl")

    scenario = yaml.load(Path("010.yaml").read_text(), GoLoader)  # noqa: S506 - a SafeLoader
    assert scenario["metadata"] == {"name": "010"}
    (node,) = scenario["spec"]["nodes"]
    assert (node["name"], node["labels"]) == ("1e3", {"12e5": "", "zone": "y"})
    assert node["taints"] == [{"key": "on", "value": "0x1", "effect": "NoSchedule"}]
    pod, budget = yaml.load_all(Path("010/pods.yaml").read_text(), GoLoader)
    asked = SNAPSHOT[2]["items"][0]
    assert pod["metadata"] == asked["metadata"]
    for field in ("nodeSelector", "tolerations", "volumes", "containers", "affinity"):
        assert pod["spec"][field] == asked["spec"][field]
    assert budget["spec"] == {"minAvailable": "50%", "selector": {}}
    assert "12e5 started" in run(capsys, "simulate", "010.yaml")


def test_a_line_to_write_is_quoted_where_a_kubelet_would_not_read_a_text(capsys, tmp_path):
    config = Path(tmp_path, "kubelet.yaml")
    config.write_text(
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncpuManagerPolicy: static\n"
    )
    assert 'reservedSystemCPUs: "0"' in run(capsys, "check", "-f", str(config))


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("spec.priorityClassName", "12e5", 'spec.priorityClassName: "12e5"'),
        ("spec.containers[0].resources.limits.cpu", "2", "spec.containers[0].resources.limits.cpu: 2"),
        ("systemReserved.cpu", "2", 'systemReserved.cpu: "2"'),
        ("evictionHard[memory.available]", "10%", "evictionHard[memory.available]: 10%"),
        ("args[0]", "--fail-swap-on=false", "args[0]: --fail-swap-on=false"),
        ("enforceNodeAllocatable", ["pods", "y"], 'enforceNodeAllocatable: [pods, "y"]'),
        ("evictionHard", {"on": "1e3"}, 'evictionHard: {"on": "1e3"}'),
        ("failSwapOn", True, "failSwapOn: true"),
    ],
)
def test_an_edit_is_shown_as_it_is_written(path, value, text):
    assert FieldEdit(path, value).text == text
