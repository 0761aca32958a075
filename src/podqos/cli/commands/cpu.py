"""Show what every pod gets when all burst at once: by request while cores are contended, never above a limit.

Every container wants all that it may use: its limit, or all cores if it has none. CPU only makes slow; nobody is
killed for it.
"""

from __future__ import annotations

import argparse
import os

from podqos.cli.inputs import read_node_pods
from podqos.cli.options import add_filename_option, add_kubelet_option, add_version_option, cores_option
from podqos.cli.output import add_output_options, emit
from podqos.errors import InputError
from podqos.library.inputs.files import applied_files
from podqos.library.inputs.kubelet_node import cgroups_of, kubelet_of
from podqos.model.profile import parse_version
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.report.survival.cpu import CSV_COLUMNS, cpu_report, csv_rows, table
from podqos.survival.cpu import burst

_PLENTY_BYTES = 1 << 50


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
    profile = parse_version(arguments.kubernetes_version)
    cores = cores_option(arguments.cores) if arguments.cores is not None else os.cpu_count() or 1
    files = applied_files(arguments.files, "divide the CPU among")
    pods, errors = read_node_pods(files, node=arguments.node, profile=profile)
    if not pods:
        raise InputError("there are no pods", fix="name manifests that hold some")
    kubelet = kubelet_of(arguments.kubelet_config)
    version = CgroupVersion(arguments.cgroup)
    # Memory plays no part in the division, and of the cores those count that are left for pods.
    settings = cgroups_of(kubelet, memory_bytes=_PLENTY_BYTES, cgroup_version=version, profile=profile)
    result = burst((entry.pod for entry in pods), cores, settings, profile)
    report = cpu_report(result, ".".join(map(str, profile.version)))
    emit(report, arguments, table, lambda report: (CSV_COLUMNS, csv_rows(report)))
    return 2 if errors else 0
