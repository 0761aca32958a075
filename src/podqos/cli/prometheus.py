"""Usage from Prometheus: the options that name it and the time, and what it answers."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from podqos.cli.options import Parser
from podqos.errors import InputError, InvalidOption
from podqos.model.time_units import SECOND_US

if TYPE_CHECKING:
    from podqos.reading.queried_usage import QueriedUsage


def add_prometheus_options(parser: Parser, since: str) -> None:
    """Declare them; ``since`` is how far back to ask by default."""
    prometheus = parser.add_argument_group("usage from Prometheus")
    about = "ask this Prometheus what containers used: http://[USER:PASSWORD@]HOST:9090"
    prometheus.add_argument("--prometheus", metavar="URL", help=about)
    prometheus.add_argument("--prometheus-token-file", metavar="FILE", default="", help="a bearer token for it")
    about = f"from when on: a date such as 2026-11-15T04:00:00Z, or how long before the end (default: {since})"
    prometheus.add_argument("--from", dest="begin", metavar="TIME", default=since, help=about)
    about = "until when: a date, or how long ago (default: now)"
    prometheus.add_argument("--to", dest="end", metavar="TIME", help=about)


def queried(arguments: argparse.Namespace, namespace: str | None) -> QueriedUsage | None:
    """Return what Prometheus has of that time; None if none is named."""
    if arguments.prometheus is None:
        return None
    from podqos.reading.queried_usage import UsageQuery, queried_usage

    end = time.time() if arguments.end is None else _moment(arguments.end, "--to", time.time())
    return queried_usage(
        UsageQuery(
            url=arguments.prometheus,
            start_seconds=_moment(arguments.begin, "--from", end),
            end_seconds=end,
            namespace=namespace or "",
            token_file=arguments.prometheus_token_file,
        )
    )


def _moment(text: str, option: str, before: float) -> float:
    """Return a time in seconds since 1970: a date, or so long before another time."""
    from podqos.manifest.times import read_time

    try:
        time_us, is_date = read_time(text)
    except InputError as error:
        raise InvalidOption(error.what, where=option, fix="a date, or a time such as 7d") from error
    return time_us / SECOND_US if is_date else before - time_us / SECOND_US
