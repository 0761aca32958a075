"""Show how much CPU each pod gets when all burst at once: by request while cores are contended, never above its limit.

Every container wants all it may use: its limit, or all cores if it has none. Lack of CPU only slows pods down; none is
killed for it.
"""

from __future__ import annotations

import argparse

from podqos.cli import options
from podqos.cli.cluster import profile_of
from podqos.cli.inputs import given_files, print_problems, read_objects
from podqos.cli.output import add_output_options, emit, pod_names
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.library.cpu import cpu
from podqos.report.survival.cpu import csv_rows, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos cpu``."""
    add_manifest_options(parser)
    about = "cores for pods: the node's allocatable CPU (default: all of this machine)"
    options.add_value_option(parser, "--cores", options.cores_option, about, "N")
    parser.add_argument("--node", metavar="NAME", help="the node whose pods to use, if there are several")
    options.add_cgroup_option(parser)
    options.add_kubelet_option(parser)
    options.add_version_option(parser)
    add_output_options(parser, ("table", "json", "yaml", "csv", "name"), "podqos.survival.cpu:CpuReport")


def run(arguments: argparse.Namespace) -> int:
    """Divide, print, and return the exit code."""
    inputs = given_files(arguments, "divide the CPU among", in_order_of_apply=True)
    objects = read_objects(inputs, options.stated_classes(arguments), selection_of(arguments))
    try:
        report = cpu(
            objects,
            cores=arguments.cores,
            node=arguments.node,
            kubelet=options.kubelet_option(arguments.kubelet_config),
            cgroup_version=arguments.cgroup,
            profile=profile_of(arguments),
        )
    finally:
        errors = print_problems(objects.problems)
    emit(report, arguments, table, csv_rows, lambda report: pod_names(each.pod for each in report.pods))
    return 2 if errors else 0
