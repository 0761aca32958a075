"""Requirements for pods, as policies. docs/reference/commands/policy.md describes the language.

  test    test manifests against policies: podqos policy test -f policy.yaml -f manifests/
  cel     print policies as Kubernetes admission policies, which need no webhook:
          podqos policy cel -f policy.yaml | kubectl apply -f -

A policy (kind: Policy, apiVersion: podqos.dev/v1alpha1) applies to all objects if its file is given by name, or to the
objects of its directory and below if the directory is given. `podqos check` reads the same policies, and .podqos.yaml
can hold one under `policy`.

With -A, --context or --snapshot, the policies of -f are tested against the pods that run: what would they reject
today? If -f holds workloads, those are tested instead, with the cluster's namespaces and policies.

To test the policy itself, annotate an object with podqos.dev/expect: deny (or warn, audit, allow), optionally followed
by the names of the rules it must violate.

Exit codes of test: 0 everything is as expected, and nothing else is rejected (--fail-on); 1 otherwise; 2 bad input.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from msgspec.structs import replace

from podqos.advice.checks.configuration import demands_of
from podqos.cli.cluster import arguments_name_cluster, cluster_of, object_arguments, profile_of
from podqos.cli.inputs import stored_policies
from podqos.cli.options import (
    add_choice_option,
    add_list_option,
    add_version_option,
    capacity_option,
    rendering_of,
    stated_classes,
)
from podqos.cli.output import (
    add_output_options,
    emit,
    object_name,
    print_file,
    print_value,
    say_assumptions,
)
from podqos.cli.parser import FILES, add_action
from podqos.cli.problems import print_problems
from podqos.cli.progress import progress_line
from podqos.cli.selecting import add_manifest_options, select, selection_of
from podqos.errors import InputError, InvalidOption
from podqos.model.assumption import of_version
from podqos.model.quantity import ZERO
from podqos.model.resources import QOS_RESOURCES
from podqos.objects.files import STDIN, Inputs
from podqos.objects.objects import Objects
from podqos.objects.selection import namespace_of
from podqos.parallel import over_cores
from podqos.policy.admission_policies import Wish, admission_policies
from podqos.policy.model import Action, Policy
from podqos.questions import policy
from podqos.reading.cluster_part import Part
from podqos.reading.configuration import configuration_for
from podqos.reading.configured import FILE_NAME, configured_kinds
from podqos.reading.gathering import existing_files, manifest_files
from podqos.reading.loading import load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos policy``."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    test = add_action(commands, "test", "test manifests against policies")
    add_manifest_options(test)
    about = "the cluster's policies (Kubernetes' and podqos'), Namespaces and Nodes"
    add_list_option(test, "--policies", "FILE|DIR", about)
    about = "exit with 1 if a violation has this action or a stricter one"
    add_choice_option(test, "--fail-on", policy.FailOn, about, policy.FailOn.DENY)
    add_version_option(test)
    about = "text: for people; json, yaml: everything; junit: for CI servers"
    formats = ("text", "json", "yaml", "csv", "name", "junit")
    add_output_options(test, formats, "podqos.questions.policy:PolicyReport", about)
    cel = add_action(commands, "cel", "print policies as Kubernetes admission policies (CEL)")
    about = "policies: a file, a directory (all YAML and JSON below it), or - for standard input; may be repeated"
    cel.add_argument("-f", "--filename", dest=FILES, metavar="FILE|DIR|-", action="append", help=about)
    about = "strictest action for workloads and CronJobs (default: a warning, if their pods are validated as well)"
    add_choice_option(cel, "--workloads", Action, about)
    about = (
        "also fix pods that must be Guaranteed: set missing limits to the request, or to these amounts for "
        "containers that state neither"
    )
    cel.add_argument("--fill-limits", metavar="cpu=100m,memory=64Mi", nargs="?", const="", help=about)
    add_version_option(cel)
    about = "both can be piped to kubectl apply -f -"
    add_output_options(cel, ("yaml", "json"), "podqos.questions.policy:AdmissionPolicyList", about)


def run(arguments: argparse.Namespace) -> int:
    """Run the action, and return the exit code."""
    match arguments.action:
        case "test":
            return _test(arguments)
        case _:
            return _cel(arguments)


def _test(arguments: argparse.Namespace) -> int:
    objects = _judged_objects(arguments)
    given = _configured(arguments, objects)
    if given is None or objects.errors:
        print_problems(objects.problems)
        return 2
    report = policy.judge_policies(
        objects,
        given,
        profile=profile_of(arguments),
        today=datetime.now(UTC).date(),
        fail_on=arguments.fail_on,
        spread=over_cores(progress_line("testing file")),
    )
    if print_problems(objects.problems):
        return 2
    if not report.summary.objects:
        raise InvalidOption("no workloads to test", where="-f", fix="give manifests, or -A for the live cluster")
    lines = (lambda value, _: (policy.junit(value),)) if arguments.output == "junit" else policy.text
    emit(report, arguments, lines, policy.csv_rows, _names)
    return int(report.fails)


def _names(report: policy.PolicyReport) -> list[str]:
    return [object_name(item.kind, item.name) for item in report.items if item.action]


def _judged_objects(arguments: argparse.Namespace) -> Objects:
    """Return the objects of the files; if these are only policies, add the pods of the cluster."""
    object_arguments(arguments)
    if [*(arguments.files or ()), *arguments.policies].count(STDIN) > 1:
        raise InvalidOption("standard input can be read only once", where=STDIN, fix="use files for the rest")
    names_cluster, files = arguments_name_cluster(arguments), Inputs([])
    if arguments.files or arguments.kustomize or not names_cluster:
        files = manifest_files(arguments.files, "judge", rendering_of(arguments))
        files = files.only(file for file in files.files if not file.path.endswith(FILE_NAME))
    policies = (existing_files(arguments.policies),) if arguments.policies else ()
    if names_cluster and files.files and load(files, kinds=configured_kinds(files.paths)).workloads:
        stored = stored_policies(arguments)
        policies = (*policies, *(() if stored is None else (stored,)))
    elif names_cluster:
        kinds = tuple(kind for kind, _ in getattr(arguments, "objects", ()))
        declared = any(kind != "pod" for kind in kinds)
        cluster = cluster_of(arguments, Part(usage=False, workloads=declared, named_kinds=kinds))
        assert cluster is not None
        own = cluster.declared() if declared else cluster.running()
        files = Inputs([*own.files, *files.files], files.problems, own.assumptions)
    selection = selection_of(arguments)

    def loaded(inputs: Inputs) -> Objects:
        return load(
            inputs,
            policies=policies,
            namespace=namespace_of(selection),
            progress=progress_line("reading file"),
            stated=stated_classes(arguments),
            kinds=configured_kinds(inputs.paths),
        )

    objects = loaded(files)
    places = {found.source for found in objects.workloads}
    idle = {
        own.found.source.path for own in objects.own_policies if not any(objects.is_about(own, path) for path in places)
    }
    if idle:  # a directory of policies alone is meant for what is elsewhere
        objects = loaded(files.only(replace(file, scope=None) if file.path in idle else file for file in files.files))
    return select(objects, selection)


def _configured(arguments: argparse.Namespace, objects: Objects) -> tuple[Policy, ...] | None:
    """Return the configuration's policy if the files have none; None, with a note, if it is invalid."""
    if objects.own_policies or not arguments.files:
        return ()
    config = configuration_for(list(arguments.files), None)
    objects.note(*config.problems)
    return None if objects.errors else demands_of(config.configuration, FILE_NAME)


