"""Advise what workloads should have: class and priority from what they are, sizes from what they used.

A workload is described by annotations (podqos.dev/latency-sensitive, restart-cost, burst-pattern, keeps-state,
slow-start), by a file (--describe), or by answers on the terminal (--ask). With --usage its requests and limits are
sized from samples: CSV or JSON with pod, container, memory, cpu, oomKills, or the answer of Prometheus'
/api/v1/query_range. Where nobody describes a workload, it keeps its class and only its sizes are advised.

With --node it is a kubelet that is advised: reservations, eviction thresholds and grace, as a KubeletConfiguration.

-o text explains, -o manifests prints whole objects, -o patch only what changes (for kustomize, and for
kubectl patch --patch-file).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import admit
from podqos.advice.sizing.applying import PodAdvice, advise_pod, priority_class_for
from podqos.advice.sizing.effect import Advised, effect
from podqos.advice.sizing.matrix import BurstPattern, Recommendation, Tier, recommend
from podqos.advice.sizing.sizing import percentile
from podqos.cli.commands.advise_node import add_node_options, run_for_node
from podqos.cli.commands.advise_subjects import Subject, identity_of, print_problems, read_subjects
from podqos.cli.options import (
    add_filename_option,
    add_kubelet_option,
    add_schema_option,
    add_version_option,
    described_node_memory,
)
from podqos.cli.output import print_documents, print_schema, print_value
from podqos.cli.terminal import add_colour_option, style_for
from podqos.library.inputs.kubelet_node import judged_cgroups, kubelet_of
from podqos.library.inputs.objects import Objects
from podqos.model.node import Node
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.policy import PriorityClass
from podqos.model.profile import Profile, parse_version
from podqos.qos.classes import classify
from podqos.report.advice.value import AdviceReport, WorkloadAdviceReport, priority_class_report, workload_report
from podqos.report.survival.drift import Allowed, workload_reports
from podqos.survival.drift import Identity, WorkloadDrift


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos advise``."""
    add_filename_option(parser)
    parser.add_argument("--describe", metavar="FILE", help="descriptions of workloads, as YAML")
    parser.add_argument("--ask", action="store_true", help="ask on the terminal about what is not described")
    parser.add_argument("--usage", metavar="FILE", help="samples of what containers used: CSV, JSON or Prometheus")
    parser.add_argument(
        "--cpu-usage",
        metavar="FILE",
        help="samples of cpu, where Prometheus' answer has no name (of rate(...), in cores)",
    )
    parser.add_argument(
        "--node-memory",
        metavar="QUANTITY",
        help="memory of the node (default: that of a Node in the files, or 64Gi; with --node this machine's)",
    )
    add_kubelet_option(parser)
    add_node_options(parser)
    add_version_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "manifests", "patch", "json", "yaml"),
        default="text",
        help="(default: text)",
    )
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Advise, print, and return the exit code."""
    if arguments.schema:
        print_schema(AdviceReport)
        return 0
    profile = parse_version(arguments.kubernetes_version)
    version = ".".join(map(str, profile.version))
    if arguments.node:
        return run_for_node(arguments, version)
    return _Advising(arguments, profile).run(version)


# ---- workloads ---------------------------------------------------------------------------------------------------


class _Result(Struct, frozen=True):
    """The advice about one workload."""

    subject: Subject
    advice: PodAdvice
    recommendation: Recommendation | None
    priority_class: str | None
    before: Pod
    after: Pod
    refusal: str


class _Advising:
    """One run over workloads."""

    def __init__(self, arguments: argparse.Namespace, profile: Profile) -> None:
        self._arguments, self._profile = arguments, profile
        self._objects = Objects()
        self._subjects = read_subjects(arguments, self._objects)
        self._policies = self._objects.namespace_policies()
        self._to_create: dict[str, Tier] = {}

    def run(self, version: str) -> int:
        """Advise, print, and return the exit code."""
        results = [self._advise(subject) for subject in self._subjects]
        memory_bytes = described_node_memory(self._arguments.node_memory, self._objects.of(Node))
        advised = [*map(_advised, results), *self._untouched(results)]
        kubelet = kubelet_of(self._arguments.kubelet_config)
        settings = judged_cgroups(kubelet, memory_bytes=memory_bytes, profile=self._profile)
        drifts = effect(advised, settings, self._profile)
        reports = tuple(_report(each, drifts[each.subject.identity]) for each in results)
        classes = tuple(priority_class_report(tier) for tier in self._to_create.values())
        self._print(AdviceReport(version, memory_bytes, reports, classes), results)
        return 2 if print_problems(self._objects) else 0

    def _untouched(self, advised: Iterable[_Result]) -> Iterator[Advised]:
        """Yield the other workloads of the files, which have their places in the orders too."""
        known = {each.subject.identity for each in advised}
        for found in self._objects.latest(warn=False):
            identity = identity_of(found)
            if identity not in known:
                pod, _ = self._stored(found.workload.pod, identity)
                yield Advised(identity, pod, pod)

    def _advise(self, subject: Subject) -> _Result:
        description = subject.description
        recommendation = None if description is None else recommend(description)
        before, _ = self._stored(subject.pod, subject.identity)
        priority_class = None
        if recommendation is not None:
            existing = self._policies.of(subject.identity.namespace).priority_classes
            priority_class, is_missing = priority_class_for(recommendation.tier, existing)
            if is_missing:
                self._to_create[priority_class] = recommendation.tier
        advice = advise_pod(
            subject.pod,
            classify(before, self._profile).qos_class,
            subject.usages,
            recommendation,
            burst=BurstPattern.STEADY if description is None else description.burst_pattern,
            priority_class=priority_class,
        )
        after, refusal = self._stored(advice.pod, subject.identity)
        return _Result(subject, advice, recommendation, priority_class, before, after, refusal)

    def _stored(self, pod: Pod, identity: Identity) -> tuple[Pod, str]:
        """Return a pod as the API server would store it, or as far as it gets, and why no further."""
        policies = self._policies.of(identity.namespace)
        created = tuple(PriorityClass(ObjectMeta(tier.name), tier.value) for tier in self._to_create.values())
        admission = admit(
            pod, replace(policies, priority_classes=(*policies.priority_classes, *created)), self._profile
        )
        return admission.pod, "" if admission.refusal is None else admission.refusal.message

    def _print(self, report: AdviceReport, results: Iterable[_Result]) -> None:
        from podqos.report.advice.lines import text
        from podqos.report.advice.manifests import advised_object, patch_object, priority_class_object

        output = self._arguments.output
        if output == "text":
            print("\n".join(text(report, style_for(self._arguments.color))))
        elif output in {"manifests", "patch"}:
            documents = [priority_class_object(each) for each in report.priority_classes]
            for advice, result in zip(report.workloads, results, strict=True):
                value = self._objects.plain(result.subject.found)
                assert isinstance(value, dict)
                make = patch_object if output == "patch" and not result.subject.is_new else advised_object
                document = make(value, result.subject.found.workload.pod_path, advice)
                documents += [] if document is None else [document]
                _warn(advice)
            print_documents(documents)
        else:
            print_value(report, output)


def _report(result: _Result, drift: WorkloadDrift) -> WorkloadAdviceReport:
    subject = result.subject
    (effects,) = workload_reports([replace(drift, source=subject.found.source)], Allowed())
    return workload_report(
        str(subject.identity),
        result.advice,
        effects,
        description=subject.description,
        recommendation=result.recommendation,
        priority_class=result.priority_class,
        refusal=result.refusal,
    )


def _advised(result: _Result) -> Advised:
    subject = result.subject
    return Advised(subject.identity, None if subject.is_new else result.before, result.after, _memory(subject))


def _memory(subject: Subject) -> dict[str, int]:
    return {name: percentile(usage.memory_bytes, 95) for name, usage in subject.usages.items() if usage.memory_bytes}


def _warn(advice: WorkloadAdviceReport) -> None:
    for container in advice.containers:
        if container.needs_choice:
            print(f"{advice.workload}: amounts of {container.container} must be chosen", file=sys.stderr)
