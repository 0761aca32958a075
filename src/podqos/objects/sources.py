"""A file with its contents and the positions in it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.amounts import counted
from podqos.manifest.contents import Reading
from podqos.manifest.known_kinds import is_kubernetes_own
from podqos.manifest.placeholders import quoted_hint
from podqos.manifest.plain import FieldPath, Plain, format_path
from podqos.manifest.problems import Isolated, Position, Problem, Severity
from podqos.manifest.reading import NO_DOCUMENTS, read
from podqos.manifest.text import Place
from podqos.objects.purposes import Purpose

if TYPE_CHECKING:
    from podqos.admission.field_errors import FieldError
    from podqos.manifest.custom_kind import CustomKind
    from podqos.manifest.lookup import Lookup
    from podqos.model.pod import ObjectMeta


# A key that every manifest has, or a part of one. Texts of other programs only mention it: "ghcr.io/devcontainers/…".
_OF_MANIFESTS = re.compile(
    rb"""(?<![\w-])(?:apiVersion|containers|kubeletArguments)["']?[ ]*:|^kind:|kubeletconfig""", re.MULTILINE
)
_OF_PATCHES = (b"$patch", b"$setElementOrder", b"$deleteFromPrimitiveList", b"$retainKeys")
_YTT_OVERLAY = b"#@overlay/match"
_REJECTED = "the API server rejects it, see `podqos admit`"
_LIST = re.compile(rb'\{(?:"apiVersion":"[^"]*",)?"kind":"(\w+)List"')

_LOOKED_UP = ("lookup", "_subjects")


