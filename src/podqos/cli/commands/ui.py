"""Explore in a browser: who dies first, why, and what would change that.

SOURCE is anything podqos reads: manifests (files or directories, with a usage table), a snapshot of a cluster, a
scenario (a file, or the name of a built-in one), a kernel log, or a run saved by `podqos simulate -o json`. Files are
read again when they change. Without SOURCE the page starts empty: drop files on it, or paste an OOM log.

  podqos ui manifests/ usage.csv
  podqos ui race
  podqos ui --context production            the live cluster, as it changes (read only)
  podqos ui -A --prometheus http://HOST:9090     with memory over time on the page of each pod
  podqos ui manifests/ --html page.html     a single file that opens without a server

The server listens on this machine only. With another --listen address, it prints a URL with a token, and answers
nothing without that token. Files dropped on the page stay in memory, are visible to that visitor only, and are deleted
after half an hour. The page never loads anything from elsewhere.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.cli import options
from podqos.cli.cluster import add_live_options
from podqos.cli.journals import NODE_STATE
from podqos.cli.main import EXIT_BAD_INPUT, EXIT_OK
from podqos.cli.prometheus import add_prometheus_options
from podqos.errors import InvalidOption
from podqos.model.time_units import SECOND_US
from podqos.serve.settings import UI_HOST as HOST
from podqos.serve.settings import UI_LISTEN as LISTEN

if TYPE_CHECKING:
    from podqos.advice.sizing.samples import ContainerSamples
    from podqos.page.session import PageSource
    from podqos.serve.page import Started
    from podqos.serve.tls import Certificate

_LEAST_US = SECOND_US // 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos ui``."""
    about = "manifests and their usage, a snapshot, a scenario, a kernel log or a simulated run"
    parser.add_argument("source", metavar="SOURCE", nargs="*", help=about)
    options.add_node_memory_option(
        parser, "memory of the nodes the manifests run on", "from the Node in the files, or large enough for the pods"
    )
    live = parser.add_argument_group("something live, instead of SOURCE (read only)")
    add_live_options(live)
    about = "the live cluster of the current context"
    live.add_argument("-A", "--all-namespaces", action="store_true", help=about)
    about = f"a running podqos node, by its state directory (such as {NODE_STATE})"
    live.add_argument("--state-dir", metavar="DIR", help=about)
    about = "a running guard, by its state directory (such as /var/lib/podqos/guard)"
    live.add_argument("--guard", metavar="DIR", help=about)
    about = "that guard's run directory (default: /run/podqos/guard)"
    live.add_argument("--guard-run", metavar="DIR", default="/run/podqos/guard", help=about)
    about = "how often to query usage"
    options.add_value_option(live, "--interval", _interval, about, "TIME", default="15s")
    add_prometheus_options(parser, "1d")
    parser.set_defaults(namespace="")
    server = parser.add_argument_group("the server")
    about = f"address to listen on (default: {LISTEN}, or another port if that is taken)"
    server.add_argument("--listen", metavar="ADDRESS:PORT", help=about)
    about = "port on this machine only; 0 picks a free one"
    options.add_value_option(server, "--port", options.port_option, about, "N")
    options.add_list_option(server, "--name", "NAME", "another host name under which browsers reach this server")
    about = "require a token from this machine too, to keep its other users out"
    server.add_argument("--token", action="store_true", help=about)
    about = "serve HTTPS: a directory with tls.crt and tls.key, or the certificate file"
    server.add_argument("--certificate", metavar="DIR|FILE", help=about)
    server.add_argument("--key", metavar="FILE", help="the certificate's key (default: tls.key next to it)")
    about = "open a browser (default: on a desktop, from a terminal)"
    server.add_argument("--open", action=argparse.BooleanOptionalAction, default=None, help=about)
    parser.add_argument("--html", metavar="FILE", help="save the page as a single self-contained file and exit")


def _interval(text: str, option: str) -> int:
    return options.duration_option(text, option, _LEAST_US)


def run(arguments: argparse.Namespace) -> int:
    """Serve the page, or write it, and return the exit code."""
    from podqos.reading.built_page import built_viewer

    host, port = _address(arguments)
    viewer = built_viewer()
    if arguments.html is not None:
        return _write(arguments, viewer)
    from podqos.request_origin import is_loopback
    from podqos.serve.page import ListenAddress, PageAccess, serve_page

    certificate = _certificate(arguments)
    token = ""
    if arguments.token or not is_loopback(host):
        import secrets

        token = secrets.token_urlsafe(24)
    access = PageAccess.to(host, tuple(arguments.name), token=token, is_encrypted=certificate is not None)
    started = _started(arguments)
    is_chosen = arguments.listen is not None or arguments.port is not None
    listening = ListenAddress(host, port, not is_chosen, certificate)
    ready = partial(_ready, arguments)
    serve_page(viewer, access, started, listening, ready=ready, say=_say)
    return EXIT_OK


def _address(arguments: argparse.Namespace) -> tuple[str, int]:
    if arguments.port is None:
        return options.address_option(arguments.listen or LISTEN, "--listen")
    if arguments.listen is not None:
        raise InvalidOption("--listen and --port cannot be combined", fix="--listen has the port: ADDRESS:PORT")
    return HOST, arguments.port


