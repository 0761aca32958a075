"""``podqos policy cel``: objects for ``kubectl apply``, and in words what they do not say."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Literal

from msgspec import Struct

from podqos.controls import one_line
from podqos.manifest.encoding import MANIFEST_WIDTH, manifest_yaml
from podqos.policy.admission_policies import AdmissionPolicies, Left, NotExpressed, Printed
from podqos.policy.model import Action
from podqos.wording import listed

_ACTIONS = {Action.DENY: "refused", Action.WARN: "warned about", Action.AUDIT: "recorded"}
_LEFT = {
    Left.BUDGET: "what all pods add up to is not known to the API server; podqos policy test judges {of}",
    Left.LIMIT_RANGE: (
        "what LimitRanges and mutation make of a template's pods: templates are judged as they are written, their pods "
        "as they are stored ({of})"
    ),
    Left.TEMPLATE_PRIORITY: (
        "the value of a template's priority class, and the class of one that names none: only pods are judged ({of})"
    ),
    Left.TEMPLATE_POD_LIMITS: "limits of a template's pods as a whole that follow from those of containers ({of})",
    Left.EXPIRY: "an end: print the policies again after {detail}, the last day of {of}",
    Left.EXPIRED: "what has expired is left out: {of}, on {detail}",
    Left.KIND: "objects of kind {detail}: only Kubernetes' own pods, workloads and CronJobs are judged ({of})",
    Left.RESIZE: "a resize of a running pod, which keeps its class and may change its amounts ({of})",
    Left.MUTATION: "limits are not filled in: MutatingAdmissionPolicy is there since 1.34 ({of})",
    Left.MUTATION_OFF: (
        "that limits are filled in: before 1.36 the API server has to be started with "
        "--feature-gates=MutatingAdmissionPolicy=true and "
        "--runtime-config=admissionregistration.k8s.io/v1beta1=true ({of})"
    ),
}


class NotExpressedReport(Struct, frozen=True, rename="camel"):
    """Something of a policy that the objects do not say."""

    what: Left
    of: tuple[str, ...]
    """The rules or budgets, or the reasons of exemptions."""
    detail: str
    """The kind or day that is meant, where it is one."""
    message: str


class AdmissionPolicyList(Struct, frozen=True, rename="camel"):
    """Objects to apply; a list that kubectl takes as it is."""

    items: tuple[dict[str, Any], ...]
    not_expressed: tuple[NotExpressedReport, ...]
    api_version: Literal["v1"] = "v1"
    kind: Literal["List"] = "List"


def as_list(found: AdmissionPolicies) -> AdmissionPolicyList:
    """Return the value that ``-o json`` prints."""
    left = tuple(
        NotExpressedReport(expressed.what, expressed.of, expressed.detail, not_expressed(expressed))
        for expressed in found.not_expressed
    )
    return AdmissionPolicyList(tuple(printed.value for printed in found.objects), left)


def not_expressed(left: NotExpressed) -> str:
    """Return in words what is left to others."""
    noun = {Left.BUDGET: "budget", Left.EXPIRY: "the exemption", Left.EXPIRED: "the exemption"}.get(left.what, "rule")
    names = [f'"{name}"' for name in left.of]
    of = f"{noun}{'s' if len(names) > 1 else ''} {listed(names)}"
    return one_line(_LEFT[left.what].format(of=of, detail=left.detail))


def documents(found: AdmissionPolicies) -> Iterator[str]:
    """Yield the objects as YAML, each with a comment on what it is for; what they do not say comes first."""
    if found.objects:
        yield "# Admission policies made by podqos policy cel. To be rid of all of them:"
    for kind in dict.fromkeys(f"{printed.value['kind']}".removesuffix("Binding").lower() for printed in found.objects):
        kinds = f"{kind.removesuffix('y')}ies,{kind}bindings"
        yield f"#   kubectl delete {kinds} -l app.kubernetes.io/managed-by=podqos"
    for left in found.not_expressed:
        yield from textwrap.wrap(
            f"Not said here: {not_expressed(left)}.", MANIFEST_WIDTH, initial_indent="# ", subsequent_indent="#   "
        )
    for _, group in groupby(found.objects, key=lambda printed: printed.value["metadata"]):  # a policy and its binding
        for index, printed in enumerate(group):
            yield "---"
            if index == 0:
                yield f"# {_about(printed)}"
            yield from manifest_yaml(printed.value).splitlines()


def _about(printed: Printed) -> str:
    rule = one_line(printed.rule)
    if printed.value["kind"] == "MutatingAdmissionPolicy":
        return f"Rule {rule}: pods that have to be Guaranteed get the limits that are missing."
    what = {
        "pods": "pods that violate it are",
        "workloads": "workloads whose pods would violate it are",
        "cronjobs": "CronJobs whose pods would violate it are",
        "namespaces": "namespaces that ask for a class there is not are",
    }[printed.about]
    return f"Rule {rule}: {what} {_ACTIONS[printed.action]}."
