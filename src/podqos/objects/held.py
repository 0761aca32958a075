"""Objects whose texts are already in memory, such as the lists of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from podqos.objects.contents import Contents, TakenFile
from podqos.objects.files import InputFile, Inputs
from podqos.objects.objects import Objects
from podqos.objects.sources import Source


def held_objects(inputs: Inputs, known: Mapping[InputFile, Source] | None = None) -> Objects:
    """Return the objects of files with the given texts. ``known`` are files that were read already."""
    contents = Contents(map(TakenFile, _sources(inputs, known or {})))
    objects = Objects(contents, assumptions=inputs.assumptions, problems=inputs.problems)
    objects.note_unjudged()
    return objects


def _sources(inputs: Inputs, known: Mapping[InputFile, Source]) -> Iterator[Source]:
    for file in inputs.files:
        assert file.data is not None
        yield known.get(file) or Source(file.path, file.data, scope=file.scope, cluster=file.cluster)