def _cel(arguments: argparse.Namespace) -> int:
    """Print the objects and what they do not cover, and return the exit code."""
    profile = profile_of(arguments)
    if not profile.validating_admission_policies:
        raise InvalidOption(
            f"Kubernetes {arguments.kubernetes_version} has no ValidatingAdmissionPolicy",
            where="--kubernetes-version",
            fix="it has been stable since 1.30; use `podqos webhook` with older versions",
        )
    files = manifest_files(arguments.files, "read policies from")
    objects = load(files.only(file for file in files.files if not file.path.endswith(FILE_NAME)))
    given = _configured(arguments, objects)
    if print_problems(objects.problems) or given is None:
        return 2
    policies = [*given, *(own.policy for own in objects.own_policies)]
    if not policies:
        fix = "give a file with kind: Policy, apiVersion: podqos.dev/v1alpha1; docs/how-to/policy.md has one"
        raise InputError("no policy found", where="-f", fix=fix)
    wish = Wish(
        profile=profile,
        today=datetime.now(UTC).date(),
        templates=arguments.workloads,
        mutate=arguments.fill_limits is not None,
        limits=_limits(arguments.fill_limits),
    )
    found = admission_policies(policies, wish)
    if arguments.output == "json":
        print_value(policy.as_list(found), "json")
    else:
        print_file(policy.documents(found))
    sys.stdout.flush()
    for left in found.not_expressed:
        print(f"not in CEL: {policy.not_expressed(left)}", file=sys.stderr)
    say_assumptions(of_version(profile))
    return 0


def _limits(text: str | None) -> dict[str, str]:
    """Read the amounts of ``--fill-limits``: both or none, because one alone never makes a pod Guaranteed."""
    limits = capacity_option(text, "--fill-limits") if text else {}
    for name, amount in limits.items():
        if name not in QOS_RESOURCES or amount < ZERO:
            what, fix = f"{name}={amount} cannot be used as a limit", "write cpu=100m,memory=64Mi"
            raise InvalidOption(what, where="--fill-limits", fix=fix)
    return {name: amount.rounded_up_to_milli().canonical() for name, amount in limits.items()}
