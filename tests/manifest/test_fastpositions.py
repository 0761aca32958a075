"""The fast positions: what they say of a plain document is what the strict reading says."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings

from manifest.yaml_documents import documents
from podqos.manifest.fastpositions import nearest, plain_positions
from podqos.manifest.fastyaml import NotPlain
from podqos.manifest.lookup import Lookup
from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import SyntaxProblem
from podqos.manifest.reading import read
from podqos.manifest.strictyaml import Document, read_documents


def strictly(text: bytes) -> Document | None:
    """Return the one document of a text that is in order."""
    try:
        found = list(read_documents(text))
    except SyntaxProblem:
        return None
    return found[0] if len(found) == 1 and not found[0].problems else None


def paths(value: Plain, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Every path in a value, and one beside each."""
    yield path
    yield (*path, "nowhere")
    steps = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for step in steps:
        yield from paths(value[step], (*path, step))


@settings(max_examples=750, deadline=None)
@given(documents())
@example(b"# a\n\na:\n- b: {c: 1, d: [x]}\n  e: [1, 'x', y]\n- [a, b]\nf: 1\n")
@example(b"- a: 1\n  b:\n  - c\n- d\n")
@example(b"a:\n  b: 1\nc: x y\n  z\nd: 2\n")
@example(b"a: |\n  b\n\nc: 'd\n  e'\nf: [\n  {g: h},\n  i\n  ]\nj: 1\n")
@example(b"- - a\n  - b: 1\n    c: {d: {e: f}}\n-   - - g\n")
def test_fields_stand_where_the_strict_reading_finds_them(text: bytes):
    document = strictly(text)
    if document is None or document.value is None:
        return
    try:
        positions = plain_positions(text)
    except NotPlain:
        return
    for path in paths(document.value):
        assert nearest(positions, path) == document.locate(path), path


@pytest.mark.parametrize(
    "text",
    [b"a: &x 1\nb: *x\n", b"a:\tb\n", b"a: 1\na: 2\n", b"# nothing\n"],
    ids=["anchor", "tab", "key set twice", "no content"],
)
def test_what_needs_the_strict_reading_is_left_to_it(text: bytes):
    with pytest.raises(NotPlain):
        plain_positions(text)


def test_a_manifest_is_located_without_being_parsed(monkeypatch):
    text = (
        b"---\n# one\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - {name: b, image: c}\n"
    )
    reading = read("f", text)
    lookup = Lookup(text)
    monkeypatch.setattr(Lookup, "_document", lambda *_: pytest.fail("parsed"))
    assert lookup.locate(reading.places[0], "spec.containers[0].image") == (8, 15)
    assert lookup.locate(reading.places[0], "metadata.name") == (5, 12)
    assert lookup.locate(reading.places[0], "") == (3, 1)
