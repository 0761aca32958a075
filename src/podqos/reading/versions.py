"""One version of manifests: a file, a directory, a revision of a git repository, or what a cluster has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack

from msgspec import Struct

from podqos.model.policy import PriorityClass, RuntimeClass
from podqos.objects.files import Inputs
from podqos.objects.objects import Objects, custom_kinds
from podqos.objects.sources import Source
from podqos.reading.files import read_bytes, source_of
from podqos.reading.gathering import existing_files
from podqos.reading.revisions import read_version


class VersionOptions(Struct, frozen=True, kw_only=True):
    """What a version is read with."""

    cluster: Inputs | None = None
    namespace: str = "default"
    policies: Sequence[str] = ()
    beside: Sequence[str] = ()
    stated: Sequence[PriorityClass | RuntimeClass] = ()
    kinds: Mapping[str, str] | None = None
    render: bool = False


class VersionKeywords(TypedDict, total=False):
    """``VersionOptions`` as keyword arguments."""

    cluster: Inputs | None
    namespace: str
    policies: Sequence[str]
    beside: Sequence[str]
    stated: Sequence[PriorityClass | RuntimeClass]
    kinds: Mapping[str, str] | None
    render: bool


def load_version(version: str | None, **keywords: Unpack[VersionKeywords]) -> Objects:
    """Return what a version of manifests holds: a file, a directory, or ``REV:path`` in a git repository.

    ``cluster`` is what a cluster has: the version replaces what it names of it; no version stands for the cluster as it
    is. ``namespace`` is that of objects which name none. ``policies`` are files of which only the policies count,
    ``beside`` those of workloads that run beside it; a workload of the version replaces the same one beside it.
    ``stated`` are classes of the cluster that are in no file, ``kinds`` custom resources that hold pods, each with the
    path to its template. Kustomizations and charts of the version are skipped unless ``render`` asks to render them; of
    a revision, in a checkout in a temporary directory.
    """
    options = VersionOptions(**keywords)
    cluster, policies, beside = options.cluster, options.policies, options.beside
    kinds = custom_kinds(options.kinds)
    objects = Objects(options.namespace, stated=options.stated, kinds=kinds, directory=os.getcwd())
    for path in existing_files([*policies]).paths if policies else ():
        objects.add_text(path, read_bytes(path), are_stored=True)
    for path in existing_files([*beside]).paths if beside else ():
        objects.add_text(path, read_bytes(path))
    for file in cluster.files if cluster is not None else ():
        source = source_of(file, objects.kinds)
        objects.add(source, are_stored=source.reading.has_policies)
    objects.assumptions = () if cluster is None else cluster.assumptions
    texts, problems = read_version(version, render=options.render) if version is not None else ((), ())
    objects.note(*problems)
    for text in texts:
        objects.add(Source(text.name, text.data, scope=text.scope, kinds=objects.kinds))
    objects.note_unjudged()
    if beside or cluster is not None:
        objects.workloads = objects.latest(warn=False)
    return objects