def _ready(arguments: argparse.Namespace, address: str) -> None:
    print(address, flush=True)
    _say("press Ctrl-C to stop")
    has_desktop = sys.platform in {"darwin", "win32"} or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if arguments.open or (arguments.open is None and has_desktop and sys.stdout.isatty()):
        import threading
        import webbrowser

        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _started(arguments: argparse.Namespace) -> Started:
    """Return what the page shows at first, with usage over time if a Prometheus is given."""
    from podqos.cli.prometheus import answer_of, usage_query

    query = usage_query(arguments, with_kills=True)
    started = _without_history(arguments)
    if query is None:
        return started
    from podqos.page.history import MOST_POINTS
    from podqos.page.session import SourceKind
    from podqos.serve.history_feed import HistoryFeed
    from podqos.serve.page import Started

    source, feed = started.source, started.feed
    if source is None or feed is None or source.kind not in {SourceKind.MANIFESTS, SourceKind.SNAPSHOT}:
        what = "only pods of manifests, of a snapshot or of something live have usage over time"
        raise InvalidOption(what, where="--prometheus", fix="give such a SOURCE, or a live cluster")
    asked = replace(query, namespaces=_namespaces(source), with_cpu=False, most_samples=MOST_POINTS)
    ends_now = arguments.end is None

    def history() -> tuple[ContainerSamples, ...]:
        past = time.time() - asked.end_seconds if ends_now else 0.0
        times = {"start_seconds": asked.start_seconds + past, "end_seconds": asked.end_seconds + past}
        return answer_of(replace(asked, **times)).samples()

    sampled = HistoryFeed(feed, source, history, _say)
    return Started(sampled.first, sampled)


def _namespaces(source: PageSource) -> tuple[str, ...]:
    """Return the namespaces of manifests; none for a cluster, where all are queried."""
    workloads = () if source.objects is None else source.objects.workloads
    return tuple(sorted({found.workload.metadata.namespace_or_default for found in workloads}))


def _without_history(arguments: argparse.Namespace) -> Started:
    from podqos.serve.feeds import ClusterFeed, GuardFeed, NodeFeed
    from podqos.serve.files_feed import FilesFeed
    from podqos.serve.page import Started

    is_cluster = bool(arguments.context or arguments.kubeconfig or arguments.all_namespaces)
    given = [bool(arguments.source), is_cluster, arguments.state_dir is not None, arguments.guard is not None]
    if sum(given) > 1:
        what = "SOURCE, a live cluster, a running node and a guard cannot be combined"
        raise InvalidOption(what, fix="give one of them")
    if arguments.node_memory is not None and not arguments.source:
        raise InvalidOption("there are no manifests to run on that node", where="--node-memory", fix="give a SOURCE")
    if arguments.source:
        if "-" in arguments.source:
            raise InvalidOption("standard input cannot be read twice", where="SOURCE", fix="give a file")
        files = FilesFeed(arguments.source, arguments.node_memory)
        return Started(files.first, files)
    if arguments.state_dir is not None:
        from podqos.cli.systems import require_linux

        require_linux("ui --state-dir")
        from podqos.cli.node_client import NodeClient

        node = NodeFeed(NodeClient(arguments.state_dir).get, arguments.state_dir)
        return Started(node.look(), node)
    if arguments.guard is not None:
        guard = GuardFeed(arguments.guard, arguments.guard_run)
        return Started(guard.look(), guard)
    if not is_cluster:
        return Started(None)
    from podqos.cluster.cluster import connect
    from podqos.reading.mirror import Mirror

    seconds = arguments.interval / SECOND_US
    mirror = Mirror(connect(arguments.context, kubeconfig=arguments.kubeconfig), usage_seconds=seconds, say=_say)
    mirror.start()
    feed = ClusterFeed(mirror, seconds, _known_by(arguments))
    return Started(feed.look(), feed)


def _known_by(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the options by which another command names the same cluster, with all of its namespaces."""
    named = (("--context", arguments.context), ("--kubeconfig", arguments.kubeconfig))
    return (*(part for option, value in named if value for part in (option, value)), "-A")


def _write(arguments: argparse.Namespace, viewer: str) -> int:
    from podqos.cli.problems import print_problems
    from podqos.reading.written_files import write_file
    from podqos.serve.sharing import shared_page
    from podqos.serve.work import page_about

    started = _started(arguments)
    if started.source is None:
        raise InvalidOption("no SOURCE to save", where="--html", fix="give a SOURCE")
    page = page_about(started.source)
    written = shared_page(viewer, page)
    write_file(arguments.html, written)
    _say(f"wrote {arguments.html} ({len(written) / 1e6:.1f} MB): one file that opens in any browser")
    errors = print_problems(page.problems)
    for node in page.nodes.nodes.values():
        if node.problem:
            _say(f"{node.name}: {node.problem}" if node.name else node.problem)
            errors += started.source.cluster is None
    return EXIT_BAD_INPUT if errors else EXIT_OK


def _certificate(arguments: argparse.Namespace) -> Certificate | None:
    if arguments.certificate is None:
        return None
    from podqos.cli.commands.webhook import certificate_files
    from podqos.serve.tls import Certificate

    return Certificate(*certificate_files(arguments))


def _say(what: str) -> None:
    print(f"podqos ui: {what}", file=sys.stderr, flush=True)
