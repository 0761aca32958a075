"""Forecast the race between kernel and kubelet: a container grows; who acts first, how likely, and who dies then.

The kubelet looks every ten seconds, and where it is in that interval when the growth begins is chance: so the answer is
a probability. The inverse is told as well: the threshold with which the kubelet is first as often as --win wants.

The pods and what they use come from -f MANIFESTS --usage FILE, --stats FILE --pods FILE, or --snapshot FILE, as for
`podqos rank`.
"""

from __future__ import annotations

import argparse
import re
from fractions import Fraction

from podqos.cli.options import add_kubelet_option, add_version_option, rate_option
from podqos.cli.output import add_output_options, emit
from podqos.cli.snapshot_options import add_snapshot_options, state_of
from podqos.errors import InvalidOption
from podqos.eviction.ranking import Policy
from podqos.library.forecast import forecast
from podqos.library.inputs.kubelet_node import kubelet_of
from podqos.library.written_files import write_file
from podqos.model.profile import parse_version
from podqos.model.time_units import SECOND_US
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.report.survival.forecast import csv_table, table

_DEFAULT_RATES = ("16Mi/s", "128Mi/s", "1Gi/s")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m)")
_UNITS_US = {"ms": 1000, "s": SECOND_US, "m": 60 * SECOND_US}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos forecast``."""
    add_snapshot_options(parser)
    parser.add_argument(
        "--growing", metavar="POD[:CONTAINER]", help="who grows; the container may be left out where there is but one"
    )
    parser.add_argument(
        "--rate",
        metavar="QUANTITY/s",
        action="append",
        help=f"how fast, also per m or h; may be repeated (default: {', '.join(_DEFAULT_RATES)})",
    )
    add_kubelet_option(parser, "--config", dest="config")
    parser.add_argument(
        "--win", metavar="PERCENT", default="99", help="how often the kubelet is to be first (default: 99)"
    )
    parser.add_argument("--interval", metavar="TIME", default="10s", help="between two looks (default: 10s)")
    parser.add_argument(
        "--statistics-age",
        metavar="TIME",
        default="0s",
        help="how old the figures are that a look goes by (default: 0s)",
    )
    parser.add_argument(
        "--reaction", metavar="TIME", default="0s", help="from the decision until memory is given back (default: 0s)"
    )
    parser.add_argument(
        "--policy", choices=list(Policy), help="how the kubelet ranks (default: that of the Kubernetes version)"
    )
    parser.add_argument("--cgroup", choices=list(CgroupVersion), default="v2", help="cgroup version (default: v2)")
    add_version_option(parser)
    parser.add_argument("--svg", metavar="FILE", help="also draw the curve of the first container into this file")
    add_output_options(
        parser,
        ("table", "json", "yaml", "csv"),
        "podqos.survival.forecast:ForecastReport",
        "csv: a line per outcome",
    )


def run(arguments: argparse.Namespace) -> int:
    """Forecast, print, and return the exit code."""
    profile = parse_version(arguments.kubernetes_version)
    rates = [rate_option(text, "--rate") for text in arguments.rate or _DEFAULT_RATES]
    wanted = _share(arguments.win)
    state, errors = state_of(arguments, profile)
    report = forecast(
        state,
        growing=arguments.growing or "",
        rates=rates,
        kubelet=kubelet_of(arguments.config),
        wanted=wanted,
        interval_us=_time(arguments.interval, "--interval", least=1),
        statistics_age_us=_time(arguments.statistics_age, "--statistics-age"),
        reaction_us=_time(arguments.reaction, "--reaction"),
        policy=None if arguments.policy is None else Policy(arguments.policy),
        cgroup_version=CgroupVersion(arguments.cgroup),
        profile=profile,
    )
    if arguments.svg is not None:
        from podqos.report.survival.forecast_svg import curve_svg

        write_file(arguments.svg, curve_svg(report).encode())
    emit(report, arguments, table, csv_table)
    return 2 if errors else 0


def _share(text: str) -> Fraction:
    try:
        share = Fraction(text.removesuffix("%")) / 100
    except (ValueError, ZeroDivisionError):
        share = Fraction(0)
    if not 0 < share <= 1:
        raise InvalidOption(f"{text!r} is no percentage above 0 up to 100", where="--win", fix="for example 99")
    return share


def _time(text: str, option: str, least: int = 0) -> int:
    match = _DURATION.fullmatch(text)
    time_us = -1 if match is None else int(Fraction(match[1]) * _UNITS_US[match[2]])
    if time_us < least:
        raise InvalidOption(f"{text!r} is no time", where=option, fix="for example 10s or 500ms")
    return time_us
