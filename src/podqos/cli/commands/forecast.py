"""Forecast the race between kernel and kubelet: a container grows; who acts first, how likely, and who dies then.

The kubelet looks every ten seconds, and where it is in that interval when the growth begins is chance: so the answer is
a probability. The inverse is told as well: the threshold with which the kubelet is first as often as --win wants.

The pods and what they use come from -f MANIFESTS --usage FILE, --stats FILE --pods FILE, or --snapshot FILE, as for
`podqos rank`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from difflib import get_close_matches
from fractions import Fraction

from podqos.cli.options import add_kubelet_option, add_schema_option, add_version_option, rate_option
from podqos.cli.output import print_csv, print_schema, print_value
from podqos.cli.snapshot_options import add_snapshot_options, read_snapshot
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InvalidOption
from podqos.eviction.ranking import Policy
from podqos.eviction.signals import Signal
from podqos.library.inputs.kubelet_node import Kubelet, judged_cgroups
from podqos.library.inputs.kubelet_settings import memory_allocatable, read_kubelet_settings
from podqos.library.written_files import write_file
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import Profile, parse_version
from podqos.model.resources import MEMORY
from podqos.model.snapshot import PodUsage, Snapshot
from podqos.model.time_units import SECOND_US
from podqos.qos.cgroup_settings import CgroupSettings, CgroupVersion
from podqos.report.survival.forecast import CSV_COLUMNS, ForecastReport, csv_rows, forecast_report, table
from podqos.survival.exhaustion import exhaustion
from podqos.survival.forecast import Forecast, Growth, Watch, forecast

_DEFAULT_RATES = ("16Mi/s", "128Mi/s", "1Gi/s")
_CURVE_RATES = tuple(1 << exponent for exponent in range(20, 34))
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
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "json", "yaml", "csv"),
        default="table",
        help="csv: a line per outcome (default: table)",
    )
    parser.add_argument("--svg", metavar="FILE", help="also draw the curve of the first container into this file")
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Forecast, print, and return the exit code."""
    if arguments.schema:
        print_schema(ForecastReport)
        return 0
    profile = parse_version(arguments.kubernetes_version)
    rates = [rate_option(text, "--rate") for text in arguments.rate or _DEFAULT_RATES]
    wanted = _share(arguments.win)
    snapshot, errors = read_snapshot(arguments, profile)
    settings, watch = _node(arguments, snapshot, profile)
    entry, container = _growing(arguments.growing, snapshot.pods)

    def at(rates: Sequence[int]) -> list[Forecast]:
        growths = [Growth(entry.pod.metadata.uid, container, rate) for rate in rates]
        return [forecast(snapshot, settings, growth, watch, wanted=wanted, profile=profile) for growth in growths]

    report = forecast_report(
        at(rates),
        at(_CURVE_RATES),
        kubernetes_version=".".join(map(str, profile.version)),
        node_memory_bytes=snapshot.node.memory_bytes,
        interval_us=watch.interval_us,
    )
    if arguments.svg is not None:
        from podqos.report.survival.forecast_svg import curve_svg

        write_file(arguments.svg, curve_svg(report).encode())
    if arguments.output == "table":
        print("\n".join(table(report, style_for(arguments.color))))
    elif arguments.output == "csv":
        print_csv(CSV_COLUMNS, csv_rows(report))
    else:
        print_value(report, arguments.output)
    return 2 if errors else 0


def _node(arguments: argparse.Namespace, snapshot: Snapshot, profile: Profile) -> tuple[CgroupSettings, Watch]:
    capacities = {Signal.MEMORY: snapshot.node.memory_bytes}
    config = None if arguments.config is None else read_kubelet_settings(arguments.config)
    divided = None if config is None else memory_allocatable(config, capacities)
    settings = judged_cgroups(
        Kubelet() if config is None else Kubelet(config, arguments.config),
        memory_bytes=snapshot.node.memory_bytes,
        swap_bytes=snapshot.node.swap_bytes,
        cgroup_version=CgroupVersion(arguments.cgroup),
        profile=profile,
    )
    allocatable = settings.node_allocatable if settings.enforce_node_allocatable else {}
    watch = Watch(
        exhaustion(config or KubeletConfiguration(), capacities, allocatable=divided, profile=profile),
        allocatable[MEMORY].value if MEMORY in allocatable else None,
        interval_us=_time(arguments.interval, "--interval", least=1),
        statistics_age_us=_time(arguments.statistics_age, "--statistics-age"),
        reaction_us=_time(arguments.reaction, "--reaction"),
        policy=None if arguments.policy is None else Policy(arguments.policy),
    )
    return settings, watch


def _growing(text: str | None, pods: Sequence[PodUsage]) -> tuple[PodUsage, str]:
    """Return the pod and the container that are meant."""
    names = sorted(entry.pod.key for entry in pods)
    some = f"one of {', '.join(names[:6])}{', …' if len(names) > 6 else ''}"
    if text is None:
        raise InvalidOption("nothing says who grows", where="--growing", fix=some)
    name, _, container = text.partition(":")
    found = [entry for entry in pods if name in {entry.pod.key, entry.pod.metadata.name}]
    if not found:
        # The name of a workload will do where it has one pod.
        found = [entry for entry in pods if f"/{entry.pod.key}-".find(f"/{name}-") >= 0]
    if len(found) != 1:
        close = get_close_matches(name, [*names, *(key.partition("/")[2] for key in names)], 1)
        what = f"{name} can be several pods" if found else f"there is no pod {name}"
        raise InvalidOption(what, where="--growing", fix=f"did you mean {close[0]}?" if close and not found else some)
    containers = [usage.name for usage in found[0].containers]
    if not container and len(containers) == 1:
        container = containers[0]
    if container not in containers:
        what = f"{name} has no container {container}" if container else f"{name} has several containers"
        raise InvalidOption(what, where="--growing", fix=f"add one of them: {name}:{containers[0]}")
    return found[0], container


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
