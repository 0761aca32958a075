"""Place the pods of manifests on nodes: where everything lands, what waits and why, who is displaced, how full it gets.

Reads what kubectl prints and what it applies: workloads, Nodes, PriorityClasses, LimitRanges, RuntimeClasses,
PodDisruptionBudgets, Namespaces, a KubeletConfiguration. New pods go through admission first (quotas are left to
`podqos admit`); pods that have a node stay there. Feasibility is the scheduler's; among nodes that would do, the one
with the best LeastAllocated and BalancedAllocation score is taken, the first by name among equals.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

from podqos.cli import options
from podqos.cli.inputs import print_problems, read_objects
from podqos.cli.output import add_output_options, emit, pod_names
from podqos.cli.progress import progress_line
from podqos.cli.selecting import add_manifest_options, selection_of
from podqos.errors import InputError, InvalidOption, InvalidQuantity
from podqos.library.inputs.files import find_files
from podqos.library.numbers import positive_number
from podqos.library.place import PlaceOptions, Placing
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
    add_manifest_options(parser)
    add_output_options(
        parser,
        ("table", "csv", "json", "yaml", "name"),
        "podqos.report.placement.value:PlacementReport",
        "table: for people; csv: a line per pod; json and yaml: everything, with the reasons of every node",
    )
    parser.add_argument(
        "--nodes", type=int, metavar="N", help="so many nodes of --node-capacity, besides any manifests"
    )
    about = "what each of --nodes has"
    options.add_value_option(parser, "--node-capacity", _capacity, about, "cpu=16,memory=64Gi,pods=110")
    options.add_kubelet_option(parser)
    about = "priority: all pods wait together, the more important first; arrival: each is placed when it comes and may "
    about += "be displaced by a later one"
    options.add_choice_option(parser, "--order", QueueOrder, about, QueueOrder.PRIORITY)
    parser.add_argument("--unbind", action="store_true", help="forget where pods are and place all of them anew")
    for resource, budget in DEFAULT_BUDGETS.items():
        default = f"{float(budget):g}"
        about = f"how much the {resource} limits of a node may add up to, in times its allocatable"
        read = partial(positive_number, what="ratio", example="1.5")
        options.add_value_option(parser, f"--{resource}-budget", read, about, "RATIO", default=default)
    options.add_version_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Place, print, and return the exit code."""
    chosen = _options(arguments)
    objects = read_objects(_files(arguments), selection_of(arguments))
    placing = Placing(objects, chosen)
    errors = print_problems(objects.problems)
    if errors:
        print(f"{errors} error{'s' if errors > 1 else ''}; the rest is placed", file=sys.stderr)
    _hint(len(placing.pods) * len(placing.nodes))
    whole = placing.place(_progress(len(placing.pods)))
    emit(whole, arguments, text, csv_rows, lambda whole: pod_names(each.name for each in whole.pods))
    if errors:
        return 2
    over = any(o.exceeds_budget for node in whole.nodes for o in node.overcommit.values())
    return 1 if whole.pending or whole.displaced or over else 0


# ---- options -----------------------------------------------------------------------------------------------------


def _options(arguments: argparse.Namespace) -> PlaceOptions:
    return PlaceOptions(
        node_count=_node_count(arguments),
        node_capacity=arguments.node_capacity or {},
        kubelet=options.kubelet_option(arguments.kubelet_config),
        order=arguments.order,
        unbind=arguments.unbind,
        budgets={resource: getattr(arguments, f"{resource}_budget") for resource in DEFAULT_BUDGETS},
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


def _files(arguments: argparse.Namespace) -> list[str]:
    given = arguments.files
    if not given:
        if sys.stdin.isatty():
            raise InvalidOption("nothing to place", fix="name manifests with -f FILE|DIR, or pipe them in with -f -")
        given = ["-"]
    # One that is named by itself as well is not a second one.
    files = [file for file in find_files(given) if file != arguments.kubelet_config]
    if not files and not arguments.kubelet_config:
        raise InputError("no YAML or JSON files there", where=", ".join(given), fix="name a directory of manifests")
    return list(dict.fromkeys(files))


def _capacity(text: str, option: str) -> ResourceList:
    """Read ``cpu=16,memory=64Gi``."""
    capacity: ResourceList = {}
    for part in text.split(","):
        name, _, amount = part.strip().partition("=")
        try:
            capacity[name] = Quantity.parse(amount)
        except InvalidQuantity as error:
            raise InvalidOption(f"{part!r}: {error.what}", where=option, fix="write cpu=16,memory=64Gi") from error
    missing = [name for name in (CPU, MEMORY) if not capacity.get(name)]
    if missing:
        raise InvalidOption(f"no {' and no '.join(missing)}", where=option, fix="write cpu=16,memory=64Gi")
    return capacity


# ---- waiting -----------------------------------------------------------------------------------------------------


def _hint(questions: int) -> None:
    """Say what would make a long wait short."""
    if questions > _LONG_WAIT and find_spec("numpy") is None:
        print("this takes a while; with numpy it is quick: pip install 'podqos[fleet]'", file=sys.stderr)


def _progress(total: int) -> Callable[[int], None] | None:
    """Return what tells a person who waits how many pods have had their turn."""
    told = progress_line("placing pod")
    return None if told is None else lambda done: told(done, total)
