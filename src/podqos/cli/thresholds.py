"""Explain a kubelet's eviction thresholds: what each means on this node, who acts first, what is wrong with them.

The settings come from a KubeletConfiguration (-f; also the kubelet's /configz, or a node configuration of OKD with
kubeletArguments), or from the kubelet's flags. Without either, the defaults are explained.
"""

from __future__ import annotations

import argparse

from podqos.cli.kubelet_settings import memory_allocatable, read_kubelet_settings
from podqos.cli.options import (
    add_layout_option,
    add_schema_option,
    add_version_option,
    amount_option,
    node_memory_option,
)
from podqos.cli.output import print_csv, print_schema, print_value
from podqos.cli.terminal import add_colour_option, style_for
from podqos.errors import InvalidConfiguration, InvalidOption
from podqos.eviction.settings import EvictionSettings, settings_from_kubelet_arguments
from podqos.eviction.signals import Layout, Signal, containerfs_follows
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.profile import Profile, parse_version
from podqos.report.thresholds import CSV_COLUMNS, ThresholdsReport, csv_rows, table, thresholds_report
from podqos.survival.exhaustion import Exhaustion, exhaustion

# The kubelet's flags that matter here, with an example each.
_FLAGS = {
    "eviction-hard": "memory.available<100Mi,nodefs.available<10%%",
    "eviction-soft": "memory.available<500Mi",
    "eviction-soft-grace-period": "memory.available=2m",
    "eviction-minimum-reclaim": "memory.available=200Mi",
    "eviction-pressure-transition-period": "5m",
    "eviction-max-pod-grace-period": "30",
    "enforce-node-allocatable": "pods",
    "fail-swap-on": "false",
}
# Capacities besides memory: option, signals it is the capacity of, example, what it is.
_CAPACITIES = {
    "nodefs-capacity": (Signal.NODEFS, "200Gi", "size of the filesystem of the kubelet's files"),
    "nodefs-inodes": (Signal.NODEFS_INODES, "13107200", "its inodes"),
    "imagefs-capacity": (Signal.IMAGEFS, "100Gi", "size of the filesystem of the images, where it is another"),
    "imagefs-inodes": (Signal.IMAGEFS_INODES, "6553600", "its inodes"),
    "max-pids": (Signal.PID, "32768", "process ids the node has"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos thresholds``."""
    parser.add_argument(
        "-f", "--filename", dest="file", metavar="FILE|-", help="a KubeletConfiguration, or - for standard input"
    )
    flags = parser.add_argument_group("the kubelet's flags, in place of a file")
    for name, example in _FLAGS.items():
        flags.add_argument(f"--{name}", metavar="VALUE", action="append", help=f"for example {example}")
    node = parser.add_argument_group("the node")
    node.add_argument("--node-memory", metavar="QUANTITY", help="its memory (default: this machine's)")
    for name, (_, example, what) in _CAPACITIES.items():
        node.add_argument(f"--{name}", metavar="QUANTITY", help=f"{what}, for example {example}")
    add_layout_option(node)
    add_version_option(parser)
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml", "csv"), default="table", help="(default: table)"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 if anything looks wrong")
    add_schema_option(parser)
    add_colour_option(parser)


def run(arguments: argparse.Namespace) -> int:
    """Explain, print, and return the exit code."""
    if arguments.schema:
        print_schema(ThresholdsReport)
        return 0
    profile = parse_version(arguments.kubernetes_version)
    report = thresholds_report(_facts(arguments, profile), ".".join(map(str, profile.version)))
    if arguments.output == "table":
        print("\n".join(table(report, style_for(arguments.color))))
    elif arguments.output == "csv":
        print_csv(CSV_COLUMNS, csv_rows(report))
    else:
        print_value(report, arguments.output)
    return 1 if arguments.strict and report.warnings else 0


def _facts(arguments: argparse.Namespace, profile: Profile) -> Exhaustion:
    layout = Layout(arguments.layout)
    capacities = _capacities(arguments, layout)
    try:
        settings, config = _settings(arguments)
        allocatable = None if config is None else memory_allocatable(config, capacities)
        percent = None if config is None else config.qos_reserved_memory_percent(profile)
        return exhaustion(
            settings,
            capacities,
            layout=layout,
            allocatable=allocatable,
            qos_reserved_memory_percent=percent,
            profile=profile,
        )
    except InvalidConfiguration as error:
        where = ": ".join(part for part in (arguments.file, error.where) if part)
        raise InvalidConfiguration(error.what, where=where, fix=error.fix) from error


def _settings(arguments: argparse.Namespace) -> tuple[EvictionSettings, KubeletConfiguration | None]:
    """Return the settings about eviction, and all settings where they are known."""
    flags = {name: value for name in _FLAGS if (value := getattr(arguments, name.replace("-", "_"))) is not None}
    if arguments.file is None:
        return settings_from_kubelet_arguments(flags), None
    if flags:
        fix = "put everything into the file, or leave -f out"
        raise InvalidOption(f"-f and --{min(flags)} exclude each other", fix=fix)
    return read_kubelet_settings(arguments.file)


def _capacities(arguments: argparse.Namespace, layout: Layout) -> dict[Signal, int]:
    capacities = {Signal.MEMORY: node_memory_option(arguments.node_memory)}
    for name, (signal, example, _) in _CAPACITIES.items():
        text = getattr(arguments, name.replace("-", "_"))
        if text is not None:
            capacities[signal] = amount_option(text, f"--{name}", example)
    if layout in {Layout.SINGLE, Layout.CONTAINERS_APART}:
        _follow(capacities, Signal.IMAGEFS, Signal.NODEFS)
        _follow(capacities, Signal.IMAGEFS_INODES, Signal.NODEFS_INODES)
    followed = containerfs_follows(layout)
    for signal, source in zip((Signal.CONTAINERFS, Signal.CONTAINERFS_INODES), followed or (), strict=False):
        _follow(capacities, signal, source)
    return capacities


def _follow(capacities: dict[Signal, int], signal: Signal, source: Signal) -> None:
    """Take a filesystem that is not apart to be as large as the one it is on."""
    if source in capacities:
        capacities.setdefault(signal, capacities[source])
