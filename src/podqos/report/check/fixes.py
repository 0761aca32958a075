"""What was fixed and what was not, in words: unified diffs, reasons, and the patch to apply by hand instead."""

from __future__ import annotations

from collections.abc import Iterator

from podqos.advice.checks.finding import Finding
from podqos.advice.fixes.fixing import FixedFile, Fixes, RefusedObject
from podqos.advice.fixes.patches import ObjectPatch
from podqos.answers.patches import json_patch, kubectl_patch, kustomize_entry, kustomize_file_name, kustomize_patch
from podqos.answers.replacements import unified
from podqos.naming import stated_with
from podqos.report.text.style import Style
from podqos.wording import counted
from podqos.words.edits import reason_words
from podqos.words.fixes import cost_words, waiting_words


def diff_lines(file: FixedFile, style: Style, context: int = 3) -> Iterator[str]:
    """Yield the difference between a file and its fixed version, in colours."""
    for number, line in enumerate(unified(file, context)):
        if number < 2:
            yield style.strong(line)
        elif line.startswith("@@"):
            yield style.faint(line)
        elif line.startswith("+"):
            yield style.added(line)
        elif line.startswith("-"):
            yield style.removed(line)
        else:
            yield line


def summary_lines(fixes: Fixes, style: Style, *, is_written: bool, with_patches: bool = True) -> Iterator[str]:
    """Yield the outcome of each finding that has a patch, file by file, and the patches to apply by hand."""
    verb = "fixed" if is_written else "would fix"
    for file in fixes.files:
        yield style.strong(f"{file.source}: {verb} {counted(len(file.findings), 'finding')}")
        for finding in file.findings:
            yield f"  {_name(finding)}"
            yield from (f"    {line}" for line in cost_words(finding.patch).splitlines())
    for refused in fixes.refused:
        yield from _refused_lines(refused, style, with_patches=with_patches)
    if not fixes.files and not fixes.refused:
        yield "nothing to fix"
    waiting = [finding.check for finding in fixes.remaining if finding.patch.is_waiting]
    if waiting:
        yield waiting_words(waiting, stated_with("fix"))


def _refused_lines(refused: RefusedObject, style: Style, *, with_patches: bool) -> Iterator[str]:
    for fix in refused.fixes:
        yield style.strong(f"{refused.subject.source}: not fixed: {_name(fix.finding)}")
        yield f"  because {reason_words(fix.why)}"
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
