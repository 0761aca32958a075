"""Guard a node beside its kubelet: the kubelet's own eviction, decided in milliseconds and explained.

A kubelet looks every ten seconds; the kernel is often faster, and kills what has the highest score. `podqos guard run`
takes the kubelet's thresholds and its ranking with the figures of the moment. By default it only writes down what it
would have done; with --enforce the pod is Evicted as by the kubelet. docs/guard.md says what that changes.

  podqos guard run
  podqos guard run --enforce --most 3/5m
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from podqos.cli import options
from podqos.cli.cluster import add_live_options
from podqos.cli.main import EXIT_OK
from podqos.errors import InvalidOption

if TYPE_CHECKING:
    from podqos.cluster.cluster import Cluster
    from podqos.guard.settings import GuardSettings

_STATE, _RUN = "/var/lib/podqos/guard", "/run/podqos/guard"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands of ``podqos guard``."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="guard_command")
    run_parser = commands.add_parser("run", help="guard this node until interrupted", description=__doc__)
    _add_run_options(run_parser)
    run_parser.set_defaults(run_guard_command=_run)


def add_folder_options(parser: options.Parser) -> None:
    """Declare where a guard keeps what it knows."""
    about = f"where the journal and what is known of pods are kept (default: {_STATE})"
    parser.add_argument("--state", metavar="DIR", default=_STATE, help=about)
    about = f"where it says how it is, and evictions under way are; a tmpfs (default: {_RUN})"
    parser.add_argument("--run", metavar="DIR", dest="run_dir", default=_RUN, help=about)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("what it does")
    mode = what.add_mutually_exclusive_group()
    about = "decide and write down, but evict nothing: the default"
    mode.add_argument("--shadow", action="store_true", help=about)
    mode.add_argument("--enforce", action="store_true", help="evict")
    about = "when containers are killed: as the API server is told (patch), or once it has answered (answer)"
    what.add_argument(
        "--kill-after", metavar="WHEN", choices=("patch", "answer"), default="patch", help=f"{about} (default: patch)"
    )
    about = "the most evictions within a time; beyond it only says what it would do"
    options.add_value_option(what, "--most", _most, about, "N/TIME", default="3/5m")
    time = partial(options.duration_option, least_us=0)
    options.add_value_option(what, "--cool-down", time, "the least time between two evictions", "TIME", default="1s")
    what.add_argument("--realtime", action="store_true", help="run with real-time priority (SCHED_FIFO)")
    node = parser.add_argument_group("the node")
    node.add_argument("--node", metavar="NAME", help="its name in the cluster (default: $NODE_NAME, this machine's)")
    options.add_kubelet_option(node)
    about = "act on memory thresholds of its own, high enough to react within this time"
    options.add_value_option(node, "--reaction", options.duration_option, f"{about} (default: the kubelet's)", "TIME")
    about = "the growth that --reaction is to keep up with"
    options.add_value_option(node, "--growth", options.rate_option, about, "QUANTITY/s", default="1Gi/s")
    options.add_version_option(node)
    files = parser.add_argument_group("its files")
    add_folder_options(files)
    cluster = parser.add_argument_group("the cluster")
    add_live_options(cluster)


def run(arguments: argparse.Namespace) -> int:
    """Run ``podqos guard …``."""
    code: int = arguments.run_guard_command(arguments)
    return code


def _run(arguments: argparse.Namespace) -> int:
    from podqos.guard.running import Guard

    cluster = _cluster(arguments)
    try:
        settings = _settings(arguments, cluster)
        guard = Guard(settings, cluster, _say)
        mode = "evicts" if settings.enforce else "shadow: decides and writes down, evicts nothing"
        _say(f"node {settings.node}, {guard.cgroups.own} (cgroup {guard.cgroups.version}); {mode}")
        guard.run()
    finally:
        cluster.close()
    return EXIT_OK


def _settings(arguments: argparse.Namespace, cluster: Cluster) -> GuardSettings:
    from pathlib import Path

    from podqos.guard.eviction import KillWhen
    from podqos.guard.settings import GuardSettings, OwnThreshold, find_kubelet, profile_of
    from podqos.model.profile import parse_version

    node = arguments.node or os.environ.get("NODE_NAME") or os.uname().nodename
    state = Path(arguments.state).absolute()
    given = options.kubelet_option(arguments.kubelet_config)
    if given is not None:
        configuration, profile = given.config, profile_of(cluster)
    else:
        found = find_kubelet(cluster, node, state)
        configuration, profile = found.configuration, found.profile
        if found.trouble:
            _say(found.trouble)
    if arguments.kubernetes_version is not None:
        profile = parse_version(arguments.kubernetes_version)
    most, within_us = arguments.most
    return GuardSettings(
        node=node,
        kubelet=configuration,
        profile=profile,
        state=state,
        run=Path(arguments.run_dir).absolute(),
        enforce=arguments.enforce,
        kill_when=KillWhen(arguments.kill_after),
        most=most,
        most_within_us=within_us,
        cool_down_us=arguments.cool_down,
        own_threshold=None if arguments.reaction is None else OwnThreshold(arguments.reaction, arguments.growth),
        realtime=arguments.realtime,
    )


def _cluster(arguments: argparse.Namespace) -> Cluster:
    from podqos.cluster.cluster import connect

    return connect(arguments.context, kubeconfig=arguments.kubeconfig)


def _most(text: str, option: str) -> tuple[int, int]:
    """Read how many evictions there may be, and within which time."""
    number, slash, time = text.partition("/")
    if not slash or not number.isdecimal() or len(number) > 9 or not int(number):
        raise InvalidOption(f"{text!r} is no rate", where=option, fix="for example 3/5m")
    return int(number), options.duration_option(time, option)


def _say(text: str) -> None:
    print(f"podqos guard: {text}", file=sys.stderr, flush=True)
