"""Requirements for pods, as policies. docs/reference/commands/policy.md describes the language.

  test    test manifests against policies: podqos policy test -f policy.yaml -f manifests/
  cel     print policies as Kubernetes admission policies, which need no webhook:
          podqos policy cel -f policy.yaml | kubectl apply -f -
  schema  print the JSON Schema of policies, for editors

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

from podqos.cli.main import EXIT_BAD_INPUT, EXIT_OK
from podqos.cli.options import add_list_option, add_version_option
from podqos.cli.output import add_output_options
from podqos.cli.parser import add_action
from podqos.cli.policy_cel import add_cel_arguments
from podqos.cli.policy_cel import run as print_admission_policies
from podqos.cli.selecting import add_manifest_options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos policy``."""
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    test = add_action(commands, "test", "test manifests against policies")
    add_manifest_options(test)
    about = "the cluster's policies (Kubernetes' and podqos'), Namespaces and Nodes"
    add_list_option(test, "--policies", "FILE|DIR", about)
    add_list_option(test, "--inject", "NAME", "add the sidecars of an injector to every pod: istio, linkerd or vault")
    test.add_argument(
        "--fail-on",
        choices=("deny", "warn", "audit", "never"),
        default="deny",
        help="exit with 1 if a violation has this action or a stricter one (default: deny)",
    )
    add_version_option(test)
    add_output_options(
        test,
        ("text", "json", "yaml", "name", "junit"),
        "podqos.answers.policies:PolicyReport",
        "text: for people; json, yaml: everything; junit: for CI servers",
    )
    add_cel_arguments(add_action(commands, "cel", "print policies as Kubernetes admission policies (CEL)"))
    add_action(commands, "schema", "print the JSON Schema of policies")


def run(arguments: argparse.Namespace) -> int:
    """Run the action, and return the exit code."""
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
        progress=progress_line("testing file"),
    )
    if print_problems(objects.problems):
        return EXIT_BAD_INPUT
    if not report.summary.objects:
        raise InvalidOption("no workloads to test", where="-f", fix="give manifests, or -A for the live cluster")
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
