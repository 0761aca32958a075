"""Reading all files that hold objects, as one value."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.manifest.problems import Problem, Severity
from podqos.objects.files import InputFile, Inputs
from podqos.objects.objects import Objects, Progress, custom_kinds
from podqos.reading.files import NO_RENDERING, Rendering, source_of
from podqos.reading.gathering import gather

if TYPE_CHECKING:
    from podqos.model.policy import PriorityClass, RuntimeClass
    from podqos.objects.sources import Source


def load(
    *paths: str | os.PathLike[str] | Inputs,
    policies: Iterable[str | os.PathLike[str] | Inputs] = (),
    namespace: str = "default",
    doubles: Severity = Severity.WARNING,
    progress: Progress | None = None,
    stated: Iterable[PriorityClass | RuntimeClass] = (),
    rendering: Rendering | None = None,
    kinds: Mapping[str, str] | None = None,
    skips_services: bool = False,
    known: Mapping[InputFile, Source] | None = None,
) -> Objects:
    """Return everything that files hold. A directory stands for all YAML and JSON files below it, ``-`` for stdin.

    What cannot be read is among ``problems``; nothing is raised or printed. ``policies`` are files that tell what the
    cluster has: of them, only what decides about pods counts. ``namespace`` is that of objects which name none,
    ``doubles`` how bad it is that a policy is given twice. ``progress`` is told how many files have been read, of how
    many. ``stated`` are classes of the cluster that are in no file. ``kinds`` are custom resources that hold pods,
    besides the well-known ones, each with the path to its template: ``{"Widget": "spec.podTemplate"}``.
    ``skips_services``: Services need not be parsed. ``known`` are files that were read already.

    Policies found in a directory apply to the objects of their own directory and below; those of ``policies``, and of
    files that are named themselves, apply to all. Kustomizations and Helm charts in a directory are left out with a
    problem that says how to render them, unless ``rendering`` asks for it.
    """
    objects = Objects(
        namespace,
        doubles=doubles,
        stated=stated,
        kinds=custom_kinds(kinds),
        skips_services=skips_services,
        directory=os.getcwd(),
    )
    # A file that is named twice is one file; named by itself, its policies apply to all.
    files: dict[str, tuple[InputFile, bool]] = {}
    for given, are_stored in (*((path, False) for path in paths), *((path, True) for path in policies)):
        if isinstance(given, Inputs):
            found = given
        else:
            found = gather([os.fspath(given)], rendering or NO_RENDERING)
            found = found.only(sorted(found.files, key=lambda file: file.path))
            if not found.files and not found.problems:
                fix = "name a directory of manifests"
                objects.note(Problem(os.fspath(given), 0, 0, Severity.ERROR, "", "no YAML or JSON files there", fix))
        objects.note(*found.problems)
        objects.assumptions += found.assumptions
        for file in found.files:
            real = os.path.realpath(file.path) if file.data is None else file.path
            first, was_stored = files.get(real, (file, are_stored))
            is_named = are_stored or file.scope is None
            files[real] = (replace(first, scope=None) if is_named else first, was_stored)
    for number, (file, are_stored) in enumerate(files.values(), 1):
        source = None if known is None else known.get(file)
        objects.add(source or source_of(file, objects.kinds, skips_services=skips_services), are_stored=are_stored)
        if progress is not None:
            progress(number, len(files))
    objects.note_unjudged()
    return objects
