"""The only writer of patches: for ``kubectl``, for kustomize, as JSON, in place; for check, advise and the page.

And what became of fixes in files: unified diffs, what was fixed, what was not and why, and how to do it by hand.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct

from podqos.advice.checks.finding import CheckedObject, Finding, plain_value
from podqos.advice.fixes.fixing import FixedFile, Fixes
from podqos.advice.fixes.patches import ObjectPatch
from podqos.amounts import counted
from podqos.controls import one_line
from podqos.manifest.edits.apply import CannotEdit, ObjectEdit, Reason, apply_edits
from podqos.manifest.edits.writing import BlockStyle, block_lines
from podqos.manifest.encoding import manifest_yaml
from podqos.manifest.kinds import POD_HOLDERS, group_of
from podqos.manifest.plain import Plain
from podqos.manifest.problems import Position
from podqos.naming import stated_with
from podqos.questions.findings import cost_words, waiting_words
from podqos.text.style import Style

PatchFormat = Literal["kubectl", "kustomize", "json"]

# ---- patches of objects ----------------------------------------------------------------------------------------------


def patch_lines(
    patches: Iterable[tuple[CheckedObject, ObjectPatch]], notation: PatchFormat, resizable: Collection[str] = ()
) -> Iterator[str]:
    """Yield patches: commands, documents for kustomize, or a list of JSON patches.

    ``resizable`` are pods, as ``namespace/name``, that get other resources in place.
    """
    match notation:
        case "kubectl":
            for subject, patch in patches:
                is_resized = subject.kind == "Pod" and subject.key in resizable
                command = kubectl_patch(patch, subject.namespace, resizes=is_resized)
                what = one_line(f"{subject.kind} {subject.key}")
                if command is not None:
                    yield command
                elif patch.made_by:
                    yield f"# {what}: it is managed by {one_line(patch.made_by)}; change that instead"
                else:
                    yield f"# {what}: this field is immutable; replace the object"
        case "kustomize":
            for _, patch in patches:
                yield f"# {one_line(kustomize_file_name(patch))}, and in kustomization.yaml:"
                yield from (f"#   {line}" for line in kustomize_entry(patch).splitlines())
                yield from (*kustomize_patch(patch).splitlines(), "---")
        case "json":
            items = [
                {
                    "kind": subject.kind,
                    "namespace": subject.namespace,
                    "name": subject.name,
                    "patch": patch.operations,
                }
                for subject, patch in patches
            ]
            yield msgspec.json.format(msgspec.json.encode(items), indent=2).decode()


def new_lines(objects: Iterable[Mapping[str, Any]], notation: PatchFormat) -> Iterator[str]:
    """Yield objects that do not exist yet: for kubectl to apply, or as resources of kustomize; JSON patches none."""
    for value in objects:
        lines = manifest_yaml(value).splitlines()
        if notation == "kubectl":
            yield from ("kubectl apply -f - <<'EOF'", *lines, "EOF")
        elif notation == "kustomize":
            name = one_line(f"{value['kind'].lower()}-{value['metadata']['name']}.yaml")
            yield from (f"# {name}, a resource in kustomization.yaml", *lines, "---")


def kubectl_patch(patch: ObjectPatch, namespace: str = "", *, resizes: bool = False) -> str | None:
    """Return the command that patches the object in a cluster; None if an API server or its owner would undo that.

    ``namespace`` is that of an object that names none. ``resizes``: a pod gets other resources in place, where it
    cannot be patched otherwise.
    """
    resizes = resizes and not patch.can_be_applied
    if not (patch.can_be_applied or resizes) or not patch.name or (patch.made_by and not resizes):
        return None
    group = group_of(patch.api_version)
    kind = patch.kind.lower() + (f".{group}" if patch.is_custom else "")
    where = patch.namespace or namespace
    body = patch.merge if patch.is_custom else patch.strategic
    words = ["kubectl", "patch", kind, patch.name, *(("-n", where) if where else ())]
    words += ["--subresource", "resize"] if resizes else []
    compact = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    return shlex.join([*words, "--type", "merge" if patch.is_custom else "strategic", "-p", compact])


def json_patch(patch: ObjectPatch) -> str:
    """Return the patch in the form of RFC 6902, an operation per line."""
    operations = (msgspec.json.encode(operation).decode() for operation in patch.operations)
    return "[\n  " + ",\n  ".join(operations) + "\n]\n"


def kustomize_patch(patch: ObjectPatch) -> str:
    """Return the contents of a patch file for kustomize."""
    return yaml_lines(kustomize_body(patch))


def kustomize_body(patch: ObjectPatch) -> dict[str, Plain]:
    """Return a patch as an object: strategic, or of a custom resource a merge patch."""
    metadata: dict[str, Plain] = {"name": patch.name}
    if patch.namespace:
        metadata["namespace"] = patch.namespace
    changed = patch.merge if patch.is_custom else patch.strategic
    of_metadata = changed.get("metadata")
    if isinstance(of_metadata, dict):
        metadata |= of_metadata
    body: dict[str, Plain] = {"apiVersion": patch.api_version, "kind": patch.kind, "metadata": metadata}
    return body | {key: value for key, value in changed.items() if key != "metadata"}


def kustomize_file_name(patch: ObjectPatch) -> str:
    """Return the name of the patch file."""
    return f"{patch.kind.lower()}-{patch.name}-patch.yaml"


def kustomize_entry(patch: ObjectPatch) -> str:
    """Return what to write in kustomization.yaml to have the file applied."""
    group, _, version = patch.api_version.rpartition("/")
    target: dict[str, Plain] = {"group": group, "version": version, "kind": patch.kind, "name": patch.name}
    target["namespace"] = patch.namespace
    named: dict[str, Plain] = {key: value for key, value in target.items() if value}
    return yaml_lines({"patches": [{"path": kustomize_file_name(patch), "target": named}]})


Resources = Mapping[str, Mapping[str, Mapping[str, str | None]]]
"""Requests and limits by container; the empty name is the pod's own."""


