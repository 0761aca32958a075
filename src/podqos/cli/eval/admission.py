"""``podqos eval admission``: what a running API server makes of a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from podqos.admission.chain import admit
from podqos.admission.decoding import read_pod
from podqos.admission.policies import Policies
from podqos.admission.refusal import Refusal
from podqos.cli.eval.resources import list_of, plain, resources_by_name
from podqos.model.pod import Pod
from podqos.model.policy import LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass

if TYPE_CHECKING:
    from podqos.manifest.plain import Plain


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``admission``."""
    pod = read_pod(cast("Plain", input["pod"]))
    if isinstance(pod, Refusal):
        return _refused(pod)
    admission = admit(pod, _policies(input))
    return _admitted(admission.pod) if admission.refusal is None else _refused(admission.refusal)


def _policies(input: dict[str, object]) -> Policies:  # noqa: A002
    namespace = input.get("namespace")
    return Policies(
        namespace=None if namespace is None else msgspec.convert(namespace, Namespace),
        limit_ranges=list_of(LimitRange, input.get("limitRanges")),
        resource_quotas=list_of(ResourceQuota, input.get("resourceQuotas")),
        priority_classes=list_of(PriorityClass, input.get("priorityClasses")),
        runtime_classes=list_of(RuntimeClass, input.get("runtimeClasses")),
    )


def _admitted(pod: Pod) -> dict[str, object]:
    result: dict[str, object] = {
        "allowed": True,
        "qosClass": pod.status.qos_class,
        "priority": pod.spec.priority,
        "priorityClassName": pod.spec.priority_class_name,
        "preemptionPolicy": pod.spec.preemption_policy,
        "resources": resources_by_name(pod),
    }
    if pod.spec.overhead:
        result["overhead"] = plain(pod.spec.overhead)
    return result


def _refused(refusal: Refusal) -> dict[str, object]:
    result: dict[str, object] = {"allowed": False, "code": int(refusal.code), "error": refusal.message}
    if refusal.fields:
        result["fields"] = list(refusal.fields)
    return result
