"""A cluster in place of files: the options that name it, and what a command gets of it."""

from __future__ import annotations

import argparse
from functools import cache
from typing import TYPE_CHECKING

from podqos.cli.options import Parser
from podqos.model.profile import LATEST, Profile, parse_version

if TYPE_CHECKING:
    from podqos.library.cluster_snapshot import ClusterSnapshot


def add_cluster_options(parser: Parser) -> None:
    """Declare ``--snapshot``."""
    parser.add_argument("--snapshot", metavar="FILE", help="a cluster as `podqos snapshot` wrote it, in place of files")


def cluster_of(arguments: argparse.Namespace) -> ClusterSnapshot | None:
    """Return the cluster that the options name; None where they name files."""
    path = getattr(arguments, "snapshot", None)
    return None if path is None else _read(path)


def profile_of(arguments: argparse.Namespace) -> Profile:
    """Return the rules to go by: those of ``--kubernetes-version``, of the cluster, or the newest."""
    if arguments.kubernetes_version is not None:
        return parse_version(arguments.kubernetes_version)
    cluster = cluster_of(arguments)
    return LATEST if cluster is None else cluster.profile


@cache
def _read(path: str) -> ClusterSnapshot:
    from podqos.library.cluster_snapshot import read_snapshot

    return read_snapshot(path)
