"""A file as a command holds it: what was read from it, and where something stands in it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from podqos.errors import InputError
from podqos.library.inputs.files import read_bytes
from podqos.manifest.contents import Reading
from podqos.manifest.plain import FieldPath, format_path
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.reading import read
from podqos.manifest.text import Place

if TYPE_CHECKING:
    from podqos.manifest.lookup import Lookup


class Source:
    """A file, or standard input. One that cannot be opened holds nothing but a problem.

    ``data`` and ``reading`` are what was read already. ``skips_services``: Services need not be parsed.
    """

    def __init__(
        self, path: str, data: bytes | None = None, reading: Reading | None = None, *, skips_services: bool = False
    ) -> None:
        self.path = path
        self.data = b""
        try:
            self.data = read_bytes(path) if data is None else data
        except InputError as error:
            problem = Problem(path, 0, 0, Severity.ERROR, "", error.what, error.fix)
            self.reading = Reading(path, (), (), problems=(problem,))
        else:
            self.reading = read(path, self.data, skips_services=skips_services) if reading is None else reading

    @cached_property
    def lookup(self) -> Lookup:
        """What the file says in full, and where."""
        from podqos.manifest.lookup import Lookup

        return Lookup(self.data)

    def problem(
        self,
        place: Place,
        field: str | FieldPath,
        what: str,
        fix: str = "",
        *,
        severity: Severity = Severity.ERROR,
    ) -> Problem:
        """Return a problem with a field of the object at ``place``."""
        line, column = self.lookup.locate(place, field)
        named = field if isinstance(field, str) else format_path(field)
        return Problem(self.path, line, column, severity, named, what, fix)
