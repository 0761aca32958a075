"""A cluster as it is now, as a scenario: written to files, or run directly."""

from __future__ import annotations

import argparse
import os
from tempfile import TemporaryDirectory

from podqos.cli.cluster import whole_cluster
from podqos.cli.main import EXIT_BAD_INPUT, EXIT_OK
from podqos.cli.output import print_lines, say_assumptions
from podqos.cli.problems import print_problems
from podqos.cli.scenarios import scenario_argument
from podqos.library.cluster_scenario import ClusterScenario, cluster_scenario
from podqos.reading.scenario_writing import write_files
from podqos.report.simulation.replay import cluster_lines
from podqos.sim.scenario.scenario import Scenario
from podqos.sim.variation import Variation

_NAME = "cluster"


def run(arguments: argparse.Namespace) -> int:
    """Write the scenario, print what it contains, and return the exit code."""
    cluster = whole_cluster(arguments, arguments.node)
    made = cluster_scenario(cluster, arguments.name, node=arguments.node, duration_us=arguments.duration)
    if print_problems(cluster.objects.problems):
        return EXIT_BAD_INPUT
    write_files(made.files)
    print_lines(list(cluster_lines(made.nodes, made.pods, made.sources.items())))
    print(f"next: podqos simulate {arguments.name}.yaml")
    say_assumptions(made.assumptions)
    return EXIT_OK


def scenario_now(arguments: argparse.Namespace, duration_us: int, variation: Variation) -> Scenario:
    """Return the state of the cluster that the options name as a scenario, without writing files."""
    cluster = whole_cluster(arguments)
    made: ClusterScenario = cluster_scenario(cluster, _NAME, duration_us=duration_us)
    print_problems(cluster.objects.problems)
    say_assumptions(made.assumptions)
    with TemporaryDirectory() as folder:
        write_files(made.files, folder)
        return scenario_argument(os.path.join(folder, f"{_NAME}.yaml"), "simulate", variation)
