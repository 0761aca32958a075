"""Finding the files that a command reads.

A directory is walked; whatever must be rendered first (``rendering``) is left out with a line that says how. Nothing is
decided here. A file that cannot be read becomes a problem like any other, and the rest is still read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podqos.errors import InputError, InvalidArgument
from podqos.manifest.problems import Problem, Severity
from podqos.naming import naming
from podqos.objects.files import STDIN, InputFile, Inputs
from podqos.objects.purposes import is_assertion, purpose
from podqos.reading.files import NO_RENDERING, Rendering, is_manifest, is_special
from podqos.reading.fixtures import skipped_assertions
from podqos.reading.jsonnet import JsonnetFiles
from podqos.reading.paths import with_slashes
from podqos.reading.renderers import piped
from podqos.reading.rendering import Rendered


def gather(arguments: Iterable[str], rendering: Rendering = NO_RENDERING) -> Inputs:
    """Return the files that are ``given``: a file as it is, of a directory all manifests below it, in order of name.

    Hidden files and directories (``.git``) are left out, links to directories are not followed. Kustomizations and
    charts are rendered where that was asked for, and otherwise left out with a problem that says how to render them.
    Jsonnet and the assertions of tests are always left out.
    """
    files: list[InputFile] = []
    problems: list[Problem] = []
    rendered, jsonnet = Rendered(rendering), JsonnetFiles()
    given = list(map(with_slashes, arguments))
    for argument in given:
        if argument == STDIN and rendering.splits_stdin:
            files += piped()
            continue
        if argument == STDIN or not os.path.isdir(argument):
            if not rendered.leaves_out(argument) and not jsonnet.takes(argument):
                files.append(InputFile(argument))
            continue
        start, assertions = len(files), list[str]()
        for folder, folders, names in _walk(argument, problems):
            meant = purpose(with_slashes(os.path.relpath(folder, argument)), names)
            if rendered.takes(folder, folders, names, meant):
                continue
            jsonnet.note(folder, names)
            scope, start_of_path = map(with_slashes, (os.path.abspath(folder), os.path.join(folder, "")))
            for name in sorted(names):
                if not is_manifest(name) or name.startswith("."):
                    continue
                if is_assertion(name):
                    assertions.append(start_of_path + name)
                else:
                    files.append(InputFile(start_of_path + name, scope, purpose=meant))
        files[start:] = [file for file in files[start:] if not rendered.claims(file.path)]
        problems += skipped_assertions(argument, assertions)
    for directory in rendering.directories:
        rendered.add(directory)
    files += rendered.files()
    problems += rendered.problems()
    problems += jsonnet.problems(is_all=not files and not problems)
    return Inputs(files if len(given) == 1 else _each_once(files), problems)


def _walk(top: str, problems: list[Problem]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield a directory and those below it, as ``os.walk`` does: path, directories, files.

    Without hidden directories, and without pipes, sockets and devices. Of most files nothing but the name is looked at.
    A directory that cannot be read becomes a problem.
    """
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        folders: list[str] = []
        names: list[str] = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        names.append(entry.name)
                    elif os.path.isdir(entry.path):
                        if not entry.name.startswith("."):
                            folders.append(entry.name)
                    elif not is_special(entry.path):
                        names.append(entry.name)
        except OSError as error:
            what = error.strerror or str(error)
            problems.append(Problem(folder, 0, 0, Severity.ERROR, "", what, "make the directory readable"))
        folders.sort()
        yield folder, folders, names
        below = (os.path.join(folder, name) for name in reversed(folders))
        waiting += [path for path in below if not os.path.islink(path)]


def _each_once(files: Iterable[InputFile]) -> list[InputFile]:
    """Return every file once; one that was both named and found in a directory counts as named."""
    found: dict[str, InputFile] = {}
    for file in files:
        real = os.path.realpath(file.path) if file.data is None else file.path
        found[real] = replace(found.get(real, file), scope=None) if file.scope is None else found.get(real, file)
    return list(found.values())


def manifest_files(given: list[str] | None, verb: str, rendering: Rendering = NO_RENDERING) -> Inputs:
    """Return the files that are ``given``; without any, standard input is read, unless it is a terminal."""
    if not given and not rendering.directories:
        if sys.stdin.isatty():
            fix = (
                "give manifests with " + naming("files", "FILE|DIR") + ", or pipe them in with " + naming("files", "-")
            )
            raise InvalidArgument(f"nothing to {verb}", fix=fix)
        given = [STDIN]
    return existing_files(given or [], rendering)


def existing_files(given: list[str], rendering: Rendering = NO_RENDERING) -> Inputs:
    """Return the files that an option names; a directory with nothing to read or to render is an error."""
    found = gather(given, rendering)
    if not found.files and not found.problems:
        raise InputError("contains no YAML or JSON files", where=", ".join(given), fix="give a directory of manifests")
    return found


def applied_files(given: list[str] | None, verb: str, rendering: Rendering = NO_RENDERING) -> Inputs:
    """Return the same files in the order of ``kubectl apply -R``: what comes later replaces what came before."""
    if not given:
        return manifest_files(given, verb, rendering)
    found = [existing_files([each], replace(rendering, directories=())) for each in given]
    if rendering.directories:
        found.append(gather((), rendering))
    files = [file for inputs in found for file in sorted(inputs.files, key=lambda file: file.path)]
    return Inputs(files, [problem for inputs in found for problem in inputs.problems])
