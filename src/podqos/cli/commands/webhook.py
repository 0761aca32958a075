"""Run an admission webhook that rejects, warns about and fixes pods by policy.

It answers AdmissionReviews of pods and of objects that create pods. Violations of the policy reject an object or warn
about it, and findings of `podqos check` become warnings. At /mutate it applies a ClusterResourceOverride, and gives
sidecars limits if a pod asks to stay Guaranteed. Policy and certificate are read again when they change.
docs/reference/commands/webhook.md shows how to roll it out and how to uninstall it.

  test         print the response to a review, without a server
  certificate  create a certificate, or renew it
  manifests    print the manifests to run it in a cluster

  podqos webhook --certificate certs --policy policy.yaml
  podqos webhook test -f review.json --policy policy.yaml
  podqos webhook manifests --image registry.example.com/podqos:1.0

Exit codes of test: 0 allowed, 1 rejected, 2 bad input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from msgspec.structs import replace

from podqos.cli import options
from podqos.cli.cluster import add_live_options
from podqos.cli.installing import add_installation_options, given_certificate, print_manifests
from podqos.cli.main import EXIT_FINDINGS, EXIT_OK
from podqos.cli.parser import add_action
from podqos.errors import HostError, InputError, InvalidOption
from podqos.model.time_units import SECOND_US
from podqos.serve.installation import WEBHOOK, starter_policy
from podqos.serve.settings import LISTEN, NAMESPACE

if TYPE_CHECKING:
    from podqos.advice.checks.bundle import CheckOptions
    from podqos.advice.checks.finding import FailOn

_WARN_ON = ("error", "warning", "info", "never")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos webhook``."""
    _add_deciding_options(parser)
    server = parser.add_argument_group("the server")
    options.add_value_option(
        server, "--listen", options.address_option, "address to listen on", "ADDRESS:PORT", default=LISTEN
    )
    about = "the certificate: a directory with tls.crt and tls.key, or the certificate file"
    server.add_argument("--certificate", metavar="DIR|FILE", help=about)
    server.add_argument("--key", metavar="FILE", help="the certificate's key (default: tls.key next to it)")
    about = "where to log each request as a line of JSON: a file, - for standard output, or none (default: -)"
    server.add_argument("--audit", metavar="FILE", default="-", help=about)
    about = "how long to keep serving after SIGTERM"
    options.add_value_option(server, "--drain", _duration, about, "TIME", default="5s")
    cluster = parser.add_argument_group("the cluster, for namespace labels, LimitRanges and priority classes")
    about = "watch the cluster (read only) that this pod runs in, or that of a kubeconfig"
    cluster.add_argument("--watch", action="store_true", help=about)
    add_live_options(cluster)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="without a server")
    test = add_action(actions, "test", "print the response to a review")
    test.add_argument(
        "-f", "--filename", metavar="FILE", required=True, help="an AdmissionReview in JSON; - for standard input"
    )
    about = "which webhook answers: validate or mutate (default: validate)"
    test.add_argument("--webhook", metavar="NAME", choices=("validate", "mutate"), default="validate", help=about)
    _add_deciding_options(test)
    certificate = add_action(actions, "certificate", "create a certificate and its CA, or renew them")
    about = "directory for ca.crt, ca.key, tls.crt and tls.key"
    certificate.add_argument("folder", metavar="DIR", help=about)
    about = f"the Service that the API server calls (default: {WEBHOOK})"
    certificate.add_argument("--service", metavar="NAME", default=WEBHOOK, help=about)
    about = f"its namespace (default: {NAMESPACE})"
    certificate.add_argument("-n", "--namespace", metavar="NAMESPACE", default=NAMESPACE, help=about)
    options.add_list_option(certificate, "--name", "NAME", "another DNS name or address of the webhook")
    certificate.add_argument("--days", metavar="N", type=int, default=365, help="days until it expires (default: 365)")
    certificate.add_argument("--force", action="store_true", help="renew it even if it is still valid for long")
    manifests = add_action(actions, "manifests", "print the manifests that run the webhook in a cluster")
    add_installation_options(manifests)
    about = "the policy (default: a starter policy that only warns)"
    manifests.add_argument("--policy", metavar="FILE", default=starter_policy(), help=about)
    manifests.add_argument("--replicas", metavar="N", type=int, default=2, help="number of replicas (default: 2)")
    about = "reject pods when the webhook does not answer (default: admit them)"
    manifests.add_argument("--fail-closed", action="store_true", help=about)
    about = "also register it for mutation, so that it can fix pods where the policy or an annotation asks for it"
    manifests.add_argument("--mutate", action="store_true", help=about)
    about = "a directory written by `podqos webhook certificate` (default: cert-manager issues the certificate)"
    manifests.add_argument("--certificate", metavar="DIR", help=about)


