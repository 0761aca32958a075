"""Compare two versions of manifests: whose class, oom score or place in a kill order changed, and because of what.

OLD and NEW are files, directories, or REV:path in a git repository (`HEAD~1:deploy`, `main:./k8s`). Policies beside the
manifests (LimitRange, PriorityClass, …) are applied, and injectors where --inject names them. Both versions are judged
on the same node with the same use of memory: that of --usage, or what the older version requests.

A workload moves ahead when it now goes before another that used to go before it, or level with it. It is the same
workload while its kind, namespace and name are.

Exit codes: 0 nobody is worse off; 1 a workload is downgraded or moves ahead in a kill order; 2 bad input.
"""

from __future__ import annotations

import argparse

from podqos.admission.injectors import INJECTORS
from podqos.cli.inputs import print_problems
from podqos.cli.options import (
    add_class_options,
    add_kubelet_option,
    add_version_option,
    stated_classes,
    stated_node_memory,
)
from podqos.cli.output import add_output_options, emit
from podqos.errors import InvalidOption
from podqos.library.drift import drift
from podqos.library.inputs.configured import configured_kinds
from podqos.library.inputs.injecting import read_injectors
from podqos.library.inputs.kubelet_node import kubelet_of
from podqos.library.inputs.versions import load_version
from podqos.model.profile import parse_version
from podqos.report.survival.drift import DriftReport
from podqos.report.survival.drift_lines import table
from podqos.report.text.style import Style
from podqos.survival.drift import Allowed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos drift``."""
    parser.add_argument("old", metavar="OLD", nargs="?", help="the version before: FILE, DIR or REV:path")
    parser.add_argument("new", metavar="NEW", nargs="?", help="the version after, likewise")
    parser.add_argument(
        "--policies",
        metavar="FILE|DIR",
        action="append",
        default=[],
        help="policies of the cluster that count for both versions; may be repeated",
    )
    parser.add_argument(
        "--beside",
        metavar="FILE|DIR",
        action="append",
        default=[],
        help="workloads and policies that both versions have beside their own, such as the rest of the cluster; may be "
        "repeated",
    )
    parser.add_argument(
        "--inject",
        metavar="NAME|FILE",
        action="append",
        default=[],
        help=f"add what a sidecar injector adds: {', '.join(INJECTORS)}, or a file with the containers and "
        "initContainers that one adds; may be repeated",
    )
    parser.add_argument(
        "--usage", metavar="FILE", help="what pods use, as for podqos rank (default: what they request)"
    )
    parser.add_argument(
        "--node-memory",
        metavar="QUANTITY",
        help="memory of the node (default: that of a Node in the manifests, or 64Gi)",
    )
    add_class_options(parser)
    add_kubelet_option(parser)
    parser.add_argument(
        "--allow",
        metavar="NAME",
        action="append",
        default=[],
        help="a workload, as name or namespace/name, that may be worse off; may be repeated",
    )
    parser.add_argument(
        "--allow-shifted",
        action="store_true",
        help="a workload may move ahead if it was not changed itself: others became safer",
    )
    add_version_option(parser)
    add_output_options(
        parser,
        ("table", "json", "yaml", "markdown"),
        "podqos.report.survival.drift:DriftReport",
        "markdown: for a comment on a pull request",
    )


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and return the exit code."""
    if arguments.old is None or arguments.new is None:
        raise InvalidOption("two versions are needed", fix="for example: podqos drift HEAD~1:deploy deploy")
    profile = parse_version(arguments.kubernetes_version)
    injectors, stated = read_injectors(arguments.inject), stated_classes(arguments)
    kinds = configured_kinds([arguments.new.partition(":")[2] or arguments.new])
    old, new = (
        load_version(version, policies=arguments.policies, beside=arguments.beside, stated=stated, kinds=kinds)
        for version in (arguments.old, arguments.new)
    )
    try:
        report = drift(
            old,
            new,
            arguments.usage,
            names=(arguments.old, arguments.new),
            injectors=injectors,
            node_memory_bytes=stated_node_memory(arguments.node_memory),
            kubelet=kubelet_of(arguments.kubelet_config),
            allowed=Allowed(frozenset(arguments.allow), shifted=arguments.allow_shifted),
            profile=profile,
        )
    finally:
        # What is wrong with a policy file is wrong in both versions.
        errors = print_problems({*old.problems, *new.problems})
    emit(report, arguments, _markdown if arguments.output == "markdown" else table)
    if errors:
        return 2
    return 1 if report.fails else 0


def _markdown(report: DriftReport, _style: Style) -> list[str]:
    from podqos.report.survival.drift_markdown import markdown

    return [markdown(report)]
