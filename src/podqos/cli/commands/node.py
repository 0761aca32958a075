"""Run pods on this machine by the kubelet's rules: real cgroups, real oom scores, real evictions.

`podqos node run --manifests DIR` starts the pods of a directory, watches it, and evicts and restarts pods as a kubelet
would, only faster. --memory confines the whole node to part of the machine, so you can try it anywhere. The other
commands talk to a running node.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator

from podqos.cli.journals import NODE_STATE, add_journal_options, print_journal
from podqos.cli.options import add_kubelet_option, amount_option, is_port
from podqos.cli.output import add_output_options, emit
from podqos.cli.systems import require_linux
from podqos.errors import HostError, InvalidOption
from podqos.reading.files import read_bytes

_RUN = "run a node until Ctrl-C"
_STATUS = "its state, headroom before eviction, next victims"
_JOURNAL = "print its journal: what it saw, decided and did, and why"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands of ``podqos node``."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="node_command")
    _add_run_options(commands.add_parser("run", help=_RUN, description=__doc__))
    about = """Show the status of a running node: capacity and requests, memory and pressure, headroom before eviction,
the next victims, and the restrictions of this machine."""
    status = commands.add_parser("status", help=_STATUS, description=about)
    _add_state_dir_option(status)
    add_output_options(status, ("text", "json", "yaml"), "podqos.host.api.status_document:NodeStatus")
    about = "Print the journal of a running node: what it saw, decided and did, and why."
    journal = commands.add_parser("journal", help=_JOURNAL, description=about)
    _add_state_dir_option(journal)
    add_journal_options(journal)


def _add_state_dir_option(parser: argparse.ArgumentParser) -> None:
    about = f"the node's state directory (default: {NODE_STATE})"
    parser.add_argument("--state-dir", metavar="DIR", default=NODE_STATE, help=about)


def _add_run_options(run_parser: argparse.ArgumentParser) -> None:
    run_parser.add_argument("--manifests", metavar="DIR", required=True, help="directory with the manifests to run")
    add_kubelet_option(run_parser, "--config", dest="config")
    run_parser.add_argument("--memory", metavar="AMOUNT", help="limit the node to this much memory, for example 4Gi")
    run_parser.add_argument("--node-name", metavar="NAME", help="the node's name (default: this machine's host name)")
    run_parser.add_argument(
        "--state-dir",
        metavar="DIR",
        default=NODE_STATE,
        help=f"directory for state, logs and volumes (default: {NODE_STATE})",
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


def run(arguments: argparse.Namespace) -> int:
    """Run ``podqos node …``."""
    require_linux("node")
    from podqos.cli.node_client import NodeClient, next_victims, path, status_lines

    match arguments.node_command:
        case "run":
            return _run(arguments)
        case "status":
            from podqos.host.api.status_document import NodeStatus

            client = NodeClient(arguments.state_dir)
            status = client.value("/status", NodeStatus)
            emit(status, arguments, lambda status, style: status_lines(status, next_victims(client, status), style))
            return 0
        case _:
            follow, tail = arguments.follow, arguments.tail

            def lines(since_us: int | None) -> Iterator[bytes]:
                target = path("journal", sinceUs=since_us, tailLines=tail, follow=follow)
                return NodeClient(arguments.state_dir).lines(target, is_endless=follow)

            return print_journal(arguments, lines)


def _run(arguments: argparse.Namespace) -> int:
    from pathlib import Path

    from podqos import __version__
    from podqos.host.api.api import Api
    from podqos.host.node.delegation import delegated
    from podqos.host.node.leftovers import remove_leftovers
    from podqos.host.node.settings import HostSettings, KubeletFile, read_kubelet_file
    from podqos.host.runtimes.process import ProcessRuntime
    from podqos.objects.kubelet_notes import ignored_words

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
