"""One version of manifests: a file, a directory, a revision of a git repository, or a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from msgspec import Struct

from podqos.model.policy import PriorityClass, RuntimeClass
from podqos.objects.contents import TakenFile
from podqos.objects.files import InputFile, Inputs
from podqos.objects.objects import Objects
from podqos.reading.files import Rendering, read_bytes
from podqos.reading.gathering import existing_files
from podqos.reading.loading import LoadRequest, objects_of, read_sources
from podqos.reading.revisions import ManifestText, read_version

if TYPE_CHECKING:
    from typing import Unpack


class VersionRequest(Struct, frozen=True, kw_only=True):
    """What surrounds a version of manifests, and how it is read."""

    cluster: Inputs | None = None
    """The cluster's objects."""
    namespace: str = "default"
    """The namespace of objects without one."""
    policies: Sequence[str] = ()
    """Files whose policies are used, and nothing else."""
    beside: Sequence[str] = ()
    """Files of workloads that run alongside it."""
    stated: Sequence[PriorityClass | RuntimeClass] = ()
    """Classes of the cluster that are in no file."""
    kinds: Mapping[str, str] | None = None
    """Custom resources with pods, each with the path to its template."""
    render: bool = False
    """Whether kustomizations and charts are rendered."""
    rendering: Rendering | None = None
    """The same, with what they are rendered with."""


class VersionOptions(TypedDict, total=False):
    """The same as keywords."""

    cluster: Inputs | None
    namespace: str
    policies: Sequence[str]
    beside: Sequence[str]
    stated: Sequence[PriorityClass | RuntimeClass]
    kinds: Mapping[str, str] | None
    render: bool
    rendering: Rendering | None


def load_version(version: str | None, **options: Unpack[VersionOptions]) -> Objects:
    """Return what a version of manifests holds: a file, a directory, or ``REV:path`` in a git repository.

    ``cluster`` is what a cluster has: the version replaces what it names of it; no version stands for the cluster as it
    is. ``namespace`` is that of objects which name none. ``policies`` are files of which only the policies count,
    ``beside`` those of workloads that run next to it; a workload of the version replaces the same one next to it.
    ``stated`` are classes of the cluster that are in no file, ``kinds`` custom resources that hold pods, each with the
    path to its template. Kustomizations and charts of the version are skipped unless ``render`` asks to render them, or
    ``rendering`` with arguments; of a revision, in a checkout in a temporary directory.
    """
    request = VersionRequest(**options)
    policies, beside = _opened(request.policies), _opened(request.beside)
    cluster = request.cluster or Inputs([])
    rendering = request.rendering or Rendering(request.render)
    texts, problems = read_version(version, rendering) if version is not None else ((), ())
    reading = LoadRequest(namespace=request.namespace, stated=request.stated, kinds=request.kinds)
    sources = partial(read_sources, request=reading)
    objects = objects_of(
        (
            *(TakenFile(source, is_stored=True) for source in sources(policies)),
            *map(TakenFile, sources(beside)),
            *(TakenFile(source, source.reading.has_policies) for source in sources(cluster.files)),
            *map(TakenFile, sources([_file(text) for text in texts])),
        ),
        reading,
        problems,
        cluster.assumptions,
    )
    objects.note_unjudged()
    is_alone = not request.beside and request.cluster is None
    return objects if is_alone else objects.with_workloads(objects.latest(warn=False))


def _file(text: ManifestText) -> InputFile:
    return InputFile(text.name, text.scope, text.data, purpose=text.purpose)


def _opened(paths: Sequence[str]) -> list[InputFile]:
    """Return the files that an option names; one that cannot be opened is an error."""
    return [InputFile(path, data=read_bytes(path)) for path in existing_files([*paths]).paths] if paths else []
