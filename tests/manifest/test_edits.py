from __future__ import annotations

import pytest

from podqos.manifest.edits.apply import CannotEdit, Edited, ObjectEdit, Reason, apply_edits
from podqos.manifest.reading import read
from podqos.manifest.text import Chunk, Place

HEAD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n"
FIRST = "spec.containers[0]"


def places(data: bytes) -> list[Place]:
    reading = read("", data)
    return [*reading.places, *(other.place for other in (*reading.others, *reading.refused))]


def edited(text: str, *edits: tuple[str, object]) -> str | CannotEdit:
    data = text.encode()
    result = apply_edits(data, [ObjectEdit(places(data)[0], path, value) for path, value in edits])
    return result.data.decode() if isinstance(result, Edited) else result


def container(body: str) -> str:
    """Return a pod with one container, whose lines after the name are given without their indentation."""
    return HEAD + "  - name: c\n" + "".join(f"    {line}\n" if line else "\n" for line in body.splitlines())


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ("resources:\n  limits:\n    cpu: 1\n    a: 1", "limits.cpu", None, "resources:\n  limits:\n    a: 1"),
        ("resources:\n  limits:\n    cpu: 1 # one", "limits.cpu", None, "resources:\n  limits: {}"),
        ("resources: # c\n  limits:\n    cpu: 1\nimage: i", "limits", None, "resources: {} # c\nimage: i"),
        ("resources: &r # c\n  limits:\n    cpu: 1\nimage: i", "limits", None, "resources: &r {} # c\nimage: i"),
        ("resources: {limits: {cpu: 1, memory: 1Gi}}", "limits.cpu", None, "resources: {limits: {memory: 1Gi}}"),
        ("resources: {limits: {cpu: 1, memory: 1Gi}}", "limits.memory", None, "resources: {limits: {cpu: 1}}"),
        ("resources: {limits: {cpu: 1 }}", "limits.cpu", None, "resources: {limits: {}}"),
        ("resources: {limits: {cpu: 1}}", "requests.cpu", None, "resources: {limits: {cpu: 1}}"),
        ("image: i", "limits.cpu", None, "image: i"),
    ],
    ids=["line", "last-line", "last-member", "anchor", "first-in-brackets", "last-in-brackets", "only",
         "missing", "no-parent"],
)  # fmt: skip
def test_a_field_can_be_removed(before, path, value, after):
    assert edited(container(before), (f"{FIRST}.resources.{path}", value)) == container(after)


def test_the_first_key_of_an_item_can_be_removed():
    text = HEAD + "  - image: i   # which\n    # the name\n    name: c\n"
    assert edited(text, (f"{FIRST}.image", None)) == HEAD + "  - name: c\n"


def test_all_of_several_lines_can_be_removed_while_something_is_added_below_them():
    text = container("image: i\nresources:\n  limits:\n    cpu: 1\nargs: [a]")
    after = edited(text, (f"{FIRST}.resources", None), (f"{FIRST}.args", None), ("spec.nodeName", "node1"))
    assert after == container("image: i") + "  nodeName: node1\n"


def test_the_last_lines_without_an_end_can_be_removed():
    text = container("image: i\nargs: [a]").rstrip("\n")
    after = container("").rstrip("\n")
    assert edited(text, (f"{FIRST}.image", None), (f"{FIRST}.args", None)) == after
    wanted = ((f"{FIRST}.image", None), (f"{FIRST}.args", None), ("spec.nodeName", "node1"))
    assert edited(text, *wanted) == after + "\n  nodeName: node1"


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("512Mi", "512Mi"), ("1", '"1"'), (1, "1"), (True, "true"), ("yes", '"yes"'), ("0x1F", '"0x1F"'), ("", '""'),
        ("null", '"null"'), ("a: b", '"a: b"'), ("# c", '"# c"'), ("-", '"-"'), ("1_000", '"1_000"'), ("é", '"é"'),
        ("a\tb\n", '"a\\tb\\n"'), ('say "no"', '"say \\"no\\""'), ("1e3", '"1e3"'), ("{{", '"{{"'), (".inf", '".inf"'),
    ],
)  # fmt: skip
def test_what_yaml_would_take_for_something_else_is_quoted(value, written):
    assert edited(container("image: i"), ("metadata.annotations.x", value)) in (
        container("image: i").replace("  name: p\n", f"  name: p\n  annotations:\n    x: {written}\n"),
        CannotEdit(Reason.NOT_AS_MEANT, name=f"must be a string, not {written}"),  # annotations are texts
    )


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("'a'  # c", "b", "'b'  # c"),
        ('"a"', "b", '"b"'),
        ("'a'", "it's", "'it''s'"),
        ("'a'", "two\nlines", '"two\\nlines"'),
        ("a", "yes", '"yes"'),
        ("|\n      a\n      b", "c", "c"),
        (">-\n      a", "c: d", '"c: d"'),
        ("one\n      two", "c", "c"),
        ("&anchor a # c", "b", "&anchor b # c"),
    ],
)
def test_a_text_keeps_its_quotes_and_comment(before, value, after):
    assert edited(container(f"image: {before}"), (f"{FIRST}.image", value)) == container(f"image: {after}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("resources: {}", "resources:\n  limits:\n    cpu: 1\n    memory: 1Gi"),
        ("resources: {requests: {cpu: 1}}", "resources: {limits: {cpu: 1, memory: 1Gi}}"),
        ("resources:\n  requests:\n    cpu: 1", "resources:\n  limits:\n    cpu: 1\n    memory: 1Gi"),
        ("resources:\n  # c\n  limits:\n    # m\n    memory: 2Gi # d\n    # e",
         "resources:\n  # c\n  limits:\n    # m\n    memory: 1Gi # d\n    cpu: 1\n    # e"),
    ],
    ids=["empty", "brackets", "other", "part"],
)  # fmt: skip
def test_a_mapping_becomes_what_was_wanted_with_as_few_changes_as_possible(before, after):
    wanted = {"limits": {"cpu": 1, "memory": "1Gi"}}
    assert edited(container(before), (f"{FIRST}.resources", wanted)) == container(after)


