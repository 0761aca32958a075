"""What was fixed and what was not, in words: unified diffs, reasons, and the patch to apply by hand instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from podqos.advice.checks.finding import Finding
from podqos.advice.fixes.fixing import FixedFile, Fixes, RefusedObject
from podqos.advice.fixes.patches import ObjectPatch
from podqos.manifest.edits.apply import CannotEdit, Reason
from podqos.report.check.patches import json_patch, kubectl_patch, kustomize_entry, kustomize_file_name, kustomize_patch
from podqos.report.check.replacements import text_lines
from podqos.report.text.style import Style
from podqos.wording import counted

_REASONS = {
    Reason.TEMPLATE: "it is a template ({{ }}): change its values, or render it first",
    Reason.UNREADABLE: "it cannot be read as YAML or JSON",
    Reason.NO_SUCH_OBJECT: "the object is no longer there",
    Reason.NO_SUCH_ITEM: "the list has no such item",
    Reason.NOT_A_MAPPING: "the parent of the field is not a mapping",
    Reason.CONFLICT: "another patch writes a different value there",
    Reason.SHARED: "the anchor &{name} is used in several places: write the value out where it is used",
    Reason.MERGED: "the value comes from a merge key (<<): write it out where it is used",
    Reason.TAGGED: "the value has a tag: remove the tag",
    Reason.COMPLEX_KEY: "the key is not a simple text",
    Reason.DUPLICATE_KEY: "a key is set twice",
    Reason.UNSUPPORTED: "this change cannot be made in place",
    Reason.NOT_AS_MEANT: "the new text would not be valid",
}


def reason_words(why: CannotEdit) -> str:
    """Return why a file was not changed."""
    text = _REASONS[why.reason].replace("{name}", why.name)
    if why.reason is Reason.NOT_AS_MEANT and why.name:
        text = f"{text}: {why.name}"
    return text if why.position is None else f"{text} (line {why.position[0]})"


def diff_lines(file: FixedFile, style: Style, context: int = 3) -> Iterator[str]:
    """Yield the difference between a file and its fixed version; ``patch -p0`` takes it."""
    before, after = (text_lines(data) for data in (file.before, file.after))
    for number, line in enumerate(difflib.unified_diff(before, after, file.source, file.source, n=context)):
        text = line.removesuffix("\n")
        if number < 2:
            yield style.strong(text)
        elif line.startswith("@@"):
            yield style.faint(text)
        elif line.startswith("+"):
            yield style.added(text)
        elif line.startswith("-"):
            yield style.removed(text)
        else:
            yield text
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def summary_lines(fixes: Fixes, style: Style, *, is_written: bool, with_patches: bool = True) -> Iterator[str]:
    """Yield the outcome of each finding that has a patch, file by file, and the patches to apply by hand."""
    verb = "fixed" if is_written else "would fix"
    for file in fixes.files:
        yield style.strong(f"{file.source}: {verb} {counted(len(file.findings), 'finding')}")
        for finding in file.findings:
            yield f"  {_name(finding)}"
    for refused in fixes.refused:
        yield from _refused_lines(refused, style, with_patches=with_patches)
    if not fixes.files and not fixes.refused:
        yield "nothing to fix"


def _refused_lines(refused: RefusedObject, style: Style, *, with_patches: bool) -> Iterator[str]:
    for each in refused.fixes:
        yield style.strong(f"{refused.subject.source}: not fixed: {_name(each.finding)}")
        yield f"  because {reason_words(each.why)}"
    if with_patches and refused.patch is not None:
        yield from (f"  {line}" for line in by_hand(refused.patch, refused.subject.namespace, style))


def by_hand(patch: ObjectPatch, namespace: str, style: Style) -> Iterator[str]:
    """Yield how to apply a patch: with kubectl, with kustomize, as a JSON patch."""
    command = kubectl_patch(patch, namespace)
    if command is not None:
        yield style.faint("with kubectl:")
        yield f"  {command}"
    if patch.name and patch.api_version:
        yield style.faint(f"with kustomize, as {kustomize_file_name(patch)}:")
        yield from (f"  {line}" for line in kustomize_patch(patch).splitlines())
        yield style.faint("and in kustomization.yaml:")
        yield from (f"  {line}" for line in kustomize_entry(patch).splitlines())
    yield style.faint("as a JSON patch:")
    yield from (f"  {line}" for line in json_patch(patch).splitlines())


def _name(finding: Finding) -> str:
    container = f" container {finding.container}" if finding.container else ""
    return f"{finding.check} {finding.subject.kind} {finding.subject.key}{container}"
