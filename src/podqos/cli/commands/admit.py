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

from podqos.admission.resource_override import PROFILES
from podqos.amounts import counted
from podqos.cli.cluster import profile_of
from podqos.cli.inputs import given_files, say_skipped, stored_policies
from podqos.cli.options import add_list_option, add_version_option, stated_classes
from podqos.cli.output import add_output_options, emit, object_name
from podqos.cli.problems import print_problems
from podqos.cli.progress import progress_line
from podqos.cli.selecting import add_manifest_options, select, selection_of
from podqos.errors import InvalidOption
from podqos.manifest.problems import Severity
from podqos.objects.files import STDIN
from podqos.objects.selection import namespace_of
from podqos.questions.admit import admit, csv_rows, table, text
from podqos.reading.configured import configured_kinds
from podqos.reading.gathering import existing_files
from podqos.reading.loading import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos admit``."""
    add_manifest_options(parser)
    about = "the cluster's policies, for example from `kubectl get ns,limits,quota,pc,runtimeclass -A -o yaml`"
    add_list_option(parser, "--policies", "FILE|DIR", about)
    about = (
        "generation of the ClusterResourceOverride plug-in: okd-3.9 (namespaces opt out, a LimitRange may reject the "
        "result) or current (namespaces opt in) (default: detected from the object)"
    )
    parser.add_argument("--override-profile", choices=tuple(PROFILES), help=about)
    about = "the pods of -f with new resources: once admitted, resize them in place"
    add_list_option(parser, "--resize", "FILE|DIR", about)
    add_version_option(parser)
    about = "text: every step of every workload; table: one line per workload; csv, json and yaml"
    formats = ("text", "table", "csv", "json", "yaml", "name")
    add_output_options(parser, formats, "podqos.questions.admit:AdmissionList", about)


def run(arguments: argparse.Namespace) -> int:
    """Admit, print, and return the exit code."""
    if [*(arguments.files or ()), *arguments.policies, *arguments.resize].count(STDIN) > 1:
        raise InvalidOption("standard input can be read only once", where=STDIN, fix="use files for the rest")
    inputs, stored = given_files(arguments, "admit", under=True), stored_policies(arguments)
    selection, profile = selection_of(arguments), profile_of(arguments)  # of the context, once the cluster is read
    namespace = namespace_of(selection)
    files = existing_files(arguments.policies) if arguments.policies else None
    objects = load(
        inputs,
        policies=[policies for policies in (stored, files) if policies is not None],
        namespace=namespace,
        doubles=Severity.ERROR,
        progress=progress_line("reading file"),
        stated=stated_classes(arguments),
        version=profile.version,
        kinds=configured_kinds(inputs.paths),
    )
    objects = select(objects, selection)
    resizes = load(existing_files(arguments.resize), namespace=namespace) if arguments.resize else None
    objects.check_policies()
    whole = None
    if not objects.policy_errors:
        told, override = progress_line("workload"), arguments.override_profile
        whole = admit(objects, resizes=resizes, override_profile=override, profile=profile, progress=told)
    errors = print_problems([*objects.problems, *([] if resizes is None else resizes.problems)])
    found = [] if whole is None else whole.items
    if whole is not None:
        lines = table if arguments.output == "table" else text
        emit(whole, arguments, lines, csv_rows, lambda _: (object_name(each.kind, each.name) for each in found))
    say_skipped(objects, errors, found=counted(len(found), "workload"), verb="processed", without="pods or policies")
    return 2 if errors or not found else int(any(item.is_finding for item in found))
