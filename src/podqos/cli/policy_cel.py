"""``podqos policy cel``: its options and implementation."""

from __future__ import annotations

import argparse
import sys

from podqos.cli.main import EXIT_BAD_INPUT, EXIT_OK
from podqos.cli.options import add_choice_option, add_version_option
from podqos.cli.output import add_output_options
from podqos.cli.parser import FILES
from podqos.policy.model import Action


def add_cel_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos policy cel``."""
    about = "policies: a file, a directory (all YAML and JSON below it), or - for standard input; may be repeated"
    parser.add_argument("-f", "--filename", dest=FILES, metavar="FILE|DIR|-", action="append", help=about)
    about = "strictest action for workloads and CronJobs (default: a warning, if their pods are validated as well)"
    add_choice_option(parser, "--workloads", Action, about)
    about = (
        "also fix pods that must be Guaranteed: set missing limits to the request, or to these amounts for "
        "containers that state neither"
    )
    parser.add_argument("--fill-limits", metavar="cpu=100m,memory=64Mi", nargs="?", const="", help=about)
    add_version_option(parser)
    value = "podqos.report.policy.admission:AdmissionPolicyList"
    add_output_options(parser, ("yaml", "json"), value, "both can be piped to kubectl apply -f -")


def run(arguments: argparse.Namespace) -> int:
    """Print the objects and what they do not cover, and return the exit code."""
    from datetime import UTC, datetime

    from podqos.cli.cluster import profile_of
    from podqos.cli.output import print_file, print_value, say_assumptions
    from podqos.cli.policy_inputs import given_policies
    from podqos.cli.problems import print_problems
    from podqos.errors import InputError, InvalidOption
    from podqos.model.assumption import of_version
    from podqos.policy.admission_policies import Wish, admission_policies
    from podqos.reading.configured import FILE_NAME
    from podqos.reading.gathering import manifest_files
    from podqos.reading.loading import load
    from podqos.report.policy.admission import as_list, documents, not_expressed

    profile = profile_of(arguments)
    if not profile.validating_admission_policies:
        raise InvalidOption(
            f"Kubernetes {arguments.kubernetes_version} has no ValidatingAdmissionPolicy",
            where="--kubernetes-version",
            fix="it has been stable since 1.30; use `podqos webhook` with older versions",
        )
    files = manifest_files(arguments.files, "read policies from")
    objects = load(files.only(file for file in files.files if not file.path.endswith(FILE_NAME)))
    given = given_policies(arguments, objects)
    if print_problems(objects.problems) or given is None:
        return EXIT_BAD_INPUT
    policies = [*given, *(policy.policy for policy in objects.own_policies)]
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
        print_value(as_list(found), "json")
    else:
        print_file(documents(found))
    sys.stdout.flush()
    for left in found.not_expressed:
        print(f"not in CEL: {not_expressed(left)}", file=sys.stderr)
    say_assumptions(of_version(profile))
    return EXIT_OK


def _limits(text: str | None) -> dict[str, str]:
    """Read the amounts of ``--fill-limits``: both or none, because one alone never makes a pod Guaranteed."""
    from podqos.cli.options import capacity_option
    from podqos.errors import InvalidOption
    from podqos.model.quantity import ZERO
    from podqos.model.resources import QOS_RESOURCES

    if not text:
        return {}
    limits = capacity_option(text, "--fill-limits")
    for name, amount in limits.items():
        if name not in QOS_RESOURCES or amount < ZERO:
            raise InvalidOption(
                f"{name}={amount} cannot be used as a limit", where="--fill-limits", fix="write cpu=100m,memory=64Mi"
            )
    return {name: amount.rounded_up_to_milli().canonical() for name, amount in limits.items()}
