"""Show the blast radius of a leak in each pod: which other pods on its node die, how soon, and what kills them.

Each pod leaks in turn, slowly and fast, in a simulation of its node that runs until the leaking pod itself is
OOM-killed or evicted. The nodes are those of a scenario at its start, or one node with pods and usage as for `podqos
rank`. Usage above a limit is an error.

  podqos blast race
  podqos blast worker-1                a node of the live cluster
  podqos blast race --growing system   everything outside pods leaks, until every pod has died once
  podqos blast manifests/ --usage usage.csv --node-memory 64Gi --kubelet-config kubelet.yaml
"""

from __future__ import annotations

import argparse
import os

from podqos.cli import options
from podqos.cli.cluster import arguments_name_cluster, is_node_name
from podqos.cli.output import add_output_options, emit, pod_names
from podqos.cli.progress import progress_line
from podqos.cli.scenarios import scenario_argument
from podqos.cli.selecting import selection_of
from podqos.cli.snapshot_options import add_snapshot_options, state_of
from podqos.cli.spelling import option
from podqos.errors import InputError, InvalidOption
from podqos.library.blast_radius import blast
from podqos.library.simulation import built_viewer
from podqos.model.profile import parse_version
from podqos.naming import Field
from podqos.objects.files import STDIN
from podqos.reading.files import read_bytes
from podqos.reading.scenario_files import place_of
from podqos.reading.shipped_scenarios import shipped_scenario
from podqos.reading.written_files import write_file
from podqos.report.simulation.blast import csv_table, table
from podqos.report.simulation.html import page
from podqos.sim.blast import BlastRadius, ImpossibleUsage
from podqos.sim.variation import KUBERNETES_VERSION, Parameter, Variation

_OF_NODES = (
    "files", "kustomize", "render", "usage", "stats", "pods",
    "snapshot", "context", "kubeconfig", "all_namespaces", "node", "node_memory", "system_memory", "config", "priority",
    "runtime_class",
)  # fmt: skip
"""What options say about a node and its pods."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos blast``."""
    about = "a scenario file, the name of a built-in scenario, manifests, or a node of the live cluster"
    options.add_scenario_argument(parser, about, "SCENARIO|FILE|DIR|NODE")
    add_snapshot_options(parser, positional=False)
    options.add_kubelet_option(parser, "--config", dest="config")
    options.add_value_option(parser, "--slow", options.rate_option, "slow leak rate", "QUANTITY/s", default="4Mi/s")
    options.add_value_option(parser, "--fast", options.rate_option, "fast leak rate", "QUANTITY/s", default="1Gi/s")
    about = "let only this pod leak; system: everything outside pods"
    parser.add_argument("--growing", metavar="POD", help=about)
    options.add_policy_option(parser)
    parser.add_argument("--all", action="store_true", help="list every pod that harms others, not only the worst")
    options.add_version_option(parser)
    parser.add_argument("--html", metavar="FILE", help="also save a page to open in a browser")
    about = "csv: one line per pod and rate"
    add_output_options(parser, ("table", "json", "yaml", "csv", "name"), "podqos.sim.blast:BlastRadius", about)


def run(arguments: argparse.Namespace) -> int:
    """Let every pod leak, print, and return the exit code."""
    # Report that there is no page before a long run, not after it.
    viewer = "" if arguments.html is None else built_viewer()
    try:
        radius, errors = _blast(arguments)
    except ImpossibleUsage as error:
        raise InputError(error.what, where=_place(arguments, error.pod), fix=error.fix) from error
    if arguments.html is not None:
        write_file(arguments.html, page(viewer, radius).encode())
    emit(
        radius,
        arguments,
        lambda radius, style: table(radius, style, everything=arguments.all),
        csv_table,
        lambda radius: pod_names(leak.pod for leak in radius.leaks if leak.others),
    )
    return 2 if errors else 0


def _blast(arguments: argparse.Namespace) -> tuple[BlastRadius, int]:
    """Return what leaks lead to, and how many errors were reported on the way."""
    if arguments.scenario is not None and (_is_node(arguments) or _is_manifests(arguments.scenario)):
        arguments.files, arguments.scenario = [arguments.scenario, *(arguments.files or ())], None
    rates, policy, told = (arguments.slow, arguments.fast), arguments.policy, progress_line("leak")
    if arguments.scenario is None:
        kubelet = options.kubelet_option(arguments.config, arguments.kubernetes_version)
        state, profile, errors = state_of(arguments, kubelet, refuse_impossible=True)
        radius = blast(
            state,
            *rates,
            kubelet=kubelet,
            profile=profile,
            policy=policy,
            growing=arguments.growing,
            progress=told,
        )
        return radius, errors
    if selection_of(arguments) is not None:
        raise InvalidOption("a scenario and -n, -l cannot be combined")
    _refuse_beside_scenario(arguments)
    version = arguments.kubernetes_version
    variation = None
    if version is not None:
        parse_version(version)  # what is wrong with it is wrong with the option, and not with the scenario
        variation = Variation([(Parameter(KUBERNETES_VERSION), version)])
    scenario = scenario_argument(arguments.scenario, "blast", variation)
    return blast(scenario, *rates, policy=policy, growing=arguments.growing, progress=told), 0


def _refuse_beside_scenario(arguments: argparse.Namespace) -> None:
    """Reject options that a scenario states itself."""
    for name in _OF_NODES:
        if getattr(arguments, name):
            given = option(Field(name))
            fix = "remove it: a scenario states its own nodes, pods and usage"
            raise InvalidOption(f"a scenario and {given} cannot be combined", fix=fix)


def _place(arguments: argparse.Namespace, pod: str | None) -> str:
    """Return where the usage of a pod, or of all pods, is stated."""
    if arguments.scenario is not None:
        return place_of(arguments.scenario, pod)
    return arguments.usage or arguments.stats or arguments.snapshot or ""


def _is_node(arguments: argparse.Namespace) -> bool:
    """Whether the argument is not a scenario but the name of a node in a reachable cluster."""
    if not is_node_name(arguments.scenario) or shipped_scenario(arguments.scenario) is not None:
        return False
    if arguments_name_cluster(arguments):
        return True
    from podqos.cluster.access import find_access

    try:
        find_access()
    except InputError:
        return False  # a scenario, with a typing error in its name
    return True


def _is_manifests(path: str) -> bool:
    """Whether the argument is not a scenario but manifests, as for `podqos rank`."""
    if not os.path.isfile(path):
        return os.path.isdir(path) or path == STDIN
    return b"podqos.dev/" not in read_bytes(path) or b"Scenario" not in read_bytes(path)
