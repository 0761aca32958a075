"""JSON streams, keys set twice, and positions."""

from __future__ import annotations

import pytest

from podqos.manifest.plain import FieldPath
from podqos.manifest.problems import SyntaxProblem
from podqos.manifest.strictjson import Positions, duplicate_keys, spans


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        (" \n ", []),
        ('{"a": 1}', ['{"a": 1}']),
        ('{"a": 1}{"b": 2}', ['{"a": 1}', '{"b": 2}']),
        ('\n{"a": [1, 2]}\n\n{"b": "}"}\n', ['{"a": [1, 2]}', '{"b": "}"}']),
    ],
)
def test_a_stream_is_taken_apart(text: str, values: list[str]):
    assert [text[begin:end] for begin, end in spans(text, (1, 1))] == values


@pytest.mark.parametrize(
    ("text", "position", "what"),
    [
        ('{"a": 1}\n{"b": }', (2, 7), "broken JSON: Expecting value"),
        ('{"a": 1,\n "b" 2}', (2, 6), "broken JSON: Expecting ':' delimiter"),
        ('{"a": "b\n"}', (1, 9), "broken JSON: Invalid control character at"),
        ('{"a": NaN}', (1, 1), "broken JSON: NaN is not JSON"),
        ("[" * 100_000, (1, 1), "nested too deeply"),
    ],
)
def test_a_broken_stream_says_where(text: str, position: tuple[int, int], what: str):
    with pytest.raises(SyntaxProblem) as raised:
        list(spans(text, (1, 1)))
    assert (raised.value.position, raised.value.what) == (position, what)


def test_keys_set_twice_are_found_at_any_depth():
    text = '{"a": 1, "a": 2, "b": [{"c": {"d": 1, "e": 2, "d": 3}}], "f": 1}'
    assert sorted(duplicate_keys(text)) == [("a",), ("b", 0, "c", "d")]


TEXT = """\
{
    "kind": "List", "items": [
        {"metadata": {"name": "a: }\\"{"}},
        {"spec": {"containers": [ {"name":"x"} ,
            {"nvidia.com/gpu" : 1 , "empty": [], "none": {}}]}}
    ]
}
"""
POSITIONS: dict[FieldPath, tuple[int, int]] = {
    (): (1, 1),
    ("kind",): (2, 5),
    ("items",): (2, 21),
    ("items", 0): (3, 9),
    ("items", 0, "metadata", "name"): (3, 23),
    ("items", 1, "spec", "containers", 1, "nvidia.com/gpu"): (5, 14),
    ("items", 1, "spec", "containers", 0): (4, 35),
    ("items", 1, "spec", "containers", 1, "none", "x"): (5, 50),
    ("items", 1, "spec", "containers", 1, "empty", 0): (5, 37),
    ("items", 7, "spec"): (2, 21),
    ("kind", "x"): (2, 5),
}


def test_every_field_can_be_located_in_any_order():
    located = Positions(TEXT, (1, 1))
    paths = [*POSITIONS, *reversed(POSITIONS)]
    assert [located.locate(path) for path in paths] == [POSITIONS[path] for path in paths]


def test_positions_count_from_where_the_text_begins():
    positions = Positions('{"a":\n {"b": 1}}', (5, 11))
    assert positions.locate(("a",)) == (5, 12)
    assert positions.locate(("a", "b")) == (6, 3)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "b": nonsense', '{"a": 1, "b" 2}', '{"a": 1,', '{"a": 1, "b": ' + "[" * 5000]
)
def test_up_to_where_a_text_is_broken_fields_are_located(text: str):
    positions = Positions(text, (1, 1))
    assert positions.locate(("a",)) == (1, 2)
    assert positions.locate(("c",)) == (1, 1)
