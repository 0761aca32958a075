"""Scenarios of commands: read from a file, or a cluster as it is now."""

from __future__ import annotations

import argparse
import os
import re
import sys
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.amounts import counted
from podqos.cli.cluster import whole_cluster
from podqos.cli.from_manifests import files_of, names_manifests
from podqos.cli.main import EXIT_BAD_INPUT, EXIT_OK
from podqos.cli.options import check_name
from podqos.cli.output import print_lines, say_assumptions
from podqos.cli.problems import print_problems
from podqos.cli.spelling import spelled
from podqos.errors import InputError, InvalidOption
from podqos.manifest.problems import Severity
from podqos.model.time_units import MINUTE_US, SECOND_US
from podqos.reading.scenario_files import InvalidScenario, read_scenario
from podqos.reading.written_files import write_files
from podqos.sim.variation import Variation, parse_assignment

if TYPE_CHECKING:
    from podqos.sim.scenario.scenario import Scenario

_NAME = "cluster"


def scenario_argument(path: str | None, verb: str, variation: Variation | None = None) -> Scenario:
    """Return the scenario of a file or name; print everything wrong with it, and raise if it cannot be run."""
    if path is None:
        raise InvalidOption(f"nothing to {verb}", fix="give a scenario; `podqos scenario list` shows the built-in ones")
    reading = read_scenario(path, variation)
    if len(reading.problems) == 1:
        (only,) = reading.problems
        if only.severity is Severity.ERROR and only.source == path and not only.line:  # it could not be opened
            raise InputError(only.what, where=only.source, fix=only.fix)
    for problem in reading.problems:
        print(problem.worded(spelled), file=sys.stderr)
    try:
        return reading.loaded()
    except InvalidScenario as error:
        raise InputError(error.what, where=error.where, fix="see above") from error


def scenario_to_run(arguments: argparse.Namespace) -> Scenario:
    """Return the scenario that ``podqos simulate`` names, with what its options change."""
    variation = Variation(
        [*map(parse_assignment, arguments.what_if)], seed=arguments.seed, holds_placement=arguments.hold_placement
    )
    until_us: int | None = arguments.until
    if arguments.origin is not None:
        if arguments.scenario is not None:
            raise InvalidOption(f"two scenarios: {arguments.scenario} and a cluster", where="--from", fix="give one")
        from podqos.runs.scenarios import cluster_scenario

        cluster = whole_cluster(arguments)
        made = cluster_scenario(cluster, _NAME, duration_us=until_us or 60 * MINUTE_US)
        print_problems(cluster.objects.problems)
        say_assumptions(made.assumptions)
        with TemporaryDirectory() as folder:
            write_files(made.files, folder)
            return scenario_argument(os.path.join(folder, f"{_NAME}.yaml"), "simulate", variation)
    for option, value in (("--snapshot", arguments.snapshot), ("--context", arguments.context)):
        if value is not None:
            raise InvalidOption(f"{option} needs a cluster", where=option, fix="add --from cluster")
    if names_manifests(arguments, arguments.scenario):
        return manifests_to_run(arguments, until_us or 10 * MINUTE_US, variation)
    scenario = scenario_argument(arguments.scenario, "simulate", variation)
    if until_us is None or until_us == scenario.duration_us:
        return scenario
    changes = (*scenario.changes, f"spec.duration={until_us / SECOND_US:g}s")
    return replace(scenario, duration_us=until_us, changes=changes)


def manifests_to_run(arguments: argparse.Namespace, duration_us: int, variation: Variation) -> Scenario:
    """Return manifests as a scenario, without writing files that stay."""
    path: str = arguments.scenario
    name = re.sub(r"\W+", "-", os.path.splitext(os.path.basename(os.path.abspath(path)))[0])
    files = files_of(arguments, path, name, duration_us)
    with TemporaryDirectory() as folder:
        write_files(files, folder)
        return scenario_argument(os.path.join(folder, f"{name}.yaml"), "simulate", variation)


def write_manifest_scenario(arguments: argparse.Namespace) -> int:
    """Write the pods of manifests as a scenario, and return the exit code."""
    check_name(arguments.name)
    if not names_manifests(arguments, arguments.origin):
        raise InvalidOption(
            f"{arguments.origin} is a scenario, or does not exist", where="--from", fix="give manifests"
        )
    files = files_of(arguments, arguments.origin, arguments.name, arguments.duration)
    write_files(files)
    print(*files, sep="\n")
    print(f"next: podqos simulate {arguments.name}.yaml")
    return EXIT_OK


