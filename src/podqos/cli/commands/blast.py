"""Say what every pod can do to its neighbours: when it leaks, who else dies on its node, how soon, and by whose hand.

Each pod leaks in turn, slowly and fast, in a simulation of its node; it runs until the one that leaks is itself killed
or evicted. The nodes come from a scenario as it is at its beginning, or are one node with pods and figures as for
`podqos rank`:

  podqos blast race
  podqos blast -f manifests/ --usage usage.csv --node-memory 64Gi --kubelet-config kubelet.yaml
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Sequence
from functools import partial

from podqos.cli.options import add_kubelet_option, add_schema_option, add_version_option, rate_option
from podqos.cli.output import print_csv, print_schema, print_value
from podqos.cli.progress import progress_line
from podqos.cli.snapshot_options import add_snapshot_options, read_snapshot
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InputError, InvalidOption
from podqos.eviction.ranking import Policy
from podqos.library.engines.fan_out import fan_out, in_copy, usable_cores
from podqos.library.inputs.kubelet_settings import read_kubelet_settings
from podqos.library.inputs.scenario_files import load_scenario
from podqos.library.written_files import write_file
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import Profile, parse_version
from podqos.report.simulation.blast import CSV_COLUMNS, BlastReport, blast_report, csv_rows, page, table
from podqos.sim.blast import Blast, NodePods, Stage, facts_of, leaks, nodes_now
from podqos.sim.engine.curve import constant
from podqos.sim.scenario.demand import SystemDemand
from podqos.sim.scenario.scenario import Filesystem, NodeSpec

# A node of which nothing is known but its memory: enough of everything else.
_PLENTY_CPU_MILLI = 1_000_000
_PLENTY = Filesystem(capacity_bytes=1 << 50, inodes=1 << 40)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos blast``."""
    parser.add_argument("scenario", nargs="?", metavar="SCENARIO", help="a scenario file, or the name of a shipped one")
    add_snapshot_options(parser)
    add_kubelet_option(parser, "--config", dest="config")
    parser.add_argument("--slow", metavar="QUANTITY/s", default="4Mi/s", help="the slow rate (default: 4Mi/s)")
    parser.add_argument("--fast", metavar="QUANTITY/s", default="1Gi/s", help="the fast rate (default: 1Gi/s)")
    parser.add_argument("--policy", choices=list(Policy), help="how the kubelet ranks (default: as the version does)")
    parser.add_argument("--all", action="store_true", help="list all pods that harm others, not the worst alone")
    add_version_option(parser)
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml", "csv"),
        default="table",
        help="csv: a line per pod and rate (default: table)",
    )
    parser.add_argument("--html", metavar="FILE", help="also write the list as a page")
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Let every pod leak, print, and return the exit code."""
    if arguments.schema:
        print_schema(BlastReport)
        return 0
    rates = rate_option(arguments.slow, "--slow"), rate_option(arguments.fast, "--fast")
    profile, policy, nodes, errors = _nodes(arguments)
    facts = {(each.node.name, pod.key): facts_of(pod, profile) for each in nodes for pod, _ in each.pods}
    # Forked children begin with all that is here: what is collected in one of them is copied first.
    gc.freeze()
    tasks = [(each, rates, profile, policy) for each in nodes if each.pods]
    blasts = [blast for found in fan_out(_of_node, tasks, usable_cores(), progress_line("node")) for blast in found]
    if not blasts:
        raise InputError("no pod runs there", fix="name a scenario with pods, or manifests with their usage")
    report = blast_report(blasts, facts, slow=rates[0], fast=rates[1])
    if arguments.html is not None:
        write_file(arguments.html, page(report).encode())
    if arguments.output == "table":
        print("\n".join(table(report, style_for(arguments.color), everything=arguments.all)))
    elif arguments.output == "csv":
        print_csv(CSV_COLUMNS, csv_rows(report))
    else:
        print_value(report, arguments.output)
    return 2 if errors else 0


def _of_node(task: tuple[NodePods, tuple[int, int], Profile, Policy | None]) -> list[Blast]:
    """Let every pod of a node leak at both rates."""
    pods, rates, profile, policy = task
    stage = Stage(pods, slowest=min(rates), profile=profile, policy=policy)
    every = (leak for rate in dict.fromkeys(rates) for leak in leaks(pods, rate))
    return [in_copy(partial(stage.unleash, leak)) for leak in every]


def _nodes(arguments: argparse.Namespace) -> tuple[Profile, Policy | None, Sequence[NodePods], int]:
    """Return the nodes to look at, and how many errors were reported on the way."""
    figures = (arguments.usage, arguments.stats, arguments.snapshot, arguments.files, arguments.config)
    policy = None if arguments.policy is None else Policy(arguments.policy)
    if arguments.scenario is None:
        profile = parse_version(arguments.kubernetes_version)
        node, errors = _node(arguments, profile)
        return profile, policy, (node,), errors
    if any(figures):
        raise InvalidOption("a scenario and -f, --usage, --stats, --snapshot, --kubelet-config exclude each other")
    scenario = load_scenario(arguments.scenario)
    # What it takes to find out where everybody is goes with the copy: every leak is a fork of this process.
    nodes = in_copy(partial(nodes_now, scenario))
    return scenario.profile, policy or scenario.policy, nodes, 0


def _node(arguments: argparse.Namespace, profile: Profile) -> tuple[NodePods, int]:
    snapshot, errors = read_snapshot(arguments, profile)
    config = KubeletConfiguration() if arguments.config is None else read_kubelet_settings(arguments.config)
    spec = NodeSpec(
        name=snapshot.node.name or "node",
        memory_bytes=snapshot.node.memory_bytes,
        swap_bytes=snapshot.node.swap_bytes,
        cpu_milli=_PLENTY_CPU_MILLI,
        nodefs=_PLENTY,
        system=SystemDemand(anon_bytes=constant(snapshot.node.system_bytes)),
        config=config,
    )
    return NodePods(spec, tuple((entry.pod, entry.containers) for entry in snapshot.pods)), errors
