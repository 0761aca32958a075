"""PQ127: objects that the API server rejects for something other than resources, before any pod exists."""

from __future__ import annotations

import re

from msgspec.structs import replace

from podqos.admission.chain import Step
from podqos.admission.field_errors import FieldError, Undecoded
from podqos.admission.relevance import Question, decides
from podqos.advice.checks.amounts import RefusedByServer
from podqos.advice.checks.check import ERROR, INFO, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.examples import USUAL, deployment
from podqos.advice.checks.finding import Choice, Effect, Patch
from podqos.advice.checks.references import VALIDATION
from podqos.advice.checks.view import View
from podqos.manifest.placeholders import quoted_hint
from podqos.manifest.plain import format_path, parse_path

_PLACEHOLDER = re.compile(r"\$\{\w|\$\(\w|\{\{|\$[A-Z_]{2}")
# The API server lists values of feature gates that are off, and rejects them.
_IS_GATED = re.compile(r'Unsupported value: ("[^"]*"): supported values: .*\1')
_GATED = "its feature gate is off by default"
_LABELS = "spec.template.metadata.labels"
_WORKLOADS = "Kubernetes: pkg/apis/apps/validation/validation.go"
_JOBS = "Kubernetes: pkg/apis/batch/validation/validation.go"


def rejections(view: View) -> None:
    """Find what the API server rejects; of resources, ``amounts`` says more."""
    inside = f"{view.workload.pod_path}." if view.workload.pod_path else ""
    has_selector = all(error.path != "spec.selector" for error in view.rejections)
    fields: dict[RefusedByServer, list[str]] = {}
    for error in view.rejections:
        if error.path == _LABELS and not has_selector:
            continue  # which then match nothing
        if error.path.startswith(inside) and decides(error.path.removeprefix(inside)) is Question.CLASS:
            continue
        fields.setdefault(_facts(error), []).append(format_path(parse_path(error.path)))
    for facts, paths in fields.items():
        # A placeholder is filled in before the API server sees it.
        check = replace(rejected_object, severity=INFO) if _PLACEHOLDER.search(facts.message) else rejected_object
        view.report_of_object(check, paths[0], facts, Patch.choose(Choice.FIELD, paths))


def _facts(error: FieldError) -> RefusedByServer:
    step, words = (Step.DECODING, error.words) if isinstance(error, Undecoded) else (Step.VALIDATION, str(error))
    hint = _GATED if _IS_GATED.search(words) else quoted_hint(words)
    return RefusedByServer(step, f"{words} ({hint})" if hint else words)


@check("PQ127", "rejected-object", ERROR, VALIDATION, _WORKLOADS, _JOBS, effect=Effect.NOT_CREATED, rule=rejections)
def rejected_object() -> Example:
    """PQ127: The API server rejects the object.

    Nothing is created or changed: pods of an earlier version keep running until they are replaced, and `kubectl apply`
    fails in the middle of a release.

    Fix: Use a field, or a value, that the API server accepts. `podqos admit` prints its whole answer.
    """
    toleration = "      tolerations: [{key: gpu, operator: Exists, effect: NoRun}]\n"
    return Example(
        deployment(2, *USUAL) + toleration, chosen={"spec.template.spec.tolerations[0].effect": "NoSchedule"}
    )
