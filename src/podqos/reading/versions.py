"""One version of manifests: a file, a directory, a revision of a git repository, or a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from podqos.model.policy import PriorityClass, RuntimeClass
from podqos.objects.contents import TakenFile
from podqos.objects.files import InputFile, Inputs
from podqos.objects.objects import Objects
from podqos.reading.files import Rendering, read_bytes
from podqos.reading.gathering import existing_files
from podqos.reading.loading import LoadRequest, objects_of, read_sources
from podqos.reading.revisions import read_version


def load_version(
    version: str | None,
    *,
    cluster: Inputs | None = None,
    namespace: str = "default",
    policies: Sequence[str] = (),
    stated: Sequence[PriorityClass | RuntimeClass] = (),
    kinds: Mapping[str, str] | None = None,
    rendering: Rendering | None = None,
) -> Objects:
    """Return what a version of manifests holds: a file, a directory, or ``REV:path`` in a git repository.

    ``cluster`` is what a cluster has: the version replaces what it names of it; no version stands for the cluster as it
    is. ``namespace`` is that of objects which name none. ``policies`` are files of which only the policies count.
    ``stated`` are classes of the cluster that are in no file, ``kinds`` custom resources that hold pods, each with the
    path to its template. Kustomizations and charts of the version are skipped unless ``rendering`` asks to render them;
    those of a revision in a checkout in a temporary directory.
    """
    opened = [InputFile(path, data=read_bytes(path)) for path in existing_files([*policies]).paths] if policies else []
    texts, problems = read_version(version, rendering or Rendering()) if version is not None else ((), ())
    request = LoadRequest(namespace=namespace, stated=stated, kinds=kinds)
    own = [InputFile(text.name, text.scope, text.data, purpose=text.purpose) for text in texts]
    known = Inputs([]) if cluster is None else cluster
    objects = objects_of(
        (
            *(TakenFile(source, is_stored=True) for source in read_sources(opened, request)),
            *(TakenFile(source, source.reading.has_policies) for source in read_sources(known.files, request)),
            *map(TakenFile, read_sources(own, request)),
        ),
        request,
        problems,
        known.assumptions,
    )
    objects.note_unjudged()
    return objects if cluster is None else objects.with_workloads(objects.latest(warn=False))
