"""Work with scenario files, which describe a simulation: nodes, ordinary manifests, demand over time.

  validate FILE…     read each scenario with the files it refers to, and report all problems
  new [NAME]         create NAME.yaml and its manifests to start from, or from a cluster as it is now; never
                     overwrites files
  from-usage NAME    create a scenario that replays recorded usage
  list               list the built-in scenarios, which every command accepts by name

  podqos scenario new now --from-cluster --duration 2h
  podqos scenario from-usage tuesday -f manifests --usage samples.csv --node-capacity cpu=16,memory=64Gi

Exit code 2 if there are problems.
"""

from __future__ import annotations

import argparse

from podqos.cli.cluster import add_whole_cluster_options
from podqos.cli.from_manifests import add_manifest_run_options
from podqos.cli.options import add_list_option, add_value_option, capacity_option, duration_option
from podqos.cli.parser import add_action
from podqos.cli.prometheus import add_prometheus_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos scenario``."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    validate = add_action(commands, "validate", "validate scenario files and report all problems")
    validate.add_argument("files", nargs="+", metavar="FILE", help="scenario files, or names of built-in scenarios")
    new = add_action(commands, "new", "create a scenario to start from")
    about = "writes NAME.yaml and its manifests (default: scenario)"
    new.add_argument("name", nargs="?", default="scenario", metavar="NAME", help=about)
    about = "write the cluster as it is now, instead of an example"
    new.add_argument(
        "--from", dest="origin", metavar="FILE|DIR", help="write the pods of manifests, as `podqos simulate` runs them"
    )
    add_manifest_run_options(new)
    new.add_argument("--from-cluster", action="store_true", help=about)
    add_whole_cluster_options(new)
    new.add_argument("--node", metavar="NAME", help="only this node and its pods (default: all)")
    add_value_option(new, "--duration", duration_option, "duration of the scenario", "DURATION", default="1h")
    usage = add_action(commands, "from-usage", "create a scenario from recorded usage")
    usage.add_argument("name", metavar="NAME", help="write NAME.yaml and a directory NAME next to it")
    about = "manifests, nodes, policies"
    usage.add_argument("-f", "--filename", dest="files", metavar="FILE", action="append", default=[], help=about)
    about = "namespace of manifests without one (default: default), and of the pods to query in Prometheus "
    usage.add_argument("-n", "--namespace", metavar="NAME", help=f"{about}(default: all)")
    about = "usage samples: CSV with the columns time, pod, memory, cpu, or the result of a Prometheus range query"
    add_list_option(usage, "--usage", "FILE", about)
    add_prometheus_options(usage, "1d")
    about = "number of nodes in addition to those in the manifests"
    usage.add_argument("--nodes", metavar="N", type=int, help=about)
    about = "capacity of a node (default: from its Node manifest)"
    add_value_option(usage, "--node-capacity", capacity_option, about, "cpu=16,memory=64Gi")
    add_action(commands, "list", "list the built-in scenarios")


def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand, and return the exit code."""
    from podqos.cli import scenarios

    match arguments.action:
        case "validate":
            return scenarios.validate(arguments.files)
        case "new" if arguments.origin is not None:
            return scenarios.write_manifest_scenario(arguments)
        case "new" if arguments.from_cluster:
            return scenarios.write_cluster_scenario(arguments)
        case "new":
            return scenarios.write_example(arguments)
        case "from-usage":
            return scenarios.write_replay(arguments)
        case _:
            return scenarios.print_list()
