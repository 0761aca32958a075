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
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import admit
from podqos.advice.applying import PodAdvice, advise_pod, priority_class_for
from podqos.advice.description import DescribedWorkload, description_from_annotations, read_descriptions
from podqos.advice.effect import Advised, effect
from podqos.advice.matching import match_samples
from podqos.advice.matrix import BurstPattern, Description, Recommendation, Tier, recommend
from podqos.advice.samples import Samples, read_samples
from podqos.advice.sizing import Usage, percentile
from podqos.cli.admitting import NamespacePolicies
from podqos.cli.advising_node import add_node_options, run_for_node
from podqos.cli.asking import ask_description, ask_name, check_terminal
from podqos.cli.inputs import read_bytes
from podqos.cli.node_pods import latest_workloads
from podqos.cli.objects import FoundWorkload, Objects
from podqos.cli.options import (
    DEFAULT_NODE_MEMORY_BYTES,
    add_filename_option,
    add_schema_option,
    add_version_option,
    amount_option,
    applied_files,
)
from podqos.cli.output import print_documents, print_schema, print_value
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InputError
from podqos.manifest.plain import Plain
from podqos.manifest.problems import Severity
from podqos.model.node import Node
from podqos.model.pod import ObjectMeta, Pod
from podqos.model.policy import PriorityClass
from podqos.model.profile import Profile, parse_version
from podqos.model.resources import MEMORY
from podqos.qos.classes import classify
from podqos.report.advice import AdviceReport, WorkloadAdviceReport, priority_class_report, workload_report
from podqos.report.drift import Allowed, workload_reports
from podqos.survival.drift import Identity


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


class _Subject(Struct, frozen=True):
    """A workload that is advised, and what is known about it."""

    found: FoundWorkload
    identity: Identity
    description: Description | None
    usages: Mapping[str, Usage]
    is_new: bool = False
    """Whether there is no manifest of it."""

    @property
    def pod(self) -> Pod:
        return self.found.workload.pod


