"""Forecast the race between the kubelet and the kernel as a container grows: which acts first, and which pod dies.

The kubelet checks every ten seconds, and growth may start at any point of that interval, so the answer is a
probability. The kernel reclaims page cache and swaps before it kills, as in `podqos simulate`. The answer also
includes the lowest threshold at which the kubelet acts first as often as --win asks for, and an alternative if that
threshold is impractical.

Pods and their usage come from -f MANIFESTS --usage FILE, --stats FILE --pods FILE, or --snapshot FILE, as for `podqos
rank`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

from podqos.answers.forecast import ForecastReport
from podqos.cli import options
from podqos.cli.output import add_output_options, emit, pod_names
from podqos.cli.snapshot_options import add_snapshot_options, state_of
from podqos.errors import InvalidOption
from podqos.library.forecast import forecast
from podqos.library.numbers import positive_number
from podqos.reading.written_files import write_file
from podqos.report.survival.forecast import csv_table, table

_DEFAULT_RATES = ("16Mi/s", "128Mi/s", "1Gi/s")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos forecast``."""
    add_snapshot_options(parser)
    parser.add_argument(
        "--growing",
        metavar="POD[:CONTAINER][=RATE]",
        action="append",
        help="what grows: a pod, a workload with all its pods, or system: everything outside pods; leave out the "
        "container if the pod has only one; =RATE: at this rate, not at --rate; may be repeated, then all grow at once",
    )
    parser.add_argument(
        "--rate",
        metavar="QUANTITY/s",
        action="append",
        help=f"growth rate, such as 128Mi/s, 2Gi/h or 8Gi/2s; may be repeated (default: {', '.join(_DEFAULT_RATES)})",
    )
    options.add_kubelet_option(parser, "--config", dest="config")
    options.add_value_option(parser, "--win", _share, "how often the kubelet should act first", "PERCENT", default="99")
    options.add_value_option(
        parser, "--interval", options.duration_option, "time between two eviction checks", "TIME", default="10s"
    )
    about = "age of the stats an eviction check uses"
    time = partial(options.duration_option, least_us=0)
    options.add_value_option(parser, "--statistics-age", time, about, "TIME", default="0s")
    about = "time from the eviction decision until the memory is freed"
    options.add_value_option(parser, "--reaction", time, about, "TIME", default="0s")
    parser.add_argument(
        "--fast-path",
        action="store_true",
        help="check as soon as a hard threshold is crossed, as `podqos node` does, not only at intervals",
    )
    options.add_policy_option(parser)
    options.add_cgroup_option(parser)
    options.add_version_option(parser)
    parser.add_argument("--svg", metavar="FILE", help="also draw the first container's curve into this file")
    add_output_options(
        parser,
        ("table", "json", "yaml", "csv", "name"),
        "podqos.answers.forecast:ForecastReport",
        "csv: one line per outcome",
    )


def run(arguments: argparse.Namespace) -> int:
    """Forecast, print, and return the exit code."""
    rates = [options.rate_option(text, "--rate") for text in arguments.rate or _DEFAULT_RATES]
    growing = _growing(arguments.growing or [])
    if arguments.rate and growing and None not in growing.values():
        raise InvalidOption("nothing grows by it", where="--rate", fix="leave it out: each --growing has its own rate")
    kubelet = options.kubelet_option(arguments.config, arguments.kubernetes_version)
    state, profile, errors = state_of(arguments, kubelet)
    report = forecast(
        state,
        growing=growing,
        rates=rates,
        kubelet=kubelet,
        wanted=arguments.win,
        interval_us=arguments.interval,
        statistics_age_us=arguments.statistics_age,
        reaction_us=arguments.reaction,
        fast_path=arguments.fast_path,
        policy=arguments.policy,
        cgroup_version=arguments.cgroup,
        profile=profile,
    )
    if arguments.svg is not None:
        if report.together:
            raise InvalidOption("there is no curve of several that grow at once", where="--svg", fix="leave it out")
        from podqos.report.survival.forecast_svg import curve_svg

        write_file(arguments.svg, curve_svg(report).encode())
    emit(report, arguments, table, csv_table, _victims)
    return 2 if errors else 0


def _victims(report: ForecastReport) -> Iterator[str]:
    yield from pod_names(outcome.pod for growth in report.growths for outcome in growth.outcomes)
    orders = (order for together in report.together for order in together.orders)
    yield from pod_names(death.pod for order in orders for death in order.deaths)


def _growing(given: list[str]) -> dict[str, int | None]:
    """Read what grows, each with its own rate, if any."""
    found: dict[str, int | None] = {}
    for text in given:
        name, equals, rate = text.partition("=")
        if name in found:
            raise InvalidOption(f"{name} is given twice", where="--growing", fix="give each pod once")
        found[name] = options.rate_option(rate, "--growing") if equals else None
    return found


def _share(text: str, option: str) -> Fraction:
    return positive_number(text.removesuffix("%"), option, "percentage above 0, up to 100", "99", most=100) / 100