def write_cluster_scenario(arguments: argparse.Namespace) -> int:
    """Write a cluster as it is now as a scenario, print what it contains, and return the exit code."""
    from podqos.runs.scenarios import cluster_lines, cluster_scenario

    check_name(arguments.name)
    cluster = whole_cluster(arguments, arguments.node)
    made = cluster_scenario(cluster, arguments.name, node=arguments.node, duration_us=arguments.duration)
    if print_problems(cluster.objects.problems):
        return EXIT_BAD_INPUT
    write_files(made.files)
    print_lines(list(cluster_lines(made.nodes, made.pods, made.sources.items())))
    print(f"next: podqos simulate {arguments.name}.yaml")
    say_assumptions(made.assumptions)
    return EXIT_OK


def write_example(arguments: argparse.Namespace) -> int:
    """Write a scenario to start from, and return the exit code."""
    from podqos.reading.shipped_scenarios import starter_files

    check_name(arguments.name)
    for option, value in (
        ("--snapshot", arguments.snapshot),
        ("--context", arguments.context),
        ("--node", arguments.node),
    ):
        if value is not None:
            raise InvalidOption("needs a cluster", where=option, fix="add --from-cluster")
    files = starter_files(arguments.name)
    write_files(files)
    print(*files, sep="\n")
    print(f"next: podqos scenario validate {arguments.name}.yaml && podqos simulate {arguments.name}.yaml")
    return EXIT_OK


def write_replay(arguments: argparse.Namespace) -> int:
    """Write a scenario that replays recorded usage, print what it contains, and return the exit code."""
    from podqos.cli.prometheus import queried
    from podqos.reading.loading import load
    from podqos.reading.usage_replay import ReplayOptions, UsageFile, replay
    from podqos.runs.scenarios import replay_lines

    check_name(arguments.name)
    if not arguments.usage and arguments.prometheus is None:
        fix = "give a CSV file, a Prometheus result, or --prometheus URL"
        raise InvalidOption("no usage samples to replay", where="--usage", fix=fix)
    if not arguments.files:
        raise InvalidOption("no manifests", where="-f", fix="give the pods' manifests")
    objects = load(*arguments.files, namespace=arguments.namespace or "default")
    options = ReplayOptions(
        name=arguments.name, node_count=arguments.nodes, node_capacity=arguments.node_capacity or {}
    )
    found = queried(arguments)
    made = replay(objects, [UsageFile(path) for path in arguments.usage], options, found)
    if print_problems(objects.problems):
        return EXIT_BAD_INPUT
    write_files(made.files)
    print_lines(list(replay_lines(made.told)))
    print(f"next: podqos simulate {arguments.name}.yaml")
    say_assumptions(() if found is None else found.assumptions)
    return EXIT_OK


def validate(files: list[str]) -> int:
    """Print what is wrong with scenarios, and what is in those that are valid; return the exit code."""
    code = EXIT_OK
    for file in files:
        reading = read_scenario(file)
        for problem in reading.problems:
            print(problem.worded(spelled), file=sys.stderr)
        if reading.scenario is None:
            code = EXIT_BAD_INPUT
            continue
        scenario = reading.scenario
        nodes = sum(group.count for group in scenario.nodes)
        pods = sum(nodes if workload.kind == "DaemonSet" else workload.replicas for workload in scenario.workloads)
        seconds = scenario.duration_us / SECOND_US
        print(f"{reading.path}: {counted(nodes, 'node')}, {counted(pods, 'pod')}, {seconds:g} s")
    return code


def print_list() -> int:
    """Print the built-in scenarios with the first sentence of each."""
    from podqos.reading.files import read_bytes
    from podqos.reading.scenario_files import scenario_path
    from podqos.reading.shipped_scenarios import shipped_scenarios
    from podqos.sim.scenario_format.file import read_file

    names = shipped_scenarios()
    width = max(map(len, names))
    lines = []
    for name in names:
        path = scenario_path(name)
        document = read_file(path, read_bytes(path)).document
        description = "" if document is None else document.spec.description
        lines.append(f"{name:{width}}  {' '.join(description.split()).partition('. ')[0].rstrip('.')}")
    print_lines(lines)
    return EXIT_OK
