"""Advise class and priority of workloads from what they are, and their sizes from what they used.

A workload is described by annotations (podqos.dev/latency-sensitive, restart-cost, burst-pattern, keeps-state,
slow-start), by a file (--describe), or by answers on the terminal (--ask). With --usage its requests and limits are
sized from samples: CSV or JSON with pod, container, memory, cpu, oomKills, or the output of Prometheus'
/api/v1/query_range; --prometheus URL asks for them. A workload without a description keeps its class; only its sizes
are advised.

With --node it advises a kubelet: reservations, eviction thresholds and grace, as a KubeletConfiguration.

Advice is tried before it is given: admitted, placed on the nodes among the files (or --nodes), and run with the
recorded usage. What would be OOM-killed, evicted or throttled for longer than now is raised, or not advised. --goal
asks for all workloads at once, with or without usage: what changes, what it costs (--price), who would be pending.

-o text has a table and then the reasons, csv the table, html both as a page. -o manifests prints whole objects,
-o patch only what changes (for kustomize, and for kubectl patch --patch-file); --patch writes it for a tool, --apply-to
into the manifests themselves.

Exit codes: 0 advised; 2 something could not be read; 3 a file could not be written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from functools import partial

from podqos.advice.sizing.description import DescribedWorkload, read_descriptions
from podqos.answers.advice import AdviceReport
from podqos.answers.advice_ground import without_owned
from podqos.answers.advise import AdviceRequest, advise, advised_manifests
from podqos.answers.advised_edits import tool_patches
from podqos.cli import options
from podqos.cli.asking import ask_description, ask_name, check_terminal
from podqos.cli.cluster import arguments_name_cluster, profile_of
from podqos.cli.commands.advise_node import add_node_options, run_for_node
from podqos.cli.commands.advise_options import add_trial_options, add_writing_options, apply_to, say_classes
from podqos.cli.counted_nodes import node_count
from podqos.cli.inputs import given_files, read_objects
from podqos.cli.output import add_output_options, emit, object_name, print_documents, print_file, say_assumptions
from podqos.cli.problems import print_problems
from podqos.cli.prometheus import add_prometheus_options
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.cli.usage_sources import read_metrics, usage_of
from podqos.errors import InvalidOption
from podqos.objects.files import Inputs
from podqos.reading.files import read_bytes
from podqos.report.advice.lines import text
from podqos.report.advice.table import csv_rows
from podqos.report.text.style import Style


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos advise``."""
    add_manifest_options(parser)
    parser.add_argument("--describe", metavar="FILE", help="descriptions of workloads, as YAML")
    parser.add_argument("--ask", action="store_true", help="ask on the terminal about workloads without a description")
    parser.add_argument("--usage", metavar="FILE", help="samples of what containers used: CSV, JSON or Prometheus")
    parser.add_argument(
        "--cpu-usage",
        metavar="FILE",
        help="cpu samples, if the result from Prometheus has no name (of rate(...), in cores)",
    )
    add_prometheus_options(parser, "7d")
    options.add_node_memory_option(parser)
    options.add_kubelet_option(parser)
    add_trial_options(parser)
    add_writing_options(parser)
    add_node_options(parser)
    options.add_version_option(parser)
    add_output_options(
        parser,
        ("text", "manifests", "patch", "json", "yaml", "csv", "html", "name"),
        "podqos.answers.advice:AdviceReport",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="with -o text: also what restarts, the steps in order, the way back",
    )


def run(arguments: argparse.Namespace) -> int:
    """Advise, print, and return the exit code."""
    if arguments.node:
        return run_for_node(arguments)
    descriptions = _descriptions(arguments)
    if arguments.patch and arguments.output != "text":
        raise InvalidOption(f"--patch and -o {arguments.output} cannot be combined", fix="give one of them")
    if arguments.apply_to and not arguments.files:
        arguments.files = list(arguments.apply_to)
    has_files = arguments.files or arguments.kustomize or arguments_name_cluster(arguments)
    read_metrics(arguments)
    inputs = given_files(arguments, "advise", in_order_of_apply=True, declared=True) if has_files else Inputs([])
    profile = profile_of(arguments)
    objects = read_objects(inputs, options.stated_classes(arguments), selection_of(arguments))
    try:
        samples, assumptions = usage_of(arguments, objects)
        request = AdviceRequest(
            samples=samples,
            descriptions=descriptions,
            describe=ask_description if arguments.ask else None,
            assumptions=assumptions,
            node_memory_bytes=arguments.node_memory,
            kubelet=options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version),
            profile=profile,
            goal=arguments.goal,
            prices=arguments.price,
            node_count=node_count(arguments),
            node_capacity=arguments.node_capacity or {},
        )
        report = advise(objects, request)
    finally:
        errors = print_problems(objects.problems)
    existing = sum(each.before is not None for each in report.workloads)
    left_out = sum(map(objects.takes, without_owned(objects.latest(warn=False)))) - existing
    if left_out:
        print(f"{left_out} left out: nothing is known about them", file=sys.stderr)
    unwritten = 0
    if arguments.apply_to:
        unwritten = apply_to(arguments.apply_to, objects, report)
    if arguments.patch:
        print_file(tool_patches(objects, report, arguments.patch))
        _warn(report)
        say_classes(report)
        say_assumptions(report.assumptions)
    elif arguments.output in {"manifests", "patch"}:
        patches = arguments.output == "patch"
        print_documents(advised_manifests(objects, report, descriptions, patches=patches))
        _warn(report)
        say_assumptions(report.assumptions)
    else:
        lines = partial(_lines, output=arguments.output, verbose=arguments.verbose)
        emit(report, arguments, lines, csv_rows, _names)
    if unwritten:
        return 3
    return 2 if errors else 0


def _lines(report: AdviceReport, style: Style, output: str, *, verbose: bool) -> Iterable[str]:
    if output == "html":
        from podqos.report.advice.html import html

        return html(report)
    return text(report, style, verbose=verbose)


def _descriptions(arguments: argparse.Namespace) -> tuple[DescribedWorkload, ...]:
    if arguments.ask:
        check_terminal()
    if arguments.describe is not None:
        return read_descriptions(arguments.describe, read_bytes(arguments.describe))
    if arguments.ask and not arguments.files and not arguments.kustomize:
        name = ask_name()
        return (DescribedWorkload(name, ask_description(name)),)
    return ()


def _names(report: AdviceReport) -> Iterator[str]:
    for advice in report.workloads:
        kind, _, key = advice.workload.partition(" ")
        yield object_name(kind, key.rpartition("/")[2])


def _warn(report: AdviceReport) -> None:
    for advice in report.workloads:
        for container in advice.containers:
            if container.needs_choice:
                print(f"{advice.workload}: amounts of {container.container} must be chosen", file=sys.stderr)
