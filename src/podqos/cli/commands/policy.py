"""Policies: what a cluster's owner demands of pods. docs/reference/commands/policy.md has the language.

  test    which objects violate what: podqos policy test -f policy.yaml -f manifests/
  cel     print the policy as admission policies of Kubernetes, which need no server:
          podqos policy cel -f policy.yaml | kubectl apply -f -
  schema  print the JSON Schema of policies, for editors

A policy among the files (kind: Policy, apiVersion: podqos.dev/v1alpha1) applies to all objects where its file is named,
and to those of its directory and below where the directory is. `podqos check` reads the same policies, and .podqos.yaml
holds one under `policy`.

With -A, --context or --snapshot, a policy of -f is held against the pods that run: what it would refuse today. Where -f
has workloads, these are judged, with the namespaces and policies of the cluster.

An object annotated podqos.dev/expect: deny (warn, audit, allow), optionally with names of rules it has to violate, is a
test of the policy.

Exit codes of test: 0 all is as expected, and nothing else would be refused (--fail-on); 1 otherwise; 2 bad input.
"""

from __future__ import annotations

import argparse

from podqos.cli.main import EXIT_BAD_INPUT, EXIT_OK
from podqos.cli.options import add_list_option, add_version_option
from podqos.cli.output import add_output_options
from podqos.cli.policy_cel import add_cel_arguments
from podqos.cli.policy_cel import run as print_admission_policies
from podqos.cli.selecting import add_manifest_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos policy``."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    test = commands.add_parser("test", help="which objects violate what")
    add_manifest_options(test)
    about = "policies of the cluster, of Kubernetes and of podqos, and its Namespaces and Nodes"
    add_list_option(test, "--policies", "FILE|DIR", about)
    add_list_option(test, "--inject", "NAME", "add what a sidecar injector adds to every pod: istio, linkerd or vault")
    test.add_argument(
        "--fail-on",
        choices=("deny", "warn", "audit", "never"),
        default="deny",
        help="exit with 1 where something is judged so, or more strictly (default: deny)",
    )
    add_version_option(test)
    add_output_options(
        test,
        ("text", "json", "yaml", "name", "junit"),
        "podqos.answers.policies:PolicyReport",
        "text: for people; json, yaml: everything; junit: for CI servers",
    )
    add_cel_arguments(commands.add_parser("cel", help="print a policy as admission policies of Kubernetes"))
    commands.add_parser("schema", help="print the JSON Schema of policies")


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked for, and return the exit code."""
    match arguments.action:
        case "test":
            return _test(arguments)
        case "cel":
            return print_admission_policies(arguments)
        case _:
            return _schema()


def _schema() -> int:
    from podqos.cli.output import print_schema

    print_schema("podqos.policy.model:Policy")
    return EXIT_OK


def _test(arguments: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    from podqos.admission.injectors import injector_named
    from podqos.answers.policies import FailOn
    from podqos.cli.cluster import profile_of
    from podqos.cli.output import emit, object_name
    from podqos.cli.policy_inputs import given_policies, judged_objects
    from podqos.cli.problems import print_problems
    from podqos.cli.progress import progress_line
    from podqos.errors import InvalidOption
    from podqos.library.policies import judge_policies
    from podqos.report.policy import lines

    objects = judged_objects(arguments)
    given = given_policies(arguments, objects)
    if given is None or objects.errors:
        print_problems(objects.problems)
        return EXIT_BAD_INPUT
    report = judge_policies(
        objects,
        given,
        profile=profile_of(arguments),
        today=datetime.now(UTC).date(),
        inject=tuple(injector_named(name).name for name in arguments.inject),
        fail_on=FailOn(arguments.fail_on),
        progress=progress_line("judging file"),
    )
    if print_problems(objects.problems):
        return EXIT_BAD_INPUT
    if not report.summary.objects:
        raise InvalidOption("no workloads to judge", where="-f", fix="name their manifests, or a cluster with -A")
    if arguments.output == "junit":
        from podqos.report.policy.junit import junit

        emit(report, arguments, lambda value, _: (junit(value),))
    else:
        emit(
            report,
            arguments,
            lines.text,
            names=lambda value: (object_name(i.kind, i.name) for i in value.items if i.action),
        )
    return 1 if report.fails else EXIT_OK
