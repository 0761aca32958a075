"""Check manifests and kubelet configurations: what will fail when memory runs short, why, and what to write instead.

Reads workloads and the objects that affect their pods: policies, priority classes, Services, Nodes and
KubeletConfigurations, in the same files or given with --policies. Suppress a finding with the annotation
podqos.dev/ignore, in .podqos.yaml (in the directory of the files or above it), or with a baseline of known findings.

The table and GitHub's annotations leave out infos, unless -v, --min-severity info or --fail-on info is given. All
other outputs have every finding.

Exit codes: 0 no findings at or above --fail-on; 1 findings; 2 something could not be read; 3 a file could not be
written.
"""

from __future__ import annotations

import argparse

from podqos.cli import options
from podqos.cli.output import add_output_options, print_lines, print_names, print_schema, print_value
from podqos.cli.selecting import add_manifest_options
from podqos.cli.terminal import style_of

_SEVERITIES = ("error", "warning", "info")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos check``."""
    add_manifest_options(parser)
    add_output_options(
        parser,
        ("table", "json", "yaml", "name", "sarif", "github", "junit"),
        "podqos.answers.findings:CheckReport",
        (
            "table: for people; json, yaml: everything; sarif: for code scanning; github: annotations on a pull "
            "request; junit: for CI servers"
        ),
    )
    parser.add_argument(
        "--stdin-filename",
        metavar="PATH",
        help="the file that standard input (-f -) is reported as, and whose .podqos.yaml applies; never written",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="also show infos (table, github) and every location of a finding"
    )
    scores = (
        "score every namespace instead of listing findings (table, json, yaml, name); without files, of "
        "the live cluster"
    )
    parser.add_argument("--all", action="store_true", help=scores)
    _add_cluster_options(parser)
    _add_gate_options(parser)
    fixes = parser.add_argument_group("fixes")
    fixes.add_argument(
        "--fix",
        action="store_true",
        help="apply the fixes that need no decision, and report the rest; standard input is fixed on standard output",
    )
    options.add_list_option(
        fixes,
        "--only",
        "CHECK",
        (
            "run only these checks, by id or name; --fix then also applies fixes with a cost, such as a CPU limit "
            "(PQ101), or that rest on a rule of thumb (PQ105) or another object's policy (PQ201)"
        ),
    )
    fixes.add_argument(
        "--diff", action="store_true", help="show what --fix would change, without writing anything, even with --fix"
    )
    fixes.add_argument(
        "--patch-format",
        choices=("kubectl", "kustomize", "json"),
        help="print the fixes as patches: kubectl commands, kustomize files, or JSON patches",
    )
    about = parser.add_argument_group("about the checks")
    about.add_argument("--list", action="store_true", help="list all checks and exit (-o json or yaml too)")
    about.add_argument("--explain", metavar="ID", help="explain one check, by id or name, and exit")
    parser.add_argument("--config-schema", action="store_true", help="print the JSON Schema of .podqos.yaml and exit")


def _add_cluster_options(parser: argparse.ArgumentParser) -> None:
    cluster = parser.add_argument_group("the cluster")
    about = "the cluster's policies, priority classes, Services, Nodes and kubelet configurations: they apply "
    options.add_list_option(cluster, "--policies", "FILE|DIR", f"{about}but are not checked themselves")
    about = "workloads of -f with new resources, to check an in-place resize"
    options.add_list_option(cluster, "--resize", "FILE|DIR", about)
    about = "what the pods of --resize use now, as for podqos rank: no memory limit can be lowered below that"
    cluster.add_argument("--usage", metavar="FILE", help=about)
    about = "add the sidecars of an injector to every pod: istio, linkerd or vault"
    options.add_list_option(cluster, "--inject", "NAME", about)
    options.add_node_memory_option(cluster, "a node's memory")
    options.add_kubelet_option(cluster)
    options.add_version_option(cluster)


def _add_gate_options(parser: argparse.ArgumentParser) -> None:
    gate = parser.add_argument_group("CI gate")
    gate.add_argument(
        "--min-severity", choices=_SEVERITIES, help="hide findings below this severity; info shows infos as well"
    )
    gate.add_argument(
        "--fail-on",
        choices=(*_SEVERITIES, "never"),
        help="exit with 1 if a finding has this severity or a higher one (default: warning)",
    )
    gate.add_argument("--baseline", metavar="FILE", help="file of known findings, which are not reported again")
    gate.add_argument(
        "--write-baseline", action="store_true", help="write all findings to the --baseline file and exit with 0"
    )
    gate.add_argument("--show-suppressed", action="store_true", help="also show suppressed findings and the reason")
    gate.add_argument(
        "--config-file", metavar="FILE", help='configuration file, or "none" (default: the nearest .podqos.yaml)'
    )


def run(arguments: argparse.Namespace) -> int:
    """Check, print, and return the exit code."""
    if arguments.config_schema:
        print_schema("podqos.advice.checks.configuration:Configuration")
        return 0
    if arguments.list or arguments.explain:
        return _about_checks(arguments)
    from podqos.cli.commands.check_run import CheckRun

    return CheckRun(arguments).run()


def _about_checks(arguments: argparse.Namespace) -> int:
    from podqos.advice.checks.catalogue import CHECKS, check_named
    from podqos.library.check_examples import good_example
    from podqos.report.check import catalogue as check_catalogue

    style = style_of(arguments)
    checks = [check_named(arguments.explain, "explain")] if arguments.explain else list(CHECKS.values())
    if arguments.output in {"json", "yaml"}:
        print_value(check_catalogue.check_list(checks, good_example), arguments.output)
    elif arguments.output == "name":
        print_names(check.id for check in checks)
    elif arguments.explain:
        print_lines(check_catalogue.page(checks[0], good_example, style))
    else:
        print_lines(check_catalogue.table(checks, style), style)
    return 0