def template_patch(kind: str, key: str, resources: Resources) -> ObjectPatch | None:
    """Return a patch of an object of which only kind and ``namespace/name`` are known; None for a custom resource."""
    holder = POD_HOLDERS.get(kind)
    if holder is None:
        return None
    value: dict[str, Plain] = {"spec": _spec(resources)}
    for step in reversed(holder.pod_path):
        value = {step: value}
    namespace, _, name = key.partition("/")
    can_be_applied = kind not in {"Pod", "Job"}
    return ObjectPatch(kind, holder.api_version, name, namespace, value, {}, (), False, can_be_applied)


def template_lines(kind: str, key: str, resources: Resources) -> str:
    """Return resources as lines of that object; of a custom resource those of its pod template's spec."""
    patch = template_patch(kind, key, resources)
    return yaml_lines(_spec(resources)) if patch is None else kustomize_patch(patch)


def _spec(resources: Resources) -> dict[str, Plain]:
    stated: dict[str, Plain] = {
        name: {side: dict(amounts) for side, amounts in of.items()} for name, of in resources.items()
    }
    listed: list[Plain] = [{"name": name, "resources": of} for name, of in stated.items() if name]
    spec: dict[str, Plain] = {"containers": listed} if listed else {}
    return {**spec, "resources": stated[""]} if "" in stated else spec


def yaml_lines(value: dict[str, Plain]) -> str:
    """Return an object as a manifest writes it."""
    return "".join(f"{line}\n" for line in block_lines(value, 0, BlockStyle()))


# ---- edits of files --------------------------------------------------------------------------------------------------

