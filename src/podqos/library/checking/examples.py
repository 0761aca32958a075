"""The good example of a check: its bad one with the finding's own patch written in, as ``--fix`` would write it."""

from __future__ import annotations

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.check import Check
from podqos.advice.checks.finding import Finding
from podqos.advice.fixes.patches import plain_value
from podqos.library.checking.files import Checking, Inputs
from podqos.manifest.edits import CannotEdit, ObjectEdit, apply_edits

_FILE, _RUNNING = "example.yaml", "running.yaml"


def good_example(check: Check) -> str:
    """Return the manifests of a check's example without the finding."""
    example = check.example
    if example.good:
        return example.good
    (finding,) = example_findings(check, example.text)
    place = finding.subject.place
    assert place is not None
    edits = {edit.path: edit.value for edit in finding.patch.edits} or example.chosen
    data = example.text.encode()
    edited = apply_edits(data, [ObjectEdit(place, path, plain_value(value)) for path, value in edits.items()])
    assert not isinstance(edited, CannotEdit), (check.id, edited)
    return edited.data.decode()


def example_findings(check: Check, text: str) -> tuple[Finding, ...]:
    """Return what is found in the good or bad example of a check."""
    example = check.example
    texts = {_FILE: text.encode(), _RUNNING: example.replaces.encode()}
    inputs = Inputs([_RUNNING], resized=[_FILE]) if example.replaces else Inputs([_FILE])
    options = CheckOptions(inject=example.inject, compare_up_to=0)
    return Checking(inputs, options, texts).check().findings
