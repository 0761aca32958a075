"""The files a command reads: finding and opening them.

Nothing is decided here. A file that cannot be read becomes a problem like any other and the rest goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from podqos.errors import InputError, InvalidOption

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")


def find_files(arguments: Iterable[str]) -> Iterator[str]:
    """Yield the files that ``-f`` names: a file as it is, of a directory all manifests below it, in order of name.

    Hidden directories (``.git``) are left out, links to directories are not followed.
    """
    for argument in arguments:
        if argument == STDIN or not os.path.isdir(argument):
            yield argument
            continue
        for folder, folders, files in os.walk(argument):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if is_manifest(name):
                    yield os.path.join(folder, name)


def manifest_files(given: list[str] | None, verb: str) -> list[str]:
    """Return the files that ``-f`` names; without it standard input is read, unless a person sits there."""
    if not given:
        if sys.stdin.isatty():
            raise InvalidOption(f"nothing to {verb}", fix="name manifests with -f FILE|DIR, or pipe them in with -f -")
        given = [STDIN]
    return existing_files(given)


def existing_files(given: list[str]) -> list[str]:
    """Return the files that an option names; a directory without manifests is an error."""
    files = list(find_files(given))
    if not files:
        raise InputError("no YAML or JSON files there", where=", ".join(given), fix="name a directory of manifests")
    return files


def applied_files(given: list[str] | None, verb: str) -> list[str]:
    """Return the same files in the order of ``kubectl apply -R``: what comes later replaces what came before."""
    if not given:
        return manifest_files(given, verb)
    return [file for each in given for file in sorted(existing_files([each]))]


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
            continue  # whoever reads it will say why
    return total


def read_bytes(path: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``."""
    try:
        if path == STDIN:
            return sys.stdin.buffer.read()
        with open(path, "rb", buffering=0) as file:
            return file.readall()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=path, fix=_how_to_read(error)) from error


def _how_to_read(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "check the path"
    if isinstance(error, PermissionError):
        return "make the file readable or run as its owner"
    return "name a file or a directory of manifests"
