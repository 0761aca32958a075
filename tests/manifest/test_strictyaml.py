"""The strict reading: everything go-yaml reads, with positions, and a clear word on what it does not."""

from __future__ import annotations

import pytest

from podqos.manifest.plain import FieldPath, Plain
from podqos.manifest.problems import SyntaxProblem
from podqos.manifest.strictyaml import Document, read_documents
from timing import takes_less_than


def one(text: str) -> Document:
    (document,) = read_documents(text.encode())
    return document


MEANINGS: dict[str, tuple[str, Plain]] = {
    "empty document": ("---\n", None),
    "anchor and alias": ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}),
    "anchored scalar as a key": ("a: &k b\n*k : 1\n", {"a": "b", "b": 1}),
    "anchor set again": ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
    "merge": ("a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n", {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}}),
    "merge after the key, which go-yaml v2 lets win": ("a:\n  b: 1\n  <<: {b: 2}\n", {"a": {"b": 2}}),
    "merge of several, the first wins": ("<<: [{a: 1}, {a: 2, b: 3}]\n", {"a": 1, "b": 3}),
    "quoted merge key": ('"<<": {a: 1}\n', {"<<": {"a": 1}}),
    "tags": ("a: !!str 5\nb: !!int '5'\nc: !t x\n!!str 1: d\n", {"a": "5", "b": 5, "c": "x", "1": "d"}),
    "keys": ("on: 1\n2: b\n'3': c\n", {"true": 1, "2": "b", "3": "c"}),
    "complex notation of a simple key": ("? a\n: b\n", {"a": "b"}),
    "escaped apostrophe, which go-yaml knows": (
        "a: \"it\\'s\" # \\'\nb: 'c\\'\nd: \"\\\\'\\a\"\n\"k\\'\": {e: \"\\'\\'\"}\n",
        {"a": "it's", "b": "c\\", "d": "\\'\a", "k'": {"e": "''"}},
    ),
    "scalars over several lines": ('a: b\n\n  c\nd: "e\\\n  f"\n', {"a": "b\nc", "d": "ef"}),
}


@pytest.mark.parametrize(("text", "meaning"), MEANINGS.values(), ids=MEANINGS.keys())
def test_documents_mean_what_they_mean_to_kubernetes(text: str, meaning: Plain):
    document = one(text)
    assert document.problems == ()
    assert document.value == meaning


def test_documents_follow_each_other():
    values = [document.value for document in read_documents(b"a: 1\n---\nb: 2\n...\n%YAML 1.1\n--- c\n")]
    assert values == [{"a": 1}, {"b": 2}, "c"]


BROKEN = {
    "two colons": ("a: b: c\n", (1, 5), "mapping values are", 'put the value of line 1 in quotes: a: "b: c"'),
    "tab": ("a:\n\tb: 1\n", (2, 1), "cannot start any token", "indent with spaces, not tabs"),
    "unclosed bracket": ("a: [b\nc: d\n", (2, 2), "did not find expected ',' or ']'", "that began on line 1"),
    "unclosed quote": ("a: 'b\n", (2, 1), "unexpected end of stream", "that began on line 1"),
    "bad dedent": ("a:\n    b: 1\n  c: 2\n", (3, 3), "did not find expected key", "that began on line 1"),
    "template": ("a: {{ .Values.b }}\n", (1, 5), "cannot be a key", "this looks like a template: render it first"),
    "unknown anchor": ("a: *b\n", (1, 4), "unknown anchor 'b'", ""),
    "recursive anchor": ("a: &b [*b]\n", (1, 8), "anchor 'b' contains itself", ""),
    "list as a key": ("? [a]\n: b\n", (1, 3), "cannot be a key", "JSON keys are strings"),
    "alias of a mapping as a key": ("a: &x {}\n*x : 1\n", (2, 1), "cannot be a key", ""),
    "merge of a scalar": ("a:\n  <<: 1\n", (2, 7), "map merge requires map", ""),
    "control character": ("a: b\nc: \x07\n", (2, 4), "U+0007 is not allowed", "remove it"),
    "nested too deeply": ("[" * 300, (1, 201), "nested more than 200 levels", ""),
}


