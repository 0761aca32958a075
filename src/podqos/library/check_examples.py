"""The good example of a check: its bad one with the finding's own patch written in, as ``--fix`` would write it."""

from __future__ import annotations

from functools import cache

from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import CHECKS
from podqos.advice.checks.check import Check
from podqos.advice.checks.finding import plain_value
from podqos.library.check import run_checks
from podqos.manifest.edits.apply import CannotEdit, ObjectEdit, apply_edits
from podqos.objects.objects import Objects


def good_example(check: Check) -> str:
    """Return the manifests of a check's example without the finding."""
    return check.example.good or _fixed(check.id)


@cache
def _fixed(check_id: str) -> str:
    """Write the patch into the bad example; once, for a report of all checks does it for each."""
    example = CHECKS[check_id].example
    data = example.text.encode()
    running = Objects().with_text("running.yaml", (example.replaces or example.text).encode())
    changed = Objects().with_text("example.yaml", data) if example.replaces else None
    options = CheckOptions(inject=example.inject, compare_up_to=0)
    (finding,) = run_checks(running, options, resized=changed).findings
    place = finding.subject.place
    assert place is not None
    edits = {edit.path: edit.value for edit in finding.patch.edits} or example.chosen
    edited = apply_edits(data, [ObjectEdit(place, path, plain_value(value)) for path, value in edits.items()])
    assert not isinstance(edited, CannotEdit), (check_id, edited)
    return edited.data.decode()
