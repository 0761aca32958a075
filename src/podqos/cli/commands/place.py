"""Place the pods of manifests on nodes: where everything lands, what waits and why, who is displaced, how full it gets.

Reads what kubectl prints and what it applies: workloads, Nodes, PriorityClasses, LimitRanges, RuntimeClasses,
PodDisruptionBudgets, Namespaces, a KubeletConfiguration. New pods go through admission first (quotas are left to
`podqos admit`); pods that have a node stay there. Feasibility is the scheduler's; among nodes that would do, the one
with the best LeastAllocated and BalancedAllocation score is taken, the first by name among equals.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib.util import find_spec

from msgspec.structs import replace

from podqos.cli.inputs import print_problems, read_objects
from podqos.cli.options import add_filename_option, add_kubelet_option, add_schema_option, add_version_option
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InputError, InvalidConfiguration, InvalidManifest, InvalidOption, InvalidQuantity
from podqos.library.inputs.admitting import admitted_pod
from podqos.library.inputs.files import find_files
from podqos.library.inputs.objects import Objects
from podqos.model.disruption import PodDisruptionBudget
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.node import LABEL_HOSTNAME, PODS, Node, NodeSpec, NodeStatus
from podqos.model.pod import ObjectMeta, Pod, Workload
from podqos.model.policy import Namespace
from podqos.model.profile import Profile, parse_version
from podqos.model.quantity import Quantity
from podqos.model.resources import CPU, MEMORY, ResourceList
from podqos.placement.allocatable import SoftCoverage, node_allocatable
from podqos.placement.overcommit import DEFAULT_BUDGETS
from podqos.placement.place import QueueOrder, Surroundings, place
from podqos.placement.workloads import POD, pods_of
from podqos.report.placement.value import PlacementReport, report

# So many pods × nodes take minutes one by one.
_LONG_WAIT = 10_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos place``."""
    add_filename_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "csv", "json", "yaml"),
        default="table",
        help="table: for people; csv: a line per pod; json and yaml: everything, with the reasons of every node",
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
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Place, print, and return the exit code."""
    if arguments.schema:
        from podqos.cli.output import print_schema

        print_schema(PlacementReport)
        return 0
    profile = parse_version(arguments.kubernetes_version)
    budgets = {resource: _budget(arguments, resource) for resource in DEFAULT_BUDGETS}
    objects = read_objects(_files(arguments))
    config = _kubelet(objects, arguments)
    nodes = tuple(_nodes(objects, config, arguments))
    pods, workloads, bare = _pods(objects, nodes, profile, unbind=arguments.unbind)
    errors = _print_problems(objects)
    surroundings = Surroundings(
        nodes,
        {namespace.metadata.name: namespace.metadata.labels for namespace in objects.of(Namespace)},
        objects.of(PodDisruptionBudget),
        profile,
    )
    _hint(len(pods) * len(nodes))
    with _no_search_for_cycles():
        placement = place(
            pods, surroundings, order=QueueOrder(arguments.order), bare=bare, progress=_progress(len(pods))
        )
        whole = report(placement, workloads, budgets, _coverage(nodes, config))
    _print(whole, arguments)
    if errors:
        return 2
    over = any(o.exceeds_budget for node in whole.nodes for o in node.overcommit.values())
    return 1 if whole.pending or whole.displaced or over else 0


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Keep Python from looking for cycles among millions of objects that form none."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


# ---- options -----------------------------------------------------------------------------------------------------


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


def _budget(arguments: argparse.Namespace, resource: str) -> Fraction:
    text = getattr(arguments, f"{resource}_budget")
    try:
        budget = Fraction(text)
    except (ValueError, ZeroDivisionError):
        budget = Fraction(0)
    if budget <= 0:
        raise InvalidOption(f"{text!r} is no ratio", where=f"--{resource}-budget", fix="for example 1.5")
    return budget


def _kubelet(objects: Objects, arguments: argparse.Namespace) -> KubeletConfiguration | None:
    given = _kubelets(objects)
    if arguments.kubelet_config:
        from podqos.library.inputs.kubelet_settings import read_kubelet_settings

        given.append(read_kubelet_settings(arguments.kubelet_config))
    if len(given) > 1:
        raise InvalidConfiguration(f"{len(given)} kubelet configurations were given", fix="give one, for all nodes")
    return given[0] if given else None


def _kubelets(objects: Objects) -> list[KubeletConfiguration]:
    """Return the settings among the files with which a kubelet starts; others are problems."""
    from podqos.eviction.kubelet_file import check_thresholds

    given = []
    for each in objects.kubelets:
        try:
            check_thresholds(each.settings)
        except InvalidConfiguration as error:
            objects.note(each.found.source.problem(each.found.other.place, error.where, error.what, error.fix))
        else:
            given.append(each.settings.configuration)
    return given


# ---- nodes -------------------------------------------------------------------------------------------------------


def _nodes(objects: Objects, config: KubeletConfiguration | None, arguments: argparse.Namespace) -> Iterator[Node]:
    """Yield the nodes of the manifests and those that were only counted."""
    given = objects.of(Node)
    for node in given:
        yield _with_allocatable(node, config)
    if arguments.nodes is not None:
        yield from _counted_nodes(arguments, config or KubeletConfiguration())
    elif arguments.node_capacity:
        raise InvalidOption("how many nodes have this capacity?", where="--node-capacity", fix="add --nodes N")
    elif not given:
        raise InvalidOption(
            "there are no nodes to place pods on",
            fix="add Node manifests with -f, or --nodes 10 --node-capacity cpu=16,memory=64Gi",
        )


def _with_allocatable(node: Node, config: KubeletConfiguration | None) -> Node:
    """Work allocatable out from capacity where the kubelet's settings are given or nobody has done so."""
    status = node.status
    if status.allocatable and (config is None or not status.capacity):
        return node
    if not status.capacity:
        raise InvalidManifest(
            f"Node {node.name} has neither capacity nor allocatable", where="status", fix="add status.capacity"
        )
    if config is None:
        pods = status.capacity.get(PODS)
        config = KubeletConfiguration(max_pods=pods.value if pods is not None else 110)
    divided = node_allocatable(status.capacity, config)
    return replace(node, status=replace(status, allocatable={**status.allocatable, **divided.allocatable}))


