"""Advise QoS class and priority of workloads by what they do, and requests and limits by what they used.

Describe a workload with annotations (podqos.dev/latency-sensitive, restart-cost, burst-pattern, keeps-state,
slow-start), or in a file (--describe). With --usage, requests and limits are sized
from samples: CSV or JSON with pod, container, memory, cpu, oomKills, or the output of Prometheus' /api/v1/query_range.
--prometheus URL queries them. A workload without a description keeps its class, and only its sizes are advised.

Settings of a kubelet: `podqos thresholds --advise`.

Advice is tested first: the advised pods are admitted, placed on the nodes in the files, and run with the recorded
usage. If a pod would be OOM-killed, evicted or throttled for longer than today, its sizes are raised, or the
advice is dropped. --goal covers all workloads at once, with or without usage: what changes,
and which pods would be pending.

-o text prints a table and then the reasons, csv the table. --patch prints patches for a tool, --fix edits the
manifests.

Exit codes: 0 advised; 2 something could not be read; 3 a file could not be written.
"""

from __future__ import annotations

import argparse
import os
import sys

from podqos.advice.sizing.description import read_descriptions
from podqos.advice.sizing.goals import Goal
from podqos.advice.sizing.samples import COLUMNS, ContainerSamples, read_samples
from podqos.amounts import counted, listed
from podqos.cli import options
from podqos.cli.cluster import arguments_name_cluster, cluster_of, object_arguments, profile_of
from podqos.cli.inputs import given_files, read_objects
from podqos.cli.output import add_output_options, emit, object_name, print_file, say_assumptions
from podqos.cli.problems import print_problems
from podqos.cli.prometheus import add_prometheus_options, queried
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.cli.usage_files import table_bytes
from podqos.errors import HostError, InvalidOption
from podqos.manifest.edits.apply import CannotEdit
from podqos.model.assumption import Assumption
from podqos.objects.files import STDIN, Inputs
from podqos.objects.objects import Objects
from podqos.questions import advise
from podqos.questions.advice import AdviceReport, csv_rows, text
from podqos.questions.advise_usage import measured_samples, recommended_samples
from podqos.questions.patches import new_lines, patch_lines, reason_words
from podqos.reading.cluster_part import Part
from podqos.reading.files import read_bytes
from podqos.reading.written_files import replace_file

