"""How controllers select their pods, in the API server's words (Kubernetes v1.36 pkg/apis/apps/validation)."""

from __future__ import annotations

import pytest

from podqos.admission.selectors import holder_errors
from podqos.model.pod import ObjectMeta, Pod, Workload
from podqos.model.selector import LabelSelector, LabelSelectorRequirement

REQUIRED = "spec.selector: Required value"
NULL = "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"
OTHER = 'spec.template.metadata.labels: Invalid value: {"app":"b"}: `selector` does not match template `labels`'
EMPTY = "spec.selector: Invalid value: {}: empty selector is invalid for "


def errors(kind: str, selector: LabelSelector | None, labels: dict[str, str]) -> list[str]:
    pod = Pod(ObjectMeta("web", labels=labels))
    workload = Workload(kind, pod.metadata, pod, "spec.template", selector=selector, needs_selector=True)
    return [str(each) for each in holder_errors(workload)]


@pytest.mark.parametrize(
    ("kind", "selector", "labels", "expected"),
    [
        pytest.param("Deployment", LabelSelector({"app": "a"}), {"app": "a", "x": "y"}, [], id="selects its pods"),
        pytest.param("Deployment", None, {}, [REQUIRED, NULL], id="neither selector nor labels"),
        pytest.param("StatefulSet", None, {"app": "b"}, [REQUIRED, OTHER], id="no selector"),
        pytest.param("DaemonSet", None, {}, [NULL], id="of a DaemonSet only the labels are refused"),
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
    assert errors("Deployment", wrong, {"app": "a"})[0].startswith("spec.selector.matchExpressions[0].operator: ")


def test_what_needs_no_selector_is_not_asked_for_one():
    pod = Pod(ObjectMeta("job"))
    assert not holder_errors(Workload("Job", pod.metadata, pod, "spec.template"))
