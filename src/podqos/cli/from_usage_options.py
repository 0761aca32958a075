"""The options of ``podqos scenario from-usage``."""

from __future__ import annotations

import argparse

from podqos.cli.options import add_list_option, add_value_option, capacity_option
from podqos.cli.prometheus import add_prometheus_options


def add_scenario_name(parser: argparse.ArgumentParser) -> None:
    """Declare what a scenario is called that is made."""
    parser.add_argument("name", metavar="NAME", help="writes NAME.yaml, and a directory NAME beside it")


def add_usage_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    add_scenario_name(parser)
    parser.add_argument(
        "-f", "--filename", dest="files", metavar="FILE", action="append", default=[], help="manifests, nodes, policies"
    )
    parser.add_argument(
        "-n",
        "--namespace",
        metavar="NAME",
        help="of manifests that name none (default: default); of what Prometheus is asked about (default: all)",
    )
    about = "samples: CSV with the columns time, pod, memory, cpu, or Prometheus' answer to a range query"
    add_list_option(parser, "--usage", "FILE", about)
    add_list_option(parser, "--memory", "FILE", "Prometheus' answer that is memory, whatever its name")
    add_list_option(parser, "--cpu", "FILE", "Prometheus' answer that is CPU, such as of rate(…)")
    add_prometheus_options(parser, "1d")
    parser.add_argument("--nodes", metavar="N", type=int, help="how many nodes there are, beside those that are named")
    about = "what a node has (default: as in its Node manifest)"
    add_value_option(parser, "--node-capacity", capacity_option, about, "cpu=16,memory=64Gi")
    about = "leave out samples as long as no curve is off by more than this part of its highest value (default: 0%%)"
    parser.add_argument("--tolerance", metavar="PERCENT", default="0%", help=about)
