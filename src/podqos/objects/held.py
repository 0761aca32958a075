"""Objects whose texts are known already, such as the lists of a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from podqos.objects.files import InputFile, Inputs
from podqos.objects.objects import Objects
from podqos.objects.sources import Source


def held_objects(inputs: Inputs, known: Mapping[InputFile, Source] | None = None) -> Objects:
    """Return what files hold whose texts are given. ``known`` are those that were read already."""
    objects = Objects()
    objects.note(*inputs.problems)
    objects.assumptions = inputs.assumptions
    for file in inputs.files:
        assert file.data is not None
        source = None if known is None else known.get(file)
        objects.add(source or Source(file.path, file.data, scope=file.scope, cluster=file.cluster))
    objects.note_unjudged()
    return objects
