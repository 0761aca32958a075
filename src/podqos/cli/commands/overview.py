"""Show a cluster on one screen: which nodes are closest to running out of memory, the next victims, and findings.

Headroom is the memory a node has left before its kubelet evicts, by memory.available or allocatableMemory.available,
whichever is less. Usage is what the kubelets measured; if they do not answer, what metrics.k8s.io reports; or else
what pods request.

  podqos overview                              the live cluster of the current context
  podqos overview --snapshot cluster.json.gz
  watch podqos overview                        keep it on the screen
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from podqos.cli import options
from podqos.cli.cluster import add_cluster_options, cluster_of, profile_of
from podqos.cli.output import add_output_options, emit, object_name
from podqos.cli.progress import progress_line
from podqos.parallel import over_cores
from podqos.questions.overview import Overview, csv_rows, overview, text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos overview``."""
    add_cluster_options(parser)
    options.add_version_option(parser)
    add_output_options(
        parser,
        ("table", "json", "yaml", "csv", "name"),
        "podqos.questions.overview:Overview",
        "table: one screen, wide: all nodes and namespaces; json and yaml: everything; csv: a row per node",
    )


def run(arguments: argparse.Namespace) -> int:
    """Look, print, and return the exit code."""
    arguments.all_namespaces = arguments.snapshot is None
    cluster = cluster_of(arguments)
    assert cluster is not None
    whole = overview(cluster, profile=profile_of(arguments), progress=progress_line("node"), spread=over_cores())
    emit(whole, arguments, text, csv_rows, _names)
    return 0


def _names(whole: Overview) -> Iterator[str]:
    return (object_name("Node", node.name) for node in whole.nodes)
