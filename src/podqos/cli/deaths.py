"""Inputs of commands about deaths in addition to logs: files with pods, nodes and events, or a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.cli.cluster import arguments_name_cluster, cluster_of
from podqos.cli.inputs import read_objects
from podqos.cli.progress import progress_line
from podqos.errors import InvalidOption
from podqos.objects.files import Inputs
from podqos.objects.objects import Objects
from podqos.reading.autopsy_inputs import read_file, what_is_given
from podqos.reading.files import NO_RENDERING
from podqos.reading.gathering import gather
from podqos.reading.logs import Log
from podqos.survival.autopsy.what_was_read import WhatWasRead

if TYPE_CHECKING:
    from podqos.objects.cluster_snapshot import ClusterSnapshot


def scene_of(arguments: argparse.Namespace, pod: str = "") -> tuple[ClusterSnapshot | None, list[Log]]:
    """Return the cluster that the options name, and logs of its nodes; of a live cluster, only what explains deaths."""
    if not arguments_name_cluster(arguments):
        return None, []
    if arguments.snapshot is not None:
        return cluster_of(arguments), []
    from podqos.cluster.cluster import connect
    from podqos.reading.cluster_autopsy import scene_of_deaths

    with connect(arguments.context, kubeconfig=arguments.kubeconfig) as cluster:
        inside = arguments.namespace or ("" if arguments.all_namespaces else cluster.namespace)
        if pod:
            arguments.namespace = inside
        arguments.cluster, logs = scene_of_deaths(cluster, inside, pod, progress=progress_line("querying kubelet"))
        return arguments.cluster, logs


def object_files(arguments: argparse.Namespace, found: Inputs) -> Inputs:
    """Return the files with objects, read: those that an option names, and those found among the arguments."""
    given = gather(arguments.filename, NO_RENDERING) if arguments.filename else Inputs([])
    return Inputs([*map(read_file, given.files), *found.files], given.problems)


def objects_of(files: Inputs, cluster: ClusterSnapshot | None) -> Objects | None:
    """Return the objects of the files or of the cluster, or None."""
    if cluster is not None:
        if files.files:
            raise InvalidOption("files with pods and a cluster cannot be combined", fix="give one of them")
        return cluster.objects
    return read_objects(files, full_statuses=True) if files.files else None


def read_before(arguments: argparse.Namespace, files: Inputs, logs: Iterable[str | Log]) -> WhatWasRead:
    """Return where an autopsy's inputs come from, and how much the files with objects hold."""
    is_live = arguments_name_cluster(arguments) and arguments.snapshot is None
    return replace(
        what_is_given(files, logs),
        snapshot=arguments.snapshot or "",
        cluster=arguments.cluster.source if is_live else "",
        context=arguments.context or "",
    )
