"""RuntimeClass: what a pod costs beyond its containers, and where its runtime lets it run.

Source: Kubernetes v1.36 plugin/pkg/admission/runtimeclass/admission.go. Setting the overhead is mutating admission,
``overhead_mismatch`` validating admission: a pod that states an overhead no class gave it is rejected at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from podqos.admission.changes import FieldChange, Record, Why, note
from podqos.admission.refusal import Denied, Failed, MissingObject
from podqos.admission.tolerations import merged
from podqos.model.pod import Pod
from podqos.model.policy import RuntimeClass, RuntimeScheduling
from podqos.model.resources import ResourceList

_MISMATCH = Denied("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")


def apply_runtime_class(pod: Pod, classes: Sequence[RuntimeClass], record: Record = None) -> Pod | Denied:
    """Write the overhead and the scheduling constraints of the pod's runtime class into it."""
    name = pod.spec.runtime_class_name
    if name is None:
        return pod
    if not name:
        return Failed("resource name may not be empty")
    runtime_class = _find(name, classes)
    if runtime_class is None:
        return MissingObject(f'pod rejected: RuntimeClass "{name}" not found', "RuntimeClass", name)
    overhead = _overhead(runtime_class)
    if overhead is not None:
        if pod.spec.overhead and pod.spec.overhead != overhead:
            return _MISMATCH
        if not pod.spec.overhead:
            note(record, "spec.overhead", overhead, Why.RUNTIME_CLASS_OVERHEAD, name)
        pod = replace(pod, spec=replace(pod.spec, overhead=overhead))
    if runtime_class.scheduling is not None:
        return _apply_scheduling(pod, runtime_class.scheduling, record, name)
    return pod


def overhead_mismatch(pod: Pod, classes: Sequence[RuntimeClass]) -> Denied | None:
    """Reject an overhead that is not the one of the pod's runtime class."""
    runtime_class = _find(pod.spec.runtime_class_name, classes)
    overhead = _overhead(runtime_class) if runtime_class is not None else None
    if overhead is not None:
        return _MISMATCH if pod.spec.overhead != overhead else None
    if pod.spec.overhead is not None:
        return Denied("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    return None


def _find(name: str | None, classes: Sequence[RuntimeClass]) -> RuntimeClass | None:
    return next((runtime_class for runtime_class in classes if name and runtime_class.metadata.name == name), None)


def _overhead(runtime_class: RuntimeClass) -> ResourceList | None:
    """Return the overhead as the class states it: unlike that of a pod, it is not rounded."""
    return None if runtime_class.overhead is None else runtime_class.overhead.pod_fixed


def _apply_scheduling(pod: Pod, scheduling: RuntimeScheduling, record: Record, source: str) -> Pod | Denied:
    own = pod.spec.node_selector
    for key, value in sorted(scheduling.node_selector.items()):
        if own.get(key, value) != value:
            return Denied(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {own[key]}"
            )
        if record is not None and key not in own:
            path = f"spec.nodeSelector[{key}]"
            record.append(FieldChange(path, None, value, Why.RUNTIME_CLASS_SCHEDULING, source))
    spec = replace(
        pod.spec,
        node_selector=own | scheduling.node_selector,
        tolerations=merged(pod.spec.tolerations, scheduling.tolerations),
    )
    if record is not None:
        record.extend(
            FieldChange(f"spec.tolerations[{index}]", None, toleration.key, Why.RUNTIME_CLASS_SCHEDULING, source)
            for index, toleration in enumerate(spec.tolerations)
            if toleration not in pod.spec.tolerations
        )
    return replace(pod, spec=spec)
