"""Reading all files with objects into one value."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from podqos.manifest.contents import Reading
from podqos.manifest.problems import Isolated, Problem, Severity
from podqos.manifest.reading import read
from podqos.objects.contents import Contents, TakenFile
from podqos.objects.files import InputFile, Inputs
from podqos.objects.objects import Objects, custom_kinds
from podqos.objects.other_objects import is_looked_up
from podqos.objects.rules import ReadingRules
from podqos.objects.selection import Selection, namespace_of
from podqos.objects.sources import Source
from podqos.objects.spreading import Progress, Spread, one_by_one
from podqos.reading.files import NO_RENDERING, Rendering, size_of, source_of, with_data
from podqos.reading.gathering import gather
from podqos.reading.paths import RealPaths, with_slashes

if TYPE_CHECKING:
    from typing import Unpack

    from podqos.manifest.custom_kind import CustomKind
    from podqos.model.assumption import Assumption
    from podqos.model.policy import PriorityClass, RuntimeClass

Given = str | os.PathLike[str] | Inputs
"""The path of a file or directory, ``-``, or files already found."""


class LoadRequest(Struct, frozen=True, kw_only=True):
    """How files are read, and what else is known about their cluster."""

    policies: Iterable[Given] = ()
    """Files that describe the cluster: only objects that affect pods are used."""
    namespace: str | None = None
    """The namespace of objects without one; None: that of ``selection``, or ``default``."""
    doubles: Severity = Severity.WARNING
    """The severity of a policy that is defined twice."""
    stated: Iterable[PriorityClass | RuntimeClass] = ()
    """Classes of the cluster that are in no file."""
    version: tuple[int, int] | None = None
    """Of Kubernetes; None where it is not known."""
    rendering: Rendering | None = None
    """Which kustomizations and charts are rendered; None: none of them."""
    kinds: Mapping[str, str] | None = None
    """Custom resources with pods in addition to the well-known ones, each with the path to its template."""
    known: Mapping[InputFile, Source] | None = None
    """Files that have been read already."""
    keeps_texts: bool = True
    """Whether also texts are kept in which nothing is looked up any more: most of a large repository."""
    full_statuses: bool = False
    """Whether pods that a cluster keeps have their full status: how their containers ended."""
    selection: Selection | None = None
    """The workloads an answer covers; None: all of them."""


class LoadOptions(TypedDict, total=False):
    """The same as keywords."""

    policies: Iterable[Given]
    namespace: str | None
    doubles: Severity
    stated: Iterable[PriorityClass | RuntimeClass]
    version: tuple[int, int] | None
    rendering: Rendering | None
    kinds: Mapping[str, str] | None
    known: Mapping[InputFile, Source] | None
    keeps_texts: bool
    full_statuses: bool
    selection: Selection | None


def load(*paths: Given, progress: Progress | None = None, **options: Unpack[LoadOptions]) -> Objects:
    """Return everything that files hold. A directory stands for all YAML and JSON files below it, ``-`` for stdin.

    What cannot be read is among ``problems``; nothing is raised or printed. ``policies`` are files that tell what the
    cluster has: of them, only what decides about pods counts. ``namespace`` is that of objects which name none,
    ``doubles`` how bad it is that a policy is given twice. ``progress`` is told how many files have been read, of how
    many. ``stated`` are classes of the cluster that are in no file. ``kinds`` are custom resources that hold pods,
    in addition to the well-known ones, each with the path to its template: ``{"Widget": "spec.podTemplate"}``.
    ``selection`` says which workloads answers are about. ``known`` are files that were read already. ``keeps_texts``:
    whether also texts are kept that nothing looks up any more. ``full_statuses``: whether pods that a cluster keeps
    have their full status.

    Policies found in a directory apply to the objects of their own directory and below; those of ``policies``, and of
    files that are named themselves, apply to all. Kustomizations and Helm charts in a directory are left out with a
    problem that says how to render them, unless ``rendering`` asks for it.
    """
    return load_all(paths, LoadRequest(**options), partial(one_by_one, progress=progress))


def load_all(paths: Iterable[Given], request: LoadRequest, spread: Spread = one_by_one) -> Objects:
    """Do what ``load`` does; ``spread`` may read files on several cores."""
    found = _found(paths, request)
    sources = read_sources([file for file, _ in found.files], request, spread)
    taken = map(TakenFile, sources, (is_stored for _, is_stored in found.files))
    objects = objects_of(taken, request, found.problems, found.assumptions)
    objects.note_unjudged()
    return objects


def objects_of(
    taken: Iterable[TakenFile],
    request: LoadRequest,
    problems: Iterable[Problem] = (),
    assumptions: tuple[Assumption, ...] = (),
) -> Objects:
    """Return the contents of files that have been read."""
    rules = ReadingRules(
        namespace=namespace_of(request.selection) if request.namespace is None else request.namespace,
        directory=with_slashes(os.getcwd()),
        doubles=request.doubles,
        stated=tuple(request.stated),
        version=request.version,
        kinds=custom_kinds(request.kinds),
    )
    contents = Contents(taken, rules)
    return Objects(contents, selection=request.selection, assumptions=assumptions, problems=problems)


def read_sources(files: Sequence[InputFile], request: LoadRequest, spread: Spread = one_by_one) -> list[Source]:
    """Return files with their contents; whoever reads a file opens it, too."""
    reading = partial(_source, kinds=custom_kinds(request.kinds), request=request)
    known = request.known
    if not known:
        return list(spread(reading, files, size_of(files)))
    new = [file for file in files if file not in known]
    sources = iter(spread(reading, new, size_of(new)))
    return [known[file] if file in known else next(sources) for file in files]


def _source(file: InputFile, kinds: Mapping[str, CustomKind], request: LoadRequest) -> Source:
    """Return one file with its contents; one that cannot be opened holds only a problem."""
    file = with_data(file)
    source = source_of(file, kinds, _reading(file, request))
    if not request.keeps_texts:
        source.let_go(is_looked_up(source.reading))
    return source


def _reading(file: InputFile, request: LoadRequest) -> Reading | None:
    """Return the contents of a file; None if it cannot be opened, which its source reports."""
    if file.data is None:
        return None
    problems: list[Problem] = []
    with Isolated(problems, file.path):
        return read(file.path, file.data, full_statuses=request.full_statuses)
    return Reading(file.path, (), (), problems=tuple(problems))


class _FoundFiles(Struct, frozen=True):
    """The files to read, each with whether it describes the cluster, and what is known about them."""

    files: list[tuple[InputFile, bool]]
    problems: list[Problem]
    assumptions: tuple[Assumption, ...]


def _found(paths: Iterable[Given], request: LoadRequest) -> _FoundFiles:
    """Return the files that are named or found in directories, each once."""
    files: dict[str, tuple[InputFile, bool]] = {}
    problems: list[Problem] = []
    assumptions: tuple[Assumption, ...] = ()
    real_paths = RealPaths()
    for given, are_stored in (*((path, False) for path in paths), *((path, True) for path in request.policies)):
        if isinstance(given, Inputs):
            inputs = given
        else:
            inputs = gather([os.fspath(given)], request.rendering or NO_RENDERING)
            inputs = inputs.only(sorted(inputs.files, key=lambda file: file.path))
            if not inputs.files and not inputs.problems:
                fix = "give a directory of manifests"
                problems.append(
                    Problem(os.fspath(given), 0, 0, Severity.ERROR, "", "contains no YAML or JSON files", fix)
                )
        problems += inputs.problems
        assumptions += inputs.assumptions
        for file in inputs.files:
            real = real_paths.of(file.path) if file.data is None else file.path
            first, was_stored = files.get(real, (file, are_stored))
            # Named by itself, its policies apply to all.
            is_named = are_stored or file.scope is None
            files[real] = (replace(first, scope=None) if is_named else first, was_stored)
    return _FoundFiles(list(files.values()), problems, assumptions)
