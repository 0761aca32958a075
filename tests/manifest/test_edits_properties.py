"""Whatever the style: what is edited takes effect, all the rest stays, and a second time nothing changes."""

from __future__ import annotations

from difflib import SequenceMatcher

from hypothesis import given, settings
from hypothesis import strategies as st

from manifest.fix_styles import manifests
from manifest.test_fuzz import mutated
from podqos.manifest.edits.apply import CannotEdit, Edited, ObjectEdit, Reason, apply_edits
from podqos.manifest.lookup import Lookup
from podqos.manifest.plain import FieldPath, Plain, parse_path
from podqos.manifest.reading import read
from podqos.manifest.text import Place

VALUES = st.sampled_from(("256Mi", "1", 2, "yes", "a: b", "it's", {"cpu": "1", "memory": "1Gi"}, {}, None))
FIELDS = st.sampled_from((
    "spec.containers[0].resources.limits.memory",
    "spec.containers[0].resources.requests.cpu",
    "spec.containers[0].resources.requests[nvidia.com/gpu]",
    "spec.containers[0].resources.requests",
    "spec.containers[0].resources",
    "spec.containers[0].image",
    "metadata.annotations[example.com/note]",
    "metadata.labels",
    "spec.priorityClassName",
))  # fmt: skip
WORDS = (b"resources", b"limits", b"requests", b"memory", b"cpu", b"gpu", b"image", b"metadata", b"name", b"priority")


def places(data: bytes) -> list[Place]:
    """Return where objects stand, in the order of the text: an edit can make one acceptable that was not."""
    reading = read("", data)
    found = [*reading.places, *(other.place for other in (*reading.others, *reading.refused))]
    return sorted(found, key=lambda place: (place.chunk.start, place.document, [str(step) for step in place.path]))


def only_pod(data: bytes) -> Place:
    (place,) = places(data)
    return place


def value_at(value: Plain, path: FieldPath) -> Plain:
    for step in path:
        if isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        elif isinstance(value, dict):
            value = value.get(str(step))
        else:
            return None
    return value


@settings(max_examples=100, deadline=None)
@given(manifests(), st.sampled_from(("requests", "limits")), st.sampled_from(("256Mi", "1", 1)))
def test_an_amount_can_be_set_in_every_style(data, side, amount):
    field = f"spec.containers[0].resources.{side}.memory"
    result = apply_edits(data, [ObjectEdit(only_pod(data), field, amount)])
    assert isinstance(result, Edited), result
    fixed = result.data
    assert not [problem for problem in read("", fixed).problems if problem not in read("", data).problems]
    assert value_at(Lookup(fixed).plain(only_pod(fixed)), parse_path(field)) == amount
    assert apply_edits(fixed, [ObjectEdit(only_pod(fixed), field, amount)]) == result
    check_lines(data, fixed)


def check_lines(before: bytes, after: bytes) -> None:
    """Check that lines go only where an amount was changed or, at the end of a file or in brackets, one follows."""
    old, new = (data.splitlines(keepends=True) for data in (before, after))
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    gone = [
        old[index] for kind, start, end, _, _ in matcher.get_opcodes() if kind != "equal" for index in range(start, end)
    ]
    assert len(gone) <= 1
    for line in gone:
        kept = line.rstrip(b"\r\n")
        is_json = before.lstrip(b"\xef\xbb\xbf \r\n")[:1] == b"{"
        has_value = any(
            word in line for word in (b"memory", b"resources", b"requests", b"limits", b"- {", b"[", b"spec")
        )
        assert has_value or is_json or line == old[-1], kept


@settings(max_examples=100, deadline=None)
@given(manifests(), st.lists(st.tuples(FIELDS, VALUES), min_size=1, max_size=4))
def test_edits_take_effect_as_a_whole_or_not_at_all(data, wanted):
    edits = [ObjectEdit(only_pod(data), path, value) for path, value in wanted]
    result = apply_edits(data, edits)
    if isinstance(result, CannotEdit):
        # Two want different values, or one of them would make it an invalid manifest.
        assert result.reason in {Reason.CONFLICT, Reason.NOT_AS_MEANT, Reason.NOT_A_MAPPING, Reason.UNSUPPORTED}
        return
    assert value_at(Lookup(result.data).plain(only_pod(result.data)), parse_path(wanted[-1][0])) == wanted[-1][1]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), FIELDS, VALUES)
def test_damaged_manifests_are_edited_rightly_or_refused(seed, field, value):
    check_arbitrary(mutated(seed), field, value)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60) | st.text("{}[]:,-\n \"'#&*!|>a0\t", max_size=40).map(str.encode), FIELDS, VALUES)
def test_arbitrary_bytes_are_edited_rightly_or_refused(noise, field, value):
    pod = b"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - name: c\n"
    for data in (noise, pod + noise, noise + b"\n---\n" + pod, pod.replace(b"spec", noise + b"\nspec")):
        check_arbitrary(data, field, value)


def check_arbitrary(data: bytes, field: str, value: Plain) -> None:
    before = {(problem.field, problem.what) for problem in read("", data).problems}
    for index, place in enumerate(places(data)[:3]):
        result = apply_edits(data, [ObjectEdit(place, field, value)])
        if isinstance(result, Edited):
            assert {(problem.field, problem.what) for problem in read("", result.data).problems} <= before
            fixed = Lookup(result.data).plain(places(result.data)[index])
            assert value_at(fixed, parse_path(field)) == value
