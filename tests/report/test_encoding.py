"""Documented values as text: what a decision holds that JSON does not know."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
import yaml
from msgspec import Struct

from podqos.manifest.encoding import json_bytes, json_parts, json_schema, yaml_bytes
from podqos.model.quantity import Quantity


class Answer(Struct, rename="camel"):
    most_memory: Quantity
    how_likely: Fraction


class Odd(Struct):
    what: complex


def test_amounts_are_texts_and_fractions_are_numbers_in_both_notations():
    answer = Answer(Quantity.parse("1Gi"), Fraction(1, 4))
    expected = {"mostMemory": "1Gi", "howLikely": 0.25}
    assert json.loads(json_bytes(answer)) == yaml.safe_load(yaml_bytes(answer)) == expected


def test_the_schema_says_so():
    properties = json_schema(Answer)["$defs"]["Answer"]["properties"]
    assert properties == {"mostMemory": {"type": "string"}, "howLikely": {"type": "number"}}


def test_what_is_not_documented_is_our_own_mistake():
    with pytest.raises(NotImplementedError):
        json_bytes(Odd(1j))
    with pytest.raises(TypeError):
        json_schema(Odd)


class ManyItem(Struct, rename="camel"):
    some_text: str
    items: tuple[int, ...] = ()


class LongAnswer(Struct, rename="camel"):
    many_items: tuple[ManyItem, ...]
    one_item: ManyItem | None = None
    amount: Quantity = Quantity.parse("1Gi")


@pytest.mark.parametrize("count", [0, 1, 100, 101, 250])
def test_an_answer_in_parts_is_the_same_json(count):
    items = tuple(ManyItem(f'a "text"\n{number}', tuple(range(number % 3))) for number in range(count))
    answer = LongAnswer(items, ManyItem("one", (1, 2)))
    assert b"".join(json_parts(answer)) == json_bytes(answer)
