"""Injectors: a known one by its name, or one that a file describes."""

from __future__ import annotations

import os
from collections.abc import Iterable

from podqos.admission.injectors import INJECTORS, CustomInjector, Injector, custom_injector, injector_named
from podqos.errors import InputError
from podqos.manifest.documents import plain_documents
from podqos.manifest.plain import parse_path
from podqos.reading.files import read_bytes
from podqos.reading.paths import has_folder


def read_injectors(names: Iterable[str]) -> tuple[Injector | CustomInjector, ...]:
    """Return injectors by name or file, in their order."""
    return tuple(map(_injector, names))


def _injector(argument: str) -> Injector | CustomInjector:
    is_file = has_folder(argument) or argument.endswith((".yaml", ".yml", ".json")) or os.path.isfile(argument)
    if argument in INJECTORS or not is_file:
        return injector_named(argument)
    documents = plain_documents(argument, read_bytes(argument))
    if len(documents) != 1:
        raise InputError(f"{len(documents)} documents", where=argument, fix="an injector must be one document")
    document = documents[0]
    name = os.path.splitext(os.path.basename(argument))[0]
    try:
        return custom_injector(name, document.value)
    except InputError as error:
        line, column = document.locate(parse_path(error.where))
        field = f" {error.where}:" if error.where else ""
        raise InputError(f"{field} {error.what}".strip(), where=f"{argument}:{line}:{column}", fix=error.fix) from error