@pytest.mark.parametrize(("text", "position", "what", "fix"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_documents_say_where_and_why(text: str, position: tuple[int, int], what: str, fix: str):
    with pytest.raises(SyntaxProblem) as raised:
        list(read_documents(text.encode()))
    assert what in raised.value.what
    assert (raised.value.position, raised.value.fix) == (position, fix)


def test_bytes_that_are_not_utf_8_are_located():
    with pytest.raises(SyntaxProblem, match="byte 0xff is not UTF-8") as raised:
        list(read_documents("é: ü\n  ".encode() + b"\xff\n", first_line=7))
    assert raised.value.position == (8, 3)


def test_what_came_before_the_broken_part_is_kept():
    documents = read_documents(b"a: 1\n---\nb: [\n")
    assert next(documents).value == {"a": 1}
    with pytest.raises(SyntaxProblem):
        next(documents)


COLLECTED = {
    "key set twice": ("a: 1\nb: 2\na: 3\n", (3, 1), 'key "a" is set twice', "it is already set on line 1"),
    "in two notations": ("1: a\n'1': b\n", (2, 1), 'key "1" is set twice', "it is already set on line 1"),
    "null as a key": ("a: 1\n~: b\n", (2, 1), "null cannot be a key", "put it in quotes"),
    "not a number": ("a:\n- .nan\n", (2, 3), ".nan is not a number that JSON can carry", "put it in quotes"),
    "unfit tag": ("a: !!int x\n", (1, 4), "cannot read 'x' as !!int", "put it in quotes"),
}


@pytest.mark.parametrize(("text", "position", "what", "fix"), COLLECTED.values(), ids=COLLECTED.keys())
def test_documents_that_can_be_read_but_not_used_carry_their_problems(
    text: str, position: tuple[int, int], what: str, fix: str
):
    (problem,) = one(text).problems
    assert (problem.position, problem.what, problem.fix) == (position, what, fix)


def test_of_a_key_that_is_set_twice_the_last_counts():
    document = one("a: 1\nb: {c: 2, c: 3}\na: 4\n")
    assert document.has_value
    assert document.value == {"a": 4, "b": {"c": 3}}
    assert document.locate(("a",)) == (3, 1)
    assert not one("a: .nan\na: 1\n").has_value


def test_positions_behind_an_escaped_apostrophe_are_those_of_the_text():
    assert one('a: ["it\\\'s", x]\n').locate(("a", 1)) == (1, 14)


def test_a_text_full_of_escaped_apostrophes_does_not_take_forever():
    text = "".join(f'a{number}: "\\\'"\n' for number in range(5_000))

    def work() -> None:
        with pytest.raises(SyntaxProblem):
            one(text)

    assert takes_less_than(10, work)


def test_a_merged_key_may_be_set_again():
    assert one("a:\n  <<: {b: 1}\n  b: 2\n").problems == ()


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines) + "\n"


def test_alias_bombs_are_refused_before_they_go_off():
    with pytest.raises(SyntaxProblem, match="excessive aliasing"):
        one(bomb(30))


def test_aliases_in_moderation_are_fine():
    text = "base: &base {cpu: 1, memory: 1Gi}\npods:\n" + "- *base\n" * 200
    assert one(text).value["pods"] == [{"cpu": 1, "memory": "1Gi"}] * 200  # type: ignore[index,call-overload]


DOCUMENT = """\
metadata: {name: a, labels: {app: b}}
spec:
  containers:
  - name: c
    resources: &r
      requests:
        cpu: 1
        nvidia.com/gpu: 2
  - name: d
    resources: *r
"""
POSITIONS: dict[FieldPath, tuple[int, int]] = {
    (): (1, 1),
    ("metadata",): (1, 1),
    ("metadata", "labels", "app"): (1, 30),
    ("spec", "containers"): (3, 3),
    ("spec", "containers", 0): (4, 5),
    ("spec", "containers", 0, "resources", "requests", "nvidia.com/gpu"): (8, 9),
    ("spec", "containers", 1, "resources", "requests", "cpu"): (7, 9),
    # what does not exist is where its nearest ancestor is
    ("spec", "containers", 0, "resources", "limits", "cpu"): (5, 5),
    ("spec", "containers", 5): (3, 3),
    ("spec", "containers", 0, "name", "x"): (4, 5),
    ("status",): (1, 1),
}


@pytest.mark.parametrize(("path", "position"), POSITIONS.items(), ids=str)
def test_every_field_can_be_located(path: FieldPath, position: tuple[int, int]):
    assert one(DOCUMENT).locate(path) == position


def test_positions_count_from_the_line_the_text_begins_on():
    (document,) = read_documents(b"a:\n  b: 1\n", first_line=10)
    assert document.locate(("a", "b")) == (11, 3)


def test_a_value_that_a_second_key_replaced_lends_its_places_to_no_other():
    """Places are known by the ``id`` of a mapping, which Python gives away again once the mapping is gone."""
    for lost in range(50):
        text = "spec:\n  gone: 1\n" + "".join(f"spec:\n  a{number}: {{}}\n" for number in range(lost)) + "spec: {}\n"
        (document,) = read_documents(text.encode())
        assert document.locate(("spec", "gone")) == (2 * lost + 3, 1)
