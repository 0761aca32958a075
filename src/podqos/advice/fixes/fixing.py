"""Apply the patches of findings to the texts they were found in, until no patch is left to apply.

All patches of a file are applied together, and the result is checked again. Where two want the same field, or the same
resources, the more severe finding wins, or else the first check, and the other has to be found again in the new text;
if they keep undoing each other, the first wins. Texts come in and go out as bytes: reading, checking again and
writing are up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.advice.checks.finding import CheckedObject, EditValue, Finding
from podqos.advice.fixes.patches import ObjectPatch, object_patch, plain_value
from podqos.manifest.edits.apply import CannotEdit, ObjectEdit, Reason, apply_edits, places_in_order
from podqos.manifest.lookup import Lookup
from podqos.manifest.plain import FieldPath, parse_path
from podqos.manifest.text import Place

Recheck = Callable[[Mapping[str, bytes]], Sequence[Finding]]
"""From the texts that have changed, by file, to the findings that are left."""

_MOST_ROUNDS = 8
# What is in the way of one edit is in the way of all others in the file.
_OF_THE_FILE = (Reason.TEMPLATE, Reason.UNREADABLE)


class FixedFile(Struct, frozen=True):
    """A file and what became of it."""

    source: str
    before: bytes
    after: bytes
    findings: tuple[Finding, ...]
    """What was fixed."""


class RefusedFix(Struct, frozen=True):
    """A finding whose patch was not applied."""

    finding: Finding
    why: CannotEdit


class RefusedObject(Struct, frozen=True):
    """An object to fix by hand."""

    subject: CheckedObject
    fixes: tuple[RefusedFix, ...]
    patch: ObjectPatch | None
    """All of them together, except those that contradict what was written; None where nothing is left of them."""


class Fixes(Struct, frozen=True):
    """What became of all findings."""

    files: tuple[FixedFile, ...]
    """Those that change, in order of name."""
    refused: tuple[RefusedObject, ...]
    remaining: tuple[Finding, ...]
    """What is still found in the new texts."""


def fix(findings: Sequence[Finding], load: Callable[[str], bytes], recheck: Recheck) -> Fixes:
    """Apply every patch that ``is_applied``; ``load`` returns what a file held when it was checked."""
    files: dict[str, _File] = {}
    for _ in range(_MOST_ROUNDS):
        by_source: dict[str, list[Finding]] = {}
        for finding in findings:
            if _can_be_applied(finding):
                by_source.setdefault(finding.subject.source, []).append(finding)
        for source in sorted(by_source.keys() - files.keys()):
            files[source] = _File(load(source))
        changed = [files[source].take(by_source[source]) for source in sorted(by_source)]
        if not any(changed):
            break
        findings = recheck({source: file.after for source, file in files.items() if file.after != file.before})
    in_order = sorted(files.items())
    return Fixes(
        tuple(
            FixedFile(source, file.before, file.after, tuple(file.fixed))
            for source, file in in_order
            if file.after != file.before
        ),
        tuple(refused for _, file in in_order for refused in file.refused()),
        tuple(findings),
    )


def _can_be_applied(finding: Finding) -> bool:
    has_place = finding.subject.place is not None and bool(finding.subject.source)
    return finding.patch.is_applied and finding.suppression is None and has_place


_Wanted = dict[FieldPath, EditValue]


class _Written(Struct):
    """What was written into a field, and of which rank the finding was that did it last."""

    rank: tuple[int, str]
    values: list[EditValue]


class _File:
    """A file while patches are applied to it. Objects are known by their number: it stays while places move."""

    def __init__(self, data: bytes) -> None:
        self.before = self.after = data
        self.fixed: list[Finding] = []
        self._written: dict[tuple[int, FieldPath], _Written] = {}
        self._refused: dict[tuple[int, str, str], RefusedFix] = {}

    def take(self, findings: Iterable[Finding]) -> bool:
        """Apply what can be applied, and return whether the text has changed."""
        numbers = {place: number for number, place in enumerate(places_in_order(self.after))}
        fixes = [_Fix(finding, numbers.get(_place(finding), -1)) for finding in findings]
        fixes = [each for each in fixes if each.key not in self._refused and not self._is_written(each)]
        chosen = self._without_conflicts(sorted(fixes, key=lambda each: (each.rank, each.finding.order)))
        chosen, result = self._apply(chosen)
        for each in chosen:
            self._note(each)
        if result == self.after:
            return False
        self.after = result
        self.fixed += [each.finding for each in chosen]
        return True

    def _is_written(self, each: _Fix) -> bool:
        """Whether all that a patch wants was written, and the finding is there nevertheless."""
        fields = [(self._written.get((each.number, path)), value) for path, value in each.wanted().items()]
        return all(written is not None and written.values[-1] == value for written, value in fields)

    def _note(self, each: _Fix) -> None:
        for path, value in each.wanted().items():
            written = self._written.setdefault((each.number, path), _Written(each.rank, []))
            written.rank = each.rank
            if value not in written.values[-1:]:
                written.values.append(value)

    def _is_undone(self, each: _Fix) -> bool:
        """Whether a patch wants to go back to what another of higher rank has overwritten."""
        for path, value in each.wanted().items():
            written = self._written.get((each.number, path))
            if written is not None and value in written.values[:-1] and each.rank >= written.rank:
                return True
        return False

    def refused(self) -> Iterator[RefusedObject]:
        """Yield what was not fixed, object by object."""
        by_object: dict[int, list[RefusedFix]] = {}
        for (number, _, _), refused in self._refused.items():
            by_object.setdefault(number, []).append(refused)
        lookup, places = Lookup(self.after), places_in_order(self.after)
        for number, fixes in sorted(by_object.items()):
            in_order = sorted(fixes, key=lambda refused: refused.finding.order)
            edits = [
                edit
                for refused in in_order
                if refused.why.reason is not Reason.CONFLICT
                for edit in refused.finding.patch.edits
            ]
            value = lookup.plain(places[number]) if 0 <= number < len(places) else None
            yield RefusedObject(in_order[0].finding.subject, tuple(in_order), object_patch(value, edits))

    def _without_conflicts(self, fixes: Iterable[_Fix]) -> list[_Fix]:
        """Return those that can be applied together: of two that want the same field, the first."""
        chosen: dict[int, list[_Fix]] = {}
        for each in fixes:
            of_object = chosen.setdefault(each.number, [])
            if self._is_undone(each):
                self._refuse(each, CannotEdit(Reason.CONFLICT))
            elif not any(map(each.interferes, of_object)):
                of_object.append(each)
        return [each for of_object in chosen.values() for each in of_object]

    def _apply(self, chosen: list[_Fix]) -> tuple[list[_Fix], bytes]:
        """Return which findings could be fixed, and the resulting text."""
        while chosen:
            result = apply_edits(self.after, [edit for each in chosen for edit in each.edits()])
            if not isinstance(result, CannotEdit):
                return chosen, result.data
            for why in (result, *result.others):
                for each in self._at_fault(chosen, why):
                    self._refuse(each, why)
            chosen = [each for each in chosen if each.key not in self._refused]
        return [], self.after

    def _at_fault(self, chosen: list[_Fix], why: CannotEdit) -> list[_Fix]:
        """Return the fixes whose edits fail; where none fails alone, those that do not fit with the ones before."""
        if why.reason in _OF_THE_FILE:
            return chosen
        if why.edit is not None:
            at_place = [each for each in chosen if _place(each.finding) == why.edit.place]
            return [each for each in at_place if why.edit in each.edits()]
        accepted: list[ObjectEdit] = []
        at_fault = []
        for each in chosen:
            if isinstance(apply_edits(self.after, [*accepted, *each.edits()]), CannotEdit):
                at_fault.append(each)
            else:
                accepted += each.edits()
        return at_fault

    def _refuse(self, each: _Fix, why: CannotEdit) -> None:
        self._refused[each.key] = RefusedFix(each.finding, why)


def _place(finding: Finding) -> Place:
    assert finding.subject.place is not None
    return finding.subject.place


class _Fix(Struct, frozen=True):
    """A finding with the number of its object in the file."""

    finding: Finding
    number: int

    @property
    def key(self) -> tuple[int, str, str]:
        """The same finding has the same key in every round."""
        return self.number, self.finding.check, self.finding.path

    @property
    def rank(self) -> tuple[int, str]:
        """Which of two wins: the one of the lower rank."""
        return self.finding.severity.rank, self.finding.check

    def edits(self) -> list[ObjectEdit]:
        return [
            ObjectEdit(_place(self.finding), edit.path, plain_value(edit.value)) for edit in self.finding.patch.edits
        ]

    def wanted(self) -> _Wanted:
        return {parse_path(edit.path): edit.value for edit in self.finding.patch.edits}

    def interferes(self, other: _Fix) -> bool:
        """Whether both write into the same field, or one check into the resources that the other looks at."""
        for path, value in self.wanted().items():
            for other_path, other_value in other.wanted().items():
                if self.finding.check != other.finding.check and _resources(path) == _resources(other_path) != ():
                    return True
                shorter = min(len(path), len(other_path))
                if path[:shorter] == other_path[:shorter] and (path != other_path or value != other_value):
                    return True
        return False


def _resources(path: FieldPath) -> FieldPath:
    """Return the path of the resources that a field belongs to, or nothing."""
    return path[: path.index("resources") + 1] if "resources" in path else ()
