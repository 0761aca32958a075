"""One run of ``podqos advise`` about workloads: from options to the answer, and from there to output and files."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from podqos.advice.sizing.description import DescribedWorkload, read_descriptions
from podqos.advice.sizing.goals import Goal
from podqos.answers.advice import AdviceReport
from podqos.answers.advice_ground import without_owned
from podqos.answers.advise import AdviceRequest, advise, advised_manifests
from podqos.answers.advised_edits import PatchTool, edited_files, tool_patches
from podqos.cli import options
from podqos.cli.cluster import arguments_name_cluster, profile_of
from podqos.cli.counted_nodes import node_count
from podqos.cli.inputs import given_files, read_objects
from podqos.cli.output import emit, object_name, print_documents, print_file, say_assumptions
from podqos.cli.problems import print_problems
from podqos.cli.selecting import selection_of
from podqos.cli.usage_sources import read_metrics, usage_of
from podqos.errors import HostError, InvalidOption
from podqos.manifest.edits.apply import CannotEdit
from podqos.objects.files import STDIN, Inputs
from podqos.objects.objects import Objects
from podqos.reading.files import read_bytes
from podqos.reading.written_files import replace_file
from podqos.report.advice.lines import text
from podqos.report.advice.table import csv_rows
from podqos.wording import counted, listed
from podqos.words.edits import reason_words


def run_for_workloads(arguments: argparse.Namespace) -> int:
    """Advise, print, and return the exit code."""
    descriptions = _descriptions(arguments)
    if arguments.patch and arguments.output != "text":
        raise InvalidOption(f"--patch and -o {arguments.output} cannot be combined", fix="give one of them")
    if arguments.apply_to and not arguments.files:
        arguments.files = list(arguments.apply_to)
    has_files = arguments.files or arguments.kustomize or arguments_name_cluster(arguments)
    read_metrics(arguments)
    inputs = given_files(arguments, "advise", in_order_of_apply=True, declared=True) if has_files else Inputs([])
    profile = profile_of(arguments)
    objects = read_objects(
        inputs, options.stated_classes(arguments), selection_of(arguments), version=profile_of(arguments).version
    )
    try:
        samples, assumptions = usage_of(arguments, objects)
        request = AdviceRequest(
            samples=samples,
            descriptions=descriptions,
            assumptions=assumptions,
            node_memory_bytes=arguments.node_memory,
            kubelet=options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version),
            profile=profile,
            goal=None if arguments.goal is None else Goal(arguments.goal),
            node_count=node_count(arguments),
            node_capacity=arguments.node_capacity or {},
        )
        report = advise(objects, request)
    finally:
        errors = print_problems(objects.problems)
    existing = sum(workload.before is not None for workload in report.workloads)
    left_out = sum(map(objects.takes, without_owned(objects.latest(warn=False)))) - existing
    if left_out:
        print(f"left out {counted(left_out, 'workload')} without a description or usage", file=sys.stderr)
    unwritten = 0
    if arguments.apply_to:
        unwritten = _apply_to(arguments.apply_to, objects, report)
    if arguments.patch:
        print_file(tool_patches(objects, report, PatchTool(arguments.patch)))
        _warn(report)
        _say_classes(report)
        say_assumptions(report.assumptions)
    elif arguments.output in {"manifests", "patch"}:
        patches = arguments.output == "patch"
        print_documents(advised_manifests(objects, report, descriptions, patches=patches))
        _warn(report)
        say_assumptions(report.assumptions)
    else:
        emit(report, arguments, text, csv_rows, _names)
    if unwritten:
        return 3
    return 2 if errors else 0


def _descriptions(arguments: argparse.Namespace) -> tuple[DescribedWorkload, ...]:
    if arguments.describe is None:
        return ()
    return read_descriptions(arguments.describe, read_bytes(arguments.describe))


def _names(report: AdviceReport) -> Iterator[str]:
    for advice in report.workloads:
        kind, _, key = advice.workload.partition(" ")
        yield object_name(kind, key.rpartition("/")[2])


def _warn(report: AdviceReport) -> None:
    for advice in report.workloads:
        for container in advice.containers:
            if container.needs_choice:
                print(f"{advice.workload}: choose the requests and limits of {container.container}", file=sys.stderr)


# ---- written -----------------------------------------------------------------------------------------------------


def _apply_to(paths: list[str], objects: Objects, report: AdviceReport) -> int:
    """Write the advice into manifests, print what changed, and return how many could not be written."""
    read = {os.path.realpath(source.path): source.path for source in objects.sources if source.path != STDIN}
    sources = []
    for path in paths:
        if os.path.realpath(path) not in read:
            raise InvalidOption(f"{path} was not read", where="--apply-to", fix=f"add it with -f: -f {path}")
        sources.append(read[os.path.realpath(path)])
    unwritten = 0
    for file in edited_files(objects, report, sources):
        if isinstance(file.outcome, CannotEdit):
            print(f"{file.source}: not written: {reason_words(file.outcome)}", file=sys.stderr)
            unwritten += 1
        elif file.outcome.data == file.before:
            print(f"{file.source}: nothing to change", file=sys.stderr)
        else:
            try:
                replace_file(file.source, file.before, file.outcome.data)
            except HostError as error:
                print(error, file=sys.stderr)
                unwritten += 1
            else:
                changed = counted(len(file.workloads), "workload")
                print(f"{file.source}: changed {changed}: {listed(file.workloads)}", file=sys.stderr)
    _say_classes(report)
    return unwritten


def _say_classes(report: AdviceReport) -> None:
    """Print which priority classes the advised workloads need."""
    if report.priority_classes:
        names = listed([priority_class.name for priority_class in report.priority_classes])
        print(f"create these priority classes first: {names} (-o manifests prints them)", file=sys.stderr)
