"""The options of ``podqos guard run``."""

from __future__ import annotations

import argparse
from functools import partial

from podqos.cli import options
from podqos.cli.cluster import add_live_options
from podqos.errors import InvalidOption

STATE, RUN = "/var/lib/podqos/guard", "/run/podqos/guard"


def add_state_option(parser: options.Parser) -> None:
    """Declare where a guard keeps its journal."""
    about = f"directory of the journal and of known pods (default: {STATE})"
    parser.add_argument("--state", metavar="DIR", default=STATE, help=about)


def add_run_option(parser: options.Parser) -> None:
    """Declare the directory of a guard's status."""
    about = f"directory of its status and of evictions in progress; a tmpfs (default: {RUN})"
    parser.add_argument("--run", metavar="DIR", dest="run_dir", default=RUN, help=about)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    what = parser.add_argument_group("mode and limits")
    mode = what.add_mutually_exclusive_group()
    about = "journal decisions but evict nothing (the default)"
    mode.add_argument("--shadow", action="store_true", help=about)
    mode.add_argument("--enforce", action="store_true", help="evict pods")
    about = "when to kill containers: while the API server is being patched (patch), or once it has answered (answer)"
    what.add_argument(
        "--kill-after", metavar="WHEN", choices=("patch", "answer"), default="patch", help=f"{about} (default: patch)"
    )
    about = "evict at most this often; beyond that, only journal"
    options.add_value_option(what, "--most", _most, about, "N/TIME", default="3/5m")
    time = partial(options.duration_option, least_us=0)
    options.add_value_option(what, "--cool-down", time, "minimum time between two evictions", "TIME", default="100ms")
    what.add_argument("--realtime", action="store_true", help="run with real-time priority (SCHED_FIFO)")
    node = parser.add_argument_group("the node")
    node.add_argument(
        "--node",
        metavar="NAME",
        help="the node's name in the cluster (default: $NODE_NAME, or the name that the running kubelet uses)",
    )
    options.add_kubelet_option(node, default="what the kubelet answers; if it refuses, what it was started with")
    about = "use memory thresholds of its own, high enough to react within this time"
    options.add_value_option(node, "--reaction", options.duration_option, f"{about} (default: the kubelet's)", "TIME")
    about = "the memory growth that --reaction has to withstand"
    options.add_value_option(node, "--growth", options.rate_option, about, "QUANTITY/s", default="1Gi/s")
    options.add_version_option(node)
    files = parser.add_argument_group("its files")
    add_state_option(files)
    add_run_option(files)
    metrics = parser.add_argument_group("its metrics")
    about = "serve /metrics and /healthz on this machine"
    metrics.add_argument("--listen", metavar="ADDRESS:PORT", help=f"{about}, such as 127.0.0.1:9754")
    about = "allow --listen to be reachable from other machines"
    metrics.add_argument("--listen-anywhere", action="store_true", help=about)
    cluster = parser.add_argument_group("the cluster")
    add_live_options(cluster)


def _most(text: str, option: str) -> tuple[int, int]:
    """Read a maximum number of evictions per time."""
    number, slash, time = text.partition("/")
    if not slash or not number.isdecimal() or len(number) > 9 or not int(number):
        raise InvalidOption(f"{text!r} is not a valid rate", where=option, fix="for example 3/5m")
    return int(number), options.duration_option(time, option)