class Source:
    """A file, or standard input.

    ``reading`` is its contents, if already read. ``scope`` is the directory to which its policies apply, with all
    below; None: they apply to all objects. ``kinds`` are custom resources with pods in addition to the well-known ones.
    ``cluster`` is the name of the cluster that a list of objects comes from: these have names instead of lines and
    columns. A text that was not named, cannot be read and is no manifest is another program's.
    """

    def __init__(
        self,
        path: str,
        data: bytes,
        reading: Reading | None = None,
        scope: str | None = None,
        kinds: Mapping[str, CustomKind] | None = None,
        *,
        cluster: str = "",
    ) -> None:
        self.path = path
        self.cluster = cluster
        self.scope = scope
        self.purpose: Purpose | None = None
        """What it is for if not to be applied."""
        self.data = data
        self.reading = read(path, data) if reading is None else reading
        if scope is not None and any(problem.what == NO_DOCUMENTS for problem in self.reading.problems):
            self.reading = replace(self.reading, problems=())
        if scope is not None and self.reading.problems and self._is_of_others(self.reading):
            self.reading = Reading(path, (), (), skipped=max(self.reading.skipped, 1))
        if scope is not None and _YTT_OVERLAY in data:
            self.reading = Reading(path, (), (), skipped=max(self.reading.skipped, 1))
        if scope is not None and self.reading.refused and any(mark in data for mark in _OF_PATCHES):
            self.reading = self._without_patches()
        self.reading = self._with_custom_resources(self.reading, kinds or {})
        if cluster and self.reading.problems:
            self.reading = self._without_lines(self.reading)
        self.is_broken_fixture = False
        """Whether tests keep it and parts of it were left out because they cannot be read."""

    def kept_for(self, purpose: Purpose | None) -> Source:
        """Note what it is for. Tests keep files that are broken on purpose: what cannot be read is no error there."""
        self.purpose = purpose
        if purpose is not Purpose.TEST:
            return self
        reading = self.reading
        warnings = tuple(problem for problem in reading.problems if problem.severity is not Severity.ERROR)
        self.is_broken_fixture = len(warnings) < len(reading.problems)
        self.reading = replace(reading, problems=warnings, refused=())
        return self

    def with_text(self, data: bytes, kinds: Mapping[str, CustomKind]) -> Source:
        """Return the same file with another text."""
        return Source(self.path, data, None, self.scope, kinds).kept_for(self.purpose)

    def __getstate__(self) -> dict[str, object]:
        """Travel to another process without what can be looked up again."""
        return {name: value for name, value in vars(self).items() if name not in _LOOKED_UP}

    def let_go(self, is_looked_up: bool) -> None:
        """Free what can be looked up again, and the text if nothing will be looked up in it."""
        for name in _LOOKED_UP:
            vars(self).pop(name, None)
        if not is_looked_up:
            self.data = b""

    @property
    def name(self) -> str:
        """Its name for people: the path of the file, or the name of the cluster."""
        return self.cluster or self.path

    @property
    def listed_kind(self) -> str:
        """The kind that this is a cluster's complete list of; empty for files."""
        found = _LIST.match(self.data) if self.cluster else None
        return found[1].decode() if found is not None else ""

    def _without_lines(self, reading: Reading) -> Reading:
        """Return the objects of a cluster, with problems that name the object instead of a position."""
        starts = sorted((self.lookup.locate(place, ()), subject) for place, subject in self._subjects.items())

        def named(problem: Problem) -> Problem:
            number = bisect_right(starts, (problem.line, problem.column), key=itemgetter(0))
            subject = starts[number - 1][1] if number else ""
            return replace(problem, source=self.name, line=0, column=0, subject=subject)

        renamed = {problem: named(problem) for problem in reading.problems}
        return replace(
            reading,
            problems=tuple(renamed.values()),
            refused=tuple(
                replace(refused, problems=tuple(renamed.get(problem, problem) for problem in refused.problems))
                for refused in reading.refused
            ),
        )

    def _without_patches(self) -> Reading:
        """Return the reading without strategic merge patches."""
        reading = self.reading
        patches = [
            refused
            for refused in reading.refused
            if any(mark in self.data[refused.place.chunk.start : refused.place.chunk.end] for mark in _OF_PATCHES)
        ]
        theirs = {problem for patch in patches for problem in patch.problems}
        return replace(
            reading,
            refused=tuple(refused for refused in reading.refused if refused not in patches),
            problems=tuple(problem for problem in reading.problems if problem not in theirs),
            skipped=reading.skipped + len(patches),
        )

    def _is_of_others(self, reading: Reading) -> bool:
        if reading.workloads or reading.others or _OF_MANIFESTS.search(self.data) is not None:
            return False
        text = self.data.decode(errors="replace")
        return text != "" and "\0" not in text and "\ufffd" not in text

    def _with_custom_resources(self, reading: Reading, kinds: Mapping[str, CustomKind]) -> Reading:
        if all(
            is_kubernetes_own(other.kind, other.api_version) and other.kind not in kinds for other in reading.others
        ):
            return reading
        from podqos.manifest.custom_objects import CustomResources
        from podqos.manifest.text import normalise

        lookup = self.lookup
        return CustomResources(reading, normalise(self.data), lookup.plain, lookup.locate, kinds).read()

    @cached_property
    def lookup(self) -> Lookup:
        """The full contents of the file, with positions."""
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
        line, column = self.locate(place, field)
        named = field if isinstance(field, str) else format_path(field)
        return Problem(self.name, line, column, severity, named, what, fix, self._subjects.get(place, ""))

    def isolated(self, place: Place, problems: list[Problem], about: str = "") -> Isolated:
        """Return what makes an exception about the object at ``place`` a problem of that object alone."""
        position = (0, 0) if self.cluster else place.chunk.origin
        return Isolated(problems, self.name, position, self._subjects.get(place, ""), about)

    def tolerated(self, place: Place, errors: Sequence[FieldError]) -> tuple[Problem, ...]:
        """Return the warning about fields that the API server rejects but the answer does not depend on.

        Paths are those of the object. A part of a manifest is not held to what the rest of it may say.
        """
        if not errors or place.taken_for:
            return ()
        first, more = errors[0], f", and {counted(len(errors) - 1, 'more error')}" if len(errors) > 1 else ""
        fix = f"{quoted_hint(first.words) or _REJECTED}; this answer doesn't depend on it"
        return (self.problem(place, first.path, f"{first.words}{more}", fix, severity=Severity.WARNING),)

    def locate(self, place: Place, field: str | FieldPath) -> Position:
        """Return the line and column of a field of the object at ``place``; zeros if it comes from a cluster."""
        return (0, 0) if self.cluster else self.lookup.locate(place, field)

    def plain(self, place: Place) -> Plain:
        """Return everything the object at ``place`` says; kind and version a cluster's list says once."""
        value = self.lookup.plain(place)
        if self.cluster and place.path and isinstance(value, dict) and "kind" not in value:
            of_all = msgspec.json.decode(self.data, type=_List)
            value = {"apiVersion": of_all.api_version, "kind": of_all.kind.removesuffix("List"), **value}
        return value

    def where(self, place: Place) -> str:
        """Return where the object at ``place`` is, for people: line and column in a file, its name in a cluster."""
        line, column = self.locate(place, ())
        return f"{self.name}:{line}:{column}" if line else f"{self.name}: {self._subjects.get(place, '')}"

    @cached_property
    def _subjects(self) -> dict[Place, str]:
        """Kind and name of the objects of a cluster, which say where these are; of a file nothing."""
        if not self.cluster:
            return {}
        reading = self.reading
        workloads = zip(reading.places, reading.workloads, strict=True)
        return {
            **{place: _named(workload.kind, workload.metadata) for place, workload in workloads},
            **{other.place: _named(other.kind, other.metadata) for other in reading.others},
            **{refused.place: _named(refused.kind, refused.metadata) for refused in reading.refused},
        }


class _List(Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str


def _named(kind: str, metadata: ObjectMeta) -> str:
    return f"{kind} {metadata.namespace}/{metadata.name}" if metadata.namespace else f"{kind} {metadata.name}"
