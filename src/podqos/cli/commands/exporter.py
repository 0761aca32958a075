"""Serve Prometheus metrics of a live cluster: headroom of nodes, next victims, QoS classes, overcommit, findings.

The cluster is watched, not polled. Only usage is queried repeatedly: from kubelets through the API server (which needs
permission to get nodes/proxy), or from metrics.k8s.io. Read only. docs/how-to/metrics.md lists the metrics, and has
alerting rules, a dashboard and manifests.

  podqos exporter --listen 127.0.0.1:9753
  podqos exporter manifests --image registry.example.com/podqos:1.0
"""

from __future__ import annotations

import argparse
import gc
import signal
import sys
import time
from contextlib import suppress

from podqos.cli import options
from podqos.cli.cluster import add_live_options
from podqos.cli.installing import add_installation_options, print_manifests
from podqos.cli.main import EXIT_HOST, EXIT_OK
from podqos.cli.parser import add_action
from podqos.cluster.cluster import connect
from podqos.errors import Unreachable
from podqos.model.time_units import SECOND_US
from podqos.reading.mirror import Mirror
from podqos.serve.settings import EXPORTER_PORT

_RETRY_SECONDS = 5.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos exporter``."""
    add_live_options(parser)
    about = "address to listen on"
    options.add_value_option(
        parser, "--listen", options.address_option, about, "ADDRESS:PORT", default=f"127.0.0.1:{EXPORTER_PORT}"
    )
    about = "maximum age of an answer"
    options.add_value_option(parser, "--interval", options.duration_option, about, "TIME", default="30s")
    about = "maximum age of usage data"
    options.add_value_option(parser, "--usage-interval", options.duration_option, about, "TIME", default="60s")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="running it in a cluster")
    add_installation_options(add_action(actions, "manifests", "print the manifests that run the exporter in a cluster"))


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted, or print manifests, and return the exit code."""
    if arguments.action == "manifests":
        return print_manifests("exporter", arguments, {})
    from podqos.serve.exporter import Exporter, serve

    host, port = arguments.listen
    gc.enable()  # it runs for months
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the first process of a container it had no effect
    with suppress(KeyboardInterrupt), connect(arguments.context, kubeconfig=arguments.kubeconfig) as cluster:
        mirror = Mirror(cluster, usage_seconds=arguments.usage_interval / SECOND_US, say=_say)
        exporter = Exporter(mirror, every_seconds=arguments.interval / SECOND_US)
        with serve(exporter, host, port, say=_say) as server:
            _say(f"http://{host}:{server.address[1]}/metrics, of {cluster.where}")
            mirror.measure_in_background()
            _start(mirror)
            while mirror.fatal is None:
                time.sleep(0.5)
        return EXIT_HOST
    return EXIT_OK


def _start(mirror: Mirror) -> None:
    """Start, however long the API server does not answer: it may come back, and probes are answered meanwhile."""
    said = ""
    while True:
        try:
            return mirror.start()
        except Unreachable as error:
            if str(error) != said:
                said = str(error)
                _say(f"{said}; trying again")
            time.sleep(_RETRY_SECONDS)


def _say(what: str) -> None:
    print(f"podqos exporter: {what}", file=sys.stderr, flush=True)