ONE_MOMENT = Assumption("usage over time", "as measured at one moment", "--prometheus, or --usage")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos advise``."""
    add_manifest_options(parser)
    parser.add_argument("--describe", metavar="FILE", help="workload descriptions in YAML")
    parser.add_argument("--usage", metavar="FILE", help="container usage over time: CSV, JSON or Prometheus output")
    add_prometheus_options(parser, "7d")
    options.add_node_memory_option(parser)
    options.add_kubelet_option(parser)
    about = "advise every workload, even without a description or usage: make it Guaranteed, as cheap as usage "
    options.add_choice_option(parser, "--goal", Goal, f"{about}allows, or as safe as possible")
    options.add_patch_option(parser)
    about = "write the advice into the manifests, changing only the lines concerned"
    parser.add_argument("--fix", action="store_true", help=about)
    options.add_version_option(parser)
    formats = ("text", "json", "yaml", "csv", "name")
    add_output_options(parser, formats, "podqos.questions.advice:AdviceReport")


def run(arguments: argparse.Namespace) -> int:
    """Advise, print, and return the exit code."""
    path = arguments.describe
    descriptions = () if path is None else read_descriptions(path, read_bytes(path))
    if arguments.patch and arguments.output != "text":
        raise InvalidOption(f"--patch and -o {arguments.output} cannot be combined", fix="give one of them")
    if arguments.fix and arguments_name_cluster(arguments):
        fix = "--patch kubectl prints commands"
        raise InvalidOption("podqos does not change a cluster", where="--fix", fix=fix)
    has_files = arguments.files or arguments.kustomize or arguments_name_cluster(arguments)
    is_measured = arguments.usage is not None or arguments.prometheus is not None
    object_arguments(arguments)
    if not arguments.files and not arguments.kustomize and not is_measured:
        cluster_of(arguments, Part(usage=False, metrics=True))
    inputs = given_files(arguments, "advise", in_order_of_apply=True, declared=True) if has_files else Inputs([])
    profile = profile_of(arguments)
    stated = options.stated_classes(arguments)
    objects = read_objects(inputs, stated, selection_of(arguments), version=profile.version)
    try:
        samples, assumptions = _usage(arguments, objects)
        report = advise.advise(
            objects,
            samples=samples,
            descriptions=descriptions,
            assumptions=assumptions,
            goal=arguments.goal,
            node_memory_bytes=arguments.node_memory,
            kubelet=options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version),
            profile=profile,
        )
    finally:
        errors = print_problems(objects.problems)
    existing = sum(workload.before is not None for workload in report.workloads)
    left_out = sum(map(objects.takes, advise.without_owned(objects.latest(warn=False)))) - existing
    if left_out:
        print(f"left out {counted(left_out, 'workload')} without a description or usage", file=sys.stderr)
    unwritten = _write(objects, report) if arguments.fix else 0
    if arguments.patch:
        print_file(new_lines(advise.new_objects(report, descriptions), arguments.patch))
        patches = advise.advised_patches(objects, report)
        if patches or arguments.patch != "json":
            print_file(patch_lines(patches, arguments.patch, advise.resizable(report)))
        for advice in report.workloads:
            for container in advice.containers:
                if container.needs_choice:
                    what = f"choose the requests and limits of {container.container}"
                    print(f"{advice.workload}: {what}", file=sys.stderr)
        say_assumptions(report.assumptions)
    else:
        emit(report, arguments, text, csv_rows, _names)
    if unwritten:
        return 3
    return 2 if errors else 0


def _usage(
    arguments: argparse.Namespace, objects: Objects
) -> tuple[tuple[ContainerSamples, ...], tuple[Assumption, ...]]:
    """Return the samples of all sources, and what is assumed about them."""
    samples: list[ContainerSamples] = []
    assumptions: list[Assumption] = []
    if arguments.usage is not None:
        samples += read_samples(arguments.usage, table_bytes(arguments.usage, COLUMNS))
    # Prometheus is queried for the namespaces of the workloads only.
    own = filter(objects.takes, objects.latest(warn=False))
    namespaces = {advise.identity_of(workload).namespace for workload in own}
    found = queried(arguments, () if "" in namespaces else tuple(sorted(namespaces)), with_kills=True)
    if found is not None:
        samples += found.samples()
        assumptions += found.assumptions
    is_measured = arguments.usage is not None or found is not None
    cluster = cluster_of(arguments) if arguments_name_cluster(arguments) else None
    if cluster is not None and not is_measured:
        samples += measured_samples(cluster)
        assumptions += [ONE_MOMENT] if samples else []
    recommended, assumed = recommended_samples(objects, samples)
    return (*samples, *recommended), (*assumptions, *assumed)


def _names(report: AdviceReport) -> list[str]:
    named = (advice.workload.partition(" ") for advice in report.workloads)
    return [object_name(kind, key.rpartition("/")[2]) for kind, _, key in named]


def _write(objects: Objects, report: AdviceReport) -> int:
    """Write the advice into the manifests, print what changed, and return how many could not be written."""
    sources = [source.path for source in objects.sources if source.path != STDIN and os.path.isfile(source.path)]
    unwritten, changed = 0, 0
    for file in advise.edited_files(objects, report, sources):
        if not file.workloads:
            continue
        if isinstance(file.outcome, CannotEdit):
            print(f"{file.source}: not written: {reason_words(file.outcome)}", file=sys.stderr)
            unwritten += 1
            continue
        try:
            replace_file(file.source, file.before, file.outcome.data)
        except HostError as error:
            print(error, file=sys.stderr)
            unwritten += 1
        else:
            changed += 1
            who = f"{counted(len(file.workloads), 'workload')}: {listed(file.workloads)}"
            print(f"{file.source}: changed {who}", file=sys.stderr)
    if not changed and not unwritten:
        print("nothing to change", file=sys.stderr)
    if report.priority_classes:
        names = listed([tier.name for tier in report.priority_classes])
        print(f"create these priority classes first: {names} (--patch kubectl prints how)", file=sys.stderr)
    return unwritten
