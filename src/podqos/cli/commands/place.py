"""Place the pods of manifests on nodes: where they land, which stay pending, which are preempted, how full nodes get.

Reads manifests and kubectl output: workloads, Nodes, PriorityClasses, LimitRanges, RuntimeClasses,
PodDisruptionBudgets, Namespaces, a KubeletConfiguration. New pods are admitted first (but see `podqos admit` for
quotas). Pods that have a node stay there. Feasibility and scores are the scheduler's. Among nodes with the same score,
where the scheduler picks one at random, podqos picks the first by name.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from podqos.answers.place import PlacementInput, PlaceOptions
from podqos.cli import options
from podqos.cli.cluster import profile_of
from podqos.cli.counted_nodes import add_counted_nodes_options, node_count
from podqos.cli.inputs import given_files, read_objects
from podqos.cli.output import add_output_options, emit, pod_names
from podqos.cli.problems import print_problems
from podqos.cli.progress import progress_line
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.library.numbers import positive_number
from podqos.model.node import Node
from podqos.objects.files import Inputs
from podqos.placement.overcommit import DEFAULT_BUDGETS
from podqos.report.placement.lines import csv_rows, text

# This many pods × nodes take minutes one by one.
_LONG_WAIT = 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos place``."""
    add_manifest_options(parser)
    add_output_options(
        parser,
        ("table", "csv", "json", "yaml", "name"),
        "podqos.answers.placement:PlacementReport",
        "table: for people; csv: one line per pod; json and yaml: everything, with every node's reasons",
    )
    add_counted_nodes_options(parser)
    options.add_kubelet_option(parser)
    options.add_plugins_option(parser)
    parser.add_argument("--unbind", action="store_true", help="ignore where pods run now and place all of them again")
    for resource, budget in DEFAULT_BUDGETS.items():
        default = f"{float(budget):g}"
        about = f"how far a node's {resource} limits may add up, as a multiple of allocatable"
        read = partial(positive_number, what="ratio", example="1.5")
        options.add_value_option(parser, f"--{resource}-budget", read, about, "RATIO", default=default)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="with -o table: also show node scores, plugin by plugin"
    )
    options.add_version_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Place, print, and return the exit code."""
    files = _files(arguments)
    chosen = _options(arguments)
    objects = read_objects(
        files, options.stated_classes(arguments), selection_of(arguments), version=profile_of(arguments).version
    )
    try:
        placing = PlacementInput(objects, chosen)
    finally:
        errors = print_problems(objects.problems)
    if errors:
        print(f"{errors} error{'s' if errors > 1 else ''}; placing the rest", file=sys.stderr)
    if not placing.pods and not objects.of(Node):
        print("no pods to place", file=sys.stderr)
        return 2
    _hint(len(placing.pods) * len(placing.nodes))
    whole = placing.place(_progress(len(placing.pods)))
    emit(
        whole,
        arguments,
        partial(text, verbose=arguments.verbose),
        csv_rows,
        lambda whole: pod_names(pod.name for pod in whole.pods),
    )
    if errors:
        return 2
    over = any(o.exceeds_budget for node in whole.nodes for o in node.overcommit.values())
    return 1 if whole.pending or whole.displaced or over else 0


# ---- options -----------------------------------------------------------------------------------------------------


def _options(arguments: argparse.Namespace) -> PlaceOptions:
    return PlaceOptions(
        node_count=node_count(arguments),
        node_capacity=arguments.node_capacity or {},
        kubelet=options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version),
        unbind=arguments.unbind,
        budgets={resource: getattr(arguments, f"{resource}_budget") for resource in DEFAULT_BUDGETS},
        profile=profile_of(arguments),
        admission_plugins=arguments.enable_admission_plugins,
    )


def _files(arguments: argparse.Namespace) -> Inputs:
    found = given_files(arguments, "place", beside=True)
    # A file that is also named by itself counts once.
    return found.only(file for file in found.files if file.path != arguments.kubelet_config)


# ---- waiting -----------------------------------------------------------------------------------------------------


def _hint(questions: int) -> None:
    """Suggest how to speed up a long run."""
    if questions > _LONG_WAIT and find_spec("numpy") is None:
        print(
            "this may take a while; numpy makes it fast: in a clone of podqos, pip install '.[fleet]'", file=sys.stderr
        )


def _progress(total: int) -> Callable[[int], None] | None:
    """Return a callback that shows how many pods have been placed."""
    told = progress_line("placing pod")
    return None if told is None else lambda done: told(done, total)
