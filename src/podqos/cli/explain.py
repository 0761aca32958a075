"""Explain every pod in manifests: its QoS class, why, and what follows from it.

That is the smallest edit that would make it Guaranteed, the oom_score_adj of its containers, its cgroups, and the same
as flags of `docker run` and `podman run`.

Reads Pods, everything that holds a pod template, Lists and kubectl output, as YAML or JSON. What cannot be read is
reported on standard error as file:line:column, and the rest is explained all the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct

from podqos.cli import inputs
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import HostError, InputError, InvalidOption, InvalidQuantity
from podqos.manifest.problems import Problem
from podqos.model.pod import QOSClass
from podqos.model.profile import NEWEST, parse_version
from podqos.model.quantity import Quantity
from podqos.qos.cgroup_settings import CgroupDriver, CgroupSettings, CgroupVersion, Runtime
from podqos.report.explanation import Settings

_RANK = {QOSClass.BEST_EFFORT: 0, QOSClass.BURSTABLE: 1, QOSClass.GUARANTEED: 2}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos explain``."""
    parser.add_argument(
        "-f",
        "--filename",
        dest="files",
        metavar="FILE|DIR|-",
        action="append",
        help="manifests: a file, a directory (all YAML and JSON below it), or - for standard input; may be repeated",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "table", "wide", "csv", "json", "yaml"),
        default="text",
        help="text: a block per pod; table: a line per pod; wide: a line per container with its cgroup; "
        "csv: namespace, pod, container, class, oom_score_adj; json and yaml: everything (default: text)",
    )
    parser.add_argument(
        "--node-memory",
        metavar="QUANTITY",
        help="memory of the node, which enters Burstable's oom score (default: this machine's)",
    )
    newest = ".".join(map(str, NEWEST))
    parser.add_argument(
        "--kubernetes-version", metavar="X.Y", default=newest, help=f"whose rules to use (default: {newest})"
    )
    parser.add_argument("--cgroup", choices=list(CgroupVersion), default="v2", help="cgroup version (default: v2)")
    parser.add_argument(
        "--driver", choices=list(CgroupDriver), default="systemd", help="cgroup driver (default: systemd)"
    )
    parser.add_argument(
        "--runtime", choices=list(Runtime), default="containerd", help="container runtime (default: containerd)"
    )
    parser.add_argument(
        "--require",
        metavar="CLASS",
        choices=[QOSClass.GUARANTEED, QOSClass.BURSTABLE],
        help="exit with 1 if any pod has a lower class than this (Guaranteed or Burstable)",
    )
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of -o json and exit")
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explain, print, and return the exit code."""
    if arguments.schema:
        return _print_schema()
    settings = _settings(arguments)
    files = _files(arguments)
    explainer = partial(explain_file, settings=settings, as_rows=arguments.output == "csv")
    from podqos.cli.fan_out import fan_out

    tally = Tally()
    printer = _printer(arguments, settings)
    code = printer(tally.watch(fan_out(explainer, files)))
