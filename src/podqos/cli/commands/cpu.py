"""Show what every pod gets when all burst at once: by request while cores are contended, never above a limit.

Every container wants all that it may use: its limit, or all cores if it has none. CPU only makes slow; nobody is
killed for it.
"""

from __future__ import annotations

import argparse

from podqos.cli.inputs import given_files, print_problems, read_objects
from podqos.cli.options import add_filename_option, add_kubelet_option, add_version_option, cores_option, stated_classes
from podqos.cli.output import add_output_options, emit
from podqos.library.cpu import cpu
from podqos.library.inputs.kubelet_node import kubelet_of
from podqos.model.profile import parse_version
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.report.survival.cpu import CSV_COLUMNS, csv_rows, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos cpu``."""
    add_filename_option(parser)
    parser.add_argument(
        "--cores", metavar="N", help="cores for pods: the node's allocatable CPU (default: all of this machine)"
    )
    parser.add_argument("--node", metavar="NAME", help="the node whose pods to take, where there are several")
    parser.add_argument("--cgroup", choices=list(CgroupVersion), default="v2", help="cgroup version (default: v2)")
    add_kubelet_option(parser)
    add_version_option(parser)
    add_output_options(parser, ("table", "json", "yaml", "csv"), "podqos.report.survival.cpu:CpuReport")


def run(arguments: argparse.Namespace) -> int:
    """Divide, print, and return the exit code."""
    objects = read_objects(
        given_files(arguments, "divide the CPU among", in_order_of_apply=True), stated_classes(arguments)
    )
    try:
        report = cpu(
            objects,
            cores=None if arguments.cores is None else cores_option(arguments.cores),
            node=arguments.node,
            kubelet=None if arguments.kubelet_config is None else kubelet_of(arguments.kubelet_config),
            cgroup_version=CgroupVersion(arguments.cgroup),
            profile=parse_version(arguments.kubernetes_version),
        )
    finally:
        errors = print_problems(objects.problems)
    emit(report, arguments, table, lambda report: (CSV_COLUMNS, csv_rows(report)))
    return 2 if errors else 0
