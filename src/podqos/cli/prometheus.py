"""Usage from Prometheus: options for the server, the credentials and the time range, and the query."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podqos.cli.options import Parser, add_list_option
from podqos.errors import InputError, InvalidOption
from podqos.model.time_units import SECOND_US

if TYPE_CHECKING:
    from podqos.cluster.prometheus import PrometheusAccess
    from podqos.reading.queried_usage import LabelMatcher, QueriedUsage, UsageQuery

TOKEN_VARIABLE = "PODQOS_PROMETHEUS_TOKEN"  # noqa: S105 - the name of a variable
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def add_prometheus_options(parser: Parser, since: str) -> None:
    """Declare the options; ``since`` is how far back to query by default."""
    prometheus = parser.add_argument_group("usage from Prometheus, Thanos, Mimir or VictoriaMetrics")
    about = (
        "query container usage from this server: http://HOST:9090, or with a path: https://mimir.example.com/prometheus"
    )
    prometheus.add_argument("--prometheus", metavar="URL", help=about)
    about = f"start: a date such as 2026-11-15T04:00:00Z, or how long before the end (default: {since})"
    prometheus.add_argument("--from", dest="begin", metavar="TIME", default=since, help=about)
    about = "end: a date, or how long ago (default: now)"
    prometheus.add_argument("--to", dest="end", metavar="TIME", help=about)
    about = "only series with this label, such as cluster=prod; !=, =~ and !~ work too"
    add_list_option(prometheus, "--prometheus-label", "NAME=VALUE", about)
    about = f"a file with a bearer token (or the token itself in {TOKEN_VARIABLE})"
    prometheus.add_argument("--prometheus-token-file", metavar="FILE", default="", help=about)
    about = "an HTTP header, such as X-Scope-OrgID:team-a for a tenant; a value of @FILE is read from that file"
    add_list_option(prometheus, "--prometheus-header", "NAME:VALUE", about)
    about = "CA certificates to trust, in PEM (default: this machine's)"
    prometheus.add_argument("--prometheus-ca", metavar="FILE", default="", help=about)


def queried(
    arguments: argparse.Namespace, namespaces: Sequence[str] = (), *, with_kills: bool = False
) -> QueriedUsage | None:
    """Return Prometheus' samples of that time range; None if no Prometheus is given."""
    query = usage_query(arguments, namespaces, with_kills=with_kills)
    return None if query is None else answer_of(query)


def answer_of(query: UsageQuery) -> QueriedUsage:
    """Query, and show the progress."""
    from podqos.cli.progress import progress_line
    from podqos.reading.queried_usage import queried_usage

    return queried_usage(query, progress_line("querying Prometheus, points"))


def usage_query(
    arguments: argparse.Namespace, namespaces: Sequence[str] = (), *, with_kills: bool = False
) -> UsageQuery | None:
    """Return what to query, with a time range that ends now unless it is given; None if no Prometheus is given."""
    if arguments.prometheus is None:
        _refuse_alone(arguments)
        return None
    from podqos.reading.queried_usage import UsageQuery

    end = time.time() if arguments.end is None else _moment(arguments.end, "--to", time.time())
    return UsageQuery(
        access=_access(arguments),
        start_seconds=_moment(arguments.begin, "--from", end),
        end_seconds=end,
        namespaces=(arguments.namespace,) if arguments.namespace else namespaces,
        matchers=[_matcher(text) for text in arguments.prometheus_label],
        with_kills=with_kills,
    )


def _refuse_alone(arguments: argparse.Namespace) -> None:
    """Reject options about a Prometheus that is not given."""
    for name in ("token_file", "header", "ca", "label"):
        if getattr(arguments, f"prometheus_{name}"):
            option = f"--prometheus-{name.replace('_', '-')}"
            raise InvalidOption("no Prometheus given", where=option, fix="add --prometheus URL")


def _access(arguments: argparse.Namespace) -> PrometheusAccess:
    from podqos.cluster.prometheus import PrometheusAccess

    token_file = arguments.prometheus_token_file
    is_named = "@" in arguments.prometheus.partition("://")[2].partition("/")[0]
    token = "" if token_file or is_named else _token(os.environ.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE)
    if token_file:
        _token(_secret(token_file, "--prometheus-token-file"), "--prometheus-token-file")
    headers = [_header(text) for text in arguments.prometheus_header]
    names = [name.lower() for name, _ in headers]
    for name in names:
        if names.count(name) > 1:
            raise InvalidOption(f"{name} is given twice", where="--prometheus-header", fix="give it once")
    if "authorization" in names and token_file:
        what = "an Authorization header cannot be combined with a token"
        raise InvalidOption(what, where="--prometheus-header", fix="give one of them")
    return PrometheusAccess(
        url=arguments.prometheus,
        token="" if "authorization" in names else token,
        token_file=token_file,
        headers=tuple(headers),
        ca_data=_authority(arguments.prometheus_ca),
    )


def _token(text: str, where: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text:
        raise InvalidOption(
            "not a valid bearer token", where=where, fix="a token is one line of ASCII characters without spaces"
        )
    return text


def _secret(path: str, option: str) -> str:
    from podqos.reading.files import read_bytes

    text = read_bytes(path).decode(errors="replace").strip()
    if not text:
        raise InvalidOption(f"{path} is empty", where=option, fix="write the secret to this file")
    return text


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not _HEADER_NAME.fullmatch(name.strip()):
        # The text may hold a secret, and is not repeated.
        raise InvalidOption("not a valid header", where="--prometheus-header", fix="write NAME:VALUE, or NAME:@FILE")
    value = value.strip()
    if value.startswith("@"):
        value = _secret(value[1:], "--prometheus-header")
    return name.strip(), _header_value(value, "--prometheus-header")


def _header_value(value: str, option: str) -> str:
    if not value or not value.isascii() or not value.isprintable():
        raise InvalidOption("not a valid header value", where=option, fix="use printable ASCII characters")
    return value


def _authority(path: str) -> str:
    if not path:
        return ""
    from podqos.reading.files import read_bytes

    text = read_bytes(path).decode(errors="replace")
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise InvalidOption(
            f"{path} contains no PEM certificate", where="--prometheus-ca", fix="give the CA's certificate"
        )
    return text


def _matcher(text: str) -> LabelMatcher:
    from podqos.reading.queried_usage import read_matcher

    try:
        return read_matcher(text)
    except InputError as error:
        raise InvalidOption(error.what, where="--prometheus-label", fix=error.fix) from None


def _moment(text: str, option: str, before: float) -> float:
    """Return a time in seconds since 1970: a date, or a duration before another time."""
    from podqos.manifest.times import read_time

    try:
        time_us, is_date = read_time(text)
    except InputError as error:
        raise InvalidOption(error.what, where=option, fix="write a date, or a duration such as 7d") from error
    return time_us / SECOND_US if is_date else before - time_us / SECOND_US
