"""The part of ``.podqos.yaml`` that all commands use; the rest is for check (``library.checking.configuration``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from podqos.errors import InputError
from podqos.objects.files import STDIN
from podqos.reading.files import is_manifest, read_bytes
from podqos.reading.paths import relative, with_slashes

FILE_NAME = ".podqos.yaml"


def find_configuration(paths: Iterable[str]) -> str | None:
    """Return the ``.podqos.yaml`` nearest to the files, going up until a repository ends."""
    seen: set[str] = set()
    # Thousands of files are in few directories.
    starts = dict.fromkeys(
        path[: path.rfind("/") + 1] if is_manifest(path) else path for path in map(with_slashes, paths) if path != STDIN
    )
    for start in starts or [""]:
        folder = os.path.realpath(start)
        if not os.path.isdir(folder):
            folder = os.path.dirname(folder)
        for upward in _upwards(folder):
            if upward in seen:
                break
            seen.add(upward)
            file = os.path.join(upward, FILE_NAME)
            if os.path.isfile(file):
                return relative(file)
            if os.path.exists(os.path.join(upward, ".git")):
                break
    return None


def configured_kinds(paths: Iterable[str]) -> dict[str, str]:
    """Return custom resources with pods and the paths to their templates; ``check`` reports what is wrong with them."""
    path = find_configuration(paths)
    data = b"" if path is None else read_bytes(path)
    if path is None or b"kinds" not in data:
        return {}
    from podqos.manifest.documents import plain_documents

    try:
        documents = plain_documents(path, data)
    except InputError:
        return {}
    value = documents[0].value if documents else None
    kinds = value.get("kinds") if isinstance(value, dict) else None
    if not isinstance(kinds, dict) or not all(isinstance(kind, str) for kind in kinds.values()):
        if kinds is not None:
            raise InputError("kinds is not a mapping of kinds to paths", where=path, fix=_EXAMPLE)
        return {}
    return {kind: str(each) for kind, each in kinds.items()}


_EXAMPLE = "for example kinds: {Widget: spec.podTemplate}"


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        above = os.path.dirname(folder)
        if above == folder:
            return
        folder = above
