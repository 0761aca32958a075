"""``podqos eval admission``: what a running API server does to a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from podqos.admission.as_written import fields_of
from podqos.admission.chain import admit
from podqos.admission.coverage import not_judged
from podqos.admission.decoding import read_pod
from podqos.admission.policies import Policies
from podqos.admission.refusal import Code, Refusal
from podqos.cli.eval.resources import list_of, plain, resources_by_name
from podqos.model.pod import Pod
from podqos.model.policy import LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass

if TYPE_CHECKING:
    from podqos.manifest.plain import Plain

_OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``admission``."""
    value, policies = cast("Plain", input["pod"]), policies_of(input)
    pod = read_pod(value)
    if isinstance(pod, Refusal):
        result = refused(pod)
    elif policies.namespace is not None and pod.metadata.namespace not in {"", policies.namespace.metadata.name}:
        result = refused(Refusal(Code.BAD_REQUEST, _OTHER_NAMESPACE))
    else:
        admission = admit(pod, policies, written=fields_of(value).get("spec"))
        result = _admitted(admission.pod) if admission.refusal is None else refused(admission.refusal)
    skipped = not_judged(value, namespace=policies.namespace)
    return result | {"notJudged": list(skipped)} if skipped else result


def policies_of(input: dict[str, object]) -> Policies:  # noqa: A002
    """Return the policies of a line's input."""
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
        "resources": resources_by_name(pod, str),
    }
    if pod.spec.overhead:
        result["overhead"] = plain(pod.spec.overhead, str)
    return result


def refused(refusal: Refusal) -> dict[str, object]:
    """Return a rejection."""
    result: dict[str, object] = {"allowed": False, "code": int(refusal.code), "error": refusal.message}
    if refusal.fields:
        result["fields"] = list(refusal.fields)
    return result
