"""What podqos writes as YAML is read back as the same texts: by readers of YAML 1.1, and by Kubernetes.

PyYAML stands for the first. Kubernetes reads with sigs.k8s.io/yaml, whose go-yaml v2 resolves unquoted scalars by rules
of its own (resolve.go): they are written down here once more, apart from the code under test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podqos.advice.fixes.patches import ObjectPatch
from podqos.answers.patches import kustomize_entry, kustomize_patch
from podqos.cli.main import main
from podqos.manifest.edits.apply import Edited, ObjectEdit, apply_edits
from podqos.manifest.encoding import manifest_yaml, yaml_text
from podqos.manifest.reading import read
from podqos.reading.scenario_writing import scenario_text

# ---- go-yaml v2 ----------------------------------------------------------------------------------------------------

_WORDS = (
    *("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"),
    *("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"),
    *("", "~", "null", "Null", "NULL", "<<", ".nan", ".NaN", ".NAN"),
    *(sign + word for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")),
)
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)


def is_text_to_go(unquoted: str) -> bool:
    """Whether go-yaml v2 takes an unquoted scalar for a text (resolve.go: resolveMap, yamlStyleFloat, ParseInt)."""
    if unquoted in _WORDS:
        return False
    if unquoted[0] not in "+-.0123456789":
        return True
    digits = unquoted.replace("_", "")
    return _INTEGER.fullmatch(digits) is None and _FLOAT.fullmatch(digits) is None


def scalars(text: str) -> Iterator[tuple[str, bool]]:
    """Yield every scalar of a YAML text, and whether it stands there without quotes."""
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.ScalarEvent):
            yield event.value, event.style is None


def assert_reads_back(text: str, value: object) -> None:
    assert yaml.safe_load(text) == value
    for found, is_unquoted in scalars(text):
        if is_unquoted:
            assert is_text_to_go(found), found


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


def test_names_in_a_patch_and_a_scenario_stay_names():
    assert_reads_back(scenario_text("1e3", {"a": "n"})[:-1], yaml.safe_load(scenario_text("1e3", {"a": "n"})))
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
    main(["policy", "cel", "-f", str(policy)])
    out, err = capsys.readouterr()
    assert "ValidatingAdmissionPolicy" in out, err
    for found, is_unquoted in scalars(out):
        assert not is_unquoted or is_text_to_go(found) or found.isdecimal() or found in {"true", "false"}
