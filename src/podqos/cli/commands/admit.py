"""Show what the API server does to every pod in the manifests, step by step, and where its QoS class changes.

Policies (LimitRange, ResourceQuota, PriorityClass, RuntimeClass, Namespace, ClusterResourceOverride) can be in the
same files as the workloads; from files given with --policies, only the policies are used. All replicas are charged to
the quotas, in the order of the files. A namespace is assumed to exist, unless --policies lists namespaces and it is
neither among them nor in -f. With -A, --context or --snapshot in addition to -f, the policies are the cluster's, and
what runs there is charged to its quotas.

Exit codes: 0 all pods are admitted with the class their manifests ask for; 1 a pod is rejected, or admission changes
its class other than by defaulting (a request copied from its limit); 2 bad input, including invalid policies.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

from podqos.admission.resource_override import PROFILES
from podqos.answers.admission import AdmissionReport
from podqos.answers.admit import AdmissionRun
from podqos.cli.cluster import profile_of
from podqos.cli.inputs import given_files, stored_policies
from podqos.cli.options import add_version_option, stated_classes
from podqos.cli.output import (
    add_output_options,
    object_name,
    print_csv,
    print_lines,
    print_names,
    print_value,
    say_assumptions,
)
from podqos.cli.problems import print_problems
from podqos.cli.progress import progress_line
from podqos.cli.selecting import add_manifest_options, select, selection_of
from podqos.cli.terminal import style_of
from podqos.errors import InvalidOption
from podqos.manifest.problems import Severity
from podqos.objects.files import STDIN
from podqos.objects.objects import Objects
from podqos.objects.other_objects import count_not_judged
from podqos.objects.selection import namespace_of
from podqos.reading.configured import configured_kinds
from podqos.reading.gathering import existing_files
from podqos.reading.loading import load
from podqos.report.admission import lines
from podqos.wording import counted
from podqos.words.admission import OTHER_FIELDS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos admit``."""
    add_manifest_options(parser)
    parser.add_argument(
        "--policies",
        metavar="FILE|DIR",
        action="append",
        default=[],
        help=(
            "the cluster's policies, for example from `kubectl get ns,limits,quota,pc,runtimeclass -A -o "
            "yaml`; may be repeated"
        ),
    )
    parser.add_argument(
        "--override-profile",
        choices=tuple(PROFILES),
        help=(
            "generation of the ClusterResourceOverride plug-in: okd-3.9 (namespaces opt out, a LimitRange "
            "may reject the result) or current (namespaces opt in) (default: detected from the object)"
        ),
    )
    parser.add_argument(
        "--resize",
        metavar="FILE|DIR",
        action="append",
        default=[],
        help="the pods of -f with new resources: once admitted, resize them in place; may be repeated",
    )
    add_version_option(parser)
    add_output_options(
        parser,
        ("text", "table", "csv", "json", "yaml", "name"),
        "podqos.answers.admission:AdmissionList",
        "text: every step of every workload; table: one line per workload; csv, json and yaml",
    )


def run(arguments: argparse.Namespace) -> int:
    """Admit, print, and return the exit code."""
    given = [*(arguments.files or ()), *arguments.policies, *arguments.resize]
    if given.count(STDIN) > 1:
        raise InvalidOption("standard input can be read only once", where=STDIN, fix="use files for the rest")
    inputs = given_files(arguments, "admit", under=True)
    stored = stored_policies(arguments)
    selection = selection_of(arguments)
    namespace = namespace_of(selection)
    objects = load(
        inputs,
        policies=(
            *(() if stored is None else (stored,)),
            *((existing_files(arguments.policies),) if arguments.policies else ()),
        ),
        namespace=namespace,
        doubles=Severity.ERROR,
        progress=progress_line("reading file"),
        stated=stated_classes(arguments),
        version=profile_of(arguments).version,
        kinds=configured_kinds(inputs.paths),
    )
    objects = select(objects, selection)
    resizes = load(existing_files(arguments.resize), namespace=namespace) if arguments.resize else None
    objects.check_policies()
    admitting = None
    if not objects.policy_errors:
        profile = profile_of(arguments)
        admitting = AdmissionRun(objects, resizes, arguments.override_profile, profile)
    errors = print_problems([*objects.problems, *([] if resizes is None else resizes.problems)])
    tally = AdmissionTally()
    if admitting is not None:
        _print(tally, admitting, arguments)
    return tally.close(objects, errors, resizes=bool(arguments.resize))


def _print(tally: AdmissionTally, admitting: AdmissionRun, arguments: argparse.Namespace) -> None:
    style = style_of(arguments)
    # Where results are printed as they come, they show themselves how far it is.
    is_streamed = arguments.output in {"text", "csv"}
    reports = tally.counting(admitting.items(None if is_streamed else progress_line("workload")))
    match arguments.output:
        case "text":
            for item in reports:
                print_lines(lines.text(item, style), style)
        case "table":
            print_lines(lines.table(list(reports), style), style)
        case "name":
            print_names(object_name(item.kind, item.name) for item in reports)
        case "csv":
            print_csv(lines.CSV_HEADER, map(lines.csv_row, reports), has_header=style.has_headers)
        case notation:
            print_value(admitting.whole(reports), notation)
    if arguments.output in {"text", "table"} and tally.workloads:
        print_lines([OTHER_FIELDS], style)
    if arguments.output not in {"json", "yaml"}:
        say_assumptions(admitting.assumptions)


class AdmissionTally:
    """The totals of all files."""

    def __init__(self) -> None:
        self.workloads = 0
        self._findings = 0

    def counting(self, reports: Iterable[AdmissionReport]) -> Iterator[AdmissionReport]:
        """Pass the reports on and count them."""
        for item in reports:
            self.workloads += 1
            self._findings += item.is_finding
            yield item

    def close(self, objects: Objects, errors: int, *, resizes: bool = False) -> int:
        """Print in one line what was left out, and return the exit code."""
        found = self.workloads
        in_vain = (
            other
            for other in objects.others
            if not (
                other.is_stored or other.is_policy or other.source.cluster or (resizes and other.other.kind == "Node")
            )
        )
        others = sum(1 for _ in in_vain) + objects.skipped
        left_out = []
        if others:
            left_out.append(f"skipped {counted(others, 'object')} without pods or policies")
        if errors:
            left_out.append(counted(errors, "error"))
        unjudged = count_not_judged(objects.unjudged)
        if left_out or unjudged or not found:
            summary = f"{found or 'no'} workload{'s' if found != 1 else ''} processed"
            print("; ".join(filter(None, (summary, unjudged, ", ".join(left_out)))), file=sys.stderr)
        if errors or not found:
            return 2
        return 1 if self._findings else 0
