"""How controllers select their pods, in the API server's words (Kubernetes v1.36 pkg/apis/apps/validation)."""

from __future__ import annotations

import pytest

from podqos.admission.selectors import Selection
from podqos.model.selector import LabelSelector, LabelSelectorRequirement

REQUIRED = "spec.selector: Required value"
NULL = "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"
OTHER = 'spec.template.metadata.labels: Invalid value: {"app":"b"}: `selector` does not match template `labels`'
EMPTY = "spec.selector: Invalid value: {}: empty selector is invalid for "


def errors(kind: str, selector: LabelSelector | None, labels: dict[str, str] | None) -> list[str]:
    selection = Selection(kind, selector, labels)
    last = selection.emptiness if kind == "DaemonSet" else ()
    return [str(error) for error in (*selection.errors, *selection.mismatch, *last)]


@pytest.mark.parametrize(
    ("kind", "selector", "labels", "expected"),
    [
        pytest.param("Deployment", LabelSelector({"app": "a"}), {"app": "a", "x": "y"}, [], id="selects its pods"),
        pytest.param("Deployment", None, None, [REQUIRED, NULL], id="neither selector nor labels"),
        pytest.param("StatefulSet", None, {"app": "b"}, [REQUIRED, OTHER], id="no selector"),
        pytest.param("DaemonSet", None, None, [NULL], id="of a DaemonSet only the labels are refused"),
        pytest.param("Deployment", LabelSelector({"app": "a"}), {"app": "b"}, [OTHER], id="selects others"),
        pytest.param("Deployment", LabelSelector(), {"app": "b"}, [f"{EMPTY}deployment"], id="selects all"),
        pytest.param("ReplicaSet", LabelSelector(), {}, [f"{EMPTY}deployment"], id="in the words for Deployments"),
        pytest.param("StatefulSet", LabelSelector(), {}, [f"{EMPTY}statefulset"], id="stateful"),
        pytest.param("DaemonSet", LabelSelector(), {}, [f"{EMPTY}daemonset"], id="daemons"),
    ],
)
def test_a_selector_is_there_and_selects_the_template(kind, selector, labels, expected):
    assert errors(kind, selector, labels) == expected


def test_an_operator_that_does_not_exist_is_refused():
    wrong = LabelSelector(match_expressions=(LabelSelectorRequirement("app", "Like", ("a",)),))
    first, last = errors("Deployment", wrong, {"app": "a"})
    assert first.startswith("spec.selector.matchExpressions[0].operator: ")
    shown = '{"matchExpressions":[{"key":"app","operator":"Like","values":["a"]}]}'
    assert last == f"spec.selector: Invalid value: {shown}: invalid label selector"
