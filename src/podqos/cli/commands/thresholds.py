"""Explain what a kubelet leaves to pods and when it evicts them: allocatable, thresholds, their order, warnings.

The settings come from a KubeletConfiguration (-f; also the output of /configz, OpenShift's KubeletConfig, or an OKD
node configuration with kubeletArguments), from kubelet flags, or from the kubelet of a node in a live cluster, given
by name. Otherwise, the defaults are explained.

--advise prints settings that work for a node of --node-memory and --node-cpu, as a KubeletConfiguration.
"""

from __future__ import annotations

import argparse
from functools import partial

from podqos.cli import options
from podqos.cli.cluster import (
    add_cluster_options,
    arguments_name_cluster,
    check_name_of_cluster,
    cluster_of,
    is_node_name,
    node_part,
    profile_of,
)
from podqos.cli.commands.thresholds_advise import add_advise_options, run_advise
from podqos.cli.output import add_output_options, emit
from podqos.errors import InvalidOption
from podqos.eviction.signals import Signal
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.kubelet_settings import settings_from_flags
from podqos.questions.node import NodeCapacities, node_capacities
from podqos.questions.thresholds import csv_rows, memory_of, table, thresholds
from podqos.reading.written_files import write_file

# The kubelet's flags that matter here, with an example each.
_FLAGS = {
    "kube-reserved": "cpu=200m,memory=512Mi",
    "system-reserved": "cpu=200m,memory=512Mi",
    "eviction-hard": "memory.available<100Mi,nodefs.available<10%%",
    "eviction-soft": "memory.available<500Mi",
    "eviction-soft-grace-period": "memory.available=2m",
    "eviction-minimum-reclaim": "memory.available=200Mi",
    "eviction-pressure-transition-period": "5m",
    "eviction-max-pod-grace-period": "30",
    "enforce-node-allocatable": "pods",
    "fail-swap-on": "false",
}
# Further capacities: option, its signal, example, what it is.
_CAPACITIES = {
    "nodefs-capacity": (Signal.NODEFS, "200Gi", "size of the kubelet's filesystem"),
    "nodefs-inodes": (Signal.NODEFS_INODES, "13107200", "inodes of the kubelet's filesystem"),
    "imagefs-capacity": (Signal.IMAGEFS, "100Gi", "size of the image filesystem, if separate"),
    "imagefs-inodes": (Signal.IMAGEFS_INODES, "6553600", "inodes of the image filesystem"),
    "max-pids": (Signal.PID, "32768", "number of process IDs on the node"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos thresholds``."""
    parser.add_argument(
        "given",
        nargs="?",
        metavar="FILE|NODE|-",
        help="the kubelet's configuration file (same as -f), or the name of a node in a live cluster",
    )
    options.add_kubelet_option(parser, "-f", "--filename", dest="file", metavar="FILE|-")
    add_cluster_options(parser)
    flags = parser.add_argument_group("kubelet flags, instead of a file")
    for name, example in _FLAGS.items():
        flags.add_argument(f"--{name}", metavar="VALUE", action="append", help=f"for example {example}")
    node = parser.add_argument_group("the node")
    options.add_value_option(node, "--node-memory", options.amount_option, "the node's memory (default: 64Gi)")
    options.add_value_option(
        node, "--system-memory", options.amount_or_zero_option, "memory used outside pods (default: 0)"
    )
    options.add_value_option(node, "--node-cpu", options.cpu_option, "the node's cores, for example 16")
    for name, (_, example, what) in _CAPACITIES.items():
        read = partial(options.amount_option, example=example)
        options.add_value_option(node, f"--{name}", read, f"{what}, for example {example}")
    options.add_layout_option(node)
    add_advise_options(parser)
    options.add_version_option(parser)
    parser.add_argument("--svg", metavar="FILE", help="also draw the node's memory as a bar chart into this file")
    parser.add_argument("--fail-on", choices=("warning",), help="exit with 1 on warnings")
    add_output_options(parser, ("table", "json", "yaml", "csv"), "podqos.questions.thresholds:ThresholdsReport")


def run(arguments: argparse.Namespace) -> int:
    """Explain, print, and return the exit code."""
    if arguments.advise:
        _refuse_stated(arguments)
        return run_advise(arguments)
    given = {signal: getattr(arguments, name.replace("-", "_")) for name, (signal, _, _) in _CAPACITIES.items()}
    node = _node(arguments)
    stated = {signal: amount for signal, amount in given.items() if amount is not None}
    report = thresholds(
        _kubelet(arguments) if node is None else node.kubelet,
        node_memory_bytes=arguments.node_memory or (None if node is None else node.memory_bytes),
        cpu=arguments.node_cpu or (None if node is None else node.cpu),
        capacities=stated if node is None else {**node.capacities, **stated},
        layout=arguments.layout,
        profile=profile_of(arguments),
        swap_bytes=None if node is None else node.swap_bytes,
        assumed=() if node is None else node.assumptions,
        system_memory_bytes=arguments.system_memory or 0,
    )
    memory = memory_of(report)
    if arguments.svg is not None and memory is not None:
        from podqos.text.capacity_bar import bar_svg

        write_file(arguments.svg, bar_svg(memory, report.steps).encode())
    emit(report, arguments, table, csv_rows)
    return 1 if arguments.fail_on and report.warnings else 0


def _refuse_stated(arguments: argparse.Namespace) -> None:
    """Reject settings beside the wish to be advised some."""
    flags = [name for name in _FLAGS if getattr(arguments, name.replace("-", "_")) is not None]
    stated = arguments.file or arguments.given or (f"--{flags[0]}" if flags else "")
    if stated or arguments.fail_on or arguments.svg is not None or arguments_name_cluster(arguments):
        what = f"--advise and {stated or 'options about settings at hand'} cannot be combined"
        raise InvalidOption(what, fix="state the node alone: --node-memory, --node-cpu")


def _node(arguments: argparse.Namespace) -> NodeCapacities | None:
    """Return the given node of a cluster; None if a file or flags are given."""
    name = arguments.given
    if name is None or not is_node_name(name):
        if arguments_name_cluster(arguments):
            raise InvalidOption("no node given", fix="for example: podqos thresholds worker-1")
        return None
    check_name_of_cluster(arguments, name, "node")
    arguments.node, arguments.all_namespaces = name, arguments.snapshot is None
    cluster = cluster_of(arguments, node_part(arguments))
    assert cluster is not None
    return node_capacities(cluster, name)


def _kubelet(arguments: argparse.Namespace) -> Kubelet | None:
    """Return the settings of the file, or of the flags."""
    flags = {name: value for name in _FLAGS if (value := getattr(arguments, name.replace("-", "_"))) is not None}
    if arguments.file is not None and arguments.given is not None:
        raise InvalidOption(f"-f {arguments.file} and {arguments.given} cannot be combined", fix="give one file")
    file = arguments.file or arguments.given
    if file is None:
        return Kubelet(settings_from_flags(flags))
    if flags:
        fix = "put everything into the file, or remove -f"
        raise InvalidOption(f"-f and --{min(flags)} cannot be combined", fix=fix)
    return options.kubelet_option(file, arguments.kubernetes_version)
