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
import sys
from collections.abc import Iterator, Sequence

from podqos.cli.options import add_kubelet_option, add_schema_option, add_version_option, described_node_memory
from podqos.cli.output import print_schema, print_value
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InputError, InvalidOption
from podqos.eviction.ranking import Ranking
from podqos.eviction.signals import Signal
from podqos.library.inputs.drift_usage import assumed, measured
from podqos.library.inputs.files import read_bytes
from podqos.library.inputs.injecting import add_inject_option, read_injectors
from podqos.library.inputs.kubelet_node import judged_cgroups, kubelet_of
from podqos.library.inputs.revisions import read_version
from podqos.library.inputs.versions import ReadVersion, Shared, read_workloads, texts_of
from podqos.manifest.problems import Problem, Severity
from podqos.model.profile import parse_version
from podqos.model.snapshot import NodeUsage
from podqos.report.survival.drift import Allowed, DriftReport, workload_reports
from podqos.survival.drift import drift
from podqos.survival.usage_file import read_usage


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
    add_inject_option(parser)
    parser.add_argument(
        "--usage", metavar="FILE", help="what pods use, as for podqos rank (default: what they request)"
    )
    parser.add_argument(
        "--node-memory",
        metavar="QUANTITY",
        help="memory of the node (default: that of a Node in the manifests, or 64Gi)",
    )
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
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml", "markdown"),
        default="table",
        help="markdown: for a comment on a pull request (default: table)",
    )
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, and return the exit code."""
    if arguments.schema:
        print_schema(DriftReport)
        return 0
    if arguments.old is None or arguments.new is None:
        raise InvalidOption("two versions are needed", fix="for example: podqos drift HEAD~1:deploy deploy")
    profile = parse_version(arguments.kubernetes_version)
    injectors = read_injectors(arguments.inject)
    shared = Shared(texts_of(arguments.policies), texts_of(arguments.beside))
    rows = () if arguments.usage is None else read_usage(arguments.usage, read_bytes(arguments.usage))
    named = [row.pod for row in rows]
    old = read_workloads(read_version(arguments.old), shared, injectors, named, profile)
    new = read_workloads(read_version(arguments.new), shared, injectors, named, profile)
    errors = _print_problems([*old.problems, *new.problems])
    if not old.entries and not new.entries:
        raise InputError("no workloads in either version", fix="name files or directories with manifests")
    node = NodeUsage(described_node_memory(arguments.node_memory, new.nodes or old.nodes))
    kubelet = kubelet_of(arguments.kubelet_config)
    settings = judged_cgroups(kubelet, memory_bytes=node.memory_bytes, profile=profile)
    versions = measured(rows, old, new, node) if arguments.usage is not None else assumed(old, new, node)
    found = drift(*versions, Ranking(Signal.MEMORY, profile=profile), settings)
    allowed = Allowed(frozenset(_known(arguments.allow, old, new)), shifted=arguments.allow_shifted)
    report = DriftReport(
        old=arguments.old,
        new=arguments.new,
        kubernetes_version=".".join(map(str, profile.version)),
        node_memory_bytes=node.memory_bytes,
        usage=arguments.usage,
        injectors=tuple(injector.name for injector in injectors),
        workloads=workload_reports(found, allowed),
    )
    _print(report, arguments)
    if errors:
        return 2
    return 1 if report.fails else 0


def _known(names: Sequence[str], *versions: ReadVersion) -> Iterator[str]:
    known = {
        name
        for version in versions
        for identity in version.entries
        for name in (identity.name, f"{identity.namespace}/{identity.name}")
    }
    for name in names:
        if name not in known:
            raise InvalidOption(f"there is no workload {name}", where="--allow", fix="name one of the manifests")
        yield name


def _print_problems(problems: Sequence[Problem]) -> int:
    # What is wrong with a policy file is wrong in both versions.
    for problem in sorted(set(problems)):
        print(problem, file=sys.stderr)
    return sum(problem.severity is Severity.ERROR for problem in problems)


def _print(report: DriftReport, arguments: argparse.Namespace) -> None:
    if arguments.output == "table":
        from podqos.report.survival.drift_lines import table

        print("\n".join(table(report, style_for(arguments.color))))
    elif arguments.output == "markdown":
        from podqos.report.survival.drift_markdown import markdown

        print(markdown(report))
    else:
        print_value(report, arguments.output)
