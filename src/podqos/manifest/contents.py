"""The contents of a text: the values that a reading returns, and the collector that builds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from podqos.manifest.decode import convert
from podqos.manifest.kinds import is_policy
from podqos.manifest.objects import Interpretation, KubernetesObject, holder_of
from podqos.manifest.plain import FieldPath, Plain, format_path
from podqos.manifest.problems import FieldProblem, Position, Problem, Severity, SyntaxProblem
from podqos.manifest.snippets import name_after
from podqos.manifest.text import Place
from podqos.model.pod import ObjectMeta, Workload

Locate = Callable[[FieldPath], Position]
"""From the path of a field in a document to its position in the text."""


class Other(Struct, frozen=True):
    """An object that holds no pod. Its fields are read again on demand: see ``lookup``."""

    kind: str
    api_version: str
    metadata: ObjectMeta
    place: Place


class RefusedDocument(Struct, frozen=True):
    """An object that should hold a pod but is invalid."""

    kind: str
    api_version: str
    metadata: ObjectMeta
    place: Place
    problems: tuple[Problem, ...]


class Unjudged(Struct, frozen=True):
    """An object whose pods cannot be read from it."""

    kind: str
    name: str
    place: Place
    why: str
    hint: str
    """What to do about it."""


class Reading(Struct, frozen=True):
    """Everything in a text."""

    source: str
    workloads: tuple[Workload, ...]
    places: Sequence[Place]
    """Where each workload is."""
    others: tuple[Other, ...] = ()
    problems: tuple[Problem, ...] = ()
    """In the order of the text."""
    skipped: int = 0
    """Documents, or items of lists, that are not Kubernetes objects."""
    refused: tuple[RefusedDocument, ...] = ()
    """Workloads that are left out because of their problems."""
    unjudged: tuple[Unjudged, ...] = ()
    """Custom resources whose pods are not among the workloads."""

    @property
    def has_policies(self) -> bool:
        """Whether it holds a kind that affects admission."""
        return any(is_policy(other.kind, other.api_version) for other in self.others)


class Collector:
    """Builds a reading."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._workloads: list[Workload] = []
        self._places: list[Place] = []
        self._others: list[Other] = []
        self._problems: list[Problem] = []
        self._refused: list[RefusedDocument] = []
        self._skipped = 0
        self._documents = 0
        self._snippets = 0

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to read and nothing to report."""
        return not self._documents and not self._problems

    def reading(self) -> Reading:
        """Return what was collected."""
        return Reading(
            self._source,
            tuple(self._workloads),
            self._places,
            tuple(self._others),
            tuple(sorted(self._problems)),
            self._skipped,
            tuple(self._refused),
        )

    def take(self, other: Collector) -> None:
        """Add what another one collected of the same text, which had no problems."""
        self._workloads += other._workloads
        self._places += other._places
        self._others += other._others
        self._skipped += other._skipped
        self._snippets += other._snippets

    def count_document(self) -> None:
        """Note that there was a document, whatever it contains."""
        self._documents += 1

    def add_problem(self, finding: FieldProblem, position: Position) -> None:
        """Report something at a position."""
        line, column = position
        field = format_path(finding.path)
        self._problems.append(Problem(self._source, line, column, finding.severity, field, finding.what, finding.fix))

    def add_syntax_problem(self, problem: SyntaxProblem, *, is_strict: bool = False) -> None:
        """Report that a document cannot be read, or, unless it must be in order, that part of it counts for nothing."""
        severity = Severity.WARNING if problem.keeps_value and not is_strict else Severity.ERROR
        self.add_problem(FieldProblem((), problem.what, problem.fix, severity), problem.position)

    def name_for_snippet(self) -> str:
        """Return a name for the next object without one: the file's, numbered from the second on."""
        name = name_after(self._source)
        return f"{name}-{self._snippets + 1}" if self._snippets else name

    def add_object(self, found: KubernetesObject, what: Interpretation, place: Place, locate: Locate) -> None:
        """Add an object, or report its problems."""
        known = len(self._problems)
        self._snippets += found.snippet is not None
        for finding in what.findings:
            in_text = place.in_text(finding.path)
            self.add_problem(finding, locate(place.path if in_text is None else in_text))
        if what.workload is not None:
            self._workloads.append(what.workload)
            self._places.append(place)
        elif not found.kind:
            self._skipped += 1
        elif not what.findings:
            self._others.append(Other(found.kind, found.api_version, _metadata(found.value), place))
        elif holder_of(found) is not None:
            problems = tuple(self._problems[known:])
            self._refused.append(
                RefusedDocument(found.kind, found.api_version, _metadata(found.value), place, problems)
            )


def _metadata(value: dict[str, Plain]) -> ObjectMeta:
    """Return the metadata of an object, or as much of it as can be read."""
    try:
        return convert(value.get("metadata", {}), ObjectMeta)
    except msgspec.ValidationError:
        metadata = value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return ObjectMeta(name=name) if isinstance(name, str) else ObjectMeta()
