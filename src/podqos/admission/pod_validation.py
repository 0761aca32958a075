"""What the API server checks about a new pod besides its resources: its name, its tolerations, its containers.

Volumes, probes, ports, security contexts and affinity are not checked here: they decide nothing that podqos models.

Source: Kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodCreate, ValidateTolerations) and
staging/src/k8s.io/apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from podqos.admission.field_errors import FieldError, forbidden, invalid, not_supported, required
from podqos.admission.names import qualified_name_complaints, subdomain_complaints
from podqos.admission.validation import validate_pod
from podqos.model.pod import ObjectMeta, Pod, Toleration

_OPERATORS = ("Equal", "Exists")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LABEL_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_WRONG_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_LABEL_VALUE}')"
)


def validate_new_pod(pod: Pod) -> tuple[FieldError, ...]:
    """Return every error about a pod that is being created."""
    return (*_name_errors(pod.metadata), *validate_pod(pod), *_toleration_errors(pod), *_creation_errors(pod))


def _name_errors(metadata: ObjectMeta) -> Iterator[FieldError]:
    if metadata.generate_name:
        # What follows the dash is still to come.
        prefix = re.sub("-$", "a", metadata.generate_name)
        for complaint in subdomain_complaints(prefix):
            yield invalid("metadata.generateName", metadata.generate_name, complaint)
    if metadata.name:
        for complaint in subdomain_complaints(metadata.name):
            yield invalid("metadata.name", metadata.name, complaint)
    elif not metadata.generate_name:
        yield required("metadata.name", "name or generateName is required")


def _creation_errors(pod: Pod) -> Iterator[FieldError]:
    if pod.spec.ephemeral_containers:
        yield forbidden("spec.ephemeralContainers", "cannot be set on create")


def _toleration_errors(pod: Pod) -> Iterator[FieldError]:
    for index, toleration in enumerate(pod.spec.tolerations):
        yield from _one_toleration(toleration, f"spec.tolerations[{index}]")


def _one_toleration(toleration: Toleration, path: str) -> Iterator[FieldError]:
    for complaint in qualified_name_complaints(toleration.key) if toleration.key else ():
        yield invalid(f"{path}.key", toleration.key, complaint)
    operator, value = toleration.operator, toleration.value
    if not toleration.key and operator != "Exists":
        words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, words)
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        yield invalid(f"{path}.effect", toleration.effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in {"", "Equal"}:
        if len(value) > 63:
            yield invalid(f"{path}.operator", value, "must be no more than 63 characters")
        elif not re.fullmatch(_LABEL_VALUE, value):
            yield invalid(f"{path}.operator", value, _WRONG_LABEL_VALUE)
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield not_supported(f"{path}.operator", operator, _OPERATORS)
    if toleration.effect and toleration.effect not in _EFFECTS:
        yield not_supported(f"{path}.effect", toleration.effect, _EFFECTS)
