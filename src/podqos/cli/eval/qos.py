"""``podqos eval qos``: the QoS class of a pod before and after the API server's defaulting."""

from __future__ import annotations

from msgspec.structs import replace

from podqos.admission.defaulting import defaulted
from podqos.admission.pod_validation import validate_pod
from podqos.cli.eval.resources import pod_of, resources_by_name
from podqos.model.pod import Pod
from podqos.qos.classes import classify


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``qos``."""
    given = pod_of(input["pod"])
    pod = defaulted(given)
    return {
        "qosClassAsGiven": classify(given).qos_class,
        "qosClassAfterDefaulting": classify(pod).qos_class,
        "resourcesAfterDefaulting": resources_by_name(pod),
        "apiValidationErrors": api_validation_errors(pod),
    }


def api_validation_errors(pod: Pod) -> list[str]:
    """Return what the API server would report about a defaulted pod, sorted: ``field: error type``.

    Ephemeral containers are left out: a new pod has none.
    """
    pod = replace(pod, spec=replace(pod.spec, ephemeral_containers=()))
    return sorted({f"{error.path}: {error.type}" for error in validate_pod(pod)})