class _Result(Struct, frozen=True):
    """The advice about one workload."""

    subject: _Subject
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
        self._policies = NamespacePolicies(self._objects)
        self._to_create: dict[str, Tier] = {}

    def run(self, version: str) -> int:
        """Advise, print, and return the exit code."""
        subjects = self._subjects()
        results = [self._advise(subject) for subject in subjects]
        memory_bytes = self._node_memory()
        drifts = effect(
            [*map(_advised, results), *self._untouched(results)],
            memory_bytes,
            self._profile,
        )
        reports = [
            workload_report(
                str(each.subject.identity),
                each.advice,
                workload_reports([replace(drifts[each.subject.identity], source=each.subject.found.source)], Allowed())[
                    0
                ],
                description=each.subject.description,
                recommendation=each.recommendation,
                priority_class=each.priority_class,
                refusal=each.refusal,
            )
            for each in results
        ]
        classes = tuple(priority_class_report(tier) for tier in self._to_create.values())
        report = AdviceReport(version, memory_bytes, tuple(reports), classes)
        self._print(report, results)
        return 2 if self._print_problems() else 0

    def _subjects(self) -> list[_Subject]:
        arguments = self._arguments
        described = {each.name: each for each in self._descriptions()}
        if arguments.files:
            for path in applied_files(arguments.files, "advise"):
                self._objects.add_file(path)
        self._policies = NamespacePolicies(self._objects)
        found = {_identity(each): each for each in latest_workloads(self._objects.workloads)}
        by_identity = {identity: _described(identity, described) for identity in found}
        existing = set(found)
        for name in described.keys() - {each.name for each in by_identity.values() if each is not None}:
            created = self._create(described[name])
            found[_identity(created)] = created
            by_identity[_identity(created)] = described[name]
        if not found:
            raise InputError("nothing to advise about", fix="name manifests with -f, or descriptions with --describe")
        samples = self._samples()
        matched = match_samples({identity: each.workload.pod for identity, each in found.items()}, samples)
        for name in matched.strangers:
            print(f"samples of {name} belong to no workload", file=sys.stderr)
        subjects = [
            self._subject(found[identity], identity, by_identity[identity], matched.usages.get(identity, {}))
            for identity in sorted(found)
        ]
        return self._known([replace(each, is_new=each.identity not in existing) for each in subjects])

    def _descriptions(self) -> tuple[DescribedWorkload, ...]:
        arguments = self._arguments
        if arguments.ask:
            check_terminal()
        if arguments.describe is not None:
            return read_descriptions(arguments.describe, read_bytes(arguments.describe))
        if arguments.ask and not arguments.files:
            name = ask_name()
            return (DescribedWorkload(name, ask_description(name)),)
        return ()

    def _samples(self) -> tuple[Samples, ...]:
        arguments = self._arguments
        found: tuple[Samples, ...] = ()
        if arguments.usage is not None:
            found += read_samples(arguments.usage, read_bytes(arguments.usage))
        if arguments.cpu_usage is not None:
            found += read_samples(arguments.cpu_usage, read_bytes(arguments.cpu_usage), unnamed="cpu")
        return found

    def _create(self, described: DescribedWorkload) -> FoundWorkload:
        """Make a Deployment for a workload of which there is no manifest."""
        text = msgspec.yaml.encode(_deployment(described))
        before = len(self._objects.workloads)
        self._objects.add_text(f"{self._arguments.describe or '(asked)'} {described.name}", text)
        if len(self._objects.workloads) == before:
            self._print_problems()
            raise InputError(f"{described.name!r} cannot be the name of a workload", fix="write name or namespace/name")
        return self._objects.workloads[-1]

    def _subject(
        self,
        found: FoundWorkload,
        identity: Identity,
        described: DescribedWorkload | None,
        usages: Mapping[str, Usage],
    ) -> _Subject:
        if described is not None:
            return _Subject(found, identity, described.description, _expected(described, found, usages))
        metadata, pod = found.workload.metadata, found.workload.pod.metadata
        try:
            description = description_from_annotations({**metadata.annotations, **pod.annotations})
        except InputError as error:
            self._objects.refuse(found, f"{error.where}: {error.what}", error.fix)
            return _Subject(found, identity, None, usages)
        if description is None and self._arguments.ask:
            description = ask_description(str(identity))
        return _Subject(found, identity, description, usages)

    def _untouched(self, advised: Iterable[_Result]) -> Iterator[Advised]:
        """Yield the other workloads of the files, which have their places in the orders too."""
        known = {each.subject.identity for each in advised}
        for found in latest_workloads(self._objects.workloads):
            identity = _identity(found)
            if identity not in known:
                pod, _ = self._stored(found.workload.pod, identity)
                yield Advised(identity, pod, pod)

    def _known(self, subjects: list[_Subject]) -> list[_Subject]:
        """Return the workloads that something is known about."""
        known = [each for each in subjects if each.description is not None or each.usages]
        left_out = len(subjects) - len(known)
        if not known:
            if self._print_problems():
                raise InputError("nothing is left to advise about", fix="mend what is said above")
            fix = "annotate them (podqos.dev/latency-sensitive: ...), or give --describe, --ask or --usage"
            raise InputError(f"nothing is known about {left_out} workload{'s' if left_out > 1 else ''}", fix=fix)
        if left_out:
            print(f"{left_out} left out, of which nothing is known", file=sys.stderr)
        return known

    def _advise(self, subject: _Subject) -> _Result:
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

    def _node_memory(self) -> int:
        if self._arguments.node_memory is None:
            for node in self._objects.of(Node):
                if MEMORY in node.status.capacity:
                    return node.status.capacity[MEMORY].value
            return DEFAULT_NODE_MEMORY_BYTES
        return amount_option(self._arguments.node_memory, "--node-memory")

    def _print(self, report: AdviceReport, results: Iterable[_Result]) -> None:
        from podqos.report.advice_lines import text
        from podqos.report.advice_manifests import advised_object, patch_object, priority_class_object

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

    def _print_problems(self) -> int:
        for problem in sorted(self._objects.problems):
            print(problem, file=sys.stderr)
        return sum(problem.severity is Severity.ERROR for problem in self._objects.problems)


def _identity(found: FoundWorkload) -> Identity:
    namespace, _, name = found.workload.pod.key.partition("/")
    return Identity(namespace, found.workload.kind, name)


def _described(identity: Identity, described: Mapping[str, DescribedWorkload]) -> DescribedWorkload | None:
    return described.get(f"{identity.namespace}/{identity.name}") or described.get(identity.name)


def _expected(described: DescribedWorkload, found: FoundWorkload, usages: Mapping[str, Usage]) -> Mapping[str, Usage]:
    """Return what is known about the containers; what was expected counts where nothing was measured."""
    containers = found.workload.pod.running_containers
    if usages or len(containers) != 1 or (described.cpu is None and described.memory is None):
        return usages
    memory, cpu = described.memory, described.cpu
    expected = Usage(
        () if memory is None else (memory.value,), () if cpu is None else (cpu.milli_value,), is_expected=True
    )
    return {containers[0].name: expected}


def _deployment(described: DescribedWorkload) -> dict[str, Plain]:
    namespace, slash, name = described.name.rpartition("/")
    metadata: dict[str, Plain] = {"name": name, **({"namespace": namespace} if slash else {})}
    labels: dict[str, Plain] = {"app.kubernetes.io/name": name}
    container: dict[str, Plain] = {"name": name, "image": described.image or name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _advised(result: _Result) -> Advised:
    subject = result.subject
    return Advised(subject.identity, None if subject.is_new else result.before, result.after, _memory(subject))


def _memory(subject: _Subject) -> dict[str, int]:
    return {name: percentile(usage.memory_bytes, 95) for name, usage in subject.usages.items() if usage.memory_bytes}


def _warn(advice: WorkloadAdviceReport) -> None:
    for container in advice.containers:
        if container.needs_choice:
            print(f"{advice.workload}: amounts of {container.container} must be chosen", file=sys.stderr)
