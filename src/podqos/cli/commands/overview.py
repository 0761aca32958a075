"""Show a cluster on one screen: which nodes are nearest to running out of memory, who dies next, and what is wrong.

Headroom is the memory a node has left until its kubelet evicts. Usage is what the kubelets measured, or else what
metrics.k8s.io says, or else what pods request.

  podqos overview                              the live cluster of the current context
  podqos overview --snapshot cluster.json.gz
"""

from __future__ import annotations

import argparse

from podqos.cli import options
from podqos.cli.cluster import add_cluster_options, cluster_of, profile_of
from podqos.cli.output import add_output_options, emit
from podqos.cli.progress import progress_line
from podqos.library.overview import overview
from podqos.report.cluster.overview import text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos overview``."""
    add_cluster_options(parser)
    options.add_version_option(parser)
    add_output_options(parser, ("table", "json", "yaml"), "podqos.report.cluster.overview:Overview")


def run(arguments: argparse.Namespace) -> int:
    """Look, print, and return the exit code."""
    arguments.all_namespaces = arguments.snapshot is None
    cluster = cluster_of(arguments)
    assert cluster is not None
    emit(overview(cluster, profile=profile_of(arguments), progress=progress_line("node")), arguments, text)
    return 0
