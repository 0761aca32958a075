import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podqos.admission.json_patch import PatchFails, PatchOperation, apply_patch, patch_of, pointer

KEYS = st.sampled_from(["a", "b", "example.com/gpu", "~", "/", "", "~1"])
DOCUMENTS = st.dictionaries(
    KEYS, st.recursive(st.text(max_size=3), lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=6)
)


def test_a_pointer_escapes_tilde_and_slash():
    assert pointer(("limits", "example.com/gpu~x", 0)) == "/limits/example.com~1gpu~0x/0"


def test_missing_parents_are_added_in_one_operation():
    patch = patch_of({"c": [{"name": "a"}]}, [(("c", 0, "resources", "limits", "cpu"), "1")])
    assert patch == (PatchOperation("add", "/c/0/resources", {"limits": {"cpu": "1"}}),)


def test_what_one_edit_adds_the_next_one_finds():
    edits = [(("resources", "limits", "cpu"), "1"), (("resources", "limits", "memory"), "1Gi")]
    patch = patch_of({}, edits)
    assert [each.path for each in patch] == ["/resources", "/resources/limits/memory"]
    assert apply_patch({}, patch) == {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}


def test_a_null_parent_is_written_over_as_the_api_server_reads_it():
    document = {"resources": None}
    patch = patch_of(document, [(("resources", "limits", "cpu"), "1")])
    assert apply_patch(document, patch) == {"resources": {"limits": {"cpu": "1"}}}


def test_an_item_that_is_not_there_is_never_made_up():
    with pytest.raises(PatchFails):
        patch_of({"containers": []}, [(("containers", 0, "image"), "x")])


def test_the_document_stays_as_it_is():
    document = {"a": {"b": "1"}}
    patch_of(document, [(("a", "b"), "2")])
    apply_patch(document, [PatchOperation("remove", "/a/b")])
    assert document == {"a": {"b": "1"}}


@pytest.mark.parametrize(
    "operation",
    [
        PatchOperation("remove", "/missing"),
        PatchOperation("replace", "/missing", "x"),
        PatchOperation("add", "/missing/below", "x"),
        PatchOperation("test", "/a", "another"),
        PatchOperation("add", "/list/7", "x"),
        PatchOperation("add", "/list/01", "x"),
        PatchOperation("remove", "/list/-"),
        PatchOperation("add", "/a/below", "x"),
        PatchOperation("add", "/new"),
    ],
)
def test_what_an_api_server_refuses_fails_here_too(operation):
    with pytest.raises(PatchFails):
        apply_patch({"a": "1", "list": ["x"]}, [operation])


def test_items_can_be_inserted_appended_and_removed():
    operations = [
        PatchOperation("add", "/l/-", "c"),
        PatchOperation("add", "/l/0", "z"),
        PatchOperation("remove", "/l/1"),
        PatchOperation("test", "/l/0", "z"),
    ]
    assert apply_patch({"l": ["a", "b"]}, operations) == {"l": ["z", "b", "c"]}


@given(
    DOCUMENTS, st.lists(st.tuples(st.lists(KEYS, min_size=1, max_size=4).map(tuple), st.text(max_size=2)), max_size=4)
)
def test_a_patch_writes_what_it_should_and_a_second_one_is_empty(document, edits):
    try:
        patch = patch_of(document, edits)
    except PatchFails:
        return  # a text has no members
    wire = [PatchOperation(**each) for each in json.loads(msgspec.json.encode(patch))]
    after = apply_patch(document, wire)
    last = dict(edits)
    if len(last) == len(edits) and not any(a != b and a == b[: len(a)] for a in last for b in last):
        assert patch_of(after, edits) == ()
        for path, text in last.items():
            value = after
            for step in path:
                value = value[step]
            assert value == text
