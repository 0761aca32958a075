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
from collections.abc import Iterator

from podqos.advice.sizing.description import DescribedWorkload, read_descriptions
from podqos.advice.sizing.samples import ContainerSamples, read_samples
from podqos.cli import options
from podqos.cli.asking import ask_description, ask_name, check_terminal
from podqos.cli.commands.advise_node import add_node_options, run_for_node
from podqos.cli.inputs import print_problems, read_objects
from podqos.cli.output import add_output_options, emit, object_name, print_documents, say_assumptions
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.library.advise import advise, advised_manifests
from podqos.library.inputs.files import applied_files, read_bytes
from podqos.model.profile import parse_version
from podqos.report.advice.lines import text
from podqos.report.advice.value import AdviceReport


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos advise``."""
    add_manifest_options(parser)
    parser.add_argument("--describe", metavar="FILE", help="descriptions of workloads, as YAML")
    parser.add_argument("--ask", action="store_true", help="ask on the terminal about what is not described")
    parser.add_argument("--usage", metavar="FILE", help="samples of what containers used: CSV, JSON or Prometheus")
    parser.add_argument(
        "--cpu-usage",
        metavar="FILE",
        help="samples of cpu, where Prometheus' answer has no name (of rate(...), in cores)",
    )
    options.add_node_memory_option(parser)
    options.add_kubelet_option(parser)
    add_node_options(parser)
    options.add_version_option(parser)
    add_output_options(
        parser, ("text", "manifests", "patch", "json", "yaml", "name"), "podqos.report.advice.value:AdviceReport"
    )


def run(arguments: argparse.Namespace) -> int:
    """Advise, print, and return the exit code."""
    profile = parse_version(arguments.kubernetes_version)
    if arguments.node:
        return run_for_node(arguments, profile)
    descriptions = _descriptions(arguments)
    files = applied_files(arguments.files, "advise") if arguments.files else []
    objects = read_objects(files, selection_of(arguments))
    try:
        report = advise(
            objects,
            samples=tuple(_samples(arguments)),
            descriptions=descriptions,
            describe=ask_description if arguments.ask else None,
            node_memory_bytes=arguments.node_memory,
            kubelet=options.kubelet_option(arguments.kubelet_config),
            profile=profile,
        )
    finally:
        errors = print_problems(objects.problems)
    existing = sum(each.before is not None for each in report.workloads)
    left_out = sum(map(objects.takes, objects.latest(warn=False))) - existing
    if left_out:
        print(f"{left_out} left out, of which nothing is known", file=sys.stderr)
    if arguments.output in {"manifests", "patch"}:
        patches = arguments.output == "patch"
        print_documents(advised_manifests(objects, report, patches=patches, descriptions=descriptions))
        _warn(report)
        say_assumptions(report.assumptions)
    else:
        emit(report, arguments, text, names=_names)
    return 2 if errors else 0


def _descriptions(arguments: argparse.Namespace) -> tuple[DescribedWorkload, ...]:
    if arguments.ask:
        check_terminal()
    if arguments.describe is not None:
        return read_descriptions(arguments.describe, read_bytes(arguments.describe))
    if arguments.ask and not arguments.files:
        name = ask_name()
        return (DescribedWorkload(name, ask_description(name)),)
    return ()


def _samples(arguments: argparse.Namespace) -> Iterator[ContainerSamples]:
    if arguments.usage is not None:
        yield from read_samples(arguments.usage, read_bytes(arguments.usage))
    if arguments.cpu_usage is not None:
        yield from read_samples(arguments.cpu_usage, read_bytes(arguments.cpu_usage), unnamed="cpu")


def _names(report: AdviceReport) -> Iterator[str]:
    for advice in report.workloads:
        kind, _, key = advice.workload.partition(" ")
        yield object_name(kind, key.rpartition("/")[2])


def _warn(report: AdviceReport) -> None:
    for advice in report.workloads:
        for container in advice.containers:
            if container.needs_choice:
                print(f"{advice.workload}: amounts of {container.container} must be chosen", file=sys.stderr)
