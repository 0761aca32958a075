"""Place the pods of manifests on nodes: where they land, which stay pending, how full nodes get, how much more fits.

Reads manifests and kubectl output: workloads, Nodes, PriorityClasses, LimitRanges, RuntimeClasses,
PodDisruptionBudgets, Namespaces, a KubeletConfiguration. New pods are admitted first (but see `podqos admit` for
quotas). Pods that have a node stay there. Feasibility and scores are the scheduler's. Among nodes with the same score,
where the scheduler picks one at random, podqos picks the first by name.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from podqos.amounts import counted
from podqos.cli import options
from podqos.cli.cluster import profile_of
from podqos.cli.inputs import given_files, read_objects
from podqos.cli.output import add_output_options, emit, pod_names
from podqos.cli.problems import print_problems
from podqos.cli.progress import progress_line
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.manifest.written_amounts import positive_number
from podqos.model.node import Node
from podqos.placement.overcommit import DEFAULT_BUDGETS
from podqos.questions.place import PlacementInput, csv_rows, text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos place``."""
    add_manifest_options(parser)
    about = "table: for people; csv: one line per pod; json and yaml: everything, with every node's reasons"
    formats = ("table", "csv", "json", "yaml", "name")
    add_output_options(parser, formats, "podqos.questions.place:PlacementReport", about)
    options.add_counted_nodes_options(parser)
    options.add_kubelet_option(parser)
    parser.add_argument("--unbind", action="store_true", help="ignore where pods run now and place all of them again")
    for resource, budget in DEFAULT_BUDGETS.items():
        about = f"how far a node's {resource} limits may add up, as a multiple of allocatable"
        read = partial(positive_number, what="ratio", example="1.5")
        default = f"{float(budget):g}"
        options.add_value_option(parser, f"--{resource}-budget", read, about, "RATIO", default=default)
    about = "with -o table: also show each node's ratios of limits, and its scores, plugin by plugin"
    parser.add_argument("-v", "--verbose", action="store_true", help=about)
    options.add_version_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Place, print, and return the exit code."""
    found = given_files(arguments, "place", beside=True)
    # A file that is also named by itself counts once.
    files = found.only(file for file in found.files if file.path != arguments.kubelet_config)
    profile, nodes = profile_of(arguments), options.node_count(arguments)
    kubelet = options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version)
    objects = read_objects(files, options.stated_classes(arguments), selection_of(arguments), version=profile.version)
    try:
        placing = PlacementInput(
            objects,
            node_count=nodes,
            node_capacity=arguments.node_capacity,
            kubelet=kubelet,
            unbind=arguments.unbind,
            budgets={resource: getattr(arguments, f"{resource}_budget") for resource in DEFAULT_BUDGETS},
            profile=profile,
        )
    finally:
        errors = print_problems(objects.problems)
    if errors:
        print(f"{counted(errors, 'error')}; placing the rest", file=sys.stderr)
    if not placing.pods and not objects.of(Node):
        print("no pods to place", file=sys.stderr)
        return 2
    told = progress_line("placing pod")
    whole = placing.place(None if told is None else lambda done: told(done, len(placing.pods)))
    names = lambda whole: pod_names(pod.name for pod in whole.pods)  # noqa: E731
    emit(whole, arguments, partial(text, verbose=arguments.verbose), csv_rows, names)
    over = any(ratios.exceeds_budget for node in whole.nodes for ratios in node.overcommit.values())
    return 2 if errors else int(bool(whole.pending or whole.displaced or over))
