"""Print the manifests to run the guard in a cluster: a DaemonSet, its RBAC, and policies that limit it to its own node.

Kubernetes 1.30 or later. It runs in shadow mode unless --enforce is given; docs/reference/commands/guard.md says what
it is allowed to do, and why.
"""

from __future__ import annotations

import argparse

from podqos.cli.installing import add_installation_options, print_manifests
from podqos.errors import InvalidOption
from podqos.serve.settings import GUARD_NAMESPACE

SUMMARY = "print its manifests"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos guard manifests``."""
    add_installation_options(parser, GUARD_NAMESPACE)
    parser.add_argument(
        "--enforce",
        action="store_true",
        help="evict pods (default: shadow mode, which only journals what it would do)",
    )
    about = "share the host's PID namespace: required on cgroup v1, frees a killed pod's memory sooner on v2"
    parser.add_argument("--host-pid", action="store_true", help=about)
    about = (
        "path of the kubelet's configuration on the nodes, such as /var/lib/kubelet/config.yaml "
        "(default: ask the kubelet)"
    )
    parser.add_argument("--kubelet-config", metavar="PATH", default="", help=about)
    about = (
        "also grant pods/eviction, for soft thresholds; no admission policy can restrict that to the guard's own node"
    )
    parser.add_argument("--eviction-api", action="store_true", help=about)


def run(arguments: argparse.Namespace) -> int:
    """Print the manifests."""
    path = arguments.kubelet_config
    if path and not path.startswith("/"):
        fix = "for example /var/lib/kubelet/config.yaml"
        raise InvalidOption(f"{path!r} is not an absolute path", where="--kubelet-config", fix=fix)
    guard = {
        "mode": "enforce" if arguments.enforce else "shadow",
        "hostPID": arguments.host_pid,
        "kubeletConfig": path,
        "evictionAPI": arguments.eviction_api,
    }
    return print_manifests("guard", arguments, {"guard": guard})
