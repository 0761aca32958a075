"""Patches of real checks, applied to texts until nothing is left that can be applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import assume, given, settings
from msgspec.structs import replace

from advice.bundles import Bundle, check
from manifest.fix_styles import manifests
from podqos.advice.checks.bundle import LocatedWorkload
from podqos.advice.checks.finding import CheckedObject, FieldEdit, Finding, Patch, SuppressedBy, Suppression
from podqos.advice.fixes.fixing import Fixes, fix
from podqos.controls import own
from podqos.manifest.edits.apply import Reason
from podqos.manifest.reading import read
from podqos.questions.patches import diff_lines, summary_lines
from podqos.text.style import Style

PLAIN = Style()
POD = """\
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec:
  containers:
  - name: c
    image: i
    resources: {resources}
"""
LIMITED = POD.format(name="p", resources="{limits: {cpu: 1, memory: 1Gi}}")


def findings_in(texts: Mapping[str, bytes]) -> list[Finding]:
    """Check workloads alone, as the command does with everything."""
    workloads = []
    for source, data in texts.items():
        reading = read(source, data)
        for workload, place in zip(reading.workloads, reading.places, strict=True):
            metadata = workload.metadata
            subject = CheckedObject(workload.kind, metadata.name, metadata.namespace, source, place)
            workloads.append(LocatedWorkload(workload, subject))
    return list(check(Bundle(tuple(workloads))))


def fixed(texts: Mapping[str, bytes]) -> Fixes:
    return fix(findings_in(texts), texts.__getitem__, lambda changed: findings_in({**texts, **changed}))


def after(fixes: Fixes, texts: Mapping[str, bytes]) -> dict[str, bytes]:
    return {**texts, **{file.source: file.after for file in fixes.files}}


def complete(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.patch.is_complete]


@settings(max_examples=60, deadline=None)
@given(manifests(limited=True))
def test_in_every_style_the_findings_that_can_be_mended_are_gone_and_stay_away(data):
    texts = {"a.yaml": data}
    assume(complete(findings_in(texts)))
    fixes = fixed(texts)
    assert not fixes.refused
    assert not complete(fixes.remaining)
    assert fixes.remaining == tuple(findings_in(after(fixes, texts)))
    again = fixed(after(fixes, texts))
    assert not again.files


def test_several_files_are_mended_each_by_itself_and_in_order():
    texts = {"b.yaml": LIMITED.encode(), "a.yaml": LIMITED.replace("name: p", "name: q").encode(), "c.yaml": b"a: b\n"}
    fixes = fixed(texts)
    assert [file.source for file in fixes.files] == ["a.yaml", "b.yaml"]
    for file in fixes.files:
        assert b"resources: {limits: {cpu: 1, memory: 1Gi}, requests: {memory: 1Gi}}\n" in file.after
        assert [finding.check for finding in file.findings] == ["PQ106"]


def test_objects_of_the_same_name_in_one_file_are_told_apart():
    other = LIMITED.replace("memory: 1Gi", "memory: 2Gi")
    texts = {"a.yaml": f"{LIMITED}---\n{other}".encode()}
    fixes = fixed(texts)
    assert not fixes.refused
    text = fixes.files[0].after
    assert b"requests: {memory: 1Gi}" in text
    assert b"requests: {memory: 2Gi}" in text


def test_what_is_suppressed_or_has_to_be_chosen_is_left_alone():
    texts = {"a.yaml": LIMITED.encode()}
    left = [replace(finding, suppression=Suppression(SuppressedBy.BASELINE)) for finding in findings_in(texts)]
    assert fix(left, texts.__getitem__, lambda _changed: left).files == ()
    unsure = {"a.yaml": POD.format(name="p", resources="{}").encode()}
    assert not complete(findings_in(unsure))
    assert fixed(unsure).files == ()


def test_what_is_shared_is_refused_with_its_reason_and_the_patch_of_the_whole_object():
    text = POD.format(name="p", resources="&r {limits: {memory: 1Gi}}") + "  - {name: d, image: i, resources: *r}\n"
    text += "---\n" + LIMITED.replace("name: p", "name: q")
    fixes = fixed({"a.yaml": text.encode()})
    assert [file.findings[0].subject.name for file in fixes.files] == ["q"]
    (refused,) = fixes.refused
    assert [each.why.reason for each in refused.fixes] == [Reason.SHARED, Reason.SHARED]
    assert refused.patch is not None
    amount = {"resources": {"requests": {"memory": "1Gi"}}}
    assert refused.patch.strategic == {"spec": {"containers": [{"name": name, **amount} for name in "cd"]}}
    lines = list(summary_lines(fixes, PLAIN, is_written=True))
    assert lines[:2] == ["a.yaml: fixed 1 finding", "  PQ106 Pod default/q container c"]
    assert "  because the anchor &r is used in several places: write the value out where it is used (line 8)" in lines
    assert "  with kustomize, as pod-p-patch.yaml:" in lines
    assert lines[-1] == "    ]"


def test_a_template_is_left_alone_as_a_whole():
    text = LIMITED + "---\n" + LIMITED.replace("name: p", 'name: q, labels: {a: "{{ .Values.a }}"}')
    fixes = fixed({"a.yaml": text.encode()})
    assert not fixes.files
    assert {each.why.reason for refused in fixes.refused for each in refused.fixes} == {Reason.TEMPLATE}
    assert len(fixes.refused) == 2


def finding(check: str, data: bytes, *edits: FieldEdit) -> Finding:
    first = findings_in({"a.yaml": data})[0]
    return replace(first, check=check, patch=replace(Patch.write(*edits), is_tried=True))


MEMORY = "spec.containers[0].resources.limits.memory"


def test_of_two_checks_that_contradict_each_other_the_first_has_its_way():
    def wanted(texts: Mapping[str, bytes]) -> list[Finding]:
        data = texts["a.yaml"]
        second = finding("PQ902", data, FieldEdit(MEMORY, "2Gi"), FieldEdit("spec.nodeName", "second"))
        first = finding("PQ901", data, FieldEdit(MEMORY, "3Gi"))
        return [*([] if b"memory: 2Gi" in data else [second]), *([] if b"memory: 3Gi" in data else [first])]

    texts = {"a.yaml": LIMITED.encode()}
    fixes = fix(wanted(texts), texts.__getitem__, wanted)
    (file,) = fixes.files
    assert b"memory: 3Gi" in file.after
    (refused,) = fixes.refused
    assert [(each.finding.check, each.why.reason) for each in refused.fixes] == [("PQ902", Reason.NO_BETTER)]
    assert refused.patch is None  # what contradicts the file now is no patch for it


def test_a_patch_may_go_on_where_another_has_written():
    # The limit lacks its unit: the request that is made of it is mended together with it in the next round.
    fixes = fixed({"a.yaml": POD.format(name="p", resources="{limits: {memory: 512}}").encode()})
    assert not fixes.refused
    assert b"resources: {limits: {memory: 512Mi}, requests: {memory: 512Mi}}\n" in fixes.files[0].after


def test_what_finds_as_much_as_before_is_not_written():
    rounds = []

    def wanted(texts: Mapping[str, bytes]) -> list[Finding]:
        rounds.append(texts["a.yaml"])
        return [finding("PQ901", texts["a.yaml"], FieldEdit(f"metadata.labels.x{len(rounds)}", "y"))]

    texts = {"a.yaml": LIMITED.encode()}
    fixes = fix(wanted(texts), texts.__getitem__, wanted)
    assert len(rounds) == 3  # together, alone
    assert not fixes.files
    (refused,) = fixes.refused
    assert [each.why.reason for each in refused.fixes] == [Reason.NO_BETTER]


def test_a_patch_that_does_not_help_keeps_no_other_from_being_written():
    def wanted(texts: Mapping[str, bytes]) -> list[Finding]:
        data = texts["a.yaml"]
        helps = finding("PQ901", data, FieldEdit("metadata.labels.good", "y"))
        harms = finding("PQ902", data, FieldEdit("metadata.labels.bad", "y"))
        done = [] if b"good" in data else [helps]
        return [*done, *([harms] * 3 if b"bad" in data else [harms])]

    texts = {"a.yaml": LIMITED.encode()}
    fixes = fix(wanted(texts), texts.__getitem__, wanted)
    (file,) = fixes.files
    assert b"good" in file.after
    assert b"bad" not in file.after
    assert [each.finding.check for refused in fixes.refused for each in refused.fixes] == ["PQ902"]
    assert [each.check for each in fixes.remaining] == ["PQ902"]


def test_a_patch_that_harms_another_object_is_not_written_however_much_others_help():
    def wanted(texts: Mapping[str, bytes]) -> list[Finding]:
        data = texts["a.yaml"]
        helps = finding("PQ901", data, FieldEdit("metadata.labels.good", "y"))
        harms = finding("PQ902", data, FieldEdit("metadata.labels.bad", "y"))
        other = replace(helps, check="PQ903", subject=replace(helps.subject, name="other"))
        return [*([] if b"good" in data else [helps] * 3), *([other] if b"bad" in data else [harms] * 3)]

    texts = {"a.yaml": LIMITED.encode()}
    (file,) = fix(wanted(texts), texts.__getitem__, wanted).files
    assert b"good" in file.after
    assert b"bad" not in file.after


def test_one_edit_that_makes_no_sense_does_not_keep_the_others_from_being_made():
    texts = {"a.yaml": LIMITED.encode()}
    data = texts["a.yaml"]
    found = [
        finding("PQ901", data, FieldEdit("spec.nodeName", "node1")),
        finding("PQ902", data, FieldEdit(MEMORY, "much")),
        finding("PQ903", data, FieldEdit("spec.containers[4].image", "i")),
        finding("PQ904", data, FieldEdit("spec.priorityClassName", "high")),
    ]
    fixes = fix(found, texts.__getitem__, lambda _changed: [])
    assert fixes.files[0].after == LIMITED.encode() + b"  nodeName: node1\n  priorityClassName: high\n"
    (refused,) = fixes.refused
    reasons = [(each.finding.check, each.why.reason) for each in refused.fixes]
    assert reasons == [("PQ902", Reason.NOT_AS_MEANT), ("PQ903", Reason.NO_SUCH_ITEM)]


def test_a_difference_is_shown_as_diff_shows_it():
    data = LIMITED.replace("\n", "\r\n").encode().removesuffix(b"\r\n")
    fixes = fixed({"a.yaml": data})
    lines = list(diff_lines(fixes, PLAIN))
    resources = "    resources: {limits: {cpu: 1, memory: 1Gi}"
    assert [*lines[:3], *lines[5:]] == [
        "--- a.yaml",
        "+++ a.yaml",
        "@@ -5,4 +5,4 @@",
        "     image: i\r",
        f"-{resources}}}",
        "\\ No newline at end of file",
        f"+{resources}, requests: {{memory: 1Gi}}}}",
        "\\ No newline at end of file",
    ]
    coloured = list(diff_lines(fixes, Style(colour=True)))
    assert coloured[6].startswith(own("\x1b[31m-"))
    assert coloured[8].startswith(own("\x1b[32m+"))


def test_nothing_to_fix_is_said():
    assert list(summary_lines(fixed({"a.yaml": b"a: b\n"}), PLAIN, is_written=True)) == ["nothing to fix"]
