"""Texts are taken apart at their separators, and only there."""

from __future__ import annotations

import pytest

from podqos.manifest.problems import SyntaxProblem
from podqos.manifest.text import chunks, normalise

TEXTS = {
    "empty": (b"", []),
    "blank": (b" \n\t\n\n", []),
    "comments": (b"# a\n  # b", []),
    "separators": (b"---\n--- # c\n\n---", []),
    "one document": (b"a: 1\n", [(b"a: 1\n", "yaml", 1)]),
    "leading separator": (b"---\na: 1\n", [(b"\na: 1\n", "yaml", 1)]),
    "two documents": (b"a: 1\n---\nb: 2\n", [(b"a: 1\n", "yaml", 1), (b"b: 2\n", "yaml", 3)]),
    "comments in between": (b"a: 1\n--- # x\n\n# y\n---\nb: 2", [(b"a: 1\n", "yaml", 1), (b"b: 2", "yaml", 6)]),
    "not a separator": (b"a: |\n  ---\n  b\n----\n", [(b"a: |\n  ---\n  b\n----\n", "yaml", 1)]),
    "separator with content": (b"a: 1\n--- b\n", [(b"a: 1\n--- b\n", "yaml", 1)]),
    "end of a document": (b"a: 1\n...\nb: 2\n", [(b"a: 1\n", "yaml", 1), (b"b: 2\n", "yaml", 3)]),
    "directive": (b"%YAML 1.1\n---\na: 1\n", [(b"a: 1\n", "yaml", 3)]),
    "json": (b' {"a": 1}\n', [(b' {"a": 1}\n', "json", 1)]),
    "json list": (b"[\n {}]", [(b"[\n {}]", "json", 1)]),
    "flow mapping": (b"{a: 1}\n", [(b"{a: 1}\n", "yaml", 1)]),
    "template": (b"{{ if }}\n", [(b"{{ if }}\n", "yaml", 1)]),
    "json and yaml": (b'{"a": 1}\n---\nb: 2\n', [(b'{"a": 1}\n', "json", 1), (b"b: 2\n", "yaml", 3)]),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS.keys())
def test_a_text_is_taken_apart_at_its_separators(text: bytes, expected: list[tuple[bytes, str, int]]):
    found = [(text[chunk.start : chunk.end], chunk.notation, chunk.origin[0]) for chunk in chunks(text)]
    assert found == expected


@pytest.mark.parametrize(
    ("data", "text"),
    [(b"a\n", b"a\n"), (b"\xef\xbb\xbfa\n", b"a\n"), (b"a\r\nb\r\n", b"a\nb\n"), (b"a\rb\n", b"a\rb\n")],
)
def test_marks_and_line_ends_are_normalised(data: bytes, text: bytes):
    assert normalise(data) == text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_named(encoding: str):
    data = "\ufeffa: 1".encode(encoding)
    with pytest.raises(SyntaxProblem, match="UTF-"):
        normalise(data)
