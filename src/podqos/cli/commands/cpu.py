"""Show each pod's CPU share under full contention: in proportion to its request, and never above its limit.

Every container is assumed to want as much CPU as it can get: up to its limit, or all cores without one. Pods that lack
CPU are slowed down, never killed. With a kubelet configuration, daemons want the CPU that is reserved for them.
"""

from __future__ import annotations

import argparse

from podqos.cli import options
from podqos.cli.cluster import cluster_of, node_argument, node_part, profile_of
from podqos.cli.inputs import given_files, read_objects
from podqos.cli.output import add_output_options, emit, pod_names
from podqos.cli.problems import print_problems
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.kubelet_node import Kubelet
from podqos.questions.cpu import cpu, csv_rows, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos cpu``."""
    add_manifest_options(parser)
    about = "the node's cores; daemons use what --kubelet-config reserves (default: from the Node, or 16)"
    options.add_cores_option(parser, about)
    parser.add_argument("--node", metavar="NAME", help="use this node and its pods, if there are several")
    options.add_cgroup_option(parser)
    options.add_kubelet_option(parser)
    options.add_version_option(parser)
    add_output_options(parser, ("table", "json", "yaml", "csv", "name"), "podqos.questions.cpu:CpuReport")


def run(arguments: argparse.Namespace) -> int:
    """Divide, print, and return the exit code."""
    node_argument(arguments)
    cluster = cluster_of(arguments, node_part(arguments))
    inputs = given_files(arguments, "divide the CPU among", in_order_of_apply=True)
    objects = read_objects(
        inputs, options.stated_classes(arguments), selection_of(arguments), version=profile_of(arguments).version
    )
    kubelet = options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version) or _kubelet(
        cluster, arguments.node
    )
    try:
        report = cpu(
            objects,
            cores=arguments.cores,
            node=arguments.node,
            kubelet=kubelet,
            cgroup_version=arguments.cgroup,
            profile=profile_of(arguments),
        )
    finally:
        errors = print_problems(objects.problems)
    emit(report, arguments, table, csv_rows, lambda report: pod_names(pod.pod for pod in report.pods))
    return 2 if errors else 0


def _kubelet(cluster: ClusterSnapshot | None, node: str | None) -> Kubelet | None:
    if cluster is not None and node is None and len(cluster.nodes) == 1:
        (node,) = cluster.nodes
    return None if cluster is None or node is None else cluster.kubelet(node)
