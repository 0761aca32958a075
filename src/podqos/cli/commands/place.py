"""Place the pods of manifests on nodes: where everything lands, what waits and why, who is displaced, how full it gets.

Reads what kubectl prints and what it applies: workloads, Nodes, PriorityClasses, LimitRanges, RuntimeClasses,
PodDisruptionBudgets, Namespaces, a KubeletConfiguration. New pods go through admission first (quotas are left to
`podqos admit`); pods that have a node stay there. Feasibility is the scheduler's; among nodes that would do, the one
with the best LeastAllocated and BalancedAllocation score is taken, the first by name among equals.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec

from podqos.cli.inputs import given_files, print_problems, read_objects
from podqos.cli.options import add_filename_option, add_kubelet_option, add_version_option, stated_classes
from podqos.cli.output import add_output_options, emit
from podqos.errors import InvalidOption, InvalidQuantity
from podqos.library.inputs.files import Inputs
from podqos.library.inputs.kubelet_node import kubelet_of
from podqos.library.place import PlaceOptions, Placing
from podqos.model.node import Node
from podqos.model.profile import parse_version
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.placement.overcommit import DEFAULT_BUDGETS
from podqos.placement.place import QueueOrder
from podqos.report.placement.lines import csv_rows, text

# So many pods × nodes take minutes one by one.
_LONG_WAIT = 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos place``."""
    add_filename_option(parser)
    add_output_options(
        parser,
        ("table", "csv", "json", "yaml"),
        "podqos.report.placement.value:PlacementReport",
        "table: for people; csv: a line per pod; json and yaml: everything, with the reasons of every node",
    )
    parser.add_argument(
        "--nodes", type=int, metavar="N", help="so many nodes of --node-capacity, besides any manifests"
    )
    parser.add_argument("--node-capacity", metavar="cpu=16,memory=64Gi,pods=110", help="what each of --nodes has")
    add_kubelet_option(parser)
    parser.add_argument(
        "--order",
        choices=list(QueueOrder),
        default="priority",
        help="priority: all pods wait together, the more important first; arrival: each is placed when it comes and "
        "may be displaced by a later one (default: priority)",
    )
    parser.add_argument("--unbind", action="store_true", help="forget where pods are and place all of them anew")
    for resource, budget in DEFAULT_BUDGETS.items():
        parser.add_argument(
            f"--{resource}-budget",
            metavar="RATIO",
            default=f"{float(budget):g}",
            help=f"how much the {resource} limits of a node may add up to, in times its allocatable "
            f"(default: {float(budget):g})",
        )
    add_version_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Place, print, and return the exit code."""
    options = _options(arguments)
    objects = read_objects(_files(arguments), stated_classes(arguments))
    placing = Placing(objects, options)
    errors = print_problems(objects.problems)
    if errors:
        print(f"{errors} error{'s' if errors > 1 else ''}; the rest is placed", file=sys.stderr)
    if not placing.pods and not objects.of(Node):
        print("no pods to place", file=sys.stderr)
        return 2
    _hint(len(placing.pods) * len(placing.nodes))
    whole = placing.place(_progress(len(placing.pods)))
    emit(whole, arguments, text, csv_rows)
    if errors:
        return 2
    over = any(o.exceeds_budget for node in whole.nodes for o in node.overcommit.values())
    return 1 if whole.pending or whole.displaced or over else 0


# ---- options -----------------------------------------------------------------------------------------------------


def _options(arguments: argparse.Namespace) -> PlaceOptions:
    return PlaceOptions(
        node_count=_node_count(arguments),
        node_capacity=_capacity(arguments.node_capacity) if arguments.node_capacity else {},
        kubelet=None if arguments.kubelet_config is None else kubelet_of(arguments.kubelet_config),
        order=QueueOrder(arguments.order),
        unbind=arguments.unbind,
        budgets={resource: _budget(arguments, resource) for resource in DEFAULT_BUDGETS},
        profile=parse_version(arguments.kubernetes_version),
    )


def _node_count(arguments: argparse.Namespace) -> int | None:
    count: int | None = arguments.nodes
    if count is None:
        if arguments.node_capacity:
            raise InvalidOption("how many nodes have this capacity?", where="--node-capacity", fix="add --nodes N")
        return None
    if count < 0:
        raise InvalidOption(f"{count} is no number of nodes", where="--nodes", fix="use 1 or more")
    if not arguments.node_capacity:
        raise InvalidOption("what do the nodes have?", where="--nodes", fix="add --node-capacity cpu=16,memory=64Gi")
    return count


def _files(arguments: argparse.Namespace) -> Inputs:
    found = given_files(arguments, "place")
    # One that is named by itself as well is not a second one.
    return found.only(file for file in found.files if file.path != arguments.kubelet_config)


def _budget(arguments: argparse.Namespace, resource: str) -> Fraction:
    text = getattr(arguments, f"{resource}_budget")
    try:
        budget = Fraction(text)
    except (ValueError, ZeroDivisionError):
        budget = Fraction(0)
    if budget <= 0:
        raise InvalidOption(f"{text!r} is no ratio", where=f"--{resource}-budget", fix="for example 1.5")
    return budget


def _capacity(text: str) -> ResourceList:
    """Read ``cpu=16,memory=64Gi``."""
    capacity: ResourceList = {}
    for part in text.split(","):
        name, _, amount = part.strip().partition("=")
        try:
            capacity[name] = Quantity.parse(amount)
        except InvalidQuantity as error:
            raise InvalidOption(
                f"{part!r}: {error.what}", where="--node-capacity", fix="write cpu=16,memory=64Gi"
            ) from error
    missing = [name for name in (CPU, MEMORY) if not capacity.get(name)]
    if missing:
        raise InvalidOption(f"no {' and no '.join(missing)}", where="--node-capacity", fix="write cpu=16,memory=64Gi")
    return capacity


# ---- waiting -----------------------------------------------------------------------------------------------------


def _hint(questions: int) -> None:
    """Say what would make a long wait short."""
    if questions > _LONG_WAIT and find_spec("numpy") is None:
        print("this takes a while; with numpy it is quick: pip install 'podqos[fleet]'", file=sys.stderr)


def _progress(total: int) -> Callable[[int], None] | None:
    """Return what tells a person who waits how many pods have had their turn; nothing where nobody watches."""
    if not sys.stderr.isatty():
        return None
    started = time.monotonic()

    def tell(done: int) -> None:
        if time.monotonic() - started > 0.5:
            print(f"\rplacing pod {done:,} of {total:,}\x1b[K\r", end="", file=sys.stderr)

    return tell
