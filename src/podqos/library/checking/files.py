"""From files to findings: read everything, put the surroundings together, check, and say where each finding stands.

Three steps are spread over the cores, file by file: reading, checking workloads one by one, and wording what was found.
Between them stands what needs everything at once. The processes of a step are forked from the one before, so that
only results travel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.bundle import CheckOptions, ClusterObjects, LocatedWorkload, Resize
from podqos.advice.checks.check import IGNORE_ANNOTATION, ignored_names
from podqos.advice.checks.checking import CheckedWorkload, check_bundle, check_workload
from podqos.advice.checks.finding import CheckedObject, FieldEdit, Finding
from podqos.advice.checks.view import Context
from podqos.errors import InputError
from podqos.library.checking.configuration import check_names
from podqos.library.inputs.files import read_bytes
from podqos.library.inputs.sources import Source
from podqos.library.inputs.surroundings import SurroundingsCollector, surrounds
from podqos.manifest.contents import Reading
from podqos.manifest.lookup import Lookup
from podqos.manifest.plain import format_path
from podqos.manifest.problems import Position, Problem, Severity
from podqos.manifest.reading import read
from podqos.model.pod import Workload
from podqos.report.check.value import FindingReport, finding_report

if TYPE_CHECKING:
    from podqos.advice.fixes.patches import ObjectPatch
    from podqos.report.check.replacements import Replacement

T = TypeVar("T")
R = TypeVar("R")

# Below this a second process costs more than it saves.
_WORTH_FORKING_BYTES = 1 << 20


class Inputs(Struct, frozen=True):
    """The files to check, and those that only tell what the cluster has."""

    files: list[str]
    described: list[str] = []
    resized: list[str] = []
    namespace: str = "default"
    """Of objects that name none."""


class Checked(Struct, frozen=True):
    """What the files hold and what is to be said about it."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    others: int
    """Objects that are neither workloads nor surround them, and documents that are no Kubernetes objects."""
    subjects: tuple[CheckedObject, ...]
    """Everything that was checked."""
    unknown: Counter[tuple[str, str]] = Counter()
    """Kind and name of classes that pods name and that were not given, unless a finding says so."""


