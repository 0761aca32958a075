"""Values that somebody still has to fill in are said to be that."""

from __future__ import annotations

import pytest

from podqos.manifest.placeholders import placeholder_hint, quoted_hint
from podqos.manifest.reading import read

TEMPLATE = "this looks like a template: render it first"
ENVSUBST = "fill in the variable first: envsubst < FILE"
FLUX = "fill in the variable first: flux envsubst < FILE"
OTHERS = "fill in the variable first, as kustomize, Tekton or OpenShift do"
PLACEHOLDER = "this looks like a placeholder: replace it by a value"
HINTS = {
    "{{ .Values.replicas }}": TEMPLATE,
    "'{{ .Values.replicas }}'": TEMPLATE,
    "${REPLICAS}": ENVSUBST,
    "$REPLICAS": ENVSUBST,
    "${REPLICAS:-1}": FLUX,
    "${REPLICAS:=1}": FLUX,
    "$(REPLICAS)": OTHERS,
    "<replicas>": PLACEHOLDER,
    "<your replicas>": PLACEHOLDER,
    "__REPLICAS__": PLACEHOLDER,
    "%%REPLICAS%%": PLACEHOLDER,
    "@REPLICAS@": PLACEHOLDER,
    "@@REPLICAS@@": PLACEHOLDER,
    "<% replicas %>": PLACEHOLDER,
}
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  replicas: {}
  template: {{spec: {{containers: [{{name: main, image: web}}]}}}}
"""


@pytest.mark.parametrize("value", HINTS)
def test_a_placeholder_is_said_to_be_one(value: str):
    (problem,) = read("f", DEPLOYMENT.format(value).encode()).problems
    assert problem.line == 5
    assert problem.fix == HINTS[value]


@pytest.mark.parametrize("value", ["many", "5%", "a@b", "100$", "-1", "a < b", "x__y", ""])
def test_any_other_text_is_not_taken_for_one(value: str):
    assert placeholder_hint(value) == ""


def test_an_unknown_field_that_is_a_placeholder_is_not_to_be_removed():
    text = DEPLOYMENT.format(1).replace("image: web", "image: web, '${RESOURCES}': x")
    (problem,) = read("f", text.encode()).problems
    assert (problem.what, problem.fix) == ('unknown field "${RESOURCES}"', ENVSUBST)


def test_an_amount_that_is_a_placeholder_is_not_a_misspelt_one():
    text = DEPLOYMENT.format(1).replace("image: web", "image: web, resources: {limits: {cpu: '${CPU}'}}")
    (problem,) = read("f", text.encode()).problems
    assert problem.fix == ENVSUBST


def test_messages_are_only_searched_for_variables():
    assert quoted_hint('unknown field "spec.volumes[0].${TYPE}"') == ENVSUBST
    assert quoted_hint("Invalid value: <nil>: must match __name__") == ""
