"""``podqos eval priority``: the priority of a pod, and whether a priority class may be created."""

from __future__ import annotations

import msgspec

from podqos.admission.priority import admit_priority_class, apply_priority, validate_priority_class
from podqos.admission.refusal import Denied
from podqos.cli.eval.resources import list_of, pod_of
from podqos.model.policy import PriorityClass


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``priority``."""
    classes = list_of(PriorityClass, input.get("priorityClasses"))
    if input.get("kind") == "createClass":
        return _create(msgspec.convert(input["newClass"], PriorityClass), classes)
    pod = apply_priority(given := pod_of(input["pod"]), classes)
    if isinstance(pod, Denied):
        return {"ok": False, "error": f'pods "{given.metadata.name}" is forbidden: {pod.message}'}
    return {
        "ok": True,
        "priorityClassName": pod.spec.priority_class_name,
        "priority": pod.spec.priority,
        "preemptionPolicy": pod.spec.preemption_policy,
    }


def _create(new: PriorityClass, existing: tuple[PriorityClass, ...]) -> dict[str, object]:
    errors = sorted(str(error) for error in validate_priority_class(new))
    denied = admit_priority_class(new, existing)
    admission = ""
    if denied is not None:
        admission = f'priorityclasses.scheduling.k8s.io "{new.metadata.name}" is forbidden: {denied.message}'
    return {"ok": not errors and not admission, "validationErrors": errors, "admissionError": admission}
