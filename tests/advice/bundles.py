"""Texts of manifests to bundles, and patches applied to plain values: what the command does with more care."""

from __future__ import annotations

from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.policies import ClusterPolicies, Policies
from podqos.admission.relevance import rejections
from podqos.advice.checks.bundle import (
    CheckOptions,
    ClusterObjects,
    FoundAutoscaler,
    FoundBudget,
    FoundKubelet,
    LocatedWorkload,
    Resize,
)
from podqos.advice.checks.check import Check
from podqos.advice.checks.checking import CheckedWorkload, check_bundle, check_workload
from podqos.advice.checks.finding import CheckedObject, Finding, Patch
from podqos.advice.checks.view import CheckContext
from podqos.manifest.decode import convert
from podqos.manifest.kinds import is_kubelet, is_policy
from podqos.manifest.kubelet import kubelet_settings
from podqos.manifest.objects import interpret, objects_in
from podqos.manifest.plain import parse_path
from podqos.manifest.policies import read_policy
from podqos.manifest.runtime_memory import Written
from podqos.manifest.strictyaml import read_documents
from podqos.manifest.text import Chunk, Place, chunks
from podqos.model.autoscaling import HorizontalPodAutoscaler
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.node import Node
from podqos.model.policy import LimitRange, Namespace, PriorityClass, ResourceQuota, RuntimeClass
from podqos.model.service import Ingress, Service
from podqos.objects.assumptions import node_memory
from podqos.objects.objects import in_namespace
from podqos.policy.reading import read_policy as read_demands

_NAMESPACED = ("LimitRange", "ResourceQuota", "Service", "PodDisruptionBudget", "HorizontalPodAutoscaler", "Ingress")
_MODELS = {
    "Service": Service,
    "Node": Node,
    "PodDisruptionBudget": PodDisruptionBudget,
    "HorizontalPodAutoscaler": HorizontalPodAutoscaler,
    "Ingress": Ingress,
}


class Bundle(Struct, frozen=True):
    """All that is checked together."""

    workloads: tuple[LocatedWorkload, ...] = ()
    surroundings: ClusterObjects = ClusterObjects()
    resizes: tuple[Resize, ...] = ()
    written: dict[CheckedObject, object] = {}
    """The objects as plain values."""


def check(bundle: Bundle, options: CheckOptions | None = None) -> tuple[Finding, ...]:
    """Return everything that is found: both phases, one after the other."""
    options = options or CheckOptions()
    context = CheckContext(bundle.surroundings, options, bundle.resizes)
    keep_pods = len(bundle.workloads) <= options.compare_up_to
    return check_bundle(first_phase(bundle, context, keep_pods=keep_pods), context)


def first_phase(bundle: Bundle, context: CheckContext, *, keep_pods: bool = True) -> list[CheckedWorkload]:
    """Return what is found in each workload by itself."""
    return [
        check_workload(found, context, keep_pod=keep_pods, written=Written(partial(bundle.written.get, found.subject)))
        for found in bundle.workloads
    ]


def plain_objects(text: str):
    """Return the objects of a text as plain values, in order."""
    data = text.encode()
    documents = [
        document.value for chunk in chunks(data) for document in read_documents(data[chunk.start : chunk.end], 1)
    ]
    return [found.value for value in documents for found in objects_in(value)]


def bundle_of(objects, replaces=()) -> Bundle:
    """Return the bundle that plain objects make; each is its own chunk of a file, so that positions differ."""
    workloads, kubelets, subjects = [], [], []
    typed: dict[type, list] = {}
    budgets, autoscalers, demands = [], {}, []
    for index, value in enumerate(objects):
        metadata = value.get("metadata", {})
        subject = CheckedObject(
            value["kind"],
            metadata.get("name", ""),
            metadata.get("namespace", ""),
            "example.yaml",
            Place(Chunk(index, index + 1, "yaml")),
        )
        found = next(objects_in(value))
        interpretation = interpret(found)
        assert not interpretation.findings, interpretation.findings
        if interpretation.workload is not None:
            own = in_namespace(interpretation.workload, "default")
            errors = rejections(own, lambda value=value: value)
            workloads.append(LocatedWorkload(own, subject, rejections=errors))
        elif is_kubelet(value["kind"], value["apiVersion"]):
            settings = kubelet_settings(value)
            kubelets.append(FoundKubelet(settings.configuration, subject, settings.notation, settings.arguments))
        else:
            subjects.append(subject)
            if is_policy(value["kind"], value["apiVersion"]):
                read = read_policy(value["kind"], value["apiVersion"], value)
                assert read.policy is not None, read.findings
                item = read.policy
            elif value["kind"] == "Policy":
                demanded = read_demands(value)
                assert demanded.policy is not None, demanded.findings
                demands.append(demanded.policy)
                continue
            else:
                item = convert(value, _MODELS[value["kind"]])
            if not item.metadata.namespace and value["kind"] in _NAMESPACED:
                item = replace(item, metadata=replace(item.metadata, namespace="default"))
            typed.setdefault(type(item), []).append(item)
            if isinstance(item, PodDisruptionBudget):
                budgets.append(FoundBudget(item, subject))
            if isinstance(item, HorizontalPodAutoscaler):
                autoscalers[item.target.kind, item.target.name] = FoundAutoscaler(item, subject)
    old = [interpret(next(objects_in(value))).workload.pod for value in replaces]

    def of(model):
        return tuple(typed.get(model, ()))

    cluster = ClusterPolicies(
        Policies(
            limit_ranges=of(LimitRange),
            resource_quotas=of(ResourceQuota),
            priority_classes=of(PriorityClass),
            runtime_classes=of(RuntimeClass),
        ),
        namespaces=of(Namespace),
    )
    surroundings = ClusterObjects(
        cluster,
        of(Service),
        {("default", name): f"Ingress {each.metadata.name}" for each in of(Ingress) for _, name in each.backends()},
        tuple(budgets),
        of(Node),
        tuple(kubelets),
        node_memory(None, of(Node))[0],
        tuple(subjects),
        tuple(demands),
    )
    workloads = [replace(each, scaled_by=autoscalers.get((each.subject.kind, each.subject.name))) for each in workloads]
    resizes = tuple(Resize(pod, new) for pod, new in zip(old, workloads, strict=False))
    written = {each.subject: objects[each.subject.place.chunk.start] for each in workloads}
    return Bundle(tuple(workloads), surroundings, resizes, written)


def check_text(text: str, options: CheckOptions | None = None, replaces: str = "") -> tuple[Finding, ...]:
    """Return what is found in a text."""
    return check(bundle_of(plain_objects(text), plain_objects(replaces)), options)


def check_example(check: Check, options: CheckOptions | None = None) -> tuple[Finding, ...]:
    """Return what is found in the example of a check."""
    options = replace(options or CheckOptions(), inject=check.example.inject)
    return check_text(check.example.text, options, check.example.replaces)


def apply_patch(value, patch: Patch) -> None:
    """Write a patch into a plain object."""
    for edit in patch.edits:
        *parents, last = parse_path(edit.path)
        at = value
        for step in parents:
            at = at[step] if isinstance(step, int) else at.setdefault(step, {})
        if edit.value is None:
            del at[last]
        else:
            at[last] = edit.value
