"""podqos' own files, configuration and baseline, read strictly: every problem has its line and column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from podqos.errors import InputError
from podqos.manifest.decode import convert
from podqos.manifest.documents import plain_documents
from podqos.manifest.examine import Examination
from podqos.manifest.plain import FieldPath, format_path, parse_path
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.strictyaml import Document
from podqos.reading.files import read_bytes

Model = TypeVar("Model", bound=Struct)


class StrictFile(Generic[Model]):
    """One YAML or JSON document as a model whose structures forbid unknown fields.

    It holds a value, or none because of its problems; an empty file holds the defaults.
    """

    def __init__(self, path: str, model: type[Model], refused: Mapping[str, tuple[str, str]] = {}) -> None:
        """Read it. ``refused`` is as of an ``Examination``."""
        self.path = path
        self.value: Model | None = None
        self.problems: tuple[Problem, ...] = ()
        self._document = _document(path)
        if self._document is None:
            self.value = model()
            return
        examination = Examination(is_live=False, refused=refused)
        cleaned = examination.clean(self._document.value, model, ())
        if not examination.findings:
            try:
                self.value = convert(cleaned, model)
            except msgspec.ValidationError as error:
                examination.report(*_translated(error))
        found = [self.problem(finding.path, finding.what, finding.fix) for finding in examination.findings]
        self.problems = tuple(sorted(found))

    def problem(self, field: FieldPath, what: str, fix: str = "") -> Problem:
        """Return an error about a field."""
        line, column = (1, 1) if self._document is None else self._document.locate(field)
        return Problem(self.path, line, column, Severity.ERROR, format_path(field), what, fix)


def _document(path: str) -> Document | None:
    documents = plain_documents(path, read_bytes(path))
    if len(documents) > 1:
        raise InputError(f"{len(documents)} documents", where=path, fix="it must be one")
    return documents[0] if documents else None


def _translated(error: msgspec.ValidationError) -> tuple[FieldPath, str]:
    """Return the path and message of errors that only the conversion sees: missing fields, and numbers out of range."""
    text, _, path = str(error).partition(" - at ")
    return parse_path(path.strip("`").removeprefix("$")), text[:1].lower() + text[1:].replace("`", '"')
