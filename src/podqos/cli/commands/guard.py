"""Guard a node alongside its kubelet: the kubelet's own eviction, decided in milliseconds and explained.

A kubelet checks every ten seconds. The kernel is often faster, and kills the container with the highest score. `podqos
guard run` applies the kubelet's thresholds and ranking to current usage. By default it runs in shadow mode and only
journals what it would have done; with --enforce it evicts pods as the kubelet does. docs/reference/commands/guard.md
explains what that changes.

  podqos guard run
  podqos guard run --enforce --most 3/5m
  podqos guard report
  podqos guard manifests --image registry.example.com/podqos:1.0
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from podqos.cli import options
from podqos.cli.guard.run_options import add_run_options
from podqos.cli.main import EXIT_OK
from podqos.cli.systems import require_linux

if TYPE_CHECKING:
    from collections.abc import Callable

    from podqos.cluster.cluster import Cluster
    from podqos.guard.settings import GuardSettings, KubeletSettingsFound
    from podqos.model.kubelet_config import KubeletConfiguration

# Each is a module in cli/guard.
_OTHERS = ("status", "journal", "report", "manifests")
_LINUX_ONLY = ("run", "status")
"""The others only read files, or print manifests."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands of ``podqos guard``."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="guard_command")
    run_parser = commands.add_parser("run", help="guard this node until Ctrl-C", description=__doc__)
    add_run_options(run_parser)
    run_parser.set_defaults(run_guard_command=_run)
    for name in _OTHERS:
        module = import_module(f"podqos.cli.guard.{name}")
        other = commands.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        module.add_arguments(other)
        other.set_defaults(run_guard_command=module.run)


def run(arguments: argparse.Namespace) -> int:
    """Run ``podqos guard …``."""
    if arguments.guard_command in _LINUX_ONLY:
        require_linux(f"guard {arguments.guard_command}")
    code: int = arguments.run_guard_command(arguments)
    return code


def _run(arguments: argparse.Namespace) -> int:
    from podqos.cli.commands.node import listen_option
    from podqos.guard.running import Guard
    from podqos.guard.settings import ask_kubelet, find_kubelet

    listen = None if arguments.listen is None else listen_option(arguments.listen, anywhere=arguments.listen_anywhere)
    settings: GuardSettings | None = None
    while True:
        cluster = _cluster(arguments)
        try:
            settings = settings or _settings(arguments, cluster, find_kubelet)
            guard = Guard(settings, cluster, _say, ask=partial(_settings, arguments, cluster, ask_kubelet))
            mode = "evicts" if settings.enforce else "shadow mode: journals its decisions, evicts nothing"
            _say(f"node {settings.node}, {guard.cgroups.own} (cgroup {guard.cgroups.version}); {mode}")
            if listen is not None:
                _say(f"serving metrics on {listen[0]} port {guard.serve_metrics(*listen)}")
            guard.run()
        finally:
            cluster.close()
        settings = guard.newer
        if settings is None:
            return EXIT_OK


def _settings(
    arguments: argparse.Namespace,
    cluster: Cluster,
    find: Callable[[Cluster, str, Path, KubeletConfiguration | None], KubeletSettingsFound],
) -> GuardSettings:
    from podqos.guard.eviction import KillWhen
    from podqos.guard.kubelet_files import local_node
    from podqos.guard.settings import GuardSettings, OwnThreshold, last_node
    from podqos.model.profile import parse_version
    from podqos.naming import stated_with

    state = Path(arguments.state).absolute()
    # Once: a kubelet that restarts must not make it another node.
    node = arguments.node = arguments.node or os.environ.get("NODE_NAME") or local_node(last_node(state))
    given = options.kubelet_option(arguments.kubelet_config)
    found = find(cluster, node, state, None if given is None else given.config)
    for text in filter(None, (found.source and f"kubelet settings: {found.source}", found.trouble)):
        _say_once(text)
    most, within_us = arguments.most
    version = arguments.kubernetes_version
    return GuardSettings(
        node=node,
        kubelet=found.configuration,
        kubelet_source=found.source if given is None else stated_with("kubelet_config", arguments.kubelet_config),
        profile=found.profile if version is None else parse_version(version),
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


@cache
def _say_once(text: str) -> None:
    """Print a message once: settings are queried every few minutes."""
    _say(text)


def _say(text: str) -> None:
    print(f"podqos guard: {text}", file=sys.stderr, flush=True)