def test_lists_can_be_written_in_the_style_of_the_file():
    text = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nallowed:\n  - a\nevictionHard: {}\n"
    after = edited(text, ("enforceNodeAllocatable", ["pods", "yes"]), ("allowed", ["a", "b"]))
    assert after == text.replace("  - a\n", "  - a\n  - b\n") + 'enforceNodeAllocatable:\n  - pods\n  - "yes"\n'


def test_fields_with_dots_and_slashes_are_reached():
    text = container("resources:\n  limits:\n    nvidia.com/gpu: 1")
    after = edited(
        text, (f"{FIRST}.resources.limits[nvidia.com/gpu]", 2), (f"{FIRST}.resources.requests[nvidia.com/gpu]", 2)
    )
    assert after == container("resources:\n  limits:\n    nvidia.com/gpu: 2\n  requests:\n    nvidia.com/gpu: 2")


def test_edits_of_several_objects_are_made_together():
    text = container("image: i") + "---\n" + container("image: j")
    data = text.encode()
    wanted = [ObjectEdit(place, "spec.nodeName", "node1") for place in places(data)]
    after = text.replace("image: i\n", "image: i\n  nodeName: node1\n").replace(
        "image: j\n", "image: j\n  nodeName: node1\n"
    )
    assert apply_edits(data, wanted) == Edited(after.encode())


def test_no_edits_leave_anything_as_it_is():
    assert apply_edits(b"\xff\xfe", []) == Edited(b"\xff\xfe")


@pytest.mark.parametrize(
    ("edits", "reason"),
    [
        ([(f"{FIRST}.image", "a"), (f"{FIRST}.image", "b")], Reason.CONFLICT),
        ([("spec.containers[1].image", "a")], Reason.NO_SUCH_ITEM),
        ([("spec.volumes[0].name", "a")], Reason.NO_SUCH_ITEM),
        ([(f"{FIRST}.image.tag", "a")], Reason.NOT_A_MAPPING),
        ([("spec.containers[0]", None)], Reason.UNSUPPORTED),
        ([("", None)], Reason.UNSUPPORTED),
        ([(f"{FIRST}.resources.limits.memory", "much")], Reason.NOT_AS_MEANT),
        ([("spec.containers", "none")], Reason.NOT_AS_MEANT),
    ],
)
def test_what_cannot_be_meant_is_refused(edits, reason):
    result = edited(container("image: i"), *edits)
    assert isinstance(result, CannotEdit)
    assert result.reason is reason


def test_the_edit_at_fault_is_named():
    text = container("resources: &r {}") + "  - name: d\n    resources: *r\n"
    data = text.encode()
    place = places(data)[0]
    good, bad = (ObjectEdit(place, path, "1") for path in ("spec.nodeName", "spec.containers[1].resources.limits.cpu"))
    assert apply_edits(data, [good, bad]) == CannotEdit(Reason.SHARED, bad, (10, 16), "r")


def test_what_is_in_the_way_in_other_documents_is_told_at_once():
    data = "---\n".join(container(f"resources: !!map {{{name}: {{}}}}") for name in ("limits", "requests")).encode()
    wanted = [ObjectEdit(place, f"{FIRST}.resources.limits.cpu", "1") for place in places(data)]
    result = apply_edits(data, wanted)
    assert isinstance(result, CannotEdit)
    assert [each.edit for each in (result, *result.others)] == wanted
    assert [each.reason for each in (result, *result.others)] == [Reason.TAGGED, Reason.TAGGED]


@pytest.mark.parametrize("removed", ["spec.containers[0].env", "spec.containers[0].env[0].value"])
def test_an_anchor_that_is_used_elsewhere_is_not_taken_away(removed):
    text = container("env:\n- name: A\n  value: &a b\nimage: *a")
    result = edited(text, (removed, None))
    assert isinstance(result, CannotEdit)
    assert result.reason is Reason.SHARED


def test_an_object_that_is_not_there_is_not_edited():
    data = container("image: i").encode()
    stale = Place(Chunk(0, 10, "yaml"))
    assert apply_edits(data, [ObjectEdit(stale, "a", "b")]) == CannotEdit(
        Reason.NO_SUCH_OBJECT, ObjectEdit(stale, "a", "b")
    )


def test_a_list_whose_items_are_written_twice_is_not_edited():
    pod = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[{"name":"c"}]}}'
    data = f'{{"apiVersion":"v1","kind":"List","items":[{pod}],"items":[{pod}]}}'.encode()
    result = apply_edits(data, [ObjectEdit(places(data)[0], "spec.nodeName", "node1")])
    assert isinstance(result, CannotEdit)
    assert result.reason is Reason.DUPLICATE_KEY


def test_a_block_scalar_at_the_very_end_is_not_given_another_line():
    # Without a line end its text has none; one more line would give it one.
    result = edited(container("args: [a]\nimage: |\n  i").rstrip("\n"), (f"{FIRST}.resources.limits.cpu", 1))
    assert isinstance(result, CannotEdit)
    assert result.reason is Reason.NOT_AS_MEANT
