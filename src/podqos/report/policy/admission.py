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

_ACTIONS = {Action.DENY: "rejected", Action.WARN: "warned about", Action.AUDIT: "recorded"}
_LEFT = {
    Left.BUDGET: "the API server does not know the sum over all pods; podqos policy test checks {of}",
    Left.LIMIT_RANGE: (
        "the effect of LimitRanges and mutation on a template's pods: templates are checked as written, their pods "
        "as stored ({of})"
    ),
    Left.TEMPLATE_PRIORITY: (
        "the value of a template's priority class, and the default class where none is named: only pods are checked "
        "({of})"
    ),
    Left.TEMPLATE_POD_LIMITS: "pod-level limits of a template that are derived from its containers ({of})",
    Left.EXPIRY: "expiry: print the policies again after {detail}, the last day of {of}",
    Left.EXPIRED: "expired on {detail}, so left out: {of}",
    Left.KIND: "objects of kind {detail}: only Kubernetes' own pods, workloads and CronJobs are checked ({of})",
    Left.RESIZE: "in-place resizes, which keep the class but may change requests and limits ({of})",
    Left.MUTATION: "setting missing limits, which needs MutatingAdmissionPolicy (1.34 or newer) ({of})",
    Left.MUTATION_OFF: (
        "setting missing limits: before 1.36 the API server must be started with "
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
        yield "# Admission policies made by podqos policy cel. To remove all of them:"
    for kind in dict.fromkeys(f"{printed.value['kind']}".removesuffix("Binding").lower() for printed in found.objects):
        kinds = f"{kind.removesuffix('y')}ies,{kind}bindings"
        yield f"#   kubectl delete {kinds} -l app.kubernetes.io/managed-by=podqos"
    for left in found.not_expressed:
        yield from textwrap.wrap(
            f"Not expressed here: {not_expressed(left)}.", MANIFEST_WIDTH, initial_indent="# ", subsequent_indent="#   "
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
        return f"Rule {rule}: pods that must be Guaranteed get their missing limits."
    what = {
        "pods": "pods that violate it are",
        "workloads": "workloads whose pods would violate it are",
        "cronjobs": "CronJobs whose pods would violate it are",
        "namespaces": "namespaces that require a nonexistent class are",
    }[printed.about]
    return f"Rule {rule}: {what} {_ACTIONS[printed.action]}."
