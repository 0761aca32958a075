"""A file as a command holds it: what was read from it, and where something stands in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.errors import InputError
from podqos.library.inputs.files import read_bytes
from podqos.manifest.contents import Reading
from podqos.manifest.known_kinds import is_kubernetes_own
from podqos.manifest.plain import FieldPath, format_path
from podqos.manifest.problems import Problem, Severity
from podqos.manifest.reading import read
from podqos.manifest.text import Place

if TYPE_CHECKING:
    from podqos.manifest.lookup import Lookup
    from podqos.manifest.pod_kinds import CustomKind


# What every manifest has, or a part of one; and what templates and files of other programs have.
_OF_MANIFESTS = (b"apiVersion", b"containers", b"kubeletArguments", b"kubeletconfig")
_OF_PATCHES = (b"$patch", b"$setElementOrder", b"$deleteFromPrimitiveList", b"$retainKeys")
_OF_OTHERS = re.compile(rb"\{\{|\{%|(?:^|\s)!!?[A-Za-z]")


class Source:
    """A file, or standard input. One that cannot be opened holds nothing but a problem.

    ``data`` and ``reading`` are what was read already. ``scope`` is the directory whose objects its policies apply to,
    with everything below it; None: they apply to all objects. ``kinds`` are custom resources that hold pods, besides
    the well-known ones. ``skips_services``: Services need not be parsed. A file that was not named, cannot be read and
    looks like another program's is no manifest.
    """

    def __init__(
        self,
        path: str,
        data: bytes | None = None,
        reading: Reading | None = None,
        scope: str | None = None,
        kinds: Mapping[str, CustomKind] | None = None,
        *,
        skips_services: bool = False,
    ) -> None:
        self.path = path
        self.scope = scope
        self.data = b""
        try:
            self.data = read_bytes(path) if data is None else data
        except InputError as error:
            problem = Problem(path, 0, 0, Severity.ERROR, "", error.what, error.fix)
            self.reading = Reading(path, (), (), problems=(problem,))
        else:
            self.reading = read(path, self.data, skips_services=skips_services) if reading is None else reading
            if scope is not None and self.reading.problems and self._is_of_others():
                self.reading = Reading(path, (), (), skipped=max(self.reading.skipped, 1))
            if scope is not None and self.reading.refused and any(mark in self.data for mark in _OF_PATCHES):
                self.reading = self._without_patches()
            self.reading = self._with_custom_resources(self.reading, kinds or {})

    def _without_patches(self) -> Reading:
        """Return the reading without what can only be a strategic merge patch."""
        reading = self.reading
        patches = [
            each
            for each in reading.refused
            if any(mark in self.data[each.place.chunk.start : each.place.chunk.end] for mark in _OF_PATCHES)
        ]
        theirs = {problem for each in patches for problem in each.problems}
        return replace(
            reading,
            refused=tuple(each for each in reading.refused if each not in patches),
            problems=tuple(each for each in reading.problems if each not in theirs),
            skipped=reading.skipped + len(patches),
        )

    def _is_of_others(self) -> bool:
        return not any(mark in self.data for mark in _OF_MANIFESTS) and _OF_OTHERS.search(self.data) is not None

    def _with_custom_resources(self, reading: Reading, kinds: Mapping[str, CustomKind]) -> Reading:
        if all(is_kubernetes_own(each.kind, each.api_version) and each.kind not in kinds for each in reading.others):
            return reading
        from podqos.manifest.custom_objects import CustomResources
        from podqos.manifest.text import normalise

        lookup = self.lookup
        return CustomResources(reading, normalise(self.data), lookup.plain, lookup.locate, kinds).read()

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
