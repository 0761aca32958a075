"""What leaks: the nodes of a scenario, or one node with its pods, from the same argument."""

from __future__ import annotations

import argparse

from podqos.cli.cluster import arguments_name_cluster, is_node_name
from podqos.cli.from_manifests import is_scenario
from podqos.cli.scenarios import scenario_argument
from podqos.cli.selecting import selection_of
from podqos.cli.snapshot_options import state_of
from podqos.cli.spelling import option
from podqos.errors import InputError, InvalidOption
from podqos.model.profile import parse_version
from podqos.naming import Field
from podqos.objects.files import STDIN
from podqos.questions.node import NodeState
from podqos.reading.scenario_files import place_of
from podqos.reading.shipped_scenarios import shipped_scenario
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.variation import KUBERNETES_VERSION, Parameter, Variation

_OF_NODES = (
    "files", "kustomize", "render", "usage", "stats", "pods",
    "snapshot", "context", "kubeconfig", "all_namespaces", "node", "node_memory", "system_memory", "kubelet_config",
    "priority", "runtime_class",
)  # fmt: skip
"""What options say about a node and its pods."""


def source_of(arguments: argparse.Namespace) -> tuple[Scenario | NodeState, int]:
    """Return what the argument and the options name, and how many errors were reported on the way."""
    if arguments.scenario is not None and (
        arguments.scenario == STDIN or _is_node(arguments) or not is_scenario(arguments.scenario)
    ):
        arguments.files, arguments.scenario = [arguments.scenario, *(arguments.files or ())], None
    if arguments.scenario is None:
        return state_of(arguments, refuse_impossible=True)
    if selection_of(arguments) is not None:
        raise InvalidOption("a scenario and -n, -l cannot be combined")
    _refuse_beside_scenario(arguments)
    version = arguments.kubernetes_version
    variation = None
    if version is not None:
        parse_version(version)  # what is wrong with it is wrong with the option, and not with the scenario
        variation = Variation([(Parameter(KUBERNETES_VERSION), version)])
    return scenario_argument(arguments.scenario, "blast", variation), 0


def _refuse_beside_scenario(arguments: argparse.Namespace) -> None:
    """Reject options that a scenario states itself."""
    for name in _OF_NODES:
        if getattr(arguments, name):
            given = option(Field(name))
            fix = "remove it: a scenario states its own nodes, pods and usage"
            raise InvalidOption(f"a scenario and {given} cannot be combined", fix=fix)


def usage_place(arguments: argparse.Namespace, pod: str | None) -> str:
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
