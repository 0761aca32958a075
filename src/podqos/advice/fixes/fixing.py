"""Apply the patches of findings to the texts they were found in, until no patch is left to apply.

All patches of a file are applied together, and everything is checked again. Where two want the same field, or the same
resources, the more severe finding wins, or else the first check, and the other has to be found again in the new text.
What is written is always better by the checks' own measure (``checks.trying``), and no worse for any other object:
where the patches together are not, they are tried one by one, and those that are not are refused. So they cannot go on
for ever, or undo each other. Texts come in and go out as bytes: reading, checking again and writing are up to the
caller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from podqos.advice.checks.finding import CheckedObject, EditValue, Finding, plain_value
from podqos.advice.checks.trying import measure
from podqos.advice.fixes.patches import ObjectPatch, object_patch
from podqos.manifest.edits.apply import CannotEdit, ObjectEdit, Reason, apply_edits, places_in_order
from podqos.manifest.lookup import Lookup
from podqos.manifest.plain import FieldPath, parse_path
from podqos.manifest.text import Place

Recheck = Callable[[Mapping[str, bytes]], Sequence[Finding]]
"""From the texts that have changed, by file, to the findings that are left."""

_MOST_ALONE = 50
"""So many patches are tried one by one: each takes as long as checking everything."""
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
    run = _Run(findings, load, recheck)
    while run.apply_all():
        pass
    in_order = sorted(run.files.items())
    return Fixes(
        tuple(
            FixedFile(source, file.before, file.after, tuple(file.fixed))
            for source, file in in_order
            if file.after != file.before
        ),
        tuple(refused for _, file in in_order for refused in file.refused()),
        tuple(run.findings),
    )


class _Run:
    """The files while patches are applied to them, and what is found in them."""

    def __init__(self, findings: Sequence[Finding], load: Callable[[str], bytes], recheck: Recheck) -> None:
        self.files: dict[str, _File] = {}
        self.findings = findings
        self._load, self._recheck = load, recheck
        self._alone = 0

    def apply_all(self) -> bool:
        """Apply what can be applied together, or else what helps by itself; return whether anything was."""
        by_source: dict[str, list[Finding]] = {}
        for finding in self.findings:
            if _can_be_applied(finding):
                by_source.setdefault(finding.subject.source, []).append(finding)
        for source in sorted(by_source.keys() - self.files.keys()):
            self.files[source] = _File(self._load(source))
        edited = {source: self.files[source].edited(by_source[source]) for source in sorted(by_source)}
        edited = {source: edit for source, edit in edited.items() if edit.data != self.files[source].after}
        if not edited or self._is_kept(edited):
            return bool(edited)
        for source, edit in edited.items():
            for fix_alone in edit.fixes:
                if self._applies_alone(source, fix_alone):
                    return True  # and places have moved
        return False

    def _applies_alone(self, source: str, fix_alone: _Fix) -> bool:
        file = self.files[source]
        self._alone += 1
        if self._alone <= _MOST_ALONE:
            edited = file.edited([fix_alone.finding])
            if edited.data != file.after and self._is_kept({source: edited}):
                return True
        file.refuse(fix_alone, CannotEdit(Reason.NO_BETTER))
        return False

    def _is_kept(self, edited: Mapping[str, _EditedFile]) -> bool:
        """Check everything with new texts, and keep them if that is better."""
        texts = {source: file.after for source, file in self.files.items() if file.after != file.before}
        texts |= {source: edit.data for source, edit in edited.items()}
        findings = self._recheck(texts)
        subjects = {_key(each.finding) for edit in edited.values() for each in edit.fixes}
        if measure(findings) >= measure(self.findings) or _appears_elsewhere(self.findings, findings, subjects):
            return False
        self.findings = findings
        for source, edit in edited.items():
            file = self.files[source]
            file.after = edit.data
            file.fixed += [each.finding for each in edit.fixes]
        return True


_Key = tuple[str, str, str]


def _key(finding: Finding) -> _Key:
    return finding.subject.source, finding.subject.kind, finding.subject.key


def _appears_elsewhere(before: Sequence[Finding], after: Sequence[Finding], fixed: set[_Key]) -> bool:
    """Whether something is found about an object that was not edited, and was not found before."""
    known = {(_key(finding), finding.check) for finding in before}
    return any(_key(finding) not in fixed and (_key(finding), finding.check) not in known for finding in after)


def _can_be_applied(finding: Finding) -> bool:
    has_place = finding.subject.place is not None and bool(finding.subject.source)
    return finding.patch.is_applied and finding.suppression is None and has_place


_Wanted = dict[FieldPath, EditValue]


class _EditedFile(Struct, frozen=True):
    """A new text of a file, and what was fixed in it."""

    data: bytes
    fixes: tuple[_Fix, ...]


class _File:
    """A file while patches are applied to it. Objects are known by their number: it stays while places move."""

    def __init__(self, data: bytes) -> None:
        self.before = self.after = data
        self.fixed: list[Finding] = []
        self._refused: dict[tuple[int, str, str], RefusedFix] = {}

    def edited(self, findings: Iterable[Finding]) -> _EditedFile:
        """Return the text with all fixes that can be applied together."""
        numbers = {place: number for number, place in enumerate(places_in_order(self.after))}
        fixes = [_Fix(finding, numbers.get(_place(finding), -1)) for finding in findings]
        fixes = [each for each in fixes if each.key not in self._refused]
        chosen = _without_conflicts(sorted(fixes, key=lambda each: (each.rank, each.finding.order)))
        chosen, data = self._apply(chosen)
        return _EditedFile(data, tuple(chosen))

    def refuse(self, fix_refused: _Fix, why: CannotEdit) -> None:
        """Apply a fix no more."""
        self._refused[fix_refused.key] = RefusedFix(fix_refused.finding, why)

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
                if refused.why.reason is not Reason.NO_BETTER
                for edit in refused.finding.patch.edits
            ]
            value = lookup.plain(places[number]) if 0 <= number < len(places) else None
            yield RefusedObject(in_order[0].finding.subject, tuple(in_order), object_patch(value, edits))

    def _apply(self, chosen: list[_Fix]) -> tuple[list[_Fix], bytes]:
        """Return which findings could be fixed, and the resulting text."""
        while chosen:
            result = apply_edits(self.after, [edit for each in chosen for edit in each.edits()])
            if not isinstance(result, CannotEdit):
                return chosen, result.data
            for why in (result, *result.others):
                for each in self._at_fault(chosen, why):
                    self.refuse(each, why)
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


def _without_conflicts(fixes: Iterable[_Fix]) -> list[_Fix]:
    """Return those that can be applied together: of two that want the same field, the first."""
    chosen: dict[int, list[_Fix]] = {}
    for each in fixes:
        of_object = chosen.setdefault(each.number, [])
        if not any(map(each.interferes, of_object)):
            of_object.append(each)
    return [each for of_object in chosen.values() for each in of_object]


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
