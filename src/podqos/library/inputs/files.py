"""The files a command reads: finding and opening them.

A directory is walked; what has to be rendered first (``rendering``) is left out with a line that says how. Nothing is
decided here. A file that cannot be read becomes a problem like any other and the rest goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from msgspec import Struct

from podqos.errors import InputError, InvalidOption
from podqos.manifest.problems import Problem

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")


class InputFile(Struct, frozen=True):
    """A file to read."""

    path: str
    scope: str | None = None
    """The directory that was walked to find it, whose objects its policies apply to; None: it was named."""
    data: bytes | None = None
    """What it holds, where that was rendered."""


class Inputs(Struct, frozen=True):
    """The files of a command, and what was left out on the way to them."""

    files: list[InputFile]
    problems: list[Problem] = []

    @property
    def paths(self) -> list[str]:
        """The names of the files."""
        return [file.path for file in self.files]

    def only(self, files: Iterable[InputFile]) -> Inputs:
        """Return the same with other files."""
        return Inputs(list(files), self.problems)


class Rendering(Struct, frozen=True):
    """What may be rendered: nothing, unless somebody asked."""

    render: bool = False
    """Whether to render every kustomization and chart that is found."""
    directories: tuple[str, ...] = ()
    """Those that are named."""


NO_RENDERING = Rendering()


def find_files(arguments: Iterable[str]) -> Iterator[str]:
    """Yield the files that ``-f`` names: a file as it is, of a directory all manifests below it, in order of name."""
    yield from gather(arguments).paths


def gather(arguments: Iterable[str], rendering: Rendering = NO_RENDERING) -> Inputs:
    """Return the files that ``-f`` names: a file as it is, of a directory all manifests below it, in order of name.

    Hidden files and directories (``.git``) are left out, links to directories are not followed. Kustomizations and
    charts are rendered where that was asked for, and otherwise left out with a problem that says how to render them.
    """
    from podqos.library.inputs.rendering import Rendered

    files: list[InputFile] = []
    rendered = Rendered(rendering.render)
    for argument in arguments:
        if argument == STDIN or not os.path.isdir(argument):
            if not rendered.leaves_out(argument):
                files.append(InputFile(argument))
            continue
        start = len(files)
        for folder, folders, names in os.walk(argument):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            if rendered.takes(folder, folders, names):
                continue
            scope = os.path.abspath(folder)
            files += [
                InputFile(os.path.join(folder, name), scope)
                for name in sorted(names)
                if is_manifest(name) and not name.startswith(".")
            ]
        files[start:] = [file for file in files[start:] if not rendered.claims(file.path)]
    for directory in rendering.directories:
        rendered.add(directory)
    files += rendered.files()
    return Inputs(files, rendered.problems())


def manifest_files(given: list[str] | None, verb: str, rendering: Rendering = NO_RENDERING) -> Inputs:
    """Return the files that ``-f`` names; without it standard input is read, unless a person sits there."""
    if not given and not rendering.directories:
        if sys.stdin.isatty():
            raise InvalidOption(f"nothing to {verb}", fix="name manifests with -f FILE|DIR, or pipe them in with -f -")
        given = [STDIN]
    return existing_files(given or [], rendering)


def existing_files(given: list[str], rendering: Rendering = NO_RENDERING) -> Inputs:
    """Return the files that an option names; a directory with nothing to read or to render is an error."""
    found = gather(given, rendering)
    if not found.files and not found.problems:
        raise InputError("no YAML or JSON files there", where=", ".join(given), fix="name a directory of manifests")
    return found


def applied_files(given: list[str] | None, verb: str, rendering: Rendering = NO_RENDERING) -> Inputs:
    """Return the same files in the order of ``kubectl apply -R``: what comes later replaces what came before."""
    if not given:
        return manifest_files(given, verb, rendering)
    found = [existing_files([each], Rendering(rendering.render)) for each in given]
    if rendering.directories:
        found.append(gather((), rendering))
    files = [file for each in found for file in sorted(each.files, key=lambda file: file.path)]
    return Inputs(files, [problem for each in found for problem in each.problems])


def is_manifest(name: str) -> bool:
    """Whether a file of a directory is looked at."""
    return name.endswith(_SUFFIXES)


def total_bytes(files: Iterable[str]) -> int:
    """Return the size of the files together; one that cannot be read counts nothing."""
    total = 0
    for file in files:
        try:
            total += os.stat(file).st_size
        except OSError:
            continue  # reading it will say why
    return total


def read_bytes(path: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``."""
    try:
        if path == STDIN:
            return sys.stdin.buffer.read()
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=path, fix=_how_to_read(error)) from error


def _how_to_read(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "check the path"
    if isinstance(error, PermissionError):
        return "make the file readable or run as its owner"
    return "name a file or a directory of manifests"
