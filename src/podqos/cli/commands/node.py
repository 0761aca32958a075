"""Run pods on this machine by the kubelet's rules: real cgroups, real oom scores, real evictions.

`podqos node run --manifests DIR` starts the pods of a directory, watches it, and evicts and restarts pods as a kubelet
would, only faster. --memory confines the whole node to part of the machine, so you can try it anywhere. The other
commands talk to a running node.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module

from podqos.cli.node.run_options import add_run_options
from podqos.cli.options import amount_option, is_port
from podqos.cli.systems import require_linux
from podqos.errors import HostError, InvalidOption
from podqos.reading.files import read_bytes

# Each is a module in cli/node.
_OTHERS = ("status", "journal")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands of ``podqos node``."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="node_command")
    run_parser = commands.add_parser("run", help="run a node until Ctrl-C", description=__doc__)
    add_run_options(run_parser)
    run_parser.set_defaults(run_node_command=_run)
    for name in _OTHERS:
        module = import_module(f"podqos.cli.node.{name}")
        other = commands.add_parser(name, help=module.SUMMARY, description=module.__doc__)
        module.add_arguments(other)
        other.set_defaults(run_node_command=module.run)


def run(arguments: argparse.Namespace) -> int:
    """Run ``podqos node …``."""
    require_linux("node")
    code: int = arguments.run_node_command(arguments)
    return code


def _run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from podqos import __version__
    from podqos.host.api.api import Api
    from podqos.host.node.delegation import delegated
    from podqos.host.node.leftovers import remove_leftovers
    from podqos.host.node.settings import HostSettings, KubeletFile, read_kubelet_file
    from podqos.host.runtimes.process import ProcessRuntime
    from podqos.words.kubelet import ignored_words

    try:
        from podqos.host.node.node import Node
    except ModuleNotFoundError as error:
        raise HostError(f"a node needs {error.name}: in a clone of podqos, pip install '.[node]'") from error
    listen = None if arguments.listen is None else listen_option(arguments.listen, anywhere=arguments.listen_anywhere)
    file = KubeletFile()
    if arguments.config is not None:
        file = read_kubelet_file(arguments.config, read_bytes(arguments.config))
        if file.ignored:
            _say(f"{arguments.config}: {ignored_words(file.ignored)}")
    settings = HostSettings(
        node=arguments.node_name or os.uname().nodename,
        manifests=Path(arguments.manifests).absolute(),
        state_dir=Path(arguments.state_dir).absolute(),
        cgroup_root=arguments.cgroup_root,
        memory_bytes=None if arguments.memory is None else amount_option(arguments.memory, "--memory"),
        configuration=file.configuration,
        logs=file.logs,
        shadow=arguments.shadow,
        realtime=arguments.realtime,
        fast_path=not arguments.no_fast_path,
        keep_pods=arguments.keep_pods,
        allow_privileged=arguments.allow_privileged,
    )
    remove_leftovers()
    settings = delegated(settings)
    node = Node(
        settings,
        lambda node: ProcessRuntime(settings.state_dir, node.cgroups, node.capabilities, node.note),
        _say,
    )
    api = Api(node, __version__)
    try:
        port = api.open(listen)
    except HostError:
        node.close()
        raise
    if listen is not None:
        _say(f"serving the API on {listen[0]} port {port}")
    node.run()
    api.close()
    return 0


def _say(text: str) -> None:
    print(f"podqos node: {text}", file=sys.stderr, flush=True)


def listen_option(text: str, *, anywhere: bool) -> tuple[str, int]:
    """Read an address and a port; addresses reachable from other machines need --listen-anywhere."""
    from ipaddress import ip_address

    fix = "for example 127.0.0.1:10255 or [::1]:10255"
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise InvalidOption(f"{text!r} is not an address with a port", where="--listen", fix=fix) from None
    if not is_port(port):
        raise InvalidOption(f"{text!r} has no port", where="--listen", fix=fix)
    if not address.is_loopback and not anywhere:
        raise InvalidOption(
            f"{host} can be reached from other machines, and the API has no authentication",
            where="--listen",
            fix=f"{fix}, or add --listen-anywhere",
        )
    return str(address), int(port)
