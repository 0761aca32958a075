"""Work with scenario files, which describe a simulation: nodes, ordinary manifests, demand over time.

  validate FILE…     read each scenario with the files it refers to, and report all problems
  new [NAME]         create NAME.yaml and its manifests to start from, or from a cluster as it is now; never
                     overwrites files
  from-usage NAME    create a scenario that replays recorded usage
  schema             print the JSON Schema, for editors
  list               list the built-in scenarios, which every command accepts by name

  podqos scenario new now --from-cluster --duration 2h
  podqos scenario from-usage tuesday -f manifests --usage samples.csv --node-capacity cpu=16,memory=64Gi

Exit code 2 if there are problems.
"""

from __future__ import annotations

import argparse
import sys

from podqos.cli.cluster import add_whole_cluster_options
from podqos.cli.main import EXIT_BAD_INPUT, EXIT_OK
from podqos.cli.options import (
    add_list_option,
    add_value_option,
    capacity_option,
    check_name,
    duration_option,
)
from podqos.cli.parser import add_action
from podqos.cli.prometheus import add_prometheus_options
from podqos.cli.spelling import spelled
from podqos.errors import InvalidOption
from podqos.wording import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos scenario``."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    validate = add_action(commands, "validate", "validate scenario files and report all problems")
    validate.add_argument("files", nargs="+", metavar="FILE", help="scenario files, or names of built-in scenarios")
    new = add_action(commands, "new", "create a scenario to start from")
    new.add_argument(
        "name",
        nargs="?",
        default="scenario",
        metavar="NAME",
        help="writes NAME.yaml and its manifests (default: scenario)",
    )
    about = "write the cluster as it is now, instead of an example"
    new.add_argument("--from-cluster", action="store_true", help=about)
    add_whole_cluster_options(new)
    new.add_argument("--node", metavar="NAME", help="only this node and its pods (default: all)")
    add_value_option(new, "--duration", duration_option, "duration of the scenario", "DURATION", default="1h")
    from_usage = add_action(commands, "from-usage", "create a scenario from recorded usage")
    _add_usage_arguments(from_usage)
    add_action(commands, "schema", "print the JSON Schema of scenario files")
    add_action(commands, "list", "list the built-in scenarios")


def _add_usage_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos scenario from-usage``."""
    parser.add_argument("name", metavar="NAME", help="write NAME.yaml and a directory NAME next to it")
    parser.add_argument(
        "-f", "--filename", dest="files", metavar="FILE", action="append", default=[], help="manifests, nodes, policies"
    )
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAME",
        help=(
            "namespace of manifests without one (default: default), and of the pods to query in Prometheus "
            "(default: all)"
        ),
    )
    about = "usage samples: CSV with the columns time, pod, memory, cpu, or the result of a Prometheus range query"
    add_list_option(parser, "--usage", "FILE", about)
    add_list_option(parser, "--memory", "FILE", "a Prometheus result with memory usage; the metric may have any name")
    add_list_option(parser, "--cpu", "FILE", "a Prometheus result with CPU usage, such as rate(…)")
    add_prometheus_options(parser, "1d")
    parser.add_argument("--nodes", metavar="N", type=int, help="number of nodes in addition to those in the manifests")
    about = "capacity of a node (default: from its Node manifest)"
    add_value_option(parser, "--node-capacity", capacity_option, about, "cpu=16,memory=64Gi")
    about = "drop samples as long as no curve is off by more than this percentage of its maximum (default: 0%%)"
    parser.add_argument("--tolerance", metavar="PERCENT", default="0%", help=about)


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand, and return the exit code."""
    match arguments.action:
        case "validate":
            return _validate(arguments.files)
        case "new":
            return _new(arguments)
        case "from-usage":
            return _from_usage(arguments)
        case "schema":
            return _schema()
        case _:
            return _list()


def _validate(files: list[str]) -> int:
    from podqos.model.time_units import SECOND_US
    from podqos.reading.scenario_files import read_scenario

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


def _from_usage(arguments: argparse.Namespace) -> int:
    from podqos.cli.from_usage import run as from_usage

    check_name(arguments.name)
    return from_usage(arguments)


def _schema() -> int:
    import msgspec

    from podqos.sim.scenario_format.schema import json_schema

    print(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2).decode())
    return EXIT_OK


def _list() -> int:
    from podqos.cli.output import print_lines
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
        first = " ".join(description.split()).partition(". ")[0].rstrip(".")
        lines.append(f"{name:{width}}  {first}")
    print_lines(lines)
    return EXIT_OK


def _new(arguments: argparse.Namespace) -> int:
    from podqos.cli.from_cluster import run as from_cluster
    from podqos.reading.scenario_writing import write_files
    from podqos.reading.shipped_scenarios import starter_files

    name: str = arguments.name
    check_name(name)
    if arguments.from_cluster:
        return from_cluster(arguments)
    for option, value in (
        ("--snapshot", arguments.snapshot),
        ("--context", arguments.context),
        ("--node", arguments.node),
    ):
        if value is not None:
            raise InvalidOption("needs a cluster", where=option, fix="add --from-cluster")
    files = starter_files(name)
    write_files(files)
    print(*files, sep="\n")
    print(f"next: podqos scenario validate {name}.yaml && podqos simulate {name}.yaml")
    return EXIT_OK