def _counted_nodes(arguments: argparse.Namespace, config: KubeletConfiguration) -> Iterator[Node]:
    if arguments.nodes < 0:
        raise InvalidOption(f"{arguments.nodes} is no number of nodes", where="--nodes", fix="use 1 or more")
    if not arguments.node_capacity:
        raise InvalidOption("what do the nodes have?", where="--nodes", fix="add --node-capacity cpu=16,memory=64Gi")
    capacity = _capacity(arguments.node_capacity)
    if PODS in capacity:
        config = replace(config, max_pods=capacity[PODS].value)
    divided = node_allocatable(capacity, config)
    width = len(str(arguments.nodes))
    for number in range(1, arguments.nodes + 1):
        name = f"node-{number:0{width}}"
        yield Node(
            ObjectMeta(name, labels={LABEL_HOSTNAME: name}),
            NodeSpec(config.register_with_taints),
            NodeStatus(divided.capacity, divided.allocatable),
        )


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


def _coverage(nodes: Iterable[Node], config: KubeletConfiguration | None) -> tuple[SoftCoverage, ...]:
    """Return, once per kind of node, whether pods stay clear of the soft thresholds."""
    if config is None or not config.eviction_soft:
        return ()
    kinds = {tuple(sorted(node.status.capacity.items())): node.status.capacity for node in nodes}
    found = (coverage for capacity in kinds.values() for coverage in node_allocatable(capacity, config).soft_coverage)
    return tuple(dict.fromkeys(found))


# ---- pods --------------------------------------------------------------------------------------------------------


def _pods(
    objects: Objects, nodes: tuple[Node, ...], profile: Profile, *, unbind: bool
) -> tuple[list[Pod], dict[str, str], set[str]]:
    """Return all pods, the workload of each by its key, and the keys of those that nobody would replace."""
    pods: list[Pod] = []
    workloads: dict[str, str] = {}
    bare: set[str] = set()
    policies = objects.namespace_policies()
    # A list of everything in a cluster holds controllers and the pods they have made already.
    pods_are_live = any(f.workload.is_live and f.workload.kind == POD for f in objects.workloads)
    for found in objects.workloads:
        workload = found.workload
        if workload.is_live and workload.kind != POD and pods_are_live:
            continue
        pod = workload.pod if workload.is_live else admitted_pod(found, objects, policies, profile)
        if pod is None:
            continue
        if unbind and pod.spec.node_name:
            pod = replace(pod, spec=replace(pod.spec, node_name=""))
        for one in pods_of(replace(workload, pod=pod), nodes, profile=profile):
            pods.append(one)
            workloads[one.key] = _owner(workload)
            if workload.kind == POD and not workload.metadata.generate_name:
                bare.add(one.key)
    return pods, workloads, bare


def _owner(workload: Workload) -> str:
    """Name what a pod belongs to. Controllers make up the names of their pods, and the pods tell from what."""
    made_up = workload.metadata.generate_name
    return f"{workload.kind}/{made_up}*" if made_up else f"{workload.kind}/{workload.metadata.name}"


# ---- output ------------------------------------------------------------------------------------------------------


def _print(whole: PlacementReport, arguments: argparse.Namespace) -> None:
    match arguments.output:
        case "json" | "yaml" as notation:
            from podqos.cli.output import print_value

            print_value(whole, notation)
        case "csv":
            from csv import writer

            from podqos.report.placement.lines import csv_rows

            writer(sys.stdout, lineterminator="\n").writerows(csv_rows(whole))
        case _:
            from podqos.report.placement.lines import text

            print("\n".join(text(whole, style_for(arguments.color))))


def _print_problems(objects: Objects) -> int:
    """Print what is wrong with the input, and return how much of it keeps something out."""
    errors = print_problems(objects.problems)
    if errors:
        print(f"{errors} error{'s' if errors > 1 else ''}; the rest is placed", file=sys.stderr)
    return errors


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