def _add_deciding_options(parser: options.Parser) -> None:
    about = "files with Policies, and with LimitRanges, Namespaces or a ClusterResourceOverride"
    options.add_list_option(parser, "--policy", "FILE|DIR", about)
    about = "warn about findings of this severity or higher: error, warning, info or never (default: warning)"
    parser.add_argument("--warn-on", metavar="SEVERITY", choices=_WARN_ON, default="warning", help=about)
    options.add_version_option(parser)


def _duration(text: str, option: str) -> int:
    return options.duration_option(text, option, least_us=0)


def run(arguments: argparse.Namespace) -> int:
    """Serve, or run the given action, and return the exit code."""
    match arguments.action:
        case "test":
            return _test(arguments)
        case "certificate":
            return _certificate(arguments)
        case "manifests":
            return _manifests(arguments)
        case _:
            return _serve(arguments)


def _test(arguments: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    import msgspec

    from podqos.admission.review import AnsweredReview, InvalidReview, read_review
    from podqos.advice.reviewing import Door
    from podqos.cli.output import say_assumptions
    from podqos.model.assumption import of_version
    from podqos.questions.review import response
    from podqos.reading.files import read_bytes
    from podqos.serve.webhook_rules import assumptions, read_rules, reviewer_of

    rules = read_rules(arguments.policy)
    checks, warn_on = _deciding(arguments)
    reviewer, body = reviewer_of(rules, None, checks, warn_on), read_bytes(arguments.filename)
    try:
        decision = reviewer.decide(Door(arguments.webhook), read_review(body), datetime.now(UTC).date())
    except InvalidReview as error:
        raise InputError(f"{arguments.filename}: {error}") from None
    answer = AnsweredReview(response=response(decision))
    print(msgspec.json.format(msgspec.json.encode(answer)).decode())
    if decision.not_judged is None:
        say_assumptions((*of_version(checks.profile), *assumptions(rules, None)))
    return EXIT_OK if decision.allowed else EXIT_FINDINGS


def _certificate(arguments: argparse.Namespace) -> int:
    try:
        from podqos.serve.certificate import make, service_names
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    if not 1 <= arguments.days <= 3650:
        raise InvalidOption(f"{arguments.days} days", where="--days", fix="from 1 to 3650")
    names = (*service_names(arguments.service, arguments.namespace), *arguments.name)
    made = make(arguments.folder, tuple(dict.fromkeys(names)), days=arguments.days, force=arguments.force)
    what = "created" if made.is_new else "is still valid"
    authority = ". The CA is new: put ca.crt into the webhook configurations" if made.is_new_authority else ""
    print(f"{made.folder}: certificate of {made.names[0]} {what}, expires {made.expires:%Y-%m-%d}{authority}")
    return EXIT_OK


def _manifests(arguments: argparse.Namespace) -> int:
    from podqos.reading.files import read_bytes
    from podqos.serve.webhook_rules import read_rules

    if arguments.replicas < 1:
        raise InvalidOption(f"{arguments.replicas} replicas serve nothing", where="--replicas", fix="at least 1")
    _refuse_standard_input([arguments.policy])
    read_rules([arguments.policy])
    certificate = {"from": "cert-manager"}
    if arguments.certificate is not None:
        try:
            from podqos.serve.certificate import check_service
        except ModuleNotFoundError as error:
            raise _missing(error) from error
        certificate = {"from": "given", **given_certificate(arguments.certificate)}
        check_service(arguments.certificate, WEBHOOK, arguments.namespace)
    values = {
        "replicas": arguments.replicas,
        "failurePolicy": "Fail" if arguments.fail_closed else "Ignore",
        "mutate": arguments.mutate,
        "certificate": certificate,
    }
    return print_manifests("webhook", arguments, {"webhook": values}, read_bytes(arguments.policy).decode())


def _serve(arguments: argparse.Namespace) -> int:
    try:
        import podqos.serve.webhook as web
    except ModuleNotFoundError as error:
        raise _missing(error) from error
    from podqos.model.assumption import of_version
    from podqos.serve.audit import AuditLog
    from podqos.serve.reloading import LiveSource, Reloaded, ReviewerMaker
    from podqos.serve.tls import Certificate
    from podqos.serve.webhook_rules import Watched, assumptions

    _refuse_standard_input(arguments.policy)
    host, port = arguments.listen
    certificate = Certificate(*certificate_files(arguments))
    checks, warn_on = _deciding(arguments)
    watched = None
    if arguments.watch or arguments.context or arguments.kubeconfig:
        from podqos.cluster.cluster import connect

        watched = Watched(connect(arguments.context, kubeconfig=arguments.kubeconfig), _say)
        watched.start()
        if arguments.kubernetes_version is None:
            checks = replace(checks, profile=watched.profile())
    deciding = ReviewerMaker(arguments.policy, watched, checks, warn_on)
    webhook = web.Webhook(deciding.reviewer(), AuditLog(_audit_stream(arguments.audit)), certificate)
    deciding.use = lambda reviewer: setattr(webhook, "reviewer", reviewer)
    webhook.sources.append(Reloaded("certificate", (certificate.certificate, certificate.key), certificate.load))
    if arguments.policy:
        webhook.sources.append(Reloaded("policy", arguments.policy, deciding.read))
    if watched is not None:
        webhook.why_not_ready = "the cluster is still being read"
        webhook.sources.append(LiveSource(watched, deciding, webhook.is_ready))
    assumed = assumptions(deciding.rules, None if watched is None else watched.cluster())
    for assumption in (*of_version(checks.profile), *assumed):
        _say(f"assumed: {assumption.what}: {assumption.value} ({assumption.state_with})")
    stopping = web.ShutdownPeriods(arguments.drain / SECOND_US)
    web.serve(webhook, host, port, say=_say, stopping=stopping)
    return EXIT_OK


def _deciding(arguments: argparse.Namespace) -> tuple[CheckOptions, FailOn]:
    from podqos.advice.checks.bundle import CheckOptions
    from podqos.advice.checks.finding import FailOn
    from podqos.cli.cluster import profile_of

    return CheckOptions(profile=profile_of(arguments)), FailOn(arguments.warn_on)


def _refuse_standard_input(policies: Sequence[str]) -> None:
    """Reject standard input, which can be read only once: policies are read again when they change."""
    if "-" in policies:
        raise InvalidOption("standard input can be read only once", where="--policy", fix="give a file")


def certificate_files(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the files of the certificate and its key."""
    given, key = arguments.certificate, arguments.key
    if given is None:
        fix = "create one with `podqos webhook certificate certs` and give that directory"
        raise InvalidOption("the API server calls webhooks over HTTPS only", where="--certificate", fix=fix)
    if os.path.isdir(given):
        return os.path.join(given, "tls.crt"), key or os.path.join(given, "tls.key")
    return given, key or os.path.join(os.path.dirname(given), "tls.key")


def _audit_stream(path: str) -> BinaryIO | None:
    if path == "none":
        return None
    if path == "-":
        return sys.stdout.buffer
    try:
        return open(path, "ab")
    except OSError as error:
        raise HostError(f"{path}: {error.strerror or error}") from error


def _missing(error: ModuleNotFoundError) -> HostError:
    return HostError(f"the webhook needs {error.name}: in a clone of podqos, pip install '.[webhook]'")


def _say(what: str) -> None:
    print(f"podqos webhook: {what}", file=sys.stderr, flush=True)
