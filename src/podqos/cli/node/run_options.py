"""The options of ``podqos node run``."""

from __future__ import annotations

import argparse

from podqos.cli.node.client import STATE_DIR
from podqos.cli.options import add_kubelet_option


def add_run_options(run_parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    run_parser.add_argument("--manifests", metavar="DIR", required=True, help="directory with the manifests to run")
    add_kubelet_option(run_parser, "--config", dest="config")
    run_parser.add_argument("--memory", metavar="AMOUNT", help="limit the node to this much memory, for example 4Gi")
    run_parser.add_argument("--node-name", metavar="NAME", help="the node's name (default: this machine's host name)")
    run_parser.add_argument(
        "--state-dir",
        metavar="DIR",
        default=STATE_DIR,
        help=f"directory for state, logs and volumes (default: {STATE_DIR})",
    )
    run_parser.add_argument(
        "--cgroup-root", metavar="NAME", default="podqos", help="name of the node's own cgroup (default: podqos)"
    )
    run_parser.add_argument("--shadow", action="store_true", help="journal eviction decisions, but evict nothing")
    run_parser.add_argument(
        "--realtime", action="store_true", help="run with real-time priority (SCHED_FIFO), locked in memory"
    )
    run_parser.add_argument(
        "--no-fast-path", action="store_true", help="check only every ten seconds, like the kubelet"
    )
    run_parser.add_argument(
        "--keep-pods",
        action="store_true",
        help="leave the pods running when the node stops; the next run adopts them",
    )
    run_parser.add_argument(
        "--allow-privileged", action="store_true", help="allow privileged containers (default: they do not start)"
    )
    run_parser.add_argument(
        "--listen", metavar="ADDRESS:PORT", help="also serve the read-only API on a port, for example 127.0.0.1:10255"
    )
    run_parser.add_argument(
        "--listen-anywhere", action="store_true", help="allow --listen on addresses reachable from other machines"
    )
