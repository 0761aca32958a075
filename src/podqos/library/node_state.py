"""A node's state from files: a usage file, a kubelet's statistics, a snapshot file, or a snapshot of a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Unpack, overload

from podqos.answers import node_state as answers
from podqos.answers.node_options import NodePodsKeywords, NodePodsOptions
from podqos.answers.node_state import NodeState, refuse_beyond, snapshot_state
from podqos.errors import InputError
from podqos.eviction.observation import decode_summary
from podqos.manifest.documents import plain_documents
from podqos.model.profile import LATEST, Profile
from podqos.model.stats import Summary
from podqos.objects.objects import Objects
from podqos.reading.files import read_bytes
from podqos.survival.node.snapshots import decode_snapshot
from podqos.survival.node.usage import BeyondLimit
from podqos.survival.node.usage_file import UsageRow, read_usage

Usage = str | os.PathLike[str] | Iterable[UsageRow]
"""A usage file, or its rows."""


def node_state(
    objects: Objects | NodeState, usage: Usage | None = None, **options: Unpack[NodePodsKeywords]
) -> NodeState:
    """Return the pods of manifests with what they use: the rows of a usage file, or what they request.

    ``node`` chooses where the pods of several nodes are among the objects; rows about pods of the others do not count.
    Memory is that of the Node of its name, else of the smallest. ``system_memory_bytes`` is used outside all pods.
    ``refuse_impossible``: usage above a limit is an error; otherwise it counts as the limit. The kubelet is the one
    whose settings stand among the objects, unless one is given. A state is returned as it is, with another kubelet if
    one is given; nothing else that it has already can be given beside it.
    """
    return answers.node_state(objects, NodePodsOptions(usage=usage_rows(usage), **options))


def kubelet_state(
    objects: Objects,
    stats: str | Summary,
    *,
    node: str | None = None,
    node_memory_bytes: int | None = None,
    system_memory_bytes: int | None = None,
    profile: Profile = LATEST,
) -> NodeState:
    """Return the pods of the objects with what a kubelet's /stats/summary, or a file with it, says of them."""
    options = NodePodsOptions(
        node=node, node_memory_bytes=node_memory_bytes, system_memory_bytes=system_memory_bytes, profile=profile
    )
    if isinstance(stats, Summary):
        return answers.kubelet_state(objects, stats, options)
    return answers.kubelet_state(objects, _summary_in(stats), options, stats)


def _summary_in(path: str) -> Summary:
    try:
        return decode_summary(read_bytes(path))
    except InputError as error:
        raise InputError(error.what, where=path, fix=error.fix) from error


def read_state(path: str, *, refuse_impossible: bool = False) -> NodeState:
    """Return the node that a snapshot file describes; ``refuse_impossible`` as for ``node_state``."""
    documents = plain_documents(path, read_bytes(path))
    if len(documents) != 1:
        raise InputError(f"{len(documents)} documents", where=path, fix="a snapshot is one document")
    beyond: list[BeyondLimit] = []
    state = snapshot_state(decode_snapshot(path, documents[0].value, beyond))
    if refuse_impossible:
        refuse_beyond(beyond)
    return state


@overload
def usage_rows(usage: Usage) -> Sequence[UsageRow]: ...
@overload
def usage_rows(usage: None) -> None: ...
@overload
def usage_rows(usage: Usage | None) -> Sequence[UsageRow] | None: ...
def usage_rows(usage: Usage | None) -> Sequence[UsageRow] | None:
    """Return the rows of a usage file, or those given; None where there are none of either."""
    if isinstance(usage, (str, os.PathLike)):
        path = os.fspath(usage)
        return read_usage(path, read_bytes(path))
    return None if usage is None else tuple(usage)