class Texts:
    """What the files hold, read once: positions are asked for long after the reading.

    ``known`` is what some of them are to hold, whatever they say now.
    """

    def __init__(self, paths: Iterable[str], known: Mapping[str, bytes] | None = None) -> None:
        self.problems: list[Problem] = []
        self._texts: dict[str, bytes] = {}
        known = known or {}
        for path in paths:
            try:
                self._texts[path] = known[path] if path in known else read_bytes(path)
            except InputError as error:
                self.problems.append(Problem(path, 0, 0, Severity.ERROR, "", error.what, error.fix))

    @property
    def paths(self) -> list[str]:
        """The files that can be read, in the order in which they were named."""
        return list(self._texts)

    def readable(self, paths: Iterable[str]) -> list[str]:
        """Return those of the files that can be read, each once."""
        return [path for path in dict.fromkeys(paths) if path in self._texts]

    @property
    def size_bytes(self) -> int:
        """How much they are together."""
        return sum(map(len, self._texts.values()))

    def text(self, path: str) -> bytes:
        """Return what a file holds."""
        return self._texts[path]

    def changed(self, texts: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return all texts, some of them changed."""
        return {**self._texts, **texts}

    def read(self, path: str) -> Reading:
        """Return everything in a file."""
        return read(path, self._texts[path])

    def source(self, path: str) -> Source:
        """Return a file with what was read from it."""
        return Source(path, self._texts[path])

    def lookup(self, path: str) -> Lookup:
        """Return where everything in a file stands."""
        return Lookup(self._texts[path])


class Checking:
    """One run over a set of files."""

    def __init__(self, inputs: Inputs, options: CheckOptions, texts: Mapping[str, bytes] | None = None) -> None:
        self._inputs = inputs
        self._options = options
        self.texts = Texts((*inputs.files, *inputs.resized), texts)
        self._problems = list(self.texts.problems)

    def check(self) -> Checked:
        """Check everything that the files hold."""
        readings = self._spread(self.texts.read, self.texts.readable(self._inputs.files))
        surroundings = self._surroundings(readings)
        found = [_found(reading, self._inputs.namespace) for reading in readings]
        workloads = [each for group in found for each in group]
        context = Context(surroundings, self._options, self._resizes(workloads))
        findings = check_bundle(self._results(found, context), context)
        known = set(self.texts.paths)
        subjects = (*(each.subject for each in workloads), *surroundings.subjects)
        return Checked(
            findings=tuple(finding for finding in findings if finding.subject.source in known),
            problems=tuple(sorted(set(self._problems))),
            others=sum(_left_out(reading) for reading in readings),
            subjects=tuple(each for each in subjects if each.source in known),
            unknown=Counter(_unknown_classes(workloads, context)),
        )

    def report(self, findings: Iterable[Finding]) -> list[FindingReport]:
        """Return findings in words, with line and column, in the order of the files."""
        by_source = self._by_source(findings)

        def report_file(path: str) -> list[FindingReport]:
            lookup = self.texts.lookup(path)
            return [finding_report(finding, _position(finding, lookup)) for finding in by_source[path]]

        return [report for group in self._spread(report_file, list(by_source)) for report in group]

    def replacements(self, findings: Iterable[Finding]) -> list[Sequence[Replacement]]:
        """Return what to replace in its file for each finding, in the same order; nothing where that is not safe."""
        by_source = self._by_source(findings)
        return [_replacements(finding, self.texts.text(path)) for path, group in by_source.items() for finding in group]

    def patches(self, findings: Iterable[Finding]) -> list[tuple[CheckedObject, ObjectPatch]]:
        """Return one patch for each object that can be mended."""
        from podqos.advice.fixes.patches import object_patch

        edits: dict[CheckedObject, dict[str, FieldEdit]] = {}
        for finding in sorted(findings, key=lambda finding: finding.check):
            if finding.patch.is_complete:
                wanted = edits.setdefault(finding.subject, {})
                for edit in finding.patch.edits:
                    wanted.setdefault(edit.path, edit)
        patches = []
        for subject, wanted in sorted(edits.items(), key=lambda item: (item[0].source, item[0].kind, item[0].key)):
            assert subject.place is not None
            patch = object_patch(self.texts.lookup(subject.source).plain(subject.place), wanted.values())
            if patch is not None:
                patches.append((subject, patch))
        return patches

    def _by_source(self, findings: Iterable[Finding]) -> dict[str, list[Finding]]:
        by_source: dict[str, list[Finding]] = {path: [] for path in self.texts.paths}
        for finding in findings:
            by_source[finding.subject.source].append(finding)
        return {path: group for path, group in by_source.items() if group}

    def _spread(self, task: Callable[[T], R], inputs: Sequence[T]) -> list[R]:
        """Return ``task(input)`` for every input; all cores work where there is enough of it."""
        if self.texts.size_bytes < _WORTH_FORKING_BYTES:
            return [task(each) for each in inputs]
        from podqos.library.engines.fan_out import fan_out, usable_cores

        return list(fan_out(task, inputs, usable_cores()))

    def _surroundings(self, readings: list[Reading]) -> ClusterObjects:
        """Put together what surrounds the workloads: from the files, and as the cluster is said to have it."""
        collector = SurroundingsCollector(self._inputs.namespace)
        for reading in readings:
            self._problems += reading.problems
            self._problems += _misspelt(reading, self.texts)
            self._problems += _unknown_checks(reading, self.texts)
            if any(map(surrounds, reading.others)):
                collector.take(self.texts.source(reading.source))
        for path in self._inputs.described:
            source = Source(path)
            self._problems += [each for each in source.reading.problems if not _is_about_workload(each, source.reading)]
            collector.take(source, are_stored=True)
        surroundings = collector.surroundings()
        self._problems += collector.problems()
        return surroundings

    def _results(self, found: list[list[LocatedWorkload]], context: Context) -> list[CheckedWorkload]:
        keep_pods = sum(map(len, found)) <= self._options.compare_up_to

        def check_group(group: list[LocatedWorkload]) -> list[CheckedWorkload]:
            return [check_workload(each, context, keep_pod=keep_pods) for each in group]

        return [result for results in self._spread(check_group, found) for result in results]

    def _resizes(self, workloads: Iterable[LocatedWorkload]) -> list[Resize]:
        """Return what is to be resized: the new version of each workload beside the pod as it is."""
        running = {_key(each): each for each in workloads}
        resizes = []
        for path in self.texts.readable(self._inputs.resized):
            source = self.texts.source(path)
            self._problems += source.reading.problems
            for each in _found(source.reading, self._inputs.namespace):
                old = running.get(_key(each))
                if old is not None:
                    resizes.append(Resize(old.workload.pod, each))
                    continue
                what = f"there is no {each.subject.kind} {each.subject.key} to resize"
                assert each.subject.place is not None
                fix = "give it with -f, as it is now"
                self._problems.append(source.problem(each.subject.place, ("metadata", "name"), what, fix))
        return resizes


def _found(reading: Reading, namespace: str) -> list[LocatedWorkload]:
    """Return the workloads of a file, each in a namespace."""
    found = []
    for workload, place in zip(reading.workloads, reading.places, strict=True):
        metadata = workload.metadata
        own = metadata.namespace or namespace
        subject = CheckedObject(workload.kind, metadata.name or metadata.generate_name, own, "", reading.source, place)
        found.append(LocatedWorkload(workload if metadata.namespace else _in_namespace(workload, own), subject))
    return found


def _unknown_classes(workloads: Iterable[LocatedWorkload], context: Context) -> Iterator[tuple[str, str]]:
    """Yield the classes that pods name and that were not given; of priority classes PQ305 tells, where it can."""
    for found in workloads:
        spec = found.workload.pod.spec
        if (spec.priority_class_name or spec.runtime_class_name) and not found.workload.is_stored:
            for missing in context.missing_classes(found.workload.pod):
                if missing.kind != "PriorityClass" or not context.knows_priorities:
                    yield missing.kind, missing.name


def _in_namespace(workload: Workload, namespace: str) -> Workload:
    pod = workload.pod
    return replace(
        workload,
        metadata=replace(workload.metadata, namespace=namespace),
        pod=replace(pod, metadata=replace(pod.metadata, namespace=namespace)),
    )


def _misspelt(reading: Reading, texts: Texts) -> Iterator[Problem]:
    """Yield a warning for each object whose kind is probably misspelt."""
    if not reading.others:
        return
    from podqos.manifest.known_kinds import meant_kind

    for other in reading.others:
        meant = None if surrounds(other) else meant_kind(other.kind, other.api_version)
        if meant is not None:
            line, column = texts.lookup(reading.source).locate(other.place, "kind")
            what, fix = f'no kind "{other.kind}", so it is not checked', f"did you mean {meant}?"
            yield Problem(reading.source, line, column, Severity.WARNING, "kind", what, fix)


def _unknown_checks(reading: Reading, texts: Texts) -> Iterator[Problem]:
    """Yield a warning for each check that an annotation tells to ignore and that does not exist."""
    for workload, place in zip(reading.workloads, reading.places, strict=True):
        for name in ignored_names(workload.metadata.annotations):
            known = check_names()
            if name not in known:
                from podqos.manifest.fields import suggestion

                path = ("metadata", "annotations", IGNORE_ANNOTATION)
                line, column = texts.lookup(reading.source).locate(place, path)
                what, fix = f'no check "{name}"', suggestion(name, known)
                yield Problem(reading.source, line, column, Severity.WARNING, format_path(path), what, fix)


def _left_out(reading: Reading) -> int:
    return reading.skipped + sum(not surrounds(other) for other in reading.others)


def _is_about_workload(problem: Problem, reading: Reading) -> bool:
    return any(problem in refused.problems for refused in reading.refused)


def _key(found: LocatedWorkload) -> tuple[str, str, str]:
    return found.subject.kind, found.subject.namespace, found.subject.name


def _position(finding: Finding, lookup: Lookup) -> Position:
    place = finding.subject.place
    return (1, 1) if place is None else lookup.locate(place, finding.path)


def _replacements(finding: Finding, data: bytes) -> Sequence[Replacement]:
    from podqos.advice.fixes.patches import plain_value
    from podqos.manifest.edits import CannotEdit, ObjectEdit, apply_edits
    from podqos.report.check.replacements import line_replacements

    place = finding.subject.place
    if not finding.patch.is_complete or place is None:
        return ()
    edits = [ObjectEdit(place, edit.path, plain_value(edit.value)) for edit in finding.patch.edits]
    edited = apply_edits(data, edits)
    return () if isinstance(edited, CannotEdit) else line_replacements(data, edited.data)
