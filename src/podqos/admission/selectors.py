"""What the API server rejects about how a controller selects its pods.

No pod can be made by an object that is rejected. Paths are those of the object.

Source: Kubernetes v1.36 pkg/apis/apps/validation/validation.go (ValidateDeploymentSpec, ValidateReplicaSetSpec,
ValidateStatefulSetSpec, ValidateDaemonSetSpec).
"""

from __future__ import annotations

from podqos.admission.constraints import selector_errors
from podqos.admission.field_errors import ErrorType, FieldError, invalid, required
from podqos.manifest.plain import Plain
from podqos.model.pod import Workload
from podqos.model.selector import LabelSelector

_NOT_MATCHING = "`selector` does not match template `labels`"
# ReplicaSets are rejected in the words for Deployments.
_CALLED = {"StatefulSet": "statefulset", "DaemonSet": "daemonset"}


def holder_errors(workload: Workload) -> tuple[FieldError, ...]:
    """Return every error about the selector of an object that must have one."""
    if not workload.needs_selector:
        return ()
    selector, errors = workload.selector, list(selector_errors(workload.selector, "spec.selector"))
    if selector is None and workload.kind != "DaemonSet":
        errors.append(required("spec.selector"))
    empty = invalid("spec.selector", {}, f"empty selector is invalid for {_CALLED.get(workload.kind, 'deployment')}")
    is_empty = selector is not None and selector.is_empty
    if is_empty and workload.kind != "DaemonSet":
        errors.append(empty)
    if not errors or selector is None:
        errors += _label_errors(selector, workload.pod.metadata.labels)
    if is_empty and workload.kind == "DaemonSet":
        errors.append(empty)
    return tuple(errors)


def _label_errors(selector: LabelSelector | None, labels: dict[str, str]) -> list[FieldError]:
    """Check that the pods are selected; an absent selector selects none."""
    if selector is not None and selector.matches(labels):
        return []
    path = "spec.template.metadata.labels"
    shown: Plain = dict(sorted(labels.items()))
    if not labels:
        # As a map that is not there is printed; a value of None stands for an error without one.
        return [FieldError(path, ErrorType.INVALID, None, f"null: {_NOT_MATCHING}")]
    return [invalid(path, shown, _NOT_MATCHING)]