_REASONS = {
    Reason.TEMPLATE: "it is a template ({{ }}): change its values, or render it first",
    Reason.UNREADABLE: "it cannot be read as YAML or JSON",
    Reason.NO_SUCH_OBJECT: "the object is no longer there",
    Reason.NO_SUCH_ITEM: "the list has no such item",
    Reason.NOT_A_MAPPING: "the parent of the field is not a mapping",
    Reason.CONFLICT: "another patch sets a different value there",
    Reason.SHARED: "the anchor &{name} is used in several places: write the value out where it is used",
    Reason.MERGED: "the value comes from a merge key (<<): write it out where it is used",
    Reason.TAGGED: "the value has a tag: remove the tag",
    Reason.COMPLEX_KEY: "the key is not a plain string",
    Reason.DUPLICATE_KEY: "a key is set twice",
    Reason.UNSUPPORTED: "this change cannot be made in place",
    Reason.NOT_AS_MEANT: "the new text would not be valid",
    Reason.NO_BETTER: "it was tried, and the finding would remain",
}


def reason_words(why: CannotEdit) -> str:
    """Return why a file was not changed."""
    text = _REASONS[why.reason].replace("{name}", why.name)
    if why.reason is Reason.NOT_AS_MEANT and why.name:
        text = f"{text}: {why.name}"
    return text if why.position is None else f"{text} (line {why.position[0]})"


class Replacement(Struct, frozen=True):
    """A region that is replaced, in whole lines: from ``start`` up to, not including, ``end``."""

    start: Position
    end: Position
    text: str


def replacements(finding: Finding, data: bytes) -> Sequence[Replacement]:
    """Return what a finding's fix replaces in the text of its file; nothing where that is not safe."""
    place = finding.subject.place
    if not finding.patch.is_tried or place is None:
        return ()
    edited = apply_edits(data, [ObjectEdit(place, edit.path, plain_value(edit.value)) for edit in finding.patch.edits])
    return () if isinstance(edited, CannotEdit) else line_replacements(data, edited.data)


def line_replacements(before: bytes, after: bytes) -> Sequence[Replacement]:
    """Return the replacements that turn one text into the other, from the top."""
    old, new = _text_lines(before), _text_lines(after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)

    def start(index: int) -> Position:
        """Return where a line begins; after the last one, where the text ends."""
        if index == len(old) and old and not old[-1].endswith("\n"):
            return len(old), len(old[-1]) + 1
        return index + 1, 1

    return [
        Replacement(start(first), start(end), "".join(new[new_first:new_end]))
        for operation, first, end, new_first, new_end in matcher.get_opcodes()
        if operation != "equal"
    ]


def unified(file: FixedFile) -> Iterator[str]:
    """Yield the lines of the difference between a file and its fixed version; ``patch -p0`` takes it."""
    before, after = (_text_lines(data) for data in (file.before, file.after))
    for line in difflib.unified_diff(before, after, file.source, file.source):
        yield line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"


def _text_lines(data: bytes) -> list[str]:
    """Return lines with their ends; only a line feed ends one, as for ``diff``."""
    *lines, last = data.decode(errors="replace").split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def diff_lines(fixes: Fixes, style: Style) -> Iterator[str]:
    """Yield what changes in files, in colours."""
    for file in fixes.files:
        for number, line in enumerate(unified(file)):
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
        for fix in refused.fixes:
            yield style.strong(f"{refused.subject.source}: not fixed: {_name(fix.finding)}")
            yield f"  because {reason_words(fix.why)}"
        if with_patches and refused.patch is not None:
            yield from (f"  {line}" for line in _by_hand(refused.patch, refused.subject.namespace, style))
    if not fixes.files and not fixes.refused:
        yield "nothing to fix"
    waiting = [finding.check for finding in fixes.remaining if finding.patch.is_waiting]
    if waiting:
        yield waiting_words(waiting, stated_with("fix"))


def _by_hand(patch: ObjectPatch, namespace: str, style: Style) -> Iterator[str]:
    """Yield how to apply a patch: with kubectl, with kustomize, as a JSON patch."""
    command = kubectl_patch(patch, namespace)
    if command is not None:
        yield from (style.faint("with kubectl:"), f"  {command}")
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
