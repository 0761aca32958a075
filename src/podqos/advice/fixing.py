"""Apply the patches of findings to the texts they were found in, until nothing is left that can be applied.

All patches of a file are applied together. Where two want the same field, the one of the first check goes in and the
other has to be found again in the new text; one that would undo what was written before is refused. Texts come in and
go out as bytes: reading, checking again and writing are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.advice.finding import EditValue, FieldEdit, Finding
from podqos.advice.patches import ObjectPatch, object_patch, plain_value
from podqos.manifest.edits import CannotEdit, ObjectEdit, Reason, apply_edits
from podqos.manifest.lookup import Lookup
from podqos.manifest.plain import FieldPath, parse_path

Recheck = Callable[[Mapping[str, bytes]], Sequence[Finding]]
"""From the texts that have changed, by file, to the findings that are left."""

_MOST_ROUNDS = 5
# With these, it is not one edit that is in the way of the others.
_OF_ALL = (Reason.TEMPLATE, Reason.UNREADABLE)


class FixedFile(Struct, frozen=True):
    """A file and what became of it."""

    source: str
    before: bytes
    after: bytes
    findings: tuple[Finding, ...]
    """What was mended."""


class RefusedFix(Struct, frozen=True):
    """A finding whose patch was not applied."""

    finding: Finding
    why: CannotEdit
    patch: ObjectPatch | None
    """To be applied by hand; None where it does not fit the object."""


class Fixes(Struct, frozen=True):
    """What became of all findings."""

    files: tuple[FixedFile, ...]
    """Those that change, in order of name."""
    refused: tuple[RefusedFix, ...]
    remaining: tuple[Finding, ...]
    """What is still found in the new texts."""


def fix(findings: Sequence[Finding], load: Callable[[str], bytes], recheck: Recheck) -> Fixes:
    """Apply every patch that is complete; ``load`` returns what a file held when it was checked."""
    fixing = _Fixing(load)
    for _ in range(_MOST_ROUNDS):
        if not fixing.take(findings):
            break
        findings = recheck(fixing.changed())
    return Fixes(fixing.files(), fixing.refused(), tuple(findings))


_Target = tuple[str, str, str]
"""An object: file, kind, namespace and name."""
_Wanted = dict[_Target, dict[FieldPath, EditValue]]


class _Fixing:
    def __init__(self, load: Callable[[str], bytes]) -> None:
        self._load = load
        self._before: dict[str, bytes] = {}
        self._after: dict[str, bytes] = {}
        self._mended: dict[str, list[Finding]] = {}
        self._refused: dict[tuple[_Target, str, str], RefusedFix] = {}
        self._written: _Wanted = {}

    def take(self, findings: Iterable[Finding]) -> bool:
        """Apply what can be applied, and return whether any text has changed."""
        by_source: dict[str, list[Finding]] = {}
        for finding in findings:
            if _can_be_applied(finding) and _key(finding) not in self._refused:
                by_source.setdefault(finding.subject.source, []).append(finding)
        changed = [self._fix_file(source, by_source[source]) for source in sorted(by_source)]
        return any(changed)

    def changed(self) -> dict[str, bytes]:
        return {source: data for source, data in self._after.items() if data != self._before[source]}

    def files(self) -> tuple[FixedFile, ...]:
        return tuple(
            FixedFile(source, self._before[source], after, tuple(self._mended[source]))
            for source, after in sorted(self.changed().items())
        )

    def refused(self) -> tuple[RefusedFix, ...]:
        return tuple(sorted(self._refused.values(), key=lambda refused: refused.finding.order))

    def _fix_file(self, source: str, findings: list[Finding]) -> bool:
        if source not in self._before:
            self._before[source] = self._after[source] = self._load(source)
            self._mended[source] = []
        data = self._after[source]
        chosen = self._without_conflicts(sorted(findings, key=lambda finding: (finding.check, finding.order)))
        chosen, result = self._apply(data, chosen)
        for finding in chosen:
            for edit in finding.patch.edits:
                self._written.setdefault(_target(finding), {})[parse_path(edit.path)] = edit.value
        if result == data:
            return False
        self._after[source] = result
        self._mended[source] += chosen
        return True

    def _without_conflicts(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return those that neither want the same field as one before them nor undo what was written before."""
        chosen: list[Finding] = []
        wanted: _Wanted = {}
        for finding in findings:
            target = _target(finding)
            undone = _conflict(finding.patch.edits, self._written.get(target, {}))
            if undone is not None:
                self._refuse(finding, CannotEdit(Reason.CONFLICT, _object_edit(finding, undone)))
            elif _conflict(finding.patch.edits, wanted.get(target, {})) is None:
                chosen.append(finding)
                wanted.setdefault(target, {}).update(
                    (parse_path(edit.path), edit.value) for edit in finding.patch.edits
                )
        return chosen

    def _apply(self, data: bytes, chosen: list[Finding]) -> tuple[list[Finding], bytes]:
        """Return which findings could be mended, and the text with all of that."""
        while chosen:
            result = apply_edits(data, list(_object_edits(chosen)))
            if not isinstance(result, CannotEdit):
                return chosen, result.data
            at_fault = _at_fault(data, chosen, result)
            for finding in at_fault:
                self._refuse(finding, result)
            chosen = [finding for finding in chosen if finding not in at_fault]
        return [], data

    def _refuse(self, finding: Finding, why: CannotEdit) -> None:
        patch = None
        place = finding.subject.place
        if place is not None:
            value = Lookup(self._after[finding.subject.source]).plain(place)
            patch = object_patch(value, finding.patch.edits)
        self._refused[_key(finding)] = RefusedFix(finding, why, patch)


def _at_fault(data: bytes, chosen: list[Finding], why: CannotEdit) -> list[Finding]:
    """Return whose edits are in the way; where it is not one of them, whatever does not go with those before it."""
    if why.edit is not None:
        return [finding for finding in chosen if why.edit in list(_object_edits([finding]))]
    if why.reason in _OF_ALL:
        return chosen
    accepted: list[Finding] = []
    for finding in chosen:
        if not isinstance(apply_edits(data, list(_object_edits([*accepted, finding]))), CannotEdit):
            accepted.append(finding)
    return [finding for finding in chosen if finding not in accepted]


def _can_be_applied(finding: Finding) -> bool:
    has_place = finding.subject.place is not None and bool(finding.subject.source)
    return finding.patch.is_complete and finding.suppression is None and has_place


def _target(finding: Finding) -> _Target:
    return finding.subject.source, finding.subject.kind, finding.subject.key


def _key(finding: Finding) -> tuple[_Target, str, str]:
    return _target(finding), finding.check, finding.path


def _conflict(edits: Iterable[FieldEdit], wanted: Mapping[FieldPath, EditValue]) -> FieldEdit | None:
    """Return the first edit of a field that is wanted to be something else, or that contains one or is part of one."""
    for edit in edits:
        path = parse_path(edit.path)
        for other, value in wanted.items():
            shorter = min(len(path), len(other))
            if path[:shorter] == other[:shorter] and (path != other or edit.value != value):
                return edit
    return None


def _object_edits(findings: Iterable[Finding]) -> Iterator[ObjectEdit]:
    for finding in findings:
        for edit in finding.patch.edits:
            yield _object_edit(finding, edit)


def _object_edit(finding: Finding, edit: FieldEdit) -> ObjectEdit:
    assert finding.subject.place is not None
    return ObjectEdit(finding.subject.place, edit.path, plain_value(edit.value))
